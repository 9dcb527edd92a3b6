//! The system calls that the kernel test makes; only for a test process, on a thread of its own.
#![expect(unsafe_code, reason = "installing a filter and making raw calls")]

use std::io;

/// Sets no_new_privs and installs a program on the calling thread, for good.
pub(crate) fn install(program: &[u8], len: usize) -> io::Result<()> {
    // SAFETY: takes integers only.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1_u64, 0_u64, 0_u64, 0_u64) }.into())?;
    let filter = libc::sock_fprog {
        len: u16::try_from(len).map_err(io::Error::other)?,
        filter: program.as_ptr().cast_mut().cast(),
    };
    // SAFETY: the kernel copies `len` instructions of 8 bytes, all inside `program`, and keeps no
    // pointer; it does not need them aligned.
    check(unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const filter)
    })
}

/// Makes a call and gives 0 or the error number.
///
/// Every argument must be a small integer or descriptor, never an address: where the call wants
/// memory it then finds the page at 0, which is never mapped.
pub(crate) fn attempt(number: i64, [a, b, c]: [u64; 3]) -> i32 {
    // SAFETY: no argument is an address, so the call reads and writes no memory of this process.
    let answer = unsafe { libc::syscall(number, a, b, c, 0_u64, 0_u64, 0_u64) };
    check(answer).err().and_then(|error| error.raw_os_error()).unwrap_or(0)
}

/// The core limit, soft and hard.
pub(crate) fn core_limit() -> io::Result<[u64; 2]> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the answer.
    check(unsafe { libc::getrlimit(libc::RLIMIT_CORE, &raw mut limit) }.into())?;
    Ok([limit.rlim_cur, limit.rlim_max])
}

/// Sets the core limit, soft and hard, the way libc does.
pub(crate) fn set_core_limit([rlim_cur, rlim_max]: [u64; 2]) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur, rlim_max };
    // SAFETY: `limit` is a valid limit to read.
    check(unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const limit) }.into())
}

fn check(answer: i64) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
