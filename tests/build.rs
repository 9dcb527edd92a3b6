//! Compiles the probe as a static program with the compiler that builds the tests, and hands its
//! path on: it must run in a root that holds nothing else.

use std::io::Write;
use std::path::PathBuf;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    println!("cargo::rerun-if-changed=probe");
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var_os(name).ok_or(format!("{name} is not set"));
    let probe = PathBuf::from(variable("OUT_DIR")?).join("probe");
    #[expect(clippy::disallowed_methods, reason = "a build script starts the compiler")]
    let mut rustc = std::process::Command::new(variable("RUSTC")?);
    rustc.args(["probe/main.rs", "--edition=2024", "--crate-name=probe", "--crate-type=bin"]);
    rustc.args(["-Ctarget-feature=+crt-static", "-Crelocation-model=static", "--cap-lints=allow"]);
    rustc.args(["-Copt-level=s", "-Cpanic=abort", "-Cstrip=symbols"]);
    rustc.arg("--target").arg(variable("TARGET")?).arg("-o").arg(&probe);
    if let Some(linker) = std::env::var_os("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={}", linker.to_string_lossy()));
    }
    let output = rustc.output()?;
    if !output.status.success() {
        std::io::stderr().write_all(&output.stderr)?;
        return Err("the probe did not compile".into());
    }
    println!("cargo::rustc-env=POSTERN_PROBE={}", probe.display());
    Ok(())
}
