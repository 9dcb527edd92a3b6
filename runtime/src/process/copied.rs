//! A stream of the caller's that is copied to a guest: read when the guest has room, without waiting
//! and without changing it.

use std::io::{IoSliceMut, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, ReadWriteFlags, preadv2, read};
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

use super::capture::End;
use crate::sys::without_sigttin;

/// As much as a pipe holds by default.
const CHUNK: usize = 64 * 1024;

/// How often a terminal is looked at again that is another job's.
const UNTIL_FOREGROUND: Duration = Duration::from_millis(100);

/// How a stream can be read without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Always ready.
    File,
    /// Once `poll(2)` says so, for a terminal has one reader.
    Terminal,
    /// By a flag of the call: somebody else may have read what `poll(2)` saw.
    Other,
}

/// What a read came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    Bytes,
    /// The guest has no room, or nothing is there.
    Later,
    /// The stream's end, or what cannot be told from it.
    End,
    GuestGone,
}

/// A stream that is copied from.
#[derive(Debug)]
pub(crate) struct Copied {
    fd: Arc<OwnedFd>,
    kind: Kind,
    waits_for_guest: bool,
    paused_until: Option<Instant>,
}

impl Copied {
    pub(super) fn new(fd: Arc<OwnedFd>) -> Copied {
        let is_file = || {
            let mode = fstat(&fd).map(|status| FileType::from_raw_mode(status.st_mode));
            matches!(mode, Ok(FileType::RegularFile | FileType::BlockDevice))
        };
        let kind = match fd.is_terminal() {
            true => Kind::Terminal,
            false if is_file() => Kind::File,
            false => Kind::Other,
        };
        Copied { fd, kind, waits_for_guest: false, paused_until: None }
    }

    pub(super) fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }

    /// It is the guest's turn, to make room.
    pub(super) fn waits_for_guest(&self) -> bool {
        self.waits_for_guest
    }

    /// Until when a terminal that is another job's is left alone.
    pub(super) fn paused_until(&self) -> Option<Instant> {
        self.paused_until
    }

    /// Reads one piece if there is one and the guest has room for it.
    pub(super) fn read(&mut self, guest: &End, buffer: &mut Vec<u8>) -> Read {
        buffer.clear();
        self.waits_for_guest = false;
        if self.paused_until.is_some_and(|at| Instant::now() < at) {
            return if is_gone(guest.fd()) { Read::GuestGone } else { Read::Later };
        }
        self.paused_until = None;
        let mut fds = [
            PollFd::from_borrowed_fd(guest.fd(), PollFlags::OUT),
            PollFd::new(&self.fd, PollFlags::IN),
        ];
        if poll(&mut fds, Some(&Timespec::default())).is_err() {
            return Read::Later;
        }
        let [room, there] = fds.map(|fd| fd.revents());
        if room.contains(PollFlags::ERR) {
            return Read::GuestGone;
        }
        self.waits_for_guest = !room.contains(PollFlags::OUT);
        if self.waits_for_guest || there.is_empty() {
            return Read::Later;
        }
        if self.kind == Kind::Terminal && is_in_background(self.fd.as_fd()) {
            return self.pause();
        }
        buffer.resize(CHUNK, 0);
        let read = self.read_into(buffer);
        buffer.truncate(read.unwrap_or(0));
        match read {
            Ok(0) => Read::End,
            Ok(_) => Read::Bytes,
            Err(Errno::AGAIN | Errno::INTR) => Read::Later,
            Err(Errno::IO) if is_in_background(self.fd.as_fd()) => self.pause(),
            Err(_) => Read::End,
        }
    }

    fn pause(&mut self) -> Read {
        self.paused_until = Instant::now().checked_add(UNTIL_FOREGROUND);
        Read::Later
    }

    fn read_into(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        /// Where the stream is, and it moves on.
        const CURRENT: u64 = u64::MAX;
        match self.kind {
            Kind::File => read(&self.fd, buffer),
            Kind::Terminal => without_sigttin(|| read(&self.fd, &mut *buffer)),
            Kind::Other => {
                let mut parts = [IoSliceMut::new(buffer)];
                match preadv2(&self.fd, &mut parts, CURRENT, ReadWriteFlags::NOWAIT) {
                    Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::SPIPE) => {
                        read(&self.fd, buffer)
                    }
                    read => read,
                }
            }
        }
    }
}

/// The guest no longer reads.
fn is_gone(guest: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(guest, PollFlags::empty())];
    matches!(poll(&mut fds, Some(&Timespec::default())), Ok(1..))
}

/// The terminal is another job's at the moment.
fn is_in_background(terminal: BorrowedFd<'_>) -> bool {
    tcgetpgrp(terminal).is_ok_and(|foreground| foreground != getpgrp())
}
