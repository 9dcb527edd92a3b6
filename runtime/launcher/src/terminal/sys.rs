//! What is asked of a terminal's master; decides nothing.
//!
//! # Safety
//! As in `crate::sys`: pointers derive from references that outlive the call.

use postern_init::sys::{Fd, OwnedFd, Result};

use crate::sys::{at, ioctl, new_fd};

/// Unlocks a master's other end, gives it a size and opens it as nobody's controlling terminal.
/// By the master and not by a path: see `TIOCGPTPEER` in `ioctl_tty(2)`.
///
/// # Errors
/// As the kernel says.
pub(crate) fn open_slave(master: Fd, size: u32) -> Result<OwnedFd> {
    const TIOCSPTLCK: usize = 0x4004_5431;
    const TIOCSWINSZ: usize = 0x5414;
    const TIOCGPTPEER: usize = 0x5441;
    const RDWR_NOCTTY_CLOEXEC: usize = 0o2_000_402;
    // `struct winsize`, the two sizes in pixels unknown.
    let size = [size, 0];
    let unlocked = 0u32;
    ioctl(master, TIOCSPTLCK, at(&unlocked))?;
    ioctl(master, TIOCSWINSZ, at(&size))?;
    new_fd(ioctl(master, TIOCGPTPEER, RDWR_NOCTTY_CLOEXEC))
}
