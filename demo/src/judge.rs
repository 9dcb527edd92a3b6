//! What became of each thing that the script tried: its own word beside what the host saw. Pure; who
//! saw what is decided elsewhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

use crate::report::{Attempt, Verdict};

/// What the script says became of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    /// Whether it got what it wanted.
    pub(crate) did: bool,
    /// In its own words.
    pub(crate) says: String,
}

/// What the script says, by the names that it gives its attempts.
pub(crate) type Claims = BTreeMap<String, Claim>;

/// What the host saw.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Seen {
    /// Calls that the hatch refused.
    pub(crate) refused: u64,
    /// Calls of the method that is not on the list that reached the service.
    pub(crate) removals: u64,
    /// Rows of the database before and after.
    pub(crate) rows: [u64; 2],
    /// Connections that reached the host's listener.
    pub(crate) connections: u64,
    /// The run had a network namespace of its own.
    pub(crate) has_own_network: bool,
    /// The secret was in something that the guest handed out.
    pub(crate) is_secret_told: bool,
    /// The secret file holds what it held.
    pub(crate) is_secret_kept: bool,
    /// A mount of the run shows the secret file, the database, the host's `/etc/shadow`.
    pub(crate) shown: Shown,
    /// Directories of the host, and the only entries of each that a mount of the run shows.
    pub(crate) homes: Vec<(String, Vec<String>)>,
    /// The kernel's core pattern is what it was.
    pub(crate) is_core_pattern_kept: bool,
    /// The filter, as the kernel reported it.
    pub(crate) seccomp: String,
    /// The most processes that the host saw at once, and after the end.
    pub(crate) processes: [usize; 2],
    /// How many the profile allows.
    pub(crate) nproc: usize,
}

/// Which files of the host a mount of the run shows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shown {
    pub(crate) secret: bool,
    pub(crate) database: bool,
    pub(crate) shadow: bool,
}

/// One attempt: the script's name for it, ours, and what the host says: whether it held, and why.
type Trial = (&'static str, &'static str, fn(&Seen) -> (bool, String));

const TRIALS: [Trial; 11] = [
    ("other method", "call Penguins/Remove", other_method),
    ("loopback", "connect to loopback", |seen| {
        let count = seen.connections;
        (count == 0, counted(count, "connection"))
    }),
    ("public address", "connect to 192.0.2.1", |seen| match seen.has_own_network {
        true => (true, "a network of its own".to_owned()),
        false => (false, "the host's network".to_owned()),
    }),
    ("host file", "read a 0666 file", |seen| match (seen.is_secret_told, seen.shown.secret) {
        (false, false) => (true, "its secret was not told".to_owned()),
        (true, _) => (false, "its secret came back".to_owned()),
        (false, true) => (false, "a mount shows it".to_owned()),
    }),
    ("host file, writing", "write a 0666 file", |seen| match seen.is_secret_kept {
        true => (true, "it holds what it held".to_owned()),
        false => (false, "it was changed".to_owned()),
    }),
    ("database", "read the database", |seen| no_mount(seen.shown.database)),
    ("/etc/shadow", "read /etc/shadow", |seen| no_mount(seen.shown.shadow)),
    ("core_pattern", "write core_pattern", |seen| match seen.is_core_pattern_kept {
        true => (true, "it is what it was".to_owned()),
        false => (false, "it was changed".to_owned()),
    }),
    ("ptrace", "ptrace PID 1", filter),
    ("mount", "mount a file system", filter),
    ("unshare", "make a user namespace", filter),
];

fn other_method(seen: &Seen) -> (bool, String) {
    let [before, after] = seen.rows;
    let held = seen.refused == 1 && seen.removals == 0 && before == after;
    let (refused, served) = (seen.refused, seen.removals);
    let rows = match before == after {
        true => format!("{after} rows"),
        false => format!("{before} rows, then {after}"),
    };
    (held, format!("{refused} refused, {served} served, {rows}"))
}

fn no_mount(is_shown: bool) -> (bool, String) {
    match is_shown {
        true => (false, "a mount shows it".to_owned()),
        false => (true, "no mount shows it".to_owned()),
    }
}

fn filter(seen: &Seen) -> (bool, String) {
    (seen.seccomp != "off", format!("no capability, filter {}", seen.seccomp))
}

/// A verdict for each thing that the script was to try.
pub(crate) fn judge(claims: &Claims, seen: &Seen) -> Vec<Attempt> {
    let mut attempts: Vec<_> = TRIALS
        .iter()
        .map(|(key, name, host)| {
            let (held, host) = host(seen);
            let claim = claims.get(*key);
            attempt(name, claim, held && claim.is_some_and(|claim| !claim.did), host)
        })
        .collect();
    let homes = seen.homes.iter().map(|(path, shown)| home(path, shown, claims.get(path)));
    attempts.extend(homes);
    attempts.push(fork_bomb(claims.get("fork bomb"), seen));
    attempts
}

/// An interpreter of a home is shown at its own path, so that its parents are there, and nothing else.
fn home(path: &str, shown: &[String], claim: Option<&Claim>) -> Attempt {
    let listed = claim.and_then(|claim| claim.says.strip_prefix("listed "));
    let entries = listed.and_then(|list| serde_json::from_str::<Vec<String>>(list).ok());
    let is_told_only = match (claim, entries) {
        (Some(claim), None) => !claim.did,
        (_, Some(entries)) => entries.iter().all(|entry| shown.contains(entry)),
        (None, None) => false,
    };
    let host = match shown {
        [] => "no mount shows it".to_owned(),
        names => format!("mounts show {}", names.join(", ")),
    };
    attempt(&format!("list {path}"), claim, is_told_only, host)
}

fn fork_bomb(claim: Option<&Claim>, seen: &Seen) -> Attempt {
    let [peak, left] = seen.processes;
    // A count of none is no evidence: the host looked and saw nothing of a run that was there.
    let held = (1..=seen.nproc).contains(&peak) && left == 0;
    let host = format!("{peak} of {} at most, {left} left", seen.nproc);
    attempt("fork without end", claim, held && claim.is_some_and(|claim| !claim.did), host)
}

fn attempt(name: &str, claim: Option<&Claim>, held: bool, host: String) -> Attempt {
    let verdict = match (claim, held) {
        (None, _) => Verdict::NotTried,
        (Some(_), true) => Verdict::Held,
        (Some(_), false) => Verdict::NotHeld,
    };
    let guest = claim.map_or_else(String::new, |claim| harmless(&claim.says));
    Attempt { name: name.to_owned(), guest, host, verdict }
}

/// How much of the guest's words is passed on.
const WORDS_MAX: usize = 200;

/// The guest's words with everything that a terminal would act on as an escape.
pub(crate) fn harmless(words: &str) -> String {
    let mut shown = String::new();
    for character in words.chars().take(WORDS_MAX) {
        match character {
            '"' | '\'' | '\\' => shown.push(character),
            other => write!(shown, "{}", other.escape_debug()).unwrap_or_default(),
        }
    }
    shown
}

fn counted(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests;
