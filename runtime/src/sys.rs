//! The signal mask of the calling thread, which rustix does not set, and the registration of a
//! descriptor with a runtime; decides nothing.
#![expect(unsafe_code, reason = "signal masks; a descriptor that must stay open")]

use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use postern_init::sys::Errno;

/// Signals of this thread that are blocked while the value lives.
pub(crate) struct SignalsBlocked {
    old: libc::sigset_t,
}

impl SignalsBlocked {
    /// Blocks every signal.
    pub(crate) fn all() -> Result<SignalsBlocked, Errno> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: fills the set it is given.
        unsafe { libc::sigfillset(set.as_mut_ptr()) };
        // SAFETY: `sigfillset` has initialised it.
        SignalsBlocked::new(&unsafe { set.assume_init() })
    }

    /// Blocks one signal, and says which set that is.
    fn one(signal: i32) -> Result<(SignalsBlocked, libc::sigset_t), Errno> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: empties the set it is given.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: adds a valid signal to an initialised set.
        unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
        // SAFETY: `sigemptyset` has initialised it.
        let set = unsafe { set.assume_init() };
        Ok((SignalsBlocked::new(&set)?, set))
    }

    fn new(set: &libc::sigset_t) -> Result<SignalsBlocked, Errno> {
        let mut old = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: reads one set and writes the other; both are valid for that.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set, old.as_mut_ptr()) } {
            // SAFETY: the call succeeded and so filled it.
            0 => Ok(SignalsBlocked { old: unsafe { old.assume_init() } }),
            error => Err(Errno(error)),
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: a set that the kernel gave us; SIG_SETMASK with it cannot fail.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.old, std::ptr::null_mut())
        };
    }
}

/// `write(2)` to a pipe whose reader may be gone: `EPIPE`, and no signal that would end a host
/// which has not set `SIGPIPE` aside.
pub(crate) fn write_without_sigpipe(
    fd: BorrowedFd<'_>,
    bytes: &[u8],
) -> Result<usize, rustix::io::Errno> {
    let Ok((_blocked, set)) = SignalsBlocked::one(libc::SIGPIPE) else {
        return Err(rustix::io::Errno::INVAL);
    };
    let result = rustix::io::write(fd, bytes);
    if result == Err(rustix::io::Errno::PIPE) {
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: takes a signal that waits, if one does; both references are valid.
        unsafe { libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const now) };
    }
    result
}

/// `read(2)` of a terminal that may be another job's: `EIO`, and no signal that would stop the host.
pub(crate) fn without_sigttin<T>(
    read: impl FnOnce() -> Result<T, rustix::io::Errno>,
) -> Result<T, rustix::io::Errno> {
    let blocked = SignalsBlocked::one(libc::SIGTTIN);
    let _blocked = blocked.map_err(|Errno(errno)| rustix::io::Errno::from_raw_os_error(errno))?;
    read()
}

/// Has the current tokio runtime watch a descriptor.
#[cfg(feature = "tokio")]
pub(crate) fn watch(
    fd: std::sync::Arc<std::os::fd::OwnedFd>,
    interest: tokio::io::Interest,
) -> std::io::Result<tokio::io::unix::AsyncFd<std::sync::Arc<std::os::fd::OwnedFd>>> {
    // SAFETY: an owned descriptor is open, and keeps its number, for as long as the value has its
    // part of it.
    let watch = unsafe { tokio::io::unix::AsyncFd::register_with_interest(fd, interest) };
    watch.map_err(std::io::Error::from)
}
