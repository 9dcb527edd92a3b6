//! Compiles the no-op guest and the bubblewrap side's PID 1, which the bench carries as bytes.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    for source in ["guest/noop.rs", "bwrap/init.c", "build.rs"] {
        println!("cargo::rerun-if-changed={source}");
    }
    println!("cargo::rerun-if-env-changed=CC");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let rustc = std::env::var_os("RUSTC").ok_or("RUSTC is not set")?;
    let cc = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let noop = "guest/noop.rs --edition=2024 --crate-type=bin -Cpanic=abort -Copt-level=s \
                -Cstrip=symbols -Crelocation-model=static -Ctarget-feature=+crt-static \
                -Clink-arg=-nostartfiles -Clink-arg=-nostdlib -Clink-arg=-static \
                -Clink-arg=-no-pie -Clink-arg=-Wl,--build-id=none -o";
    compile(&rustc, noop, out.join("noop"))?;
    compile(&cc, "bwrap/init.c -static -O2 -Wall -Wextra -Werror -o", out.join("init"))
}

#[expect(clippy::disallowed_methods, reason = "a build script starts compilers")]
fn compile(compiler: &OsString, arguments: &str, out: PathBuf) -> Result<(), Failure> {
    let mut command = std::process::Command::new(compiler);
    let output = command.args(arguments.split_whitespace()).arg(out).output()?;
    match output.status.success() {
        true => Ok(()),
        false => {
            std::io::stderr().write_all(&output.stderr)?;
            Err(format!("{} failed: {arguments}", compiler.display()).into())
        }
    }
}
