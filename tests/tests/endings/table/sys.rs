//! Tracing another process, which rustix does not know; decides nothing.
#![expect(unsafe_code, reason = "ptrace")]

use std::io;

/// `PTRACE_SEIZE`: this thread is told of the process's end, and the kernel keeps what is left of
/// it until then.
pub(super) fn seize(pid: i32) -> io::Result<()> {
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: the request reads no memory.
    match unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, none, none) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
