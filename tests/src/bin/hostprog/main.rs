//! A program that uses the library as a host does, one scenario per process; judges nothing but
//! the scenario that it was asked for.
//!
//! A scenario prints one line of figures and leaves with code 0, or says what is wrong.

mod ask;
mod causes;
mod endings;
mod faults;
mod filter;
mod lies;
mod many;
mod sys;
mod world;

use std::io::Write;
use std::process::ExitCode;

use world::Outcome;

/// A scenario: its name, and what it does with its arguments.
pub(crate) type Scenario = (&'static str, fn(&[String]) -> Outcome);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.split_first() {
        None => Err("no scenario named".to_owned()),
        Some((name, arguments)) => run(name, arguments),
    };
    let (line, code) = match outcome {
        Ok(figures) => (figures, ExitCode::SUCCESS),
        Err(wrong) => (format!("WRONG: {wrong}"), ExitCode::FAILURE),
    };
    // Without a reader the code alone tells.
    writeln!(std::io::stdout(), "{line}").ok();
    code
}

fn run(name: &str, arguments: &[String]) -> Outcome {
    let groups: [&[_]; 6] =
        [&endings::ALL, &causes::ALL, &faults::ALL, &lies::ALL, &ask::ALL, &many::ALL];
    let scenario = groups.into_iter().flatten().find(|scenario| scenario.0 == name);
    let (_, act) = scenario.ok_or_else(|| format!("no scenario {name:?}"))?;
    act(arguments)
}
