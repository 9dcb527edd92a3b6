//! The life of PID 1 once it is confined: start the guest, forward signals, reap, report, leave.
//!
//! Decides nothing about isolation: when this code runs every wall stands, around PID 1 too.

use core::ffi::CStr;

use crate::process::{self, Ended, Pointers, Start};
use crate::record::{Kind, Record};
use crate::step::Step;
use crate::sys::{self, Errno, Fd, OwnedFd, PollFd, Signals, Wait};

/// Exit code of a PID 1 that failed before the guest ran, or lost its host.
pub const FAILED: i32 = 125;

/// A failed step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// Which.
    pub step: Step,
    /// Its place in a list, or `u32::MAX`.
    pub index: u32,
    /// Why.
    pub errno: Errno,
}

impl Failure {
    /// A failure that is not about one entry of a list.
    pub const fn at(step: Step) -> impl FnOnce(Errno) -> Failure {
        Self::at_index(step, u32::MAX)
    }

    /// A failure at one entry of a list.
    pub const fn at_index(step: Step, index: u32) -> impl FnOnce(Errno) -> Failure {
        move |errno| Failure { step, index, errno }
    }

    /// How it is reported.
    #[must_use]
    pub const fn record(self) -> Record {
        let mut record = Record::new(Kind::Failed);
        record.step = self.step.code();
        record.index = self.index;
        record.errno = self.errno.0;
        record
    }
}

/// A resource limit, soft and hard alike.
pub type Limit = (u32, u64);

/// How many limits may be set in the guest's process alone.
pub const GUEST_LIMITS: usize = 4;

/// The program to start.
#[derive(Debug, Clone, Copy)]
pub struct Guest<'a> {
    /// Its name: with a slash a path, without one looked for in `search`.
    pub program: &'a CStr,
    /// Directories to look in, separated by colons.
    pub search: &'a CStr,
    /// Address of its NULL-terminated argument array.
    pub arguments: Pointers,
    /// Address of its NULL-terminated environment.
    pub environment: Pointers,
    /// Its stdin is a terminal, which is to be its session's own.
    pub has_terminal: bool,
    /// Limits set in its process only.
    pub limits: [Option<Limit>; GUEST_LIMITS],
    /// A second filter for its process and what that starts, eight bytes an instruction; empty:
    /// none.
    pub filter: &'a [u8],
}

/// The descriptors PID 1 lives with.
#[derive(Debug, Clone, Copy)]
pub struct Lines {
    /// Where records go; at its end when the host has let go of the run.
    pub status: Fd,
    /// The host's process; readable when it is gone.
    pub host: Fd,
}

struct Shared<'a> {
    guest: Guest<'a>,
    failure: Option<Failure>,
}

/// Starts the guest and stays until it has ended; returns PID 1's exit code.
pub fn run(guest: Guest<'_>, lines: Lines, stack: &mut [u8]) -> i32 {
    match start(guest, stack) {
        Ok((pid, signals)) => watch(pid, signals.fd(), lines),
        Err(failure) => {
            let mut record = failure.record();
            if failure.step == Step::Exec {
                record.kind = Kind::ExecFailed;
            }
            report(lines.status, &record);
            FAILED
        }
    }
}

/// Sends one record; a full or closed socket means that the host is gone or no longer listens.
pub fn report(status: Fd, record: &Record) {
    if sys::send(status, &record.encode()).is_err() {
        sys::exit(FAILED);
    }
}

fn start(guest: Guest<'_>, stack: &mut [u8]) -> Result<(i32, OwnedFd), Failure> {
    let signals = sys::signal_fd().map_err(Failure::at(Step::SignalFd))?;
    let mut start = Start { enter: become_guest, shared: Shared { guest, failure: None } };
    let pid = process::spawn_guest(stack, &mut start).map_err(Failure::at(Step::ForkGuest))?;
    // The guest's ends of its pipes must not live on in PID 1.
    for fd in 0..=2 {
        sys::close(Fd(fd));
    }
    match start.shared.failure {
        Some(failure) => Err(failure),
        None => Ok((pid, signals)),
    }
}

fn become_guest(shared: &mut Shared<'_>) -> ! {
    shared.failure = Some(match prepare(&shared.guest) {
        Err(failure) => failure,
        Ok(()) => Failure::at(Step::Exec)(execute(&shared.guest)),
    });
    sys::exit(127)
}

fn prepare(guest: &Guest<'_>) -> Result<(), Failure> {
    let session = sys::new_session().and_then(|()| match guest.has_terminal {
        true => process::take_terminal(Fd(0)),
        false => Ok(()),
    });
    session.map_err(Failure::at(Step::GuestSetup))?;
    for (index, limit) in (0u32..).zip(guest.limits) {
        if let Some((resource, value)) = limit {
            lower_limit(resource, value).map_err(Failure::at_index(Step::GuestRlimit, index))?;
        }
    }
    sys::set_signal_mask(Signals::NoneBlocked).map_err(Failure::at(Step::GuestSetup))?;
    // The last call but exec: the policy need not know what a launch takes.
    match guest.filter.is_empty() {
        true => Ok(()),
        false => process::install_filter(guest.filter).map_err(Failure::at(Step::GuestFilter)),
    }
}

/// Sets soft and hard limit to `value`, or to the hard limit where that is lower already.
///
/// # Errors
/// As `prlimit64(2)` says.
pub fn lower_limit(resource: u32, value: u64) -> sys::Result<()> {
    let [_, hard] = sys::limit(resource)?;
    let value = value.min(hard);
    sys::set_limit(resource, [value, value])
}

/// Tries the program itself, or each directory of the search path in turn, as `execvp(3)` does.
fn execute(guest: &Guest<'_>) -> Errno {
    let name = guest.program.to_bytes();
    if name.is_empty() {
        return Errno::ENOENT;
    }
    if name.iter().any(is_slash) {
        return execute_at(guest, guest.program);
    }
    let mut last = Errno::ENOENT;
    for directory in guest.search.to_bytes().split(|byte| *byte == b':') {
        let mut buffer = [0u8; 4096];
        match join(&mut buffer, directory, name) {
            None => last = Errno::ENAMETOOLONG,
            Some(candidate) => match execute_at(guest, candidate) {
                Errno::ENOENT | Errno::ENOTDIR => {}
                Errno::EACCES => last = Errno::EACCES,
                other => return other,
            },
        }
    }
    last
}

fn execute_at(guest: &Guest<'_>, program: &CStr) -> Errno {
    process::execute(program, &guest.arguments, &guest.environment)
}

/// Whether a path goes on into something.
#[must_use]
pub const fn is_slash(byte: &u8) -> bool {
    *byte == b'/'
}

/// `directory/name` in `buffer`; an empty directory is the current one, as in `PATH`.
pub fn join<'b>(buffer: &'b mut [u8], directory: &[u8], name: &[u8]) -> Option<&'b CStr> {
    let slash: &[u8] = if directory.is_empty() { b"" } else { b"/" };
    let mut start = 0usize;
    for part in [directory, slash, name, b"\0"] {
        let end = start.checked_add(part.len())?;
        let places = buffer.get_mut(start..end)?.iter_mut();
        places.zip(part).for_each(|(place, byte)| *place = *byte);
        start = end;
    }
    sys::c_str(buffer.get(..start)?)
}

/// Signals that the host may send to PID 1 for the guest, by number: HUP INT QUIT USR1 USR2 TERM
/// and WINCH. Others end with PID 1: its own are of no use to the guest.
const FORWARDED: [i32; 7] = [1, 2, 3, 10, 12, 15, 28];

const SIGKILL: i32 = 9;

fn watch(guest: i32, signals: Fd, lines: Lines) -> i32 {
    loop {
        // Of the line only its end: nothing more is to be read.
        let line = PollFd { events: 0, ..PollFd::readable(lines.status) };
        let mut fds = [PollFd::readable(signals), PollFd::readable(lines.host), line];
        match sys::poll(&mut fds, Wait::Forever) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return give_up(lines, errno),
        }
        let [_, host, status] = fds;
        if host.revents != 0 || status.revents != 0 {
            return FAILED;
        }
        forward(guest, signals);
        match reap_until(guest) {
            Ok(None) => {}
            Ok(Some(ended)) => {
                end_stragglers();
                return finish(lines, &ended);
            }
            Err(errno) => return give_up(lines, errno),
        }
    }
}

fn forward(guest: i32, signals: Fd) {
    while let Some(signal) = sys::next_signal(signals) {
        if FORWARDED.contains(&signal) {
            // The guest may just have ended or changed its group; then nothing is there to tell.
            sys::kill(guest.wrapping_neg(), signal).ok();
        }
    }
}

/// Reaps whatever has ended, orphans included; `Some` once the guest itself is among it.
fn reap_until(guest: i32) -> sys::Result<Option<Ended>> {
    while let Some(ended) = process::reap()? {
        if ended.pid == guest {
            return Ok(Some(ended));
        }
    }
    Ok(None)
}

/// Ends whatever the guest has left behind, so that its end, once reported, is that of everything it
/// started. The kernel would do the same after PID 1, but later: it takes the mounts apart first.
fn end_stragglers() {
    loop {
        match process::reap() {
            Ok(Some(_)) => {}
            // All orphans are PID 1's children: some are left, and theirs with them.
            Ok(None) => {
                sys::kill(-1, SIGKILL).ok();
                process::wait_any().ok();
            }
            // Nobody is.
            Err(_) => return,
        }
    }
}

fn give_up(lines: Lines, errno: Errno) -> i32 {
    report(lines.status, &Failure::at(Step::Supervise)(errno).record());
    FAILED
}

fn finish(lines: Lines, ended: &Ended) -> i32 {
    let mut record = Record::new(Kind::GuestEnded);
    record.code = ended.code;
    record.signal = ended.signal;
    record.user_us = ended.user_us;
    record.system_us = ended.system_us;
    record.peak_kib = ended.peak_kib;
    report(lines.status, &record);
    if ended.signal == 0 { ended.code } else { ended.signal.wrapping_add(128) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_joined_to_directories() {
        let long = [b'd'; 4096];
        let rows: [(&[u8], Option<&CStr>); 4] = [
            (b"/usr/bin", Some(c"/usr/bin/python3")),
            (b"", Some(c"python3")),
            (b".", Some(c"./python3")),
            (&long, None),
        ];
        for (directory, expected) in rows {
            let mut buffer = [0u8; 4096];
            assert_eq!(join(&mut buffer, directory, b"python3"), expected, "{directory:?}");
        }
    }

    #[test]
    fn a_failure_is_told_in_numbers() {
        let record = Failure::at_index(Step::Mask, 4)(Errno::EPERM).record();
        assert_eq!((record.step, record.index, record.errno), (Step::Mask.code(), 4, 1));
    }
}
