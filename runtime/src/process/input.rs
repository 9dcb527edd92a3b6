//! Writing to a live run's stdin, as far as it goes without waiting; closes nothing.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::capture::{End, Moved, WRITES_MAX};
use super::run::Run;
use crate::launch::socket;

impl Run {
    /// The guest's input, while it can be written to.
    pub(crate) fn input(&mut self) -> io::Result<&mut End> {
        let closed = || io::Error::new(io::ErrorKind::BrokenPipe, "stdin is no open pipe of ours");
        self.streams.stdin.as_mut().ok_or_else(closed)
    }

    /// Writes what fits into the guest's input and takes it off `bytes`.
    pub(crate) fn write(&mut self, bytes: &mut &[u8]) -> io::Result<Moved> {
        for _ in 0..WRITES_MAX {
            if bytes.is_empty() {
                return Ok(Moved::All);
            }
            match self.input()?.write(bytes)? {
                Some(len) => {
                    let (typed, left) = bytes.split_at_checked(len).unwrap_or_default();
                    self.streams.terminal.note_typed(typed);
                    *bytes = left;
                }
                None => return Ok(Moved::All),
            }
        }
        Ok(Moved::Some)
    }

    /// Waits until the input takes more, or something is due and done.
    pub(crate) fn wait_writable(&mut self) -> io::Result<()> {
        self.meet_dues(Instant::now()).map_err(io::Error::other)?;
        let left = self.due_at().map(|at| at.saturating_duration_since(Instant::now()));
        let input: BorrowedFd<'_> = self.input()?.fd();
        let mut fds = [PollFd::from_borrowed_fd(input, PollFlags::OUT)];
        match poll(&mut fds, left.map(socket::timespec).as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}
