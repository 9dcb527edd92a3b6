//! The probe's entry and its own system calls; it judges no answer.

#![expect(unsafe_code, reason = "system calls and the C entry, without another crate")]

use std::io;

unsafe extern "C" {
    fn syscall(number: i64, ...) -> i64;
    fn fork() -> i32;
    fn _exit(code: i32) -> !;
}

/// The C entry: Rust's own would ignore SIGPIPE and open missing descriptors before the first
/// question about them is asked.
#[unsafe(no_mangle)]
extern "C" fn main(_count: i32, _arguments: *const *const u8) -> i32 {
    crate::answer()
}

/// A call whose arguments are numbers, or strings that outlive it.
pub(crate) fn call(number: i64, arguments: [usize; 6]) -> io::Result<usize> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: callers pass numbers, or addresses of live buffers of the size the call expects.
    let value = unsafe { syscall(number, a, b, c, d, e, f) };
    usize::try_from(value).map_err(|_negative| io::Error::last_os_error())
}

/// [`call`] with fewer arguments.
pub(crate) fn short<const N: usize>(number: i64, given: [usize; N]) -> io::Result<usize> {
    let mut arguments = [0; 6];
    for (slot, argument) in arguments.iter_mut().zip(given) {
        *slot = argument;
    }
    call(number, arguments)
}

/// What a call writes into a buffer of words.
pub(crate) fn words<const N: usize>(
    number: i64,
    arguments: impl FnOnce(usize) -> [usize; 4],
) -> io::Result<[u64; N]> {
    let mut buffer = [0u64; N];
    short(number, arguments(buffer.as_mut_ptr().addr()))?;
    Ok(buffer)
}

/// A child that does one thing and leaves at once; its pid.
pub(crate) fn child(act: impl FnOnce()) -> io::Result<i32> {
    // SAFETY: the probe has one thread.
    match unsafe { fork() } {
        0 => {
            act();
            // SAFETY: ends the process, nothing else.
            unsafe { _exit(0) }
        }
        pid if pid > 0 => Ok(pid),
        _ => Err(io::Error::last_os_error()),
    }
}
