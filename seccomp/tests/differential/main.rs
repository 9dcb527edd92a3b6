//! The same verdicts from independent sources: the table, its program, and other people's
//! compilers and filters. What differs is listed with its reason, and the list is closed.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test's own helpers fail the test"
)]

mod libseccomp;
mod peer;
mod samples;
mod seccompiler;
mod table;
mod user;

use std::io::Write;

use postern_seccomp::{Arch, Level, Policy};

/// The levels that have a policy.
const LEVELS: [Level; 3] = [Level::Strict, Level::Default, Level::Compat];

fn policy(level: Level) -> Policy {
    level.policy(Arch::X86_64).unwrap()
}

/// Says a line past the harness, which would keep it to itself.
fn say(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Counts cases by the row that explains a difference, and fails on one that nothing explains.
#[derive(Default)]
struct Tally {
    cases: u64,
    explained: Vec<(&'static str, u64)>,
}

impl Tally {
    fn equal(&mut self) {
        self.cases += 1;
    }

    fn explained(&mut self, name: &'static str) {
        self.cases += 1;
        match self.explained.iter_mut().find(|(other, _)| *other == name) {
            Some((_, count)) => *count += 1,
            None => self.explained.push((name, 1)),
        }
    }

    /// Says the figures; every row must have been seen.
    fn finish(self, title: &str, rows: &[&'static str]) {
        let Tally { cases, explained } = self;
        let seen: u64 = explained.iter().map(|(_, count)| count).sum();
        say(&format!("{title}: {cases} calls, {} equal, {seen} explained", cases - seen));
        for row in rows {
            assert!(explained.iter().any(|(name, _)| name == row), "{title}: no call is {row:?}");
        }
    }
}
