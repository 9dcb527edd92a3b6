//! System calls that only the direct way needs; decides nothing.
//!
//! # Safety
//! As in `crate::sys`: pointers derive from references that outlive the call.
#![expect(unsafe_code, reason = "an array of pointers for exec")]

use core::ffi::CStr;

use postern_init::arch::nr;
use postern_init::process::{self, Pointers};
use postern_init::sys::{Errno, Fd, Result, prctl};

use crate::sys::{arg, at, call, low, path};

/// `umask(2)`: the mask until now.
///
/// # Errors
/// None of the kernel's; an outer filter may have one.
pub(super) fn replace_umask(mask: u32) -> Result<u32> {
    let old = call(nr::UMASK, [low(mask), 0, 0, 0, 0, 0])?;
    Ok(u32::try_from(old).unwrap_or(0o022))
}

/// `faccessat(2)`: whether the real user may write.
///
/// # Errors
/// As the kernel says.
pub(super) fn may_write(dir: Fd, name: &CStr) -> Result<()> {
    const W_OK: usize = 2;
    call(nr::FACCESSAT, [arg(dir), path(name), W_OK, 0, 0, 0]).map(drop)
}

/// `readlinkat(2)`: how much of `buffer` the link fills.
///
/// # Errors
/// `EINVAL` for something else than a link; else as the kernel says.
pub(super) fn read_link(dir: Fd, name: &CStr, buffer: &mut [u8]) -> Result<usize> {
    let to = buffer.as_mut_ptr().expose_provenance();
    call(nr::READLINKAT, [arg(dir), path(name), to, buffer.len(), 0, 0])
}

/// `unlinkat(2)` of a file.
///
/// # Errors
/// As the kernel says.
pub(super) fn unlink(dir: Fd, name: &CStr) -> Result<()> {
    call(nr::UNLINKAT, [arg(dir), path(name), 0, 0, 0, 0]).map(drop)
}

/// `fchmodat(2)` of what a path leads to.
///
/// # Errors
/// As the kernel says.
pub(super) fn change_mode(name: &CStr, mode: u32) -> Result<()> {
    call(nr::FCHMODAT, [arg(Fd::CWD), path(name), low(mode), 0, 0, 0]).map(drop)
}

/// `fsconfig(2)` with a key that has no value.
///
/// # Errors
/// As the kernel says.
pub(super) fn configure_flag(context: Fd, key: &CStr) -> Result<()> {
    const SET_FLAG: usize = 0;
    call(nr::FSCONFIG, [arg(context), SET_FLAG, path(key), 0, 0, 0]).map(drop)
}

/// `mount(2)` of propagation: nothing of ours reaches the host, and what is mounted there later
/// appears in what is bound from it.
///
/// # Errors
/// As the kernel says.
pub(super) fn make_mounts_slave() -> Result<()> {
    const MS_REC_SLAVE: usize = 0x4000 | 0x8_0000;
    call(nr::MOUNT, [0, path(c"/"), 0, MS_REC_SLAVE, 0, 0]).map(drop)
}

/// `fcntl(F_SETLK)`: a shared lock on a whole file, or an error at once.
///
/// # Errors
/// As the kernel says.
pub(super) fn lock_shared(fd: Fd) -> Result<()> {
    const F_SETLK: usize = 6;
    /// `struct flock` of this architecture: type and whence, then start and length, then a pid.
    /// `F_RDLCK` and `SEEK_SET` are 0, as is the length that means all of it.
    const WHOLE_FILE_SHARED: [u64; 4] = [0; 4];
    call(nr::FCNTL, [arg(fd), F_SETLK, at(&WHOLE_FILE_SHARED), 0, 0, 0]).map(drop)
}

/// `close_range(2)`.
///
/// # Errors
/// As the kernel says.
pub(super) fn close_between(first: u32, last: u32) -> Result<()> {
    call(nr::CLOSE_RANGE, [low(first), low(last), 0, 0, 0, 0]).map(drop)
}

/// Gives `SIGCHLD` its default disposition: while it is ignored there is no child to wait for.
///
/// # Errors
/// As `rt_sigaction(2)` says.
pub(super) fn default_child_signal() -> Result<()> {
    const SIGCHLD: usize = 17;
    let default: postern_init::arch::KernelSigaction = [0; 4];
    call(nr::RT_SIGACTION, [SIGCHLD, at(&default), 0, size_of::<u64>(), 0, 0]).map(drop)
}

/// Ignores `SIGPIPE`: a parent that is gone is no reason to go as well.
///
/// # Errors
/// As `rt_sigaction(2)` says.
pub(super) fn ignore_pipe_signal() -> Result<()> {
    const SIGPIPE: usize = 13;
    /// `SIG_IGN` is 1.
    const IGNORE: postern_init::arch::KernelSigaction = [1, 0, 0, 0];
    call(nr::RT_SIGACTION, [SIGPIPE, at(&IGNORE), 0, size_of::<u64>(), 0, 0]).map(drop)
}

/// `prctl(PR_SET_SECCOMP)`: filters that come before others are written with this call in mind, and
/// may refuse seccomp(2).
///
/// # Errors
/// `EINVAL` for a program that is none; else as the kernel says.
pub(super) fn install_filter(program: &[u8]) -> Result<()> {
    const PR_SET_SECCOMP: u32 = 22;
    const MODE_FILTER: usize = 2;
    /// `struct sock_fprog`.
    #[repr(C)]
    struct Program {
        len: u16,
        filter: usize,
    }
    let (instructions, _) = program.as_chunks::<8>();
    let len = u16::try_from(instructions.len()).ok().ok_or(Errno::EINVAL)?;
    let program = Program { len, filter: program.as_ptr().expose_provenance() };
    prctl(PR_SET_SECCOMP, MODE_FILTER, at(&program)).map(drop)
}

/// The addresses of strings with a null behind them, laid out in `table`.
#[derive(Debug)]
pub(super) struct Array<'t> {
    pointers: Pointers,
    _strings: core::marker::PhantomData<&'t CStr>,
}

impl<'t> Array<'t> {
    /// Lays out `strings`; `None` where the table has no room for them.
    pub(super) fn new<'s: 't>(
        table: &'t mut [usize],
        strings: impl Iterator<Item = &'s CStr>,
    ) -> Option<Array<'t>> {
        let mut count = 0usize;
        for string in strings {
            *table.get_mut(count)? = path(string);
            count = count.checked_add(1)?;
        }
        *table.get_mut(count)? = 0;
        // SAFETY: the table holds addresses of strings that live as long as the value, and a null.
        let pointers = unsafe { Pointers::new(table.as_ptr().expose_provenance()) };
        Some(Array { pointers, _strings: core::marker::PhantomData })
    }
}

/// `execve(2)`. Returns only when it failed.
pub(super) fn execute(program: &CStr, arguments: &Array<'_>, environment: &Array<'_>) -> Errno {
    process::execute(program, &arguments.pointers, &environment.pointers)
}
