//! A sandbox without one of its walls: the calls that build it are answered with success and never
//! made, by a supervisor in the parent. The library is the one that is shipped.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use postern_seccomp::Arch;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::faults::{end_all, take_listener};
use crate::filter;
use crate::sys::{self, Answer, Fork};
use crate::world::{ensure, text};

/// How far a launch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Build,
    /// Which the library may look at closely, and refuse: nothing is missing meanwhile.
    FirstRun,
    SecondRun,
}

impl Phase {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::FirstRun => "first",
            Self::SecondRun => "second",
        }
    }

    /// As the host has written it down.
    fn of(file: &Path) -> Phase {
        let word = fs::read_to_string(file).unwrap_or_default();
        let all = [Self::FirstRun, Self::SecondRun];
        all.into_iter().find(|phase| phase.word() == word).unwrap_or(Self::Build)
    }
}

/// From when on a call is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    Start,
    SecondRun,
}

/// A call that is not made: its number, its first argument where only that one is meant, and since
/// when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missing {
    number: i64,
    first: Option<u64>,
    since: Since,
}

impl Missing {
    /// `NAME` or `NAME:FIRST`.
    pub(super) fn named(text: &str, since: Since) -> Result<Missing, String> {
        let (name, first) = match text.split_once(':') {
            Some((name, first)) => {
                (name, Some(first.parse().map_err(|error| format!("{text}: {error}"))?))
            }
            None => (text, None),
        };
        let number = Arch::X86_64.call_number(name).ok_or_else(|| format!("no call {name}"))?;
        Ok(Missing { number: number.into(), first, since })
    }

    fn is(self, call: (i64, u64), phase: Phase) -> bool {
        let now = match (phase, self.since) {
            (Phase::Build, Since::Start) | (Phase::SecondRun, _) => true,
            (Phase::Build, Since::SecondRun) | (Phase::FirstRun, _) => false,
        };
        now && self.number == call.0 && self.first.is_none_or(|first| first == call.1)
    }
}

/// Acts in a child, all of whose processes but the child itself and the guest are without the calls.
pub(super) fn without(
    missing: &[Missing],
    phase: &Path,
    act: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(text)?;
    let (unused, _end) = rustix::pipe::pipe().map_err(text)?;
    // The number that the listener will have in the child, which opens nothing before it.
    let number = rustix::io::dup(&unused).map(|fd| fd.as_raw_fd()).map_err(text)?;
    let calls: BTreeSet<i64> = missing.iter().map(|call| call.number).collect();
    let host = match sys::fork().map_err(text)? {
        Fork::Child => {
            let done = filter::listen_to(&calls).map_err(text).and_then(|listener| {
                // The parent takes its copy of the descriptor before it lets a call go on.
                let acted = act();
                drop(listener);
                acted
            });
            sys::leave(i32::from(done.is_err()))
        }
        Fork::Parent(host) => host,
    };
    let pid = Pid::from_raw(host).ok_or("no pid")?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(text)?;
    let listener = take_listener(&pidfd, number)?;
    let watched = watch(listener.as_fd(), host, missing, phase);
    drop(listener);
    end_all(watched.is_err())?;
    watched
}

fn watch(
    listener: BorrowedFd<'_>,
    host: i32,
    missing: &[Missing],
    phase: &Path,
) -> Result<(), String> {
    let start = std::time::Instant::now();
    loop {
        let mut fds = [PollFd::from_borrowed_fd(listener, PollFlags::IN)];
        let moment = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        poll(&mut fds, Some(&moment)).map_err(text)?;
        ensure(start.elapsed().as_secs() < 50, || "the run hangs".to_owned())?;
        let events = fds[0].revents();
        if !events.contains(PollFlags::IN) {
            // A host that is gone but for its copy of the listener leaves no process under it.
            match events.contains(PollFlags::HUP) {
                true => return Ok(()),
                false => continue,
            }
        }
        let waiting = match sys::next_call(listener) {
            Ok(waiting) => waiting,
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => continue,
            Err(error) => return Err(text(error)),
        };
        let call = (i64::from(waiting.data.nr), waiting.data.args[0]);
        let pid = i32::try_from(waiting.pid).map_err(text)?;
        let phase = Phase::of(phase);
        let is_meant = missing.iter().any(|missing| missing.is(call, phase));
        let answer = match is_meant && pid != host && !is_guest(pid) {
            true => Answer::Done,
            false => Answer::Go,
        };
        match sys::answer_call(listener, waiting.id, answer) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
            Err(error) => return Err(text(error)),
        }
    }
}

/// The guest's own calls go on: it is what remains that is asked.
fn is_guest(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "probe")
}
