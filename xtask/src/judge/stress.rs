//! stress-ng inside and a canary outside: each stressor uses up one thing of the kernel's, and the
//! host must not notice more of it than of any busy program.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::guest::{Ended, Guest};
use super::{FINE, Found, NEEDS_CGROUP};
use crate::canary::{Canary, Latency};
use crate::failure::Failure;
use crate::say;
use crate::scratch::Scratch;

const STRESSORS: [&str; 17] = [
    "aio",
    "dentry",
    "fork",
    "inotify",
    "key",
    "memfd",
    "mq",
    "pipe",
    "sem",
    "shm",
    "sigq",
    "sock",
    "sockfd",
    "timer",
    "userfaultfd",
    "vm",
    "zombie",
];

/// How long each runs, and how long the canary is watched before.
const SECONDS: u64 = 5;
/// When it is killed.
const TIMEOUT: Duration = Duration::from_secs(60);
/// More than that is no longer like any busy program.
const RATIO_MAX: f64 = 5.0;
/// What a killed run's processes take to be gone.
const SOON: Duration = Duration::from_secs(10);

pub(super) fn run(
    guests: &[Guest<'_>],
    scratch: &Scratch,
    only: &[String],
) -> Result<Vec<Found>, Failure> {
    let mut found = Vec::new();
    say("host          stressor      ended  p99 before   p99 during  ratio  left  quotas hit");
    for name in
        STRESSORS.iter().filter(|name| only.is_empty() || only.iter().any(|one| one == *name))
    {
        for guest in guests {
            found.push(row(guest, name, scratch.path())?);
        }
    }
    Ok(found)
}

fn row(guest: &Guest<'_>, stressor: &str, place: &Path) -> Result<Found, Failure> {
    let others = processes();
    let canary = Canary::start(place)?;
    std::thread::sleep(Duration::from_secs(SECONDS));
    let before = canary.so_far();
    let ended = stress(guest, stressor)?;
    let during = canary.stop();
    let left = left(ended.kernel_uid, &others);
    let ratio = during.p99_us() / before.p99_us().max(1.0);
    let (verdict, why) = verdict(&ended, ratio, left);
    say(&format!(
        "{:13} {stressor:12} {:>6} {} {} {ratio:>6.1} {left:>5}  {}",
        guest.half(),
        ended.code,
        shown(&before),
        shown(&during),
        quotas(&ended)
    ));
    let half = guest.half();
    Ok(Found { half, row: stressor.to_owned(), verdict: verdict.to_owned(), evidence: why })
}

fn shown(latency: &Latency) -> String {
    format!("{:>9.0} us", latency.p99_us())
}

fn stress(guest: &Guest<'_>, stressor: &str) -> Result<Ended, Failure> {
    let count = format!("--{stressor}");
    let seconds = SECONDS.to_string();
    let argv =
        ["stress-ng", &count, "2", "--timeout", &seconds, "--temp-path", "/tmp", "--oomable"];
    guest.run(&[], &argv, TIMEOUT)
}

/// What stress-ng could not do or was not given.
fn quotas(ended: &Ended) -> String {
    let is_told = |line: &&str| {
        ["errno=", "skipp", "fail", "not permitted", "unavailable"]
            .iter()
            .any(|word| line.contains(word))
    };
    let words = [&*ended.stdout, &*ended.stderr].concat();
    let mut told: Vec<&str> = words.lines().filter(is_told).map(without_pid).collect();
    told.sort_unstable();
    told.dedup();
    told.join("; ")
}

/// `stress-ng: fail:  [17] words` without what is the same in each.
fn without_pid(line: &str) -> &str {
    line.split_once("] ").map_or(line, |(_, words)| words)
}

fn verdict(ended: &Ended, ratio: f64, left: usize) -> (&'static str, String) {
    let facts = format!("status {}, {ratio:.1} times, {left} left: {}", ended.code, quotas(ended));
    match ended {
        // A status of 2 or more is stress-ng's own word for what it was refused.
        Ended { kernel_uid: None, .. } => ("not-run", facts),
        Ended { timed_out: true, .. } => ("timed-out", facts),
        _ if left > 0 => ("left-behind", facts),
        // No run has a share of the machine of its own yet.
        _ if ratio > RATIO_MAX => (NEEDS_CGROUP, facts),
        _ => (FINE, String::new()),
    }
}

/// Processes of the guest's kernel uid that were not there before and are still there.
fn left(uid: Option<u32>, before: &BTreeSet<(u32, u32)>) -> usize {
    let start = Instant::now();
    loop {
        let new = processes().into_iter().filter(|process| !before.contains(process));
        match new.filter(|(_, owner)| Some(*owner) == uid).count() {
            count if count > 0 && start.elapsed() < SOON => {
                std::thread::sleep(Duration::from_millis(50));
            }
            count => return count,
        }
    }
}

/// Each process and its uid.
fn processes() -> BTreeSet<(u32, u32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, entry.metadata().ok()?.uid()))
    });
    processes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_has_its_verdict() {
        let ended =
            |code, timed_out| Ended { code, timed_out, kernel_uid: Some(7), ..Ended::default() };
        let rows = [
            (ended(0, false), 1.0, 0, FINE),
            (ended(2, false), 1.0, 0, FINE),
            (ended(0, false), 6.0, 0, NEEDS_CGROUP),
            (ended(0, false), 1.0, 1, "left-behind"),
            (ended(124, true), 1.0, 0, "timed-out"),
            (Ended::default(), 1.0, 0, "not-run"),
        ];
        for (ended, ratio, left, expected) in rows {
            assert_eq!(verdict(&ended, ratio, left).0, expected, "{ended:?}");
        }
    }

    #[test]
    fn what_was_refused_is_told_once() {
        let stderr = "stress-ng: info:  [2] dispatching\nstress-ng: fail:  [3] key: errno=1\n\
            stress-ng: fail:  [4] key: errno=1\n";
        let ended = Ended { stderr: stderr.to_owned(), ..Ended::default() };
        assert_eq!(quotas(&ended), "key: errno=1");
    }

    #[test]
    fn what_was_there_before_is_not_left() {
        let before = processes();
        let own = (std::process::id(), rustix::process::geteuid().as_raw());
        assert!(before.contains(&own));
        assert_eq!(left(None, &BTreeSet::new()), 0);
    }
}
