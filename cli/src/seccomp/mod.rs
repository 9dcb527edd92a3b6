//! `postern seccomp`: what the filter answers, and why. The answers are the library's.

mod explain;
mod list;
mod symbols;

use std::io;

use postern::error::Refusal;
use postern::seccomp::{Action, Arch, UserPolicyError};
use serde::Serialize;

use crate::arguments::SeccompVerb;
use crate::failure::Failure;
use crate::profile::write_out;

/// Prints what was asked for.
pub(crate) fn print(verb: &SeccompVerb) -> Result<u8, Failure> {
    let text = match verb {
        SeccompVerb::Explain(verb) => explain::explain(verb)?,
        SeccompVerb::List(verb) => list::list(verb)?,
    };
    write_out(text.as_bytes())?;
    Ok(0)
}

/// The machine's own calls.
fn native() -> Result<Arch, Failure> {
    Arch::native().map_err(|error| refused(UserPolicyError::Program(error)))
}

/// What the library would refuse a profile for.
fn refused(error: UserPolicyError) -> Failure {
    Refusal::SeccompPolicy { error }.into()
}

/// The number of an error, where the answer is one.
fn errno(action: Action) -> Option<u32> {
    let Action::Errno(errno) = action else { return None };
    Some(errno.number())
}

/// One object, on one line.
fn json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(value).map(|text| text + "\n").map_err(io::Error::other);
    text.map_err(|source| Failure::Stream { what: "word the answer", source })
}

/// Conditions as one text; nothing for a rule that always holds.
fn listed(conditions: &[String]) -> String {
    conditions.join(", ")
}
