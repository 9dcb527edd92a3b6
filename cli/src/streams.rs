//! Moves bytes between this process's streams and the guest's; keeps none.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread::{self, JoinHandle};

/// One stream on its way, until its source ends or its destination is closed.
pub(crate) struct Copying {
    thread: JoinHandle<io::Result<()>>,
}

/// Copies `from` to `to`. Either end is closed when the other is, so that each side learns of it.
pub(crate) fn copy(mut from: File, mut to: File) -> Copying {
    let thread = thread::spawn(move || io::copy(&mut from, &mut to).map(drop));
    Copying { thread }
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
