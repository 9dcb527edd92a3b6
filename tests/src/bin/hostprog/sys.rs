//! The few system calls that rustix does not have or calls unsafe; decides nothing.
#![expect(unsafe_code, reason = "fork, filters, ids, capabilities and keys")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Which side of a [`fork`] this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fork {
    /// The new process.
    Child,
    /// The caller, with the child's pid.
    Parent(i32),
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_long(result: i64) -> io::Result<i64> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// `fork(2)` by the C library, which makes the child's allocator usable.
#[expect(clippy::disallowed_methods, reason = "a host that forks is what is tested")]
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: the callers fork while they have one thread, or let the child only sleep and leave.
    match check(unsafe { libc::fork() })? {
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid)),
    }
}

/// `_exit(2)`: no destructor, no flush.
pub(crate) fn leave(code: i32) -> ! {
    // SAFETY: ends the process; nothing runs after it.
    unsafe { libc::_exit(code) }
}

/// `waitpid(-1)`: the pid that ended with its raw status, `None` while all are alive, an error
/// without children.
pub(crate) fn wait_any(options: i32) -> io::Result<Option<(i32, i32)>> {
    let mut status = 0;
    // SAFETY: the status is a live integer.
    let pid = check(unsafe { libc::waitpid(-1, &raw mut status, options) })?;
    Ok((pid != 0).then_some((pid, status)))
}

/// `kill(2)`.
pub(crate) fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: plain numbers.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// `signal(SIGCHLD, SIG_IGN)`.
pub(crate) fn ignore_children() {
    // SAFETY: no handler of ours is involved.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// `unshare(2)`; the caller has one thread where the kernel asks for that.
pub(crate) fn unshare(flags: i32) -> io::Result<()> {
    // SAFETY: no flag here takes descriptors or memory away from other threads.
    check(unsafe { libc::unshare(flags) }).map(drop)
}

/// All three uids, all three gids and the supplementary groups.
pub(crate) fn become_ids(uid: u32, gid: u32, groups: &[u32]) -> io::Result<()> {
    // SAFETY: the list is live and of that length.
    check(unsafe { libc::setgroups(groups.len(), groups.as_ptr()) })?;
    // SAFETY: plain numbers.
    check(unsafe { libc::setresgid(gid, gid, gid) })?;
    // SAFETY: plain numbers.
    check(unsafe { libc::setresuid(uid, uid, uid) })?;
    // A change of ids makes /proc/self root's.
    // SAFETY: plain numbers.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) }).map(drop)
}

/// Empties the effective, permitted and inheritable sets.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    let header = [VERSION_3, 0];
    let sets = [0u32; 6];
    // SAFETY: header and sets are live and of the sizes that version 3 has.
    check_long(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) }).map(drop)
}

/// `keyctl(KEYCTL_JOIN_SESSION_KEYRING)` with a new one.
pub(crate) fn join_session_keyring() -> io::Result<()> {
    // SAFETY: plain numbers; a null name asks for an anonymous keyring.
    check_long(unsafe { libc::syscall(libc::SYS_keyctl, 1, 0usize) }).map(drop)
}

/// One key in the process's own keyring, which counts against its uid.
pub(crate) fn add_key(name: &std::ffi::CStr) -> io::Result<()> {
    /// `KEY_SPEC_PROCESS_KEYRING`.
    const PROCESS: i32 = -2;
    add_key_to(PROCESS, name)
}

/// One key in the session keyring, which every process started from here inherits.
pub(crate) fn add_session_key(name: &std::ffi::CStr) -> io::Result<()> {
    /// `KEY_SPEC_SESSION_KEYRING`.
    const SESSION: i32 = -3;
    add_key_to(SESSION, name)
}

fn add_key_to(keyring: i32, name: &std::ffi::CStr) -> io::Result<()> {
    let (kind, payload) = (c"user", c"x");
    // SAFETY: the strings are live, the payload has one byte.
    let key = unsafe {
        libc::syscall(
            libc::SYS_add_key,
            kind.as_ptr(),
            name.as_ptr(),
            payload.as_ptr(),
            1usize,
            keyring,
        )
    };
    check_long(key).map(drop)
}

/// `seccomp(SECCOMP_SET_MODE_FILTER)` for this thread and its children; with a flag that asks for
/// one, the listener.
pub(crate) fn install_filter(
    program: &[libc::sock_filter],
    flags: libc::c_ulong,
) -> io::Result<Option<OwnedFd>> {
    let len = u16::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel only reads the program, which is live.
    let fd = check_long(unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    })?;
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok((fd > 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// `SECCOMP_IOCTL_NOTIF_RECV`: the next call that waits; the descriptor is known to be readable.
pub(crate) fn next_call(listener: BorrowedFd<'_>) -> io::Result<libc::seccomp_notif> {
    const RECEIVE: libc::c_ulong = 0xc050_2100;
    let mut call = MaybeUninit::<libc::seccomp_notif>::zeroed();
    // SAFETY: the kernel wants a zeroed structure of this size and fills it.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), RECEIVE, call.as_mut_ptr()) })?;
    // SAFETY: all zeroes are a valid value, and the kernel has filled it since.
    Ok(unsafe { call.assume_init() })
}

/// What becomes of a call that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It happens.
    Go,
    /// It fails.
    Fails(i32),
    /// It does not happen, and the caller is told that it did.
    Done,
}

/// `SECCOMP_IOCTL_NOTIF_SEND`.
pub(crate) fn answer_call(listener: BorrowedFd<'_>, id: u64, answer: Answer) -> io::Result<()> {
    const SEND: libc::c_ulong = 0xc018_2101;
    const CONTINUE: u32 = 1;
    let (error, flags) = match answer {
        Answer::Go => (0, CONTINUE),
        Answer::Fails(errno) => (-errno, 0),
        Answer::Done => (0, 0),
    };
    let mut answer = libc::seccomp_notif_resp { id, val: 0, error, flags };
    // SAFETY: the kernel reads a live structure of this size.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), SEND, &raw mut answer) }).map(drop)
}

/// `landlock_restrict_self(2)`: a domain that keeps signals inside and restricts nothing else.
pub(crate) fn enter_landlock_domain() -> io::Result<()> {
    const SCOPE_SIGNAL: u64 = 2;
    let attributes = [0u64, 0, SCOPE_SIGNAL];
    // SAFETY: the attributes are live and of the size that is told.
    let ruleset = check_long(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            attributes.as_ptr(),
            size_of_val(&attributes),
            0u32,
        )
    })?;
    let ruleset = i32::try_from(ruleset).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor for us.
    let ruleset = unsafe { OwnedFd::from_raw_fd(ruleset) };
    // SAFETY: plain numbers.
    let entered =
        unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0u32) };
    check_long(entered).map(drop)
}
