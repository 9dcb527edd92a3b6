//! The host's ends of a run's streams: output kept up to a cap or handed over, input fed as the
//! guest takes it.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::buffer::{Buffer, spare_capacity};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, read};

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
}

impl End {
    pub(crate) fn new(fd: OwnedFd) -> End {
        End { fd: Arc::new(fd), nonblocking: false }
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
        if self.nonblocking {
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
    bytes_max: usize,
    truncated: bool,
}

impl Capture {
    pub(crate) fn new(fd: OwnedFd, bytes_max: u64) -> Capture {
        let mut capture =
            Capture { end: Some(End::new(fd)), bytes: Vec::new(), bytes_max: 0, truncated: false };
        capture.set_bytes_max(bytes_max);
        capture
    }

    pub(crate) fn set_bytes_max(&mut self, bytes_max: u64) {
        self.bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
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
    /// be. A large one takes that along, so that its bytes are not moved again.
    pub(crate) fn next_chunk(&mut self, scratch: &mut Vec<u8>) -> Option<Vec<u8>> {
        scratch.clear();
        let len = self.read(spare_capacity(scratch))?;
        let is_large = len > scratch.capacity() / 4;
        Some(if is_large { std::mem::take(scratch) } else { scratch.clone() })
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
        let room = self.bytes_max.saturating_sub(self.bytes.len()).min(new.len());
        self.bytes.extend_from_slice(new.get(..room).unwrap_or_default());
        self.truncated |= room < new.len();
    }
}

/// Bytes on their way to the guest's stdin.
#[derive(Debug)]
pub(crate) struct Feed {
    end: End,
    bytes: Arc<Vec<u8>>,
    at: usize,
}

impl Feed {
    pub(crate) fn new(fd: OwnedFd, bytes: Arc<Vec<u8>>) -> Feed {
        Feed { end: End::new(fd), bytes, at: 0 }
    }

    pub(crate) fn end(&self) -> &End {
        &self.end
    }

    /// Writes what fits.
    pub(crate) fn write_all(&mut self) -> Moved {
        for _ in 0..WRITES_MAX {
            match self.end.write(self.bytes.get(self.at..).unwrap_or_default()) {
                Ok(Some(len)) => self.at += len,
                Ok(None) => return Moved::All,
                // Nobody reads any more.
                Err(_) => self.at = self.bytes.len(),
            }
            if self.is_done() {
                return Moved::All;
            }
        }
        Moved::Some
    }

    /// All is written, or nobody reads it.
    pub(crate) fn is_done(&self) -> bool {
        self.at >= self.bytes.len()
    }
}
