//! Raw system calls as typed functions; decides nothing.
//!
//! # Safety
//! Every block below is one call of `arch::syscall`. Pointers passed are derived from references
//! that outlive the call, with the length the kernel is told; calls that could break memory safety
//! otherwise (`munmap`, `clone`) are `unsafe fn` and say what the caller must keep.
#![expect(unsafe_code, reason = "system calls")]

use core::ffi::CStr;

use crate::arch::{self, nr};

/// The C string that these bytes are; none unless the last of them is their only NUL. What core has
/// for it brings along a search made for long texts, of 300 bytes.
#[must_use]
pub fn c_str(bytes: &[u8]) -> Option<&CStr> {
    let (last, text) = bytes.split_last()?;
    let is_string = *last == 0 && text.iter().all(|byte| *byte != 0);
    // SAFETY: the last byte is the only NUL, as just seen.
    is_string.then(|| unsafe { CStr::from_bytes_with_nul_unchecked(bytes) })
}

/// An error number of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

#[expect(missing_docs, reason = "each is the error's own name in errno(3)")]
impl Errno {
    pub const EPERM: Errno = Errno(1);
    pub const ENOENT: Errno = Errno(2);
    pub const EINTR: Errno = Errno(4);
    pub const E2BIG: Errno = Errno(7);
    pub const ECHILD: Errno = Errno(10);
    pub const EAGAIN: Errno = Errno(11);
    pub const EACCES: Errno = Errno(13);
    pub const EBUSY: Errno = Errno(16);
    pub const ENOTDIR: Errno = Errno(20);
    pub const EINVAL: Errno = Errno(22);
    pub const EMFILE: Errno = Errno(24);
    pub const EROFS: Errno = Errno(30);
    pub const ENAMETOOLONG: Errno = Errno(36);
    pub const ENOSYS: Errno = Errno(38);
    pub const ESTALE: Errno = Errno(116);
    pub const EOPNOTSUPP: Errno = Errno(95);
    pub const EPROTO: Errno = Errno(71);
    pub const ESRCH: Errno = Errno(3);
    pub const EEXIST: Errno = Errno(17);
}

/// The result of a system call.
pub type Result<T> = core::result::Result<T, Errno>;

/// A descriptor by number: a loan, closed by nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fd(pub i32);

impl Fd {
    /// The current directory in `*at` calls.
    pub const CWD: Fd = Fd(-100);

    pub(crate) const fn arg(self) -> usize {
        self.0.cast_unsigned() as usize
    }
}

/// A descriptor that is closed when dropped.
#[derive(Debug)]
pub struct OwnedFd(Fd);

impl OwnedFd {
    /// Takes ownership of a descriptor that nothing else closes.
    #[must_use]
    pub const fn new(fd: Fd) -> OwnedFd {
        OwnedFd(fd)
    }

    /// A loan of it.
    #[must_use]
    pub const fn fd(&self) -> Fd {
        self.0
    }

    /// Gives up ownership: the descriptor stays open.
    #[must_use]
    pub fn into_fd(self) -> Fd {
        let fd = self.0;
        let _kept = core::mem::ManuallyDrop::new(self);
        fd
    }
}

impl Drop for OwnedFd {
    fn drop(&mut self) {
        close(self.0);
    }
}

/// Reads a raw result: negative is an errno.
///
/// # Errors
/// The errno.
pub fn check(result: isize) -> Result<usize> {
    match usize::try_from(result) {
        Ok(value) => Ok(value),
        // An errno is between -4095 and -1, so it fits.
        Err(_) => Err(Errno(i32::try_from(result.wrapping_neg()).unwrap_or(i32::MAX))),
    }
}

pub(crate) fn call(nr: usize, args: [usize; 6]) -> Result<usize> {
    // SAFETY: private to this crate's sys files; each caller passes what `nr` expects, from live references.
    check(unsafe { arch::syscall(nr, args) })
}

fn new_fd(result: Result<usize>) -> Result<OwnedFd> {
    result.map(|fd| OwnedFd(Fd(i32::try_from(fd).unwrap_or(-1))))
}

pub(crate) fn path(p: &CStr) -> usize {
    p.as_ptr().addr_exposed()
}

pub(crate) trait Expose {
    fn addr_exposed(self) -> usize;
}

impl<T> Expose for *const T {
    fn addr_exposed(self) -> usize {
        self.expose_provenance()
    }
}

impl<T> Expose for *mut T {
    fn addr_exposed(self) -> usize {
        self.expose_provenance()
    }
}

const fn low(value: u32) -> usize {
    value as usize
}

const fn signed(value: i32) -> usize {
    (value as isize).cast_unsigned()
}

/// `close(2)`. Linux releases the descriptor whatever it answers, so the answer is not looked at.
pub fn close(fd: Fd) {
    call(nr::CLOSE, [fd.arg(), 0, 0, 0, 0, 0]).ok();
}

/// `close_range(2)` from `first` up.
///
/// # Errors
/// As the kernel says.
pub fn close_from(first: i32) -> Result<()> {
    call(nr::CLOSE_RANGE, [signed(first), low(u32::MAX), 0, 0, 0, 0]).map(drop)
}

/// `dup3(2)` onto a given number.
///
/// # Errors
/// As the kernel says.
pub fn dup_onto(from: Fd, onto: Fd, flags: u32) -> Result<()> {
    call(nr::DUP3, [from.arg(), onto.arg(), low(flags), 0, 0, 0]).map(drop)
}

/// `read(2)`.
///
/// # Errors
/// As the kernel says.
pub fn read(fd: Fd, buffer: &mut [u8]) -> Result<usize> {
    call(nr::READ, [fd.arg(), buffer.as_mut_ptr().addr_exposed(), buffer.len(), 0, 0, 0])
}

/// `write(2)`.
///
/// # Errors
/// As the kernel says.
pub fn write(fd: Fd, bytes: &[u8]) -> Result<usize> {
    call(nr::WRITE, [fd.arg(), bytes.as_ptr().addr_exposed(), bytes.len(), 0, 0, 0])
}

/// `O_CLOEXEC`.
pub const O_CLOEXEC: u32 = 0o2_000_000;
/// `O_PATH`.
pub const O_PATH: u32 = 0o10_000_000;
/// `O_DIRECTORY`.
pub const O_DIRECTORY: u32 = 0o200_000;
/// `O_NOFOLLOW`.
pub const O_NOFOLLOW: u32 = 0o400_000;
/// `O_RDWR`.
pub const O_RDWR: u32 = 2;
/// `O_WRONLY`.
pub const O_WRONLY: u32 = 1;
/// `O_CREAT | O_EXCL`.
pub const O_CREATE_NEW: u32 = 0o300;

/// `openat(2)`.
///
/// # Errors
/// As the kernel says.
pub fn open_at(dir: Fd, name: &CStr, flags: u32, mode: u32) -> Result<OwnedFd> {
    new_fd(call(nr::OPENAT, [dir.arg(), path(name), low(flags | O_CLOEXEC), low(mode), 0, 0]))
}

/// `exit_group(2)`.
pub fn exit(code: i32) -> ! {
    loop {
        // The kernel does not return from it; a filter that refused it must not let us go on.
        call(nr::EXIT_GROUP, [signed(code), 0, 0, 0, 0, 0]).ok();
        arch::trap();
    }
}

/// `getpid(2)`.
#[must_use]
pub fn process_id() -> i32 {
    call(nr::GETPID, [0; 6]).ok().and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0)
}

/// `kill(2)`; signal 0 only asks.
///
/// # Errors
/// As the kernel says.
pub fn kill(pid: i32, signal: i32) -> Result<()> {
    call(nr::KILL, [signed(pid), signed(signal), 0, 0, 0, 0]).map(drop)
}

/// `setsid(2)`.
///
/// # Errors
/// As the kernel says.
pub fn new_session() -> Result<()> {
    call(nr::SETSID, [0; 6]).map(drop)
}

/// How `rt_sigprocmask(2)` changes the mask.
#[derive(Debug, Clone, Copy)]
pub enum Signals {
    /// Every signal is blocked.
    AllBlocked,
    /// None is.
    NoneBlocked,
}

/// `rt_sigprocmask(2)` to one of the two masks we use.
///
/// # Errors
/// As the kernel says.
pub fn set_signal_mask(signals: Signals) -> Result<()> {
    const SIG_SETMASK: usize = 2;
    let mask: u64 = match signals {
        Signals::AllBlocked => u64::MAX,
        Signals::NoneBlocked => 0,
    };
    let at = core::ptr::from_ref(&mask).addr_exposed();
    call(nr::RT_SIGPROCMASK, [SIG_SETMASK, at, 0, size_of::<u64>(), 0, 0]).map(drop)
}

/// `signalfd4(2)` for every signal.
///
/// # Errors
/// As the kernel says.
pub fn signal_fd() -> Result<OwnedFd> {
    const SFD_CLOEXEC_NONBLOCK: usize = 0o2_004_000;
    let mask = u64::MAX;
    let at = core::ptr::from_ref(&mask).addr_exposed();
    let args = [usize::MAX, at, size_of::<u64>(), SFD_CLOEXEC_NONBLOCK, 0, 0];
    new_fd(call(nr::SIGNALFD4, args))
}

/// The next signal waiting in a [`signal_fd`].
#[must_use]
pub fn next_signal(fd: Fd) -> Option<i32> {
    const SIGINFO_LEN: usize = 128;
    let mut info = [0u8; SIGINFO_LEN];
    match read(fd, &mut info) {
        Ok(SIGINFO_LEN) => {
            let [a, b, c, d, ..] = info;
            Some(i32::from_ne_bytes([a, b, c, d]))
        }
        Ok(_) | Err(_) => None,
    }
}

/// One entry of [`poll`].
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct PollFd {
    /// The descriptor.
    pub fd: i32,
    /// What is asked for; `POLLIN` is 1.
    pub events: i16,
    /// What is there.
    pub revents: i16,
}

impl PollFd {
    /// Waits for `fd` to be readable, or for its end.
    #[must_use]
    pub const fn readable(fd: Fd) -> PollFd {
        PollFd { fd: fd.0, events: 1, revents: 0 }
    }
}

/// How long [`poll`] waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    No,
    /// As long as it takes.
    Forever,
    /// So many nanoseconds, less than a second.
    Nanoseconds(u64),
}

/// `ppoll(2)` without a signal mask; how many entries are ready.
///
/// # Errors
/// As the kernel says, `EINTR` included.
pub fn poll(fds: &mut [PollFd], wait: Wait) -> Result<usize> {
    let limit = match wait {
        Wait::Nanoseconds(nanoseconds) => [0u64, nanoseconds],
        Wait::No | Wait::Forever => [0u64; 2],
    };
    let timeout = if wait == Wait::Forever { 0 } else { limit.as_ptr().addr_exposed() };
    call(nr::PPOLL, [fds.as_mut_ptr().addr_exposed(), fds.len(), timeout, 0, size_of::<u64>(), 0])
}

/// `prctl(2)` with plain numbers.
///
/// # Errors
/// As the kernel says.
pub fn prctl(option: u32, argument: usize, second: usize) -> Result<usize> {
    call(nr::PRCTL, [low(option), argument, second, 0, 0, 0])
}

/// `capset(2)` of the calling thread.
///
/// # Errors
/// As the kernel says.
pub fn set_capabilities(sets: CapabilitySets) -> Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    let header: [u32; 2] = [VERSION_3, 0];
    let half = |bits: u64| u32::try_from(bits & 0xffff_ffff).unwrap_or(0);
    let (lower, upper) = (half(sets.permitted), half(sets.permitted >> 32));
    let (inherit_lower, inherit_upper) = (half(sets.inheritable), half(sets.inheritable >> 32));
    let data: [u32; 6] = [lower, lower, inherit_lower, upper, upper, inherit_upper];
    let (header, data) = (header.as_ptr().addr_exposed(), data.as_ptr().addr_exposed());
    call(nr::CAPSET, [header, data, 0, 0, 0, 0]).map(drop)
}

/// Capability sets, a bit for each capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapabilitySets {
    /// What is permitted and effective.
    pub permitted: u64,
    /// What may survive an exec.
    pub inheritable: u64,
}

/// `prctl(PR_SET_NAME)`.
///
/// # Errors
/// As the kernel says.
pub fn set_name(name: &CStr) -> Result<()> {
    const PR_SET_NAME: u32 = 15;
    prctl(PR_SET_NAME, path(name), 0).map(drop)
}

/// `prlimit64(2)` of the calling process: the limits in force, soft and hard.
///
/// # Errors
/// As the kernel says.
pub fn limit(resource: u32) -> Result<[u64; 2]> {
    let mut old = [0u64; 2];
    let at = old.as_mut_ptr().addr_exposed();
    call(nr::PRLIMIT64, [0, low(resource), 0, at, 0, 0])?;
    Ok(old)
}

/// `prlimit64(2)` of the calling process: soft and hard limit.
///
/// # Errors
/// As the kernel says.
pub fn set_limit(resource: u32, limits: [u64; 2]) -> Result<()> {
    let at = limits.as_ptr().addr_exposed();
    call(nr::PRLIMIT64, [0, low(resource), at, 0, 0, 0]).map(drop)
}

/// `sendto(2)` on a connected socket; never blocks, never raises `SIGPIPE`.
///
/// # Errors
/// As the kernel says, `EAGAIN` when it would block.
pub fn send(socket: Fd, bytes: &[u8]) -> Result<usize> {
    const DONTWAIT_NOSIGNAL: usize = 0x40 | 0x4000;
    let at = bytes.as_ptr().addr_exposed();
    call(nr::SENDTO, [socket.arg(), at, bytes.len(), DONTWAIT_NOSIGNAL, 0, 0])
}
