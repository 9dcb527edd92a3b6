//! Runs a piece of untrusted Python once, with a limit of time and of output, and shows what came
//! of it: `cargo run -p postern --example one-shot -- 'print(6 * 7)'`.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use postern::{Command, Error, Sandbox, SandboxProfile};

const CODE: &str = "import sys; print('hello from', sys.version.split()[0])";

fn run(code: &str) -> Result<ExitCode, Error> {
    // One run is all there will be, so that nothing is made ahead for another.
    let sandbox = Sandbox::builder(SandboxProfile::default()).single_use(true).build()?;
    let limited = Command::python(code).timeout(Duration::from_secs(10)).output_bytes_max(1 << 20);
    let result = sandbox.run(limited)?;
    // Nobody is left to be told when our own outputs are closed.
    std::io::stdout().write_all(&result.stdout).ok();
    std::io::stderr().write_all(result.stderr_report().as_bytes()).ok();
    Ok(ExitCode::from(u8::try_from(result.returncode()).unwrap_or(u8::MAX)))
}

fn main() -> ExitCode {
    let code = std::env::args().nth(1);
    match run(code.as_deref().unwrap_or(CODE)) {
        Ok(code) => code,
        Err(error) => {
            // What could not be confined did not run.
            writeln!(std::io::stderr(), "one-shot: {error}").ok();
            ExitCode::from(125)
        }
    }
}
