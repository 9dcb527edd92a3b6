//! The calls of a probe that rustix does not have; restrict and start nothing.
#![expect(unsafe_code, reason = "a system call without a wrapper")]

use std::io;

/// The version of the Landlock interface, by `landlock_create_ruleset(2)`.
///
/// See [landlock_create_ruleset(2)](https://man7.org/linux/man-pages/man2/landlock_create_ruleset.2.html).
pub(super) fn landlock_version() -> io::Result<u32> {
    const CREATE_RULESET_VERSION: libc::c_uint = 1;
    let nothing = std::ptr::null::<libc::c_void>();
    let call = libc::SYS_landlock_create_ruleset;
    // SAFETY: with this flag the call takes no ruleset, makes none and answers with a number.
    let answer = unsafe { libc::syscall(call, nothing, 0usize, CREATE_RULESET_VERSION) };
    u32::try_from(answer).map_err(|_negative| io::Error::last_os_error())
}

/// Whether `clone3(2)` is there, and no filter around the service refuses it.
///
/// See [clone3(2)](https://man7.org/linux/man-pages/man2/clone3.2.html).
pub(crate) fn has_clone3() -> bool {
    // SAFETY: no arguments of no size are refused before anything is read or started.
    let answer =
        unsafe { libc::syscall(libc::SYS_clone3, std::ptr::null::<libc::c_void>(), 0usize) };
    answer == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
}
