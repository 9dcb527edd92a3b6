//! The control group of one run: its limits, the end of everything in it, and what the kernel counted.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Controller;
use super::tree::{Inner, read_at, write_at};
use crate::error::{Shown as _, Violation};

/// Whether a run was held by a limit of its control group, as the kernel counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitHit {
    /// It was.
    Yes,
    /// It was not.
    No,
    /// Nobody counted; this is why. It is not known, and never means "no".
    Unavailable(&'static str),
}

impl LimitHit {
    /// Whether it is known that the limit was hit.
    #[must_use]
    pub const fn is_yes(self) -> bool {
        matches!(self, Self::Yes)
    }
}

/// What all processes of a run used together, as its control group counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CgroupUsage {
    /// The most memory at one time, in bytes, tmpfs and page cache included (`memory.peak`, Linux
    /// 5.19); `None` where it is not counted.
    pub peak_memory_bytes: Option<u64>,
    /// Processor time in user mode (`cpu.stat`).
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// How often the run had used up its share of the processors for a period of 100 ms
    /// (`nr_throttled`); 0 without `cpu_millis`.
    pub throttled_periods: u64,
    /// For how long it waited then, of all its processors together.
    pub throttled: Duration,
}

/// What a run's group said at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) oom: LimitHit,
    pub(crate) pids: LimitHit,
    pub(crate) usage: Option<CgroupUsage>,
}

impl Counts {
    /// Of a run without a group.
    pub(crate) const fn none(why: &'static str) -> Counts {
        let unavailable = LimitHit::Unavailable(why);
        Counts { oom: unavailable, pids: unavailable, usage: None }
    }
}

/// A run's own group. Dropping it kills whatever is in it and removes it, now or later.
#[derive(Debug)]
pub(crate) struct RunGroup {
    tree: Arc<Inner>,
    name: String,
    directory: OwnedFd,
}

impl RunGroup {
    pub(super) fn new(tree: Arc<Inner>, name: String, directory: OwnedFd) -> RunGroup {
        RunGroup { tree, name, directory }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where it is.
    pub(crate) fn path(&self) -> PathBuf {
        self.tree.path_of(&self.name)
    }

    /// What the run is cloned into.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    pub(super) fn write(&self, file: &str, text: &str) -> io::Result<()> {
        write_at(self.directory.as_fd(), file, text)
    }

    /// What is otherwise than planned of it and of a process that was made in it.
    pub(crate) fn judge(&self, pid: i32) -> Vec<Violation> {
        let read = |file| read_at(self.directory.as_fd(), file).unwrap_or_default();
        let members = read("cgroup.procs");
        let is_inside = members.lines().any(|line| line.parse() == Ok(pid));
        let outside = (!is_inside).then(|| Violation {
            what: "the control group of PID 1",
            expected: self.path().shown().to_string(),
            found: "another one".to_owned(),
        });
        let limits = self.tree.writes().iter().filter_map(|(file, text)| {
            let found = read(file);
            let is_same = as_kept(file, text) == found.trim();
            (!is_same).then(|| Violation {
                what: "a limit of the run's control group",
                expected: format!("{file} {text}"),
                found: format!("{file} {}", found.trim()),
            })
        });
        outside.into_iter().chain(limits).collect()
    }

    /// Kills everything in it; before Linux 5.14 the end of PID 1 alone does.
    pub(crate) fn kill(&self) {
        self.write("cgroup.kill", "1").ok();
    }

    /// What the kernel counted until now.
    pub(crate) fn counts(&self) -> Counts {
        Counts {
            oom: self.hit(Controller::Memory, "memory.events", "oom_kill"),
            pids: self.hit(Controller::Pids, "pids.events", "max"),
            usage: self.usage(),
        }
    }

    fn hit(&self, controller: Controller, file: &str, key: &str) -> LimitHit {
        if !self.tree.has(controller) {
            return LimitHit::Unavailable("the run's control group lacks the controller");
        }
        let text = read_at(self.directory.as_fd(), file).unwrap_or_default();
        match value(&text, key) {
            Some(0) => LimitHit::No,
            Some(_) => LimitHit::Yes,
            None => LimitHit::Unavailable("the run's control group could not be read"),
        }
    }

    fn usage(&self) -> Option<CgroupUsage> {
        let text = read_at(self.directory.as_fd(), "cpu.stat").ok()?;
        let time = |key| Duration::from_micros(value(&text, key).unwrap_or_default());
        let peak = read_at(self.directory.as_fd(), "memory.peak").ok();
        Some(CgroupUsage {
            peak_memory_bytes: peak.and_then(|peak| peak.trim().parse().ok()),
            user: time("user_usec"),
            system: time("system_usec"),
            throttled_periods: value(&text, "nr_throttled").unwrap_or_default(),
            throttled: time("throttled_usec"),
        })
    }
}

impl Drop for RunGroup {
    fn drop(&mut self) {
        if self.tree.is_ours() {
            self.tree.remove(self);
        }
    }
}

/// What the kernel keeps of what is written: memory in whole pages.
fn as_kept(file: &str, text: &str) -> String {
    const PAGE_BYTES: u64 = 4096;
    match text.parse::<u64>() {
        Ok(bytes) if matches!(file, "memory.max" | "memory.swap.max") => {
            (bytes - bytes % PAGE_BYTES).to_string()
        }
        // The only weight is that of devices without one of their own.
        Ok(weight) if file == "io.weight" => format!("default {weight}"),
        Ok(_) | Err(_) => text.to_owned(),
    }
}

/// The number behind a key, on a line of its own.
fn value(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::{as_kept, value};

    #[test]
    fn what_is_kept_is_what_is_written_but_for_whole_pages() {
        let rows = [
            ("memory.max", "4097", "4096"),
            ("memory.swap.max", "0", "0"),
            ("pids.max", "4097", "4097"),
            ("cpu.max", "50000 100000", "50000 100000"),
            ("io.weight", "50", "default 50"),
        ];
        for (file, text, kept) in rows {
            assert_eq!(as_kept(file, text), kept, "{file}");
        }
    }

    #[test]
    fn a_count_is_found_by_its_whole_key() {
        let text = "low 0\nmax_usage 9\nmax 3\noom_kill 1\noom_group_kill x\n";
        let rows =
            [("max", Some(3)), ("oom_kill", Some(1)), ("oom", None), ("oom_group_kill", None)];
        for (key, expected) in rows {
            assert_eq!(value(text, key), expected, "{key}");
        }
    }
}
