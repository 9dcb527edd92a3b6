//! Compiles the static image with the same compiler that builds the library: no other tool, no
//! target to install, nothing to download.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    let init = PathBuf::from(variable("DEP_POSTERN_INIT_SOURCE")?);
    let own = Path::new("src");
    println!("cargo::rerun-if-changed={}", init.display());
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=build.rs");

    let rlib = |name: &str| out.join(format!("lib{name}.rlib"));
    let external = |name: &str| {
        let mut argument = OsString::from(format!("{name}="));
        argument.push(rlib(name));
        argument
    };
    library("postern_init", &init.join("lib.rs"), &rlib("postern_init"), &[])?;
    let init = external("postern_init");
    library("postern_launcher", &own.join("lib.rs"), &rlib("postern_launcher"), &[&init])?;
    let launcher = external("postern_launcher");
    let linked = out.join("postern-launcher.linked");
    image(&own.join("image/main.rs"), &linked, &[&init, &launcher])?;
    drop_sections(&linked, &out.join("postern-launcher"))
}

fn variable(name: &str) -> Result<OsString, Failure> {
    std::env::var_os(name).ok_or_else(|| format!("{name} is not set").into())
}

fn library(name: &str, source: &Path, out: &Path, externals: &[&OsStr]) -> Result<(), Failure> {
    let kind = [OsStr::new("--crate-type=rlib"), OsStr::new("--crate-name"), OsStr::new(name)];
    compile(source, out, externals, &kind)
}

/// No start files, no libraries, fixed address, separate read-only and executable segments.
fn image(source: &Path, out: &Path, externals: &[&OsStr]) -> Result<(), Failure> {
    let link = [
        "-nostartfiles",
        "-nostdlib",
        "-static",
        "-no-pie",
        "-Wl,--build-id=none",
        "-Wl,-z,norelro",
        "-Wl,-z,noexecstack",
        "-Wl,-z,noseparate-code",
        "-Wl,--no-eh-frame-hdr",
        "-Wl,--gc-sections",
    ];
    let mut kind = vec![OsString::from("--crate-type=bin"), OsString::from("-Clinker-flavor=gcc")];
    kind.extend(["-Clto=fat", "-Cstrip=symbols", "-Crelocation-model=static"].map(OsString::from));
    kind.push("-Ctarget-feature=+crt-static".into());
    kind.push("-Clink-arg=-Wl,-T,src/image/image.ld".into());
    kind.extend(link.iter().map(|argument| OsString::from(format!("-Clink-arg={argument}"))));
    if let Some(linker) = std::env::var_os("RUSTC_LINKER") {
        let mut argument = OsString::from("-Clinker=");
        argument.push(linker);
        kind.push(argument);
    }
    let kind: Vec<&OsStr> = kind.iter().map(OsString::as_os_str).collect();
    compile(source, out, externals, &kind)
}

/// Cuts off what comes after the segments: the table of sections is for linkers and debuggers.
fn drop_sections(linked: &Path, image: &Path) -> Result<(), Failure> {
    /// Where an ELF header says where the table is, and how many entries of which size it has.
    const TABLE: (std::ops::Range<usize>, std::ops::Range<usize>) = (0x28..0x30, 0x3a..0x40);
    const SEGMENTS: (std::ops::Range<usize>, std::ops::Range<usize>) = (0x20..0x28, 0x38..0x3a);
    const SEGMENT_LEN: usize = 56;
    let mut bytes = std::fs::read(linked)?;
    let number = |range: std::ops::Range<usize>| -> Result<usize, Failure> {
        let field = bytes.get(range).ok_or("the image is cut short")?;
        Ok(field.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    let (first, count) = (number(SEGMENTS.0)?, number(SEGMENTS.1)?);
    let mut end = first + count * SEGMENT_LEN;
    for header in (0..count).map(|index| first + index * SEGMENT_LEN) {
        end = end.max(number(header + 8..header + 16)? + number(header + 32..header + 40)?);
    }
    bytes.truncate(end);
    for at in TABLE.0.chain(TABLE.1) {
        if let Some(byte) = bytes.get_mut(at) {
            *byte = 0;
        }
    }
    // Executable as it was.
    std::fs::copy(linked, image)?;
    Ok(std::fs::write(image, bytes)?)
}

#[expect(clippy::disallowed_methods, reason = "a build script starts the compiler")]
fn compile(
    source: &Path,
    out: &Path,
    externals: &[&OsStr],
    kind: &[&OsStr],
) -> Result<(), Failure> {
    let mut rustc = std::process::Command::new(variable("RUSTC")?);
    rustc.arg(source).arg("-o").arg(out).args(kind);
    rustc.args(["--edition=2024", "--cfg=postern_image", "--cap-lints=allow"]);
    rustc.args([
        "-Cpanic=abort",
        "-Cforce-unwind-tables=no",
        "-Copt-level=z",
        "-Ccodegen-units=1",
        "-Cdebug-assertions=off",
        // What many functions have in common is one function; less is inlined than LLVM would.
        "-Cllvm-args=-enable-machine-outliner=always",
        "-Cllvm-args=-inline-threshold=12",
    ]);
    rustc.arg("--target").arg(variable("TARGET")?);
    // The bytes must not depend on where the sources lie.
    for from in [source.parent(), Some(Path::new(&variable("CARGO_MANIFEST_DIR")?))] {
        let mut argument = OsString::from("--remap-path-prefix=");
        argument.push(from.unwrap_or(Path::new("")));
        argument.push("=/postern");
        rustc.arg(argument);
    }
    for external in externals {
        rustc.arg("--extern").arg(external);
    }
    let output = rustc.output()?;
    match output.status.success() {
        true => Ok(()),
        false => {
            std::io::stderr().write_all(&output.stderr)?;
            Err(format!("{} did not compile", source.display()).into())
        }
    }
}
