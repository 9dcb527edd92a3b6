//! The one front door of the repository: what CI runs, by the same name on every machine. It
//! builds and starts programs, and is no part of the product.

mod arguments;
mod check;
mod clients;
mod codegen;
mod command;
mod executables;
mod failure;
mod half;
mod image;
mod install;
mod scratch;
mod tally;
mod test;
mod watch;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use arguments::Task;
use command::Cargo;
use failure::Failure;

const USAGE: &str = include_str!("usage.txt");

fn main() -> ExitCode {
    let outcome = arguments::parse(std::env::args_os().skip(1)).and_then(run);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say(&format!("xtask: {failure}"));
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<(), Failure> {
    match task {
        Task::Help => {
            say(USAGE.trim_end());
            Ok(())
        }
        Task::Check(advisories) => check::run(advisories),
        Task::Test(options) => {
            install::install()?;
            test::run(&options)
        }
        Task::Golden => golden(),
        Task::Codegen => codegen::write(),
        Task::Bench(arguments) => bench(arguments),
    }
}

fn golden() -> Result<(), Failure> {
    let plans = ["test", "--release", "--workspace", "--test", "golden_plans"];
    Cargo::new(plans).env("UPDATE_GOLDEN", "1").succeed()?;
    let pages = ["test", "--release", "--package", "postern", "--lib", "profile::file::"];
    Cargo::new(pages).env("UPDATE_GOLDEN", "1").succeed()
}

fn bench(arguments: Vec<OsString>) -> Result<(), Failure> {
    let run = ["run", "--release", "--package", "postern-bench", "--"];
    Cargo::new(run).args(arguments).succeed()
}

/// One line for the person at the terminal. A closed standard output is no reason to stop.
fn say(line: &str) {
    drop(writeln!(std::io::stdout(), "{line}"));
}
