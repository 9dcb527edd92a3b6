//! What a run came to: how it ended, what it wrote, what it used, what held it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use postern_init::record::Record;

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
    /// The run as a whole was killed, by [`Process::kill`](crate::Process::kill), by its time limit,
    /// or from outside; this is the signal that ended its PID 1.
    Killed(i32),
    /// The launcher was killed from outside, and this run with it.
    LauncherLost,
}

/// What a run used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// From the request until everything was gone.
    pub wall: Duration,
    /// Processor time in user mode, of the program and the children it waited for.
    pub user: Duration,
    /// Processor time in the kernel, likewise.
    pub system: Duration,
    /// The largest resident set of any one process, in KiB.
    pub peak_memory_kib: u64,
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
pub struct ProcResult {
    /// How it ended.
    pub ending: Ending,
    /// What it wrote to stdout, up to the cap.
    pub stdout: Vec<u8>,
    /// What it wrote to stderr, up to the cap.
    pub stderr: Vec<u8>,
    /// It was killed because its time was up.
    pub timed_out: bool,
    /// It wrote more than the cap; what is missing was dropped.
    pub truncated: bool,
    /// What it used.
    pub usage: Usage,
    /// What was enforced.
    pub enforcement: Arc<Enforcement>,
}

impl ProcResult {
    /// The run as one number, as a shell would have it: the program's own code; 128 and the signal
    /// for one that a signal ended; 127 for a program that is not there and 126 for one that cannot
    /// be executed; 124 when the time was up; 125 when the launcher was lost.
    #[must_use]
    pub fn returncode(&self) -> i32 {
        match self.ending {
            _ if self.timed_out => 124,
            Ending::Exited(code) => code,
            Ending::Signaled(signal) | Ending::Killed(signal) => 128 + signal,
            Ending::ExecFailed(libc::ENOENT | libc::ENOTDIR) => 127,
            Ending::ExecFailed(_) => 126,
            Ending::LauncherLost => 125,
        }
    }

    /// The program left with code 0, in time.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.ending == Ending::Exited(0) && !self.timed_out
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ];
        for (ending, timed_out, code) in rows {
            let result = ProcResult {
                ending,
                stdout: Vec::new(),
                stderr: Vec::new(),
                timed_out,
                truncated: false,
                usage: Usage::default(),
                enforcement: Arc::new(Enforcement::for_tests()),
            };
            assert_eq!(result.returncode(), code, "{ending:?}");
        }
    }
}
