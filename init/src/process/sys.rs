//! Making, replacing and reaping a process; decides nothing.
//!
//! # Safety
//! As in `crate::sys`; the one call that shares memory says what it relies on.
#![expect(unsafe_code, reason = "a child that shares memory, and exec")]

use core::ffi::CStr;

use crate::arch::{self, nr};
use crate::sys::{Errno, Expose, Fd, Result, call, check, path};

/// A NULL-terminated array of C strings for [`execute`].
#[derive(Debug, Clone, Copy)]
pub struct Pointers(usize);

impl Pointers {
    /// Vouches for the array.
    ///
    /// # Safety
    /// `address` must be that of a NULL-terminated array of pointers to C strings, all of which
    /// stay valid as long as the value is used.
    #[must_use]
    pub const unsafe fn new(address: usize) -> Pointers {
        Pointers(address)
    }
}

/// `execve(2)`. Returns only when it failed.
#[must_use]
pub fn execute(program: &CStr, arguments: &Pointers, environment: &Pointers) -> Errno {
    match call(nr::EXECVE, [path(program), arguments.0, environment.0, 0, 0, 0]) {
        Ok(_) => Errno::EINVAL,
        Err(errno) => errno,
    }
}

/// `execveat(2)` of an open file. Returns only when it failed.
#[must_use]
pub fn execute_file(file: Fd, arguments: &Pointers, environment: &Pointers) -> Errno {
    const AT_EMPTY_PATH: usize = 0x1000;
    let args = [file.arg(), path(c""), arguments.0, environment.0, AT_EMPTY_PATH, 0];
    match call(nr::EXECVEAT, args) {
        Ok(_) => Errno::EINVAL,
        Err(errno) => errno,
    }
}

/// `seccomp(SECCOMP_SET_MODE_FILTER)` with instructions of eight bytes each, for the calling thread
/// and what it starts.
///
/// # Errors
/// `EINVAL` for a program of odd length; else as the kernel says.
pub fn install_filter(program: &[u8]) -> Result<()> {
    const SET_MODE_FILTER: usize = 1;
    /// `struct sock_fprog`.
    #[repr(C)]
    struct Program {
        len: u16,
        filter: usize,
    }
    let (instructions, rest) = program.as_chunks::<8>();
    let len = u16::try_from(instructions.len()).ok().ok_or(Errno::EINVAL)?;
    if !rest.is_empty() || len == 0 {
        return Err(Errno::EINVAL);
    }
    let program = Program { len, filter: program.as_ptr().addr_exposed() };
    let at = core::ptr::from_ref(&program).addr_exposed();
    call(nr::SECCOMP, [SET_MODE_FILTER, 0, at, 0, 0, 0]).map(drop)
}

/// `ioctl(TIOCSCTTY)`: the terminal becomes that of the calling process's session, which it leads.
///
/// # Errors
/// As the kernel says.
pub fn take_terminal(terminal: Fd) -> Result<()> {
    const TIOCSCTTY: usize = 0x540e;
    call(nr::IOCTL, [terminal.arg(), TIOCSCTTY, 0, 0, 0, 0]).map(drop)
}

/// How a child ended, and what it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Which child.
    pub pid: i32,
    /// Exit code, or -1.
    pub code: i32,
    /// Terminating signal, or 0.
    pub signal: i32,
    /// User time in microseconds.
    pub user_us: u64,
    /// System time in microseconds.
    pub system_us: u64,
    /// Largest resident set in KiB.
    pub peak_kib: u64,
}

/// `wait4(2)` with `WNOHANG` for any child: `Ok(None)` when none has ended yet.
///
/// # Errors
/// `ECHILD` when there is no child left; else as the kernel says.
pub fn reap() -> Result<Option<Ended>> {
    const WNOHANG: usize = 1;
    wait(WNOHANG)
}

/// [`reap`] that waits for the next child to end.
///
/// # Errors
/// As [`reap`].
pub fn wait_any() -> Result<Option<Ended>> {
    wait(0)
}

fn wait(options: usize) -> Result<Option<Ended>> {
    const ANY: usize = usize::MAX;
    let mut status = 0i32;
    let mut usage = [0i64; 18];
    let status_at = core::ptr::from_mut(&mut status).addr_exposed();
    let usage_at = usage.as_mut_ptr().addr_exposed();
    let pid = call(nr::WAIT4, [ANY, status_at, options, usage_at, 0, 0])?;
    if pid == 0 {
        return Ok(None);
    }
    let [user_s, user_us, system_s, system_us, peak, ..] = usage.map(i64::unsigned_abs);
    let signal = status & 0x7f;
    Ok(Some(Ended {
        pid: i32::try_from(pid).unwrap_or(-1),
        code: if signal == 0 { status >> 8 & 0xff } else { -1 },
        signal,
        user_us: user_s.saturating_mul(1_000_000).saturating_add(user_us),
        system_us: system_s.saturating_mul(1_000_000).saturating_add(system_us),
        peak_kib: peak,
    }))
}

/// What a child that shares our memory starts with: a function and what it needs.
#[derive(Debug)]
#[repr(C)]
pub struct Start<T> {
    /// Entered in the child; must end in [`exit`](crate::sys::exit) or a successful [`execute`].
    pub enter: fn(&mut T) -> !,
    /// Its argument, seen by both sides.
    pub shared: T,
}

unsafe extern "C" fn enter<T>(argument: *mut u8) -> ! {
    // SAFETY: `spawn_guest` passes the address of a live `Start<T>` and is suspended meanwhile.
    let start = unsafe { &mut *argument.cast::<Start<T>>() };
    (start.enter)(&mut start.shared)
}

/// How long the parent of a child that shares its memory waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    /// Until the child has exec'ed or exited (`CLONE_VFORK`).
    Sleeps,
    /// Not at all.
    GoesOn,
}

/// A child that shares its parent's memory until it execs or exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sharing {
    /// Its pid.
    pub pid: i32,
    /// Its pidfd, where one was asked for.
    pub pidfd: Option<Fd>,
}

/// Creates the guest's process on `stack`; returns its pid once it has exec'ed or exited.
///
/// # Errors
/// As `clone(2)` says.
pub fn spawn_guest<T>(stack: &mut [u8], start: &mut Start<T>) -> Result<i32> {
    const VM_VFORK_SIGCHLD: usize = 0x100 | 0x4000 | 17;
    let argument = core::ptr::from_mut(start).cast::<u8>();
    let (top, pidfd) = (top(stack), core::ptr::null_mut());
    // SAFETY: the stack is ours alone; with CLONE_VFORK this thread sleeps until the child has
    // exec'ed or exited, so that `start` has one user at a time.
    let pid = unsafe { arch::clone_on_stack(VM_VFORK_SIGCHLD, top, pidfd, enter::<T>, argument) };
    check(pid).map(|pid| i32::try_from(pid).unwrap_or(-1))
}

/// Creates a child with namespaces of its own and a pidfd that shares memory until its exec.
///
/// # Safety
/// With [`Parent::GoesOn`], `stack` and `start` must stay as they are, and what the child touches
/// through `start` must be touched by nobody else, until the child has exec'ed or exited. Either
/// way what the child runs may use no thread-local storage and no lock of this process.
///
/// # Errors
/// As `clone(2)` says.
pub unsafe fn spawn_sharing<T>(
    namespaces: u64,
    parent: Parent,
    stack: &mut [u8],
    start: &mut Start<T>,
) -> Result<Sharing> {
    const VM_PIDFD_SIGCHLD: usize = 0x100 | 0x1000 | 17;
    const VFORK: usize = 0x4000;
    let mut pidfd = -1i32;
    let namespaces = usize::try_from(namespaces).ok().ok_or(Errno::EINVAL)?;
    let wait = if parent == Parent::Sleeps { VFORK } else { 0 };
    let flags = namespaces | VM_PIDFD_SIGCHLD | wait;
    let argument = core::ptr::from_mut(start).cast::<u8>();
    // SAFETY: the caller keeps stack and argument until the child no longer needs them.
    let pid =
        unsafe { arch::clone_on_stack(flags, top(stack), &raw mut pidfd, enter::<T>, argument) };
    let pid = check(pid)?;
    Ok(Sharing { pid: i32::try_from(pid).unwrap_or(-1), pidfd: Some(Fd(pidfd)) })
}

fn top(stack: &mut [u8]) -> *mut u8 {
    let (_, aligned, _) = as_aligned(stack);
    aligned.as_mut_ptr_range().end.cast::<u8>()
}

fn as_aligned(stack: &mut [u8]) -> (&mut [u8], &mut [u128], &mut [u8]) {
    // SAFETY: every bit pattern is a valid u128, and bytes need no initialisation here.
    unsafe { stack.align_to_mut::<u128>() }
}
