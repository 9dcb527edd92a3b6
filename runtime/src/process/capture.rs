//! The host's ends of a run's streams, and output kept up to a cap or handed over; feeds nothing.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::buffer::{Buffer, spare_capacity};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, read};

use crate::command::OutputCap;
use crate::sys::write_without_sigpipe;

/// Two pages: most runs write less, and none should pay for clearing more.
const CHUNK: usize = 8 * 1024;
/// Reads in a row before the other streams get their turn, and other tasks theirs.
const READS_MAX: usize = 128;
/// Likewise writes, each of which a pipe takes 64 KiB of.
pub(crate) const WRITES_MAX: usize = 16;

/// Whether a stream was left because it had no more, or because others wait for their turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// All that could be; it is time to wait for news.
    All,
    /// There may be more already.
    Some,
}

impl Moved {
    /// Of two streams.
    pub(crate) fn and(self, other: Moved) -> Moved {
        if self == Moved::All { other } else { self }
    }
}

/// The host's end of a pipe, which never makes it wait. Shared with whoever waits for it to be
/// ready, so that a number is not given out anew while it is still being waited for.
#[derive(Debug)]
pub(crate) struct End {
    fd: Arc<OwnedFd>,
    nonblocking: bool,
    is_terminal: bool,
}

impl End {
    pub(crate) fn new(fd: OwnedFd) -> End {
        End { fd: Arc::new(fd), nonblocking: false, is_terminal: false }
    }

    /// A descriptor of a terminal's master that does not wait, as none of the others does: they
    /// share that flag.
    pub(crate) fn of_terminal(fd: OwnedFd) -> End {
        End { fd: Arc::new(fd), nonblocking: true, is_terminal: true }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn share(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.fd)
    }

    /// Not before the first use: a stream that the caller takes is an ordinary blocking one.
    fn settle(&mut self) -> Result<(), Errno> {
        if !self.nonblocking {
            fcntl_setfl(&self.fd, OFlags::NONBLOCK)?;
            self.nonblocking = true;
        }
        Ok(())
    }

    /// The stream itself; what was read from it before is gone.
    pub(crate) fn into_file(self) -> Option<File> {
        if self.nonblocking && !self.is_terminal {
            fcntl_setfl(&self.fd, OFlags::empty()).ok();
        }
        Arc::into_inner(self.fd).map(File::from)
    }

    /// What can be written at once; `None`: nothing yet.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<Option<usize>, Errno> {
        self.settle()?;
        match write_without_sigpipe(self.fd.as_fd(), bytes) {
            Ok(len) => Ok(Some(len)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

/// One stream of output.
#[derive(Debug)]
pub(crate) struct Capture {
    end: Option<End>,
    bytes: Vec<u8>,
    cap: Cap,
    /// Bytes that have been handed over.
    handed: u64,
    truncated: bool,
}

/// How much of an output is taken, and what becomes of a run that writes more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cap {
    pub(crate) bytes_max: u64,
    pub(crate) beyond: OutputCap,
}

impl Capture {
    pub(crate) fn new(end: End, cap: Cap) -> Capture {
        Capture { end: Some(end), bytes: Vec::new(), cap, handed: 0, truncated: false }
    }

    pub(crate) fn set_bytes_max(&mut self, bytes_max: u64) {
        self.cap.bytes_max = bytes_max;
    }

    /// More came than the run may write.
    pub(crate) fn is_overflowed(&self) -> bool {
        self.truncated && self.cap.beyond == OutputCap::Kill
    }

    /// `None` once the stream has ended.
    pub(crate) fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// No more of it is wanted.
    pub(crate) fn close(&mut self) {
        self.end = None;
    }

    /// The stream itself.
    pub(crate) fn into_file(self) -> Option<File> {
        self.end.and_then(End::into_file)
    }

    pub(crate) fn into_bytes(self) -> (Vec<u8>, bool) {
        (self.bytes, self.truncated)
    }

    /// Reads what is there. Beyond the cap it is read and dropped, so that the guest is not held up.
    pub(crate) fn read_all(&mut self) -> Moved {
        let mut chunk = [0u8; CHUNK];
        for _ in 0..READS_MAX {
            match self.read(&mut chunk[..]) {
                Some(len) => self.keep(chunk.get(..len).unwrap_or_default()),
                None => return Moved::All,
            }
        }
        Moved::Some
    }

    /// The next piece, if one is there; read into `scratch`, which has room for as much as one may
    /// be. A large one takes that along, so that its bytes are not moved again. The cap is of what
    /// is kept: only one that ends the run is a cap of this too.
    pub(crate) fn next_chunk(&mut self, scratch: &mut Vec<u8>) -> Option<Vec<u8>> {
        for _ in 0..READS_MAX {
            scratch.clear();
            let len = self.read(spare_capacity(scratch))?;
            if self.cap.beyond == OutputCap::Kill {
                let len = self.room_for(len);
                self.handed += len as u64;
                scratch.truncate(len);
            }
            if !scratch.is_empty() {
                let is_large = scratch.len() > scratch.capacity() / 4;
                return Some(if is_large { std::mem::take(scratch) } else { scratch.clone() });
            }
        }
        None
    }

    /// `None`: nothing yet, or nothing any more.
    fn read(&mut self, chunk: impl Buffer<u8, Output = usize>) -> Option<usize> {
        let end = self.end.as_mut()?;
        match end.settle().and_then(|()| read(&end.fd, chunk)) {
            Ok(0) => self.end = None,
            Ok(len) => return Some(len),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.end = None,
        }
        None
    }

    fn keep(&mut self, new: &[u8]) {
        let room = self.room_for(new.len());
        self.bytes.extend_from_slice(new.get(..room).unwrap_or_default());
    }

    /// How many of `len` new bytes are within the cap.
    fn room_for(&mut self, len: usize) -> usize {
        let room = self.cap.bytes_max.saturating_sub(self.handed);
        let room = usize::try_from(room).unwrap_or(usize::MAX).saturating_sub(self.bytes.len());
        self.truncated |= room < len;
        room.min(len)
    }
}
