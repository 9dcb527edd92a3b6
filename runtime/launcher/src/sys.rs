//! Raw system calls that only the launcher makes; decides nothing.
//!
//! # Safety
//! Every call passes pointers derived from references that outlive it, with the length the kernel
//! is told. What could break memory safety otherwise is said at the block.
#![expect(unsafe_code, reason = "system calls")]

use core::ffi::CStr;

use postern_init::arch::{self, nr};
use postern_init::process::Pointers;
use postern_init::sys::{Errno, Fd, OwnedFd, Result, check};

pub(crate) fn call(nr: usize, args: [usize; 6]) -> Result<usize> {
    // SAFETY: private to this crate's sys files; each caller passes what `nr` expects, from live references.
    check(unsafe { arch::syscall(nr, args) })
}

#[inline(never)] // One copy keeps the image small.
pub(crate) fn new_fd(result: Result<usize>) -> Result<OwnedFd> {
    result.map(|fd| OwnedFd::new(Fd(i32::try_from(fd).unwrap_or(-1))))
}

pub(crate) fn path(p: &CStr) -> usize {
    p.as_ptr().expose_provenance()
}

pub(crate) fn at<T>(value: &T) -> usize {
    core::ptr::from_ref(value).expose_provenance()
}

pub(crate) fn at_mut<T>(value: &mut T) -> usize {
    core::ptr::from_mut(value).expose_provenance()
}

pub(crate) const fn low(value: u32) -> usize {
    value as usize
}

pub(crate) const fn arg(fd: Fd) -> usize {
    (fd.0 as isize).cast_unsigned()
}

/// `pread64(2)` from the start.
///
/// # Errors
/// As the kernel says.
pub(crate) fn read_start(fd: Fd, buffer: &mut [u8]) -> Result<usize> {
    let to = buffer.as_mut_ptr().expose_provenance();
    call(nr::PREAD64, [arg(fd), to, buffer.len(), 0, 0, 0])
}

/// `chdir(2)`.
///
/// # Errors
/// As the kernel says.
pub(crate) fn change_directory(name: &CStr) -> Result<()> {
    call(nr::CHDIR, [path(name), 0, 0, 0, 0, 0]).map(drop)
}

/// `fchdir(2)`.
///
/// # Errors
/// As the kernel says.
pub(crate) fn change_directory_to(fd: Fd) -> Result<()> {
    call(nr::FCHDIR, [arg(fd), 0, 0, 0, 0, 0]).map(drop)
}

/// `getcwd(2)`: the length with its NUL, or an error when the directory is outside the root.
///
/// # Errors
/// `ESTALE` when the kernel says `(unreachable)`; else as the kernel says.
pub(crate) fn current_directory(buffer: &mut [u8]) -> Result<usize> {
    let len =
        call(nr::GETCWD, [buffer.as_mut_ptr().expose_provenance(), buffer.len(), 0, 0, 0, 0])?;
    match buffer.first() {
        Some(b'/') => Ok(len),
        Some(_) | None => Err(Errno::ESTALE),
    }
}

/// `chroot(2)`.
///
/// # Errors
/// As the kernel says.
pub(crate) fn change_root(name: &CStr) -> Result<()> {
    call(nr::CHROOT, [path(name), 0, 0, 0, 0, 0]).map(drop)
}

/// Anonymous memory that lives as long as the process.
///
/// # Errors
/// As `mmap(2)` says.
pub(crate) fn memory(len: usize) -> Result<&'static mut [u8]> {
    const PROT_READ_WRITE: usize = 3;
    const PRIVATE_ANONYMOUS: usize = 0x22;
    let at = call(nr::MMAP, [0, len, PROT_READ_WRITE, PRIVATE_ANONYMOUS, usize::MAX, 0])?;
    // SAFETY: a fresh private mapping of `len` zeroed bytes that nothing unmaps.
    Ok(unsafe { core::slice::from_raw_parts_mut(core::ptr::with_exposed_provenance_mut(at), len) })
}

/// A private, writable mapping of a whole file. Unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    at: usize,
    len: usize,
}

impl Mapping {
    /// Maps `len` bytes of `fd`.
    ///
    /// # Errors
    /// As `mmap(2)` says.
    pub(crate) fn new(fd: Fd, len: usize) -> Result<Mapping> {
        const PROT_READ_WRITE: usize = 3;
        const MAP_PRIVATE: usize = 2;
        let at = call(nr::MMAP, [0, len, PROT_READ_WRITE, MAP_PRIVATE, arg(fd), 0])?;
        Ok(Mapping { at, len })
    }

    /// The bytes.
    #[must_use]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is private, `len` bytes long and lives as long as `self`.
        unsafe {
            core::slice::from_raw_parts(core::ptr::with_exposed_provenance(self.at), self.len)
        }
    }

    /// The bytes, to change: the change is this process's own.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let at = core::ptr::with_exposed_provenance_mut(self.at);
        // SAFETY: as in `bytes`, and `&mut self` makes the borrow exclusive.
        unsafe { core::slice::from_raw_parts_mut(at, self.len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        call(nr::MUNMAP, [self.at, self.len, 0, 0, 0, 0]).ok();
    }
}

/// Gives every signal but those named its default disposition: an ignored one would survive exec.
///
/// # Errors
/// As `rt_sigaction(2)` says.
pub(crate) fn default_signals(but: &[usize]) -> Result<()> {
    const SIGKILL: usize = 9;
    const SIGSTOP: usize = 19;
    let default: arch::KernelSigaction = [0; 4];
    let is_set = |signal: &usize| ![SIGKILL, SIGSTOP].contains(signal) && !but.contains(signal);
    for signal in (1..=64).filter(is_set) {
        let at = default.as_ptr().expose_provenance();
        call(nr::RT_SIGACTION, [signal, at, 0, size_of::<u64>(), 0, 0])?;
    }
    Ok(())
}

/// `setgroups(2)` to none.
///
/// # Errors
/// As the kernel says.
pub(crate) fn drop_groups() -> Result<()> {
    call(nr::SETGROUPS, [0; 6]).map(drop)
}

/// Real, effective and saved id, each set or left.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ids {
    /// All three.
    All(u32),
    /// The effective one.
    Effective(u32),
}

impl Ids {
    const fn args(self) -> [usize; 6] {
        const LEAVE: usize = u32::MAX as usize;
        match self {
            Ids::All(id) => [low(id), low(id), low(id), 0, 0, 0],
            Ids::Effective(id) => [LEAVE, low(id), LEAVE, 0, 0, 0],
        }
    }
}

/// `setresuid(2)` of the calling thread.
///
/// # Errors
/// As the kernel says.
pub(crate) fn set_uid(ids: Ids) -> Result<()> {
    call(nr::SETRESUID, ids.args()).map(drop)
}

/// `setresgid(2)` of the calling thread.
///
/// # Errors
/// As the kernel says.
pub(crate) fn set_gid(ids: Ids) -> Result<()> {
    call(nr::SETRESGID, ids.args()).map(drop)
}

/// `unshare(2)` of namespaces.
///
/// # Errors
/// As the kernel says.
pub(crate) fn unshare(flags: u64) -> Result<()> {
    call(nr::UNSHARE, [usize::try_from(flags).unwrap_or(usize::MAX), 0, 0, 0, 0, 0]).map(drop)
}

/// `setns(2)` into several namespaces of a process. Linux 5.8.
///
/// # Errors
/// As the kernel says.
pub(crate) fn join_namespaces(pidfd: Fd, flags: u64) -> Result<()> {
    let flags = usize::try_from(flags).unwrap_or(usize::MAX);
    call(nr::SETNS, [arg(pidfd), flags, 0, 0, 0, 0]).map(drop)
}

/// `sethostname(2)`.
///
/// # Errors
/// As the kernel says.
pub(crate) fn set_hostname(name: &CStr) -> Result<()> {
    call(nr::SETHOSTNAME, [path(name), name.to_bytes().len(), 0, 0, 0, 0]).map(drop)
}

/// `mknod(2)` of a block device with the number 0.
///
/// # Errors
/// As the kernel says.
pub(crate) fn make_block_device(name: &CStr) -> Result<()> {
    const S_IFBLK: usize = 0o060_000;
    call(nr::MKNODAT, [arg(Fd::CWD), path(name), S_IFBLK, 0, 0, 0]).map(drop)
}

/// `keyctl(2)` with plain numbers.
///
/// # Errors
/// As the kernel says.
pub(crate) fn keyctl(operation: usize, argument: usize, second: usize) -> Result<usize> {
    call(nr::KEYCTL, [operation, argument, second, 0, 0, 0])
}

/// Brings the interface `lo` up.
///
/// # Errors
/// As `socket(2)` and `ioctl(2)` say.
pub(crate) fn loopback_up() -> Result<()> {
    const AF_INET: usize = 2;
    const SOCK_DGRAM_CLOEXEC: usize = 2 | 0o2_000_000;
    const SIOCSIFFLAGS: usize = 0x8914;
    const IFF_UP: u8 = 1;
    let socket = new_fd(call(nr::SOCKET, [AF_INET, SOCK_DGRAM_CLOEXEC, 0, 0, 0, 0]))?;
    // struct ifreq: a 16-byte name, then the flags.
    let mut request = [0u8; 40];
    let [first, second, ..] = &mut request;
    (*first, *second) = (b'l', b'o');
    if let Some(flags) = request.get_mut(16) {
        *flags = IFF_UP;
    }
    let at = request.as_mut_ptr().expose_provenance();
    ioctl(socket.fd(), SIOCSIFFLAGS, at).map(drop)
}

/// `ioctl(2)`; the argument is a number, or the address of what the request is about.
///
/// # Errors
/// As the kernel says.
#[inline(never)] // One copy keeps the image small.
pub(crate) fn ioctl(fd: Fd, request: usize, argument: usize) -> Result<usize> {
    call(nr::IOCTL, [arg(fd), request, argument, 0, 0, 0])
}

/// Which side of a [`clone`] this is.
#[derive(Debug)]
pub(crate) enum Cloned {
    /// The new process.
    Child,
    /// The caller, with the child's pid and pidfd.
    Parent(i32, OwnedFd),
}

/// `clone3(2)` as `fork(2)` with namespaces and a pidfd, into a control group where one is given.
///
/// # Errors
/// As the kernel says.
pub(crate) fn clone3(flags: u64, cgroup: Option<Fd>) -> Result<Cloned> {
    const CLONE_PIDFD: u64 = 0x1000;
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    const SIGCHLD: u64 = 17;
    let mut pidfd = -1i32;
    let (into, cgroup) = match cgroup {
        Some(cgroup) => (CLONE_INTO_CGROUP, u64::from(cgroup.0.unsigned_abs())),
        None => (0, 0),
    };
    let (flags, at_pidfd) = (flags | CLONE_PIDFD | into, at_mut(&mut pidfd) as u64);
    let args: [u64; 11] = [flags, at_pidfd, 0, 0, SIGCHLD, 0, 0, 0, 0, 0, cgroup];
    let pid = call(nr::CLONE3, [at(&args), size_of_val(&args), 0, 0, 0, 0])?;
    Ok(cloned(pid, pidfd))
}

/// [`clone3`] by the older call, for kernels and filters that refuse it.
///
/// # Errors
/// As the kernel says.
pub(crate) fn clone(flags: u64) -> Result<Cloned> {
    const CLONE_PIDFD: u64 = 0x1000;
    const SIGCHLD: u64 = 17;
    let mut pidfd = -1i32;
    let flags = usize::try_from(flags | CLONE_PIDFD | SIGCHLD).ok().ok_or(Errno::EINVAL)?;
    let pid = call(nr::CLONE, [flags, 0, at_mut(&mut pidfd), 0, 0, 0])?;
    Ok(cloned(pid, pidfd))
}

fn cloned(pid: usize, pidfd: i32) -> Cloned {
    match i32::try_from(pid) {
        Ok(0) => Cloned::Child,
        Ok(pid) => Cloned::Parent(pid, OwnedFd::new(Fd(pidfd))),
        Err(_) => Cloned::Parent(-1, OwnedFd::new(Fd(pidfd))),
    }
}

/// The arrays of a request, made from its table of offsets by adding the message's own address.
///
/// # Errors
/// `EINVAL` when the table is not aligned, not inside the message, or points outside it.
pub(crate) fn relocate(message: &mut [u8], table: usize, count: usize) -> Result<Pointers> {
    let base = message.as_ptr().expose_provenance();
    let len = message.len();
    let bytes = count.checked_mul(8).ok_or(Errno::EINVAL)?;
    let end = table.checked_add(bytes).ok_or(Errno::EINVAL)?;
    let ends_in_nul = message.last() == Some(&0);
    let words = message.get_mut(table..end).ok_or(Errno::EINVAL)?;
    if !ends_in_nul || count == 0 || !base.wrapping_add(table).is_multiple_of(8) {
        return Err(Errno::EINVAL);
    }
    let (entries, _) = words.as_chunks_mut::<8>();
    let Some((last, strings)) = entries.split_last_mut() else { return Err(Errno::EINVAL) };
    for entry in strings {
        let offset = usize::try_from(u64::from_ne_bytes(*entry)).ok().ok_or(Errno::EINVAL)?;
        if offset >= len {
            return Err(Errno::EINVAL);
        }
        *entry = (base.wrapping_add(offset) as u64).to_ne_bytes();
    }
    *last = [0; 8];
    // SAFETY: the table is inside the message, ends in NULL, and each entry points into the
    // message, whose last byte ends any string.
    Ok(unsafe { Pointers::new(base.wrapping_add(table)) })
}

/// `umask(2)`.
///
/// # Errors
/// None of the kernel's; an outer filter may have one.
pub(crate) fn set_umask(mask: u32) -> Result<()> {
    call(nr::UMASK, [low(mask), 0, 0, 0, 0, 0]).map(drop)
}

/// `fcntl(F_SETFD)` with `FD_CLOEXEC`.
///
/// # Errors
/// As the kernel says.
pub(crate) fn close_on_exec(fd: Fd) -> Result<()> {
    const F_SETFD: usize = 2;
    const FD_CLOEXEC: usize = 1;
    call(nr::FCNTL, [arg(fd), F_SETFD, FD_CLOEXEC, 0, 0, 0]).map(drop)
}

/// A table that lives as long as the process, each entry made by `fill`.
///
/// # Errors
/// As `mmap(2)` says.
pub(crate) fn memory_for<T, const N: usize>(fill: impl Fn() -> T) -> Result<&'static mut [T; N]> {
    let bytes = memory(size_of::<[T; N]>())?;
    let table = bytes.as_mut_ptr().cast::<core::mem::MaybeUninit<T>>();
    for index in 0..N {
        let entry = core::mem::MaybeUninit::new(fill());
        // SAFETY: the mapping is page-aligned, fresh, and holds N entries.
        unsafe { table.wrapping_add(index).write(entry) };
    }
    // SAFETY: all N entries are written, and the mapping lives for ever and is ours alone.
    Ok(unsafe { &mut *table.cast::<[T; N]>() })
}
