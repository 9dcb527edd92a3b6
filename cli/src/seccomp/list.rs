//! `postern seccomp list`: the rules of a level, one a line.

use std::fmt::Write as _;
use std::io;

use postern::seccomp::{Level, Policy};
use serde::Serialize;

use super::{errno, json, listed, native, refused};
use crate::arguments::ListVerb;
use crate::failure::Failure;

#[derive(Debug, Serialize)]
struct Listing {
    level: &'static str,
    arch: String,
    /// The Linux release whose calls were reviewed last.
    reviewed_release: &'static str,
    instructions: usize,
    sha256: Option<String>,
    guards: Vec<GuardLine>,
    rules: Vec<RuleLine>,
}

#[derive(Debug, Serialize)]
struct GuardLine {
    name: &'static str,
    answer: String,
    errno: Option<u32>,
    reason: &'static str,
}

#[derive(Debug, Serialize)]
struct RuleLine {
    call: &'static str,
    number: Option<u32>,
    conditions: Vec<String>,
    answer: String,
    errno: Option<u32>,
    reason: &'static str,
}

/// The list, as text or JSON.
pub(super) fn list(verb: &ListVerb) -> Result<String, Failure> {
    let listing = listing(verb.level)?;
    match verb.json {
        true => json(&listing),
        false => text(&listing).map_err(|error| Failure::Stream {
            what: "word the list",
            source: io::Error::other(error),
        }),
    }
}

fn listing(level: Level) -> Result<Listing, Failure> {
    let arch = native()?;
    let program = level.native_program();
    let program =
        program.map_err(|error| refused(postern::seccomp::UserPolicyError::Program(error)));
    let program = program?;
    let policy = level.policy(arch);
    let guards = policy.iter().flat_map(Policy::guards).map(|guard| GuardLine {
        name: guard.name,
        answer: guard.action.to_string(),
        errno: errno(guard.action),
        reason: guard.reason,
    });
    let rules = policy.iter().flat_map(Policy::rules).map(|rule| RuleLine {
        call: rule.call,
        number: arch.call_number(rule.call),
        conditions: rule.conditions.iter().map(ToString::to_string).collect(),
        answer: rule.action.to_string(),
        errno: errno(rule.action),
        reason: rule.reason,
    });
    Ok(Listing {
        level: level.name(),
        arch: arch.to_string(),
        reviewed_release: arch.reviewed_release(),
        instructions: program.map_or(0, |program| program.len()),
        sha256: program.map(|program| program.digest().to_string()),
        guards: guards.collect(),
        rules: rules.collect(),
    })
}

fn text(listing: &Listing) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let Listing { level, arch, reviewed_release, instructions, guards, rules, .. } = listing;
    if rules.is_empty() {
        writeln!(text, "{level}: no filter; every call reaches the kernel")?;
        return Ok(text);
    }
    writeln!(
        text,
        "{level} on {arch}: {} rules, {instructions} instructions, calls up to Linux \
         {reviewed_release}; what no rule refuses is allowed\n",
        rules.len()
    )?;
    for guard in guards {
        writeln!(text, "{:16} {}: {}", guard.answer, guard.name, guard.reason)?;
    }
    writeln!(text)?;
    for rule in rules {
        let conditions = listed(&rule.conditions);
        writeln!(text, "{:16} {}({conditions}): {}", rule.answer, rule.call, rule.reason)?;
    }
    Ok(text)
}
