//! The fuzz targets of `fuzz/`: builds them as libFuzzer wants them, and runs one. Stable Rust is
//! enough, since coverage is a pass of LLVM's; a sanitizer of memory is not used.

use std::ffi::OsString;

use crate::command::{Cargo, program, root, start};
use crate::failure::Failure;

const MANIFEST: &str = "fuzz/Cargo.toml";
/// Named, so that build scripts are not instrumented.
const TARGET: &str = "x86_64-unknown-linux-gnu";
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table \
                     -Cllvm-args=-sanitizer-coverage-trace-compares \
                     -Clink-dead-code --cfg fuzzing";

/// Whether they build and lints are clean; not instrumented, which takes longer and shows no more.
pub(crate) fn check() -> Result<(), Failure> {
    Cargo::new(["fmt", "--manifest-path", MANIFEST, "--check"]).succeed()?;
    let clippy = ["clippy", "--quiet", "--locked", "--manifest-path", MANIFEST];
    Cargo::new(clippy).args(["--", "-Dwarnings"]).succeed()?;
    // Linked, since a target has no `main` of its own.
    Cargo::new(["build", "--quiet", "--locked", "--manifest-path", MANIFEST]).succeed()
}

/// Runs one target with libFuzzer's own options; its inputs are kept in
/// `fuzz/target/corpus/TARGET`.
pub(crate) fn run(target: &str, options: &[OsString]) -> Result<(), Failure> {
    let build = ["build", "--release", "--manifest-path", MANIFEST, "--target", TARGET];
    Cargo::new(build).args(["--bin", target]).env("RUSTFLAGS", FLAGS).succeed()?;
    let fuzz = root().join("fuzz");
    let corpus = fuzz.join("target").join("corpus").join(target);
    let made = std::fs::create_dir_all(&corpus);
    made.map_err(|source| Failure::File { act: "make", path: corpus.clone(), source })?;
    let file = fuzz.join("target").join(TARGET).join("release").join(target);
    let mut fuzzer = program(file);
    fuzzer.current_dir(&fuzz).arg(corpus).args(options);
    let status = fuzzer.status().map_err(|source| start(&fuzzer, source))?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Ended { command: format!("fuzz target {target}"), status }),
    }
}
