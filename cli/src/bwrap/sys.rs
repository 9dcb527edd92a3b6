//! Descriptors that a command line names by number; decides nothing.
#![expect(unsafe_code, reason = "descriptors by number")]

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::libc;

/// Whether a number is that of an open descriptor.
///
/// # Errors
/// `EBADF` when it is not.
pub(super) fn check(fd: RawFd) -> io::Result<()> {
    // SAFETY: asks about a number, open or not, and changes nothing.
    match unsafe { libc::fcntl(fd, libc::F_GETFD) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Takes over an open descriptor that nothing else in this process uses: the caller of this program
/// has passed it for this one purpose.
///
/// # Errors
/// `EBADF` when it is not open.
pub(super) fn take(fd: RawFd) -> io::Result<OwnedFd> {
    check(fd)?;
    // SAFETY: open, as just seen, and named by the command line for whoever asks for it here.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Lends an open descriptor.
///
/// # Errors
/// `EBADF` when it is not open.
pub(super) fn lend<'a>(fd: RawFd) -> io::Result<BorrowedFd<'a>> {
    check(fd)?;
    // SAFETY: open, as just seen; nothing here closes what it did not take.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}
