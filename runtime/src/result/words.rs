//! How a run ended, in words for people; decides nothing.

use core::fmt;
use std::io;

use super::{Ending, ProcResult};

/// As in `kill -l`, from 1 on.
const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// A signal by its number and name.
struct Signal(i32);

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "signal {}", self.0)?;
        let index = usize::try_from(self.0).ok().and_then(|number| number.checked_sub(1));
        match index.and_then(|index| SIGNALS.get(index)) {
            Some(name) => write!(f, " ({name})"),
            None => Ok(()),
        }
    }
}

/// In words for people, which may change: a program goes by the variants.
impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Ending::Exited(code) => write!(f, "exited with code {code}"),
            Ending::Signaled(signal) => write!(f, "ended by {}", Signal(signal)),
            Ending::ExecFailed(errno) => {
                write!(f, "not started: {}", io::Error::from_raw_os_error(errno))
            }
            Ending::Killed(signal) => write!(f, "killed as a whole by {}", Signal(signal)),
            Ending::LauncherLost => f.write_str("lost with its launcher, which was killed"),
            Ending::Unreaped => f.write_str("killed, and not gone 10 s later"),
        }
    }
}

/// The ending, and why the library brought it about where it did.
pub(super) fn reason(result: &ProcResult) -> String {
    let is_left = result.ending == Ending::Unreaped;
    let not_gone = if is_left { ", and it was not gone 10 s later" } else { "" };
    match (result.time, result.ending) {
        (Some(time), _) => format!("killed: its time of {time:?} was up{not_gone}"),
        (None, _) if result.overflowed => format!("killed: it wrote more than it may{not_gone}"),
        (None, Ending::Killed(_)) if result.terminated => format!("{}, as asked", result.ending),
        (None, ending) => ending.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::result;
    use super::*;

    #[test]
    fn every_ending_has_its_words() {
        let rows = [
            (Ending::Exited(3), false, false, "exited with code 3"),
            (Ending::Exited(0), false, true, "exited with code 0"),
            (Ending::Signaled(11), false, false, "ended by signal 11 (SEGV)"),
            (Ending::Signaled(1), false, false, "ended by signal 1 (HUP)"),
            (Ending::Signaled(31), false, false, "ended by signal 31 (SYS)"),
            (Ending::Signaled(34), false, false, "ended by signal 34"),
            (Ending::Killed(9), false, false, "killed as a whole by signal 9 (KILL)"),
            (Ending::Killed(9), false, true, "killed as a whole by signal 9 (KILL), as asked"),
            (Ending::Killed(9), true, false, "killed: its time of 500ms was up"),
            (Ending::LauncherLost, false, false, "lost with its launcher, which was killed"),
            (Ending::Unreaped, false, true, "killed, and not gone 10 s later"),
            (
                Ending::Unreaped,
                true,
                false,
                "killed: its time of 500ms was up, and it was not gone 10 s later",
            ),
            (
                Ending::ExecFailed(2),
                false,
                false,
                "not started: No such file or directory (os error 2)",
            ),
        ];
        for (ending, timed_out, terminated, words) in rows {
            let result = ProcResult { terminated, ..result(ending, timed_out, false, "") };
            assert_eq!(result.reason(), words);
        }
    }
}
