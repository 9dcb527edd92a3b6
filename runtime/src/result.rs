//! What a run came to: how it ended, what it wrote, what it used, what held it.

mod words;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use postern_init::record::Record;

use crate::cgroup::{CgroupUsage, LimitHit};
use crate::enforcement::Enforcement;

/// How a run ended, as the kernel reported it; never read from text or guessed from a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// The program left with this code.
    Exited(i32),
    /// The program was ended by this signal.
    Signaled(i32),
    /// The program could not be started; this is the errno.
    ExecFailed(i32),
    /// The run as a whole was killed, by [`Process::kill`](crate::Process::kill), by its time limit
    /// or its cap of output, or from outside; this is the signal that ended its PID 1.
    Killed(i32),
    /// The launcher was killed from outside, and this run with it; or it was stopped, and did not
    /// say how the run had ended.
    LauncherLost,
    /// The run was killed, and 10 seconds later something of it was still there: a process that
    /// hangs in the kernel, as on a dead disk, or one that another process debugs or has frozen. It
    /// ends as soon as the kernel lets it; nobody waits for it any more.
    Unreaped,
}

/// What a run used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Time spent waiting for a place under the [ceiling](crate::Ceiling), before everything else.
    pub queued: Duration,
    /// From the request until everything was gone.
    pub wall: Duration,
    /// Processor time in user mode, of the program and the children it waited for.
    pub user: Duration,
    /// Processor time in the kernel, likewise.
    pub system: Duration,
    /// The largest resident set of any one process, in KiB.
    pub peak_memory_kib: u64,
    /// What all processes used together; `None` for a run without a control group of its own.
    pub cgroup: Option<CgroupUsage>,
}

impl Usage {
    pub(crate) fn set(&mut self, record: &Record) {
        self.user = Duration::from_micros(record.user_us);
        self.system = Duration::from_micros(record.system_us);
        self.peak_memory_kib = record.peak_kib;
    }
}

/// A finished run.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "facts of one run, each told by name")]
pub struct ProcResult {
    /// How it ended.
    pub ending: Ending,
    /// What it wrote to stdout, up to the cap.
    pub stdout: Vec<u8>,
    /// What it wrote to stderr, up to the cap.
    pub stderr: Vec<u8>,
    /// It was killed because its time was up.
    pub timed_out: bool,
    /// How long that time was.
    pub(crate) time: Option<Duration>,
    /// The caller asked for its end, by [`Process::terminate`](crate::Process::terminate),
    /// [`Process::kill`](crate::Process::kill) or [`ProcessHandle::kill`](crate::ProcessHandle::kill),
    /// before its result was taken. It may have ended by itself all the same; `ending` says how it
    /// did.
    pub terminated: bool,
    /// It wrote more than the cap; what is missing was dropped.
    pub truncated: bool,
    /// Of stdout; on a terminal, or with
    /// [`Command::merge_output`](crate::Command::merge_output), of all.
    pub stdout_truncated: bool,
    /// Of stderr.
    pub stderr_truncated: bool,
    /// It wrote more than the cap, and was to be killed for that by
    /// [`OutputCap::Kill`](crate::OutputCap::Kill); each output holds what was written up to the
    /// cap. A short run may have ended by itself before it could be killed, as `ending` tells.
    pub overflowed: bool,
    /// Whether the kernel killed a process of it for want of memory, by its control group's
    /// `memory.events`: the run's own limit, or the machine's memory. The group is killed as a
    /// whole, so that `ending` is [`Ending::Killed`] by signal 9 then.
    pub oom: LimitHit,
    /// Whether a process could not be made since there were as many as `cgroup.pids` allows, by its
    /// control group's `pids.events`. `limits.nproc` is a limit of its own, which nobody counts.
    pub pids_limit: LimitHit,
    /// What it used.
    pub usage: Usage,
    /// What was enforced.
    pub enforcement: Arc<Enforcement>,
}

impl ProcResult {
    /// The run as one number, as a shell would have it: the program's own code; 128 and the signal
    /// for one that a signal ended; 127 for a program that is not there and 126 for one that cannot
    /// be executed; 124 when the time was up; 125 when the launcher was lost; 137 for a killed run
    /// that was not gone in time, and for one that [`overflowed`](Self::overflowed).
    #[must_use]
    pub fn returncode(&self) -> i32 {
        match self.ending {
            _ if self.timed_out => 124,
            _ if self.overflowed => 128 + libc::SIGKILL,
            Ending::Exited(code) => code,
            Ending::Signaled(signal) | Ending::Killed(signal) => 128 + signal,
            Ending::ExecFailed(libc::ENOENT | libc::ENOTDIR) => 127,
            Ending::ExecFailed(_) => 126,
            Ending::LauncherLost => 125,
            Ending::Unreaped => 128 + libc::SIGKILL,
        }
    }

    /// The signal that ended the program or the run; `None` when it ended otherwise.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        match self.ending {
            Ending::Signaled(signal) | Ending::Killed(signal) => Some(signal),
            Ending::Exited(_) | Ending::ExecFailed(_) | Ending::LauncherLost | Ending::Unreaped => {
                None
            }
        }
    }

    /// How long the run took, from the request until everything in it was gone.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.usage.wall
    }

    /// How it ended, in words for people: `exited with code 3`, `ended by signal 11 (SEGV)`, `killed:
    /// its time of 500 ms was up`. A program goes by the fields.
    #[must_use]
    pub fn reason(&self) -> String {
        words::reason(self)
    }

    /// The program left with code 0, in time, and within a cap that ends it.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.ending == Ending::Exited(0) && !self.timed_out && !self.overflowed
    }

    /// The program did not leave by itself: a signal ended it, it could not be started, its time was
    /// up, or the run was killed or lost. A program that leaves with a code, whatever code, has
    /// ended normally.
    #[must_use]
    pub fn terminated_abnormally(&self) -> bool {
        self.overflowed || !matches!(self.ending, Ending::Exited(_))
    }

    /// stdout as text; what is no UTF-8 is replaced.
    #[must_use]
    pub fn stdout_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stdout)
    }

    /// stderr as text; what is no UTF-8 is replaced.
    #[must_use]
    pub fn stderr_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stderr)
    }

    /// stderr as text for people, with what befell the run on lines of its own at the end:
    /// `[postern] output truncated`, `[postern] timed out`. The guest can write such lines too: a
    /// program goes by the fields.
    #[must_use]
    pub fn stderr_report(&self) -> String {
        let mut text = self.stderr_text().into_owned();
        if self.truncated {
            let newline = if text.is_empty() { "" } else { "\n" };
            text = format!("{text}{newline}[postern] output truncated");
        }
        match self.timed_out {
            true => format!("{text}\n[postern] timed out"),
            false => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn result(
        ending: Ending,
        timed_out: bool,
        truncated: bool,
        stderr: &str,
    ) -> ProcResult {
        ProcResult {
            ending,
            stdout: Vec::new(),
            stderr: stderr.into(),
            timed_out,
            time: timed_out.then_some(Duration::from_millis(500)),
            terminated: false,
            truncated,
            stdout_truncated: truncated,
            stderr_truncated: false,
            overflowed: false,
            oom: LimitHit::No,
            pids_limit: LimitHit::No,
            usage: Usage::default(),
            enforcement: Arc::new(Enforcement::for_tests()),
        }
    }

    #[test]
    fn the_report_adds_lines_to_stderr() {
        let rows = [
            (false, false, "", ""),
            (false, false, "oops\n", "oops\n"),
            (true, false, "", "\n[postern] timed out"),
            (true, false, "oops", "oops\n[postern] timed out"),
            (false, true, "", "[postern] output truncated"),
            (false, true, "oops", "oops\n[postern] output truncated"),
            (true, true, "", "[postern] output truncated\n[postern] timed out"),
        ];
        for (timed_out, truncated, stderr, report) in rows {
            let result = result(Ending::Killed(9), timed_out, truncated, stderr);
            assert_eq!(result.stderr_report(), report);
        }
    }

    #[test]
    fn every_ending_has_its_number() {
        let rows = [
            (Ending::Exited(3), false, 3),
            (Ending::Exited(0), true, 124),
            (Ending::Signaled(11), false, 139),
            (Ending::Killed(9), false, 137),
            (Ending::Killed(9), true, 124),
            (Ending::ExecFailed(libc::ENOENT), false, 127),
            (Ending::ExecFailed(libc::ENOTDIR), false, 127),
            (Ending::ExecFailed(libc::EACCES), false, 126),
            (Ending::ExecFailed(libc::ENOEXEC), false, 126),
            (Ending::LauncherLost, false, 125),
            (Ending::Unreaped, false, 137),
            (Ending::Unreaped, true, 124),
        ];
        for (ending, timed_out, code) in rows {
            assert_eq!(result(ending, timed_out, false, "").returncode(), code, "{ending:?}");
        }
    }
}
