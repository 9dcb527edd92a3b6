//! The one front door of the repository: what CI runs, by the same name on every machine. It
//! builds and starts programs, and is no part of the product.

mod apt;
mod arguments;
mod cache;
mod check;
mod clients;
mod codegen;
mod command;
mod executables;
mod failure;
mod fuzz;
mod half;
mod image;
mod install;
mod judge;
mod known;
mod scratch;
mod tally;
mod test;
mod vm;
mod watch;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use arguments::{Length, Task};
use command::Cargo;
use failure::Failure;
use judge::{Judge, JudgeOptions};
use vm::VmOptions;

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
            let tests = test::run(&options);
            match options.length {
                Length::Long if options.only.is_empty() => long(tests),
                Length::Long | Length::Sample => tests,
            }
        }
        Task::Vm(options) => vm::run(&options),
        Task::Judge(options) => judge::run(&options),
        Task::Golden => golden(),
        Task::Codegen => codegen::write(),
        Task::Bench(arguments) => bench(arguments),
        Task::Fuzz { target, options } => fuzz::run(&target, &options),
    }
}

/// Other kernels and other people's tests, after our own: each to its end, whatever came of the rest.
fn long(tests: Result<(), Failure>) -> Result<(), Failure> {
    let mut parts = vec![("tests", tests)];
    if rustix::process::geteuid().is_root() {
        parts.push(("vm", vm::run(&VmOptions::default())));
        parts.push(("vm stress", vm::run(&VmOptions::stress())));
        let judges = Judge::ALL.into_iter();
        parts.extend(judges.map(|judge| (judge.name(), judge::run(&JudgeOptions::new(judge)))));
    } else {
        say("skipped: machines and judges: the caller is not root");
    }
    let failures = parts.iter().filter_map(|(name, outcome)| Some((name, outcome.as_ref().err()?)));
    let lines: Vec<_> = failures.map(|(name, failure)| format!("{name}: {failure}")).collect();
    lines.iter().for_each(|line| say(line));
    match u64::try_from(lines.len()) {
        Ok(0) => Ok(()),
        count => Err(Failure::Failed { count: count.unwrap_or(u64::MAX) }),
    }
}

fn golden() -> Result<(), Failure> {
    let plans = ["test", "--release", "--workspace", "--test", "golden_plans"];
    Cargo::new(plans).env("UPDATE_GOLDEN", "1").succeed()?;
    let pages = ["test", "--release", "--package", "postern", "--lib", "profile::file::"];
    Cargo::new(pages).env("UPDATE_GOLDEN", "1").succeed()?;
    let tables = ["test", "--release", "--package", "postern-seccomp", "--test", "page"];
    Cargo::new(tables).env("UPDATE_GOLDEN", "1").succeed()
}

fn bench(arguments: Vec<OsString>) -> Result<(), Failure> {
    let run = ["run", "--release", "--package", "postern-bench", "--"];
    Cargo::new(run).args(arguments).succeed()
}

/// One line for the person at the terminal. A closed standard output is no reason to stop.
fn say(line: &str) {
    drop(writeln!(std::io::stdout(), "{line}"));
}
