//! The `postern` command; parses, calls the library, shows what came of it. No policy of its own.

mod arguments;
mod check;
mod run;
mod streams;

use std::io::Write;
use std::process::ExitCode;

use arguments::{Arguments, Verb};
use clap::Parser;

/// Our own failure, as `env(1)`, `timeout(1)` and `docker run` have it.
const OWN_FAILURE: u8 = 125;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = if error.use_stderr() { OWN_FAILURE } else { 0 };
            // Nowhere left to say that it could not be said.
            error.print().ok();
            return ExitCode::from(code);
        }
    };
    let done = match arguments.verb {
        Verb::Run(options) => run::run(options),
        Verb::Plan(options) => run::plan(options),
        Verb::Check(options) => check::check(&options),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            writeln!(std::io::stderr(), "postern: {error}").ok();
            ExitCode::from(OWN_FAILURE)
        }
    }
}
