//! `cargo xtask judge`: tests that others wrote, run in a sandbox. They know nothing of it, so that
//! what they find was not looked for.

mod bwrap;
mod cpython;
mod guest;
mod programs;
mod stress;

use std::path::PathBuf;

use crate::cache::Cache;
use crate::executables;
use crate::failure::Failure;
use crate::half::{Half, Place, User, halves};
use crate::known::{List, Met};
use crate::scratch::Scratch;
use crate::{install, say};
use guest::Guest;

/// Who judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judge {
    /// bubblewrap itself, its own tests and its users', for what goes by its name.
    Bwrap,
    /// CPython's own tests, inside against outside.
    Cpython,
    /// Programs that people run.
    Programs,
    /// stress-ng inside, and a canary outside.
    Stress,
}

impl Judge {
    pub(crate) const ALL: [Self; 4] = [Self::Bwrap, Self::Cpython, Self::Programs, Self::Stress];

    /// The name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bwrap => "bwrap",
            Self::Cpython => "cpython",
            Self::Programs => "programs",
            Self::Stress => "stress",
        }
    }

    /// A user whom nobody else runs anything as: what is left of a guest is found by its uid.
    fn user(self) -> User {
        let id = match self {
            Self::Cpython => 1235,
            Self::Programs => 1236,
            Self::Stress => 1237,
            Self::Bwrap => 1238,
        };
        User { uid: id, gid: id, groups: vec![5001, 5002] }
    }

    /// What it runs that no other test does: programs and their packages.
    fn programs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Bwrap => &bwrap::PROGRAMS,
            Self::Cpython => &[],
            Self::Programs => &[("javac", "default-jdk-headless")],
            Self::Stress => &[("stress-ng", "stress-ng")],
        }
    }
}

/// What `cargo xtask judge` runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JudgeOptions {
    pub(crate) judge: Judge,
    /// The level of the system-call filter; the default profile's where none is given.
    pub(crate) level: Option<String>,
    /// Only these rows: modules, programs, stressors; for `bwrap` parts, and rows of them.
    pub(crate) only: Vec<String>,
    /// What `bwrap` judges; ours where none is given.
    pub(crate) binary: Option<PathBuf>,
}

impl JudgeOptions {
    /// Every row, in the default profile.
    pub(crate) fn new(judge: Judge) -> Self {
        Self { judge, level: None, only: Vec::new(), binary: None }
    }
}

/// What is known to come out otherwise, with reasons.
const KNOWN: &str = include_str!("../../../tests/judges/known.json");

/// The level's name where none is given.
const DEFAULT_LEVEL: &str = "default profile";

/// What came of one row on one host.
#[derive(Debug, Clone)]
struct Found {
    half: &'static str,
    row: String,
    verdict: String,
    evidence: String,
}

/// The verdict that needs no entry in the list.
const FINE: &str = "fine";

/// What only a control group of the run's own could better; shown, and no failure without one.
const NEEDS_CGROUP: &str = "needs cgroup_v2";

/// Runs the judge on both hosts, and wants everything that is otherwise to be known.
pub(crate) fn run(options: &JudgeOptions) -> Result<(), Failure> {
    install::install()?;
    install::programs(options.judge.programs())?;
    let cache = Cache::open("judges")?;
    let scratch = Scratch::new()?;
    let halves = halves(rustix::process::geteuid().as_raw(), &options.judge.user());
    let places = halves.iter().map(|half| Place::new(half, &scratch, None));
    let places = places.collect::<Result<Vec<_>, _>>()?;
    let found = match (options.judge, &options.binary) {
        (Judge::Bwrap, binary) => bwrap::run(&places, &cache, binary.as_deref(), &options.only),
        (_, None) => sandboxed(options, &places, &cache, &scratch),
        (judge, Some(_)) => {
            let wanted = "judges ours alone: only bwrap has --binary";
            Err(Failure::Usage { argument: judge.name().into(), wanted })
        }
    }?;
    for half in &halves {
        let left = places.iter().filter(|place| place.half() == half).flat_map(Place::left_behind);
        let left: Vec<_> = left.collect();
        if !left.is_empty() {
            say(&format!("left in the temporary directory of {}: {}", half.name(), left.join(" ")));
        }
    }
    if halves == [Half::Caller] {
        say("skipped: the root half: the caller is not root");
    }
    close(options, &found)
}

/// What runs in a sandbox of ours.
fn sandboxed(
    options: &JudgeOptions,
    places: &[Place<'_>],
    cache: &Cache,
    scratch: &Scratch,
) -> Result<Vec<Found>, Failure> {
    let programs = executables::programs()?;
    for name in ["postern", stress::PROGRAM] {
        let found = programs.iter().find(|program| program.name == name);
        let found = found.ok_or_else(|| Failure::NotBuilt { what: name.to_owned() })?;
        scratch.copy(&found.file, name)?;
    }
    let guests: Vec<Guest<'_>> =
        places.iter().map(|place| Guest { place, level: options.level.as_deref() }).collect();
    match options.judge {
        Judge::Bwrap => Ok(Vec::new()),
        Judge::Cpython => cpython::run(&guests, cache, scratch, &options.only),
        Judge::Programs => programs::run(&guests, cache, &options.only),
        Judge::Stress => stress::run(&guests, &options.only),
    }
}

/// Shows what is otherwise, with its reason, and fails over the rest.
fn close(options: &JudgeOptions, found: &[Found]) -> Result<(), Failure> {
    let text = if options.judge == Judge::Bwrap { bwrap::KNOWN } else { KNOWN };
    let mut known = List::read(text).map_err(|source| Failure::Known { source })?;
    if options.binary.is_some() {
        known.keep_stale();
    }
    let world = options.level.as_deref().unwrap_or(DEFAULT_LEVEL);
    let (lines, failures) = judge(world, options.judge.name(), found, &mut known);
    say("");
    lines.iter().for_each(|line| say(line));
    failures.iter().for_each(|failure| say(&format!("failed: {failure}")));
    match u64::try_from(failures.len()) {
        Ok(0) => Ok(()),
        count => Err(Failure::Failed { count: count.unwrap_or(u64::MAX) }),
    }
}

fn judge(
    world: &str,
    judge: &str,
    found: &[Found],
    known: &mut List,
) -> (Vec<String>, Vec<String>) {
    let names: Vec<String> = found.iter().map(|one| format!("{judge} {}", one.row)).collect();
    let (mut lines, mut failures, mut needs) = (Vec::new(), Vec::new(), Vec::new());
    let mut fine = 0;
    let mut tried = Vec::new();
    for (one, name) in found.iter().zip(&names) {
        let met = Met { world, half: one.half, row: name, verdict: &one.verdict };
        tried.push(met);
        let words = format!("{} {}: {}: {}", one.half, one.row, one.verdict, one.evidence);
        match known.why(met) {
            _ if one.verdict == FINE => fine += 1,
            _ if one.verdict == NEEDS_CGROUP => needs.push(words),
            Some(why) => lines.push(format!("{words} (known: {why})")),
            None => failures.push(words),
        }
    }
    failures.extend(known.stale(&tried));
    let (known, failed, needed) = (lines.len(), failures.len(), needs.len());
    lines.append(&mut needs);
    lines.push(format!(
        "{judge}: {fine} fine, {known} known, {needed} {NEEDS_CGROUP}, {failed} failed"
    ));
    (lines, failures)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"[{"world": "*", "half": "*", "row": "cpython a", "verdict": "failed",
        "why": "no network"}]"#;

    #[test]
    fn each_row_is_fine_known_or_a_failure() {
        let rows = [
            ("a", "failed", 0),
            ("a", FINE, 1),
            ("b", FINE, 0),
            ("b", "failed", 1),
            ("b", NEEDS_CGROUP, 0),
        ];
        for (row, verdict, count) in rows {
            let found = Found {
                half: "root",
                row: row.to_owned(),
                verdict: verdict.to_owned(),
                evidence: String::new(),
            };
            let mut known = List::read(LIST).unwrap();
            let (_, failures) = judge("strict", "cpython", &[found], &mut known);
            assert_eq!(failures.len(), count, "{row} {verdict}: {failures:?}");
        }
    }

    #[test]
    fn the_list_can_be_read_and_is_of_judges() {
        List::read(KNOWN).unwrap();
        for line in KNOWN.lines().filter_map(|line| line.trim().strip_prefix("\"row\": \"")) {
            assert!(Judge::ALL.iter().any(|judge| line.starts_with(judge.name())), "{line}");
        }
    }
}
