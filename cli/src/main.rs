//! The `postern` command; parses, calls the library, shows what came of it. No policy of its own.

mod arguments;
mod bwrap;
mod check;
mod demo;
mod failure;
mod log;
mod pages;
mod profile;
mod progress;
mod report;
mod run;
mod say;
mod script;
mod seccomp;
mod signals;
mod streams;
mod sys;
mod terminal;
mod visible;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::process::ExitCode;

use arguments::{Arguments, Paint, Verb};
use clap::error::ErrorKind;
use failure::{Failure, OWN_FAILURE};
use say::{Line, Voice};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some((name, words)) = bwrap::is_asked(&words) {
        return ExitCode::from(bwrap::main(&name, words));
    }
    let arguments = match Arguments::read(words.clone()) {
        Ok(arguments) => arguments,
        Err(error) => return ExitCode::from(misread(&error, &words)),
    };
    let voice = Voice::new(arguments.verb.paint());
    let is_for_programs = arguments.verb.is_for_programs();
    let code = carry_out(arguments.verb, voice).unwrap_or_else(|failure| {
        let is_told =
            is_for_programs && profile::write_out(&report::json_failure(&failure.facts())).is_ok();
        if !is_told {
            voice.say(&failure.lines());
        }
        failure.code()
    });
    ExitCode::from(code)
}

fn carry_out(verb: Verb, voice: Voice) -> Result<u8, Failure> {
    log::listen()?;
    match verb {
        Verb::Run(verb) => run::run(verb, voice),
        Verb::Python(verb) => run::python(verb, voice),
        Verb::Bash(verb) => run::bash(verb, voice),
        Verb::Plan(verb) => run::plan(&verb),
        Verb::Check(verb) => check::check(&verb),
        Verb::Profile(verb) => profile::print(&verb),
        Verb::Seccomp(verb) => seccomp::print(&verb),
        Verb::Demo(verb) => Err(demo::become_demo(&verb)),
        // Its words are taken before this, as they are: here for the help and the pages.
        Verb::Bwrap(verb) => Ok(bwrap::main(OsStr::new("postern bwrap"), verb.rest)),
        Verb::Completions(verb) => pages::completions(&verb),
        Verb::Man(verb) => pages::man(&verb),
    }
}

/// Help that was asked for, or what is wrong with the command line.
fn misread(error: &clap::Error, words: &[OsString]) -> u8 {
    let text = error.render().to_string();
    if !error.use_stderr() {
        return profile::write_out(text.as_bytes()).map_or_else(|failure| failure.code(), |()| 0);
    }
    let mut own = words.iter().take_while(|word| *word != "--");
    if own.any(|word| word == "--json") {
        let summary = text.lines().next().unwrap_or_default();
        let summary = summary.strip_prefix("error: ").unwrap_or(summary);
        let facts = Failure::Usage(summary.to_owned()).facts();
        profile::write_out(&report::json_failure(&facts)).ok();
    } else if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // The whole help, which needs no mark.
        std::io::stderr().write_all(text.as_bytes()).ok();
    } else {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().map(|line| line.strip_prefix("error: ").unwrap_or(line));
        let first = first.map(|line| Line::Failure(line.to_owned()));
        let rest = lines.map(|line| Line::Note(line.to_owned()));
        Voice::new(Paint::Auto).say(&first.into_iter().chain(rest).collect::<Vec<_>>());
    }
    OWN_FAILURE
}
