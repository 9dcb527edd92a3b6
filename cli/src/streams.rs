//! Moves bytes between this process's streams and the guest's; keeps none.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::{self, JoinHandle};

/// One stream on its way, until its source ends or its destination is closed.
pub(crate) struct Copying {
    thread: JoinHandle<io::Result<()>>,
}

/// As much as a pipe holds by default.
const CHUNK: usize = 64 * 1024;

/// Copies `from` to `to`. Either end is closed when the other is, so that each side learns of it.
pub(crate) fn copy(from: File, to: File) -> Copying {
    Copying { thread: thread::spawn(move || pass_on(from, to)) }
}

/// By `read` and `write`. `splice(2)`, which `io::copy` would use, takes a file's position before it
/// waits and puts it back afterwards: two streams into one file, as after `2>&1`, lose bytes.
fn pass_on(mut from: File, mut to: File) -> io::Result<()> {
    let mut chunk = vec![0u8; CHUNK];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(len) => to.write_all(chunk.get(..len).unwrap_or_default())?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

impl Copying {
    /// Waits until the guest's last byte has been passed on.
    ///
    /// # Errors
    /// As `write(2)` says; a closed pipe is not one: the reader has seen what it wanted.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self.thread.join() {
            Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            Ok(_) => Ok(()),
            Err(_) => Err(io::Error::other("a copying thread ended early")),
        }
    }
}

/// One of this process's own streams.
pub(crate) fn own(stream: impl AsFd) -> io::Result<File> {
    let fd: OwnedFd = stream.as_fd().try_clone_to_owned()?;
    Ok(fd.into())
}
