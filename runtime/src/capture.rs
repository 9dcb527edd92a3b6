//! The host's ends of a run's streams: output kept up to a cap, input fed as the guest takes it.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, read};

use crate::sys::write_without_sigpipe;

/// Two pages: most runs write less, and none should pay for clearing more.
const CHUNK: usize = 8 * 1024;
/// Reads in a row before the other streams get their turn.
const READS_MAX: usize = 128;

/// One captured stream.
#[derive(Debug)]
pub(crate) struct Capture {
    fd: Option<OwnedFd>,
    bytes: Vec<u8>,
    bytes_max: usize,
    truncated: bool,
    nonblocking: bool,
}

impl Capture {
    pub(crate) fn new(fd: OwnedFd, bytes_max: u64) -> Capture {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        Capture { fd: Some(fd), bytes: Vec::new(), bytes_max, truncated: false, nonblocking: false }
    }

    /// `None` once the stream has ended.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// The stream itself, with nothing read from it yet.
    pub(crate) fn into_file(self) -> Option<File> {
        self.fd.map(File::from)
    }

    pub(crate) fn into_bytes(self) -> (Vec<u8>, bool) {
        (self.bytes, self.truncated)
    }

    /// Reads what is there. Beyond the cap it is read and dropped, so that the guest is not held up.
    pub(crate) fn read_all(&mut self) {
        let mut chunk = [0u8; CHUNK];
        for _ in 0..READS_MAX {
            let Some(fd) = &self.fd else { return };
            // Not before: a stream that the caller takes is an ordinary blocking one.
            self.nonblocking = self.nonblocking || fcntl_setfl(fd, OFlags::NONBLOCK).is_ok();
            if !self.nonblocking {
                self.fd = None;
                return;
            }
            match read(fd, &mut chunk) {
                Ok(0) => self.fd = None,
                Ok(len) => self.keep(chunk.get(..len).unwrap_or_default()),
                Err(Errno::AGAIN | Errno::INTR) => return,
                Err(_) => self.fd = None,
            }
        }
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
    fd: OwnedFd,
    bytes: Vec<u8>,
    at: usize,
    nonblocking: bool,
}

impl Feed {
    pub(crate) fn new(fd: OwnedFd, bytes: Vec<u8>) -> Feed {
        Feed { fd, bytes, at: 0, nonblocking: false }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Writes what fits; true once all is written or the guest no longer reads.
    pub(crate) fn is_done_after_write(&mut self) -> bool {
        self.nonblocking = self.nonblocking || fcntl_setfl(&self.fd, OFlags::NONBLOCK).is_ok();
        if !self.nonblocking {
            return true;
        }
        loop {
            let left = self.bytes.get(self.at..).unwrap_or_default();
            if left.is_empty() {
                return true;
            }
            match write_without_sigpipe(self.fd.as_fd(), left) {
                Ok(len) => self.at += len,
                Err(Errno::AGAIN | Errno::INTR) => return false,
                Err(_) => return true,
            }
        }
    }
}
