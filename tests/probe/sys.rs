//! The probe's entry and its own system calls; it judges no answer.

#![expect(unsafe_code, reason = "system calls and the C entry, without another crate")]

use std::cell::UnsafeCell;
use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;

unsafe extern "C" {
    fn syscall(number: i64, ...) -> i64;
    fn fork() -> i32;
    fn _exit(code: i32) -> !;
    fn sigaction(signal: i32, new: *const Handler, old: *mut Handler) -> i32;
}

/// glibc's `struct sigaction`.
#[repr(C)]
struct Handler {
    act: extern "C" fn(i32, *const u8, *mut u64),
    mask: [u64; 16],
    flags: i32,
    restorer: usize,
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
    // SAFETY: the probe has one thread, or the child does nothing but system calls.
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

/// The file of a descriptor that nobody else owns.
pub(crate) fn file(fd: i32) -> File {
    // SAFETY: callers pass what the kernel has just handed them.
    unsafe { File::from_raw_fd(fd) }
}

const ARENA_BYTES: usize = 1 << 20;

/// Memory for the arguments of calls: in a static program it lies below 4 GiB, as the 32-bit gate
/// wants it, and nothing is ever given back but by [`give_back`].
struct Arena(UnsafeCell<([u64; ARENA_BYTES / 8], usize)>);

// SAFETY: only the probe's first thread takes memory.
unsafe impl Sync for Arena {}

static ARENA: Arena = Arena(UnsafeCell::new(([0; ARENA_BYTES / 8], 0)));

/// Room for at least these bytes, which are copied there; its address.
pub(crate) fn keep(bytes: &[u8], len: usize) -> Option<usize> {
    let len = len.max(bytes.len()).max(8).next_multiple_of(16);
    // SAFETY: one thread, and no other reference is alive.
    let (memory, used) = unsafe { &mut *ARENA.0.get() };
    let start = *used;
    *used = start.checked_add(len).filter(|end| *end <= ARENA_BYTES)?;
    let place = memory.as_mut_ptr().cast::<u8>().wrapping_add(start);
    // SAFETY: the range was just found to be inside the arena and is nobody else's.
    unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    Some(place.addr())
}

/// How much of the memory is used.
pub(crate) fn kept_so_far() -> usize {
    // SAFETY: one thread, and no other reference is alive.
    unsafe { &*ARENA.0.get() }.1
}

/// Takes back all that was kept since.
pub(crate) fn give_back(mark: usize) {
    // SAFETY: one thread, and no other reference is alive.
    unsafe { &mut *ARENA.0.get() }.1 = mark;
}

/// The bytes at an address that [`keep`] gave.
pub(crate) fn kept(address: usize, len: usize) -> Vec<u8> {
    let place = std::ptr::with_exposed_provenance::<u8>(address);
    ARENA.0.get().expose_provenance();
    // SAFETY: callers name buffers of the arena, which live as long as the program.
    unsafe { std::slice::from_raw_parts(place, len) }.to_vec()
}

/// The registers that the next [`chosen_by_a_handler`] runs.
static CHOSEN: [std::sync::atomic::AtomicU64; 3] =
    [const { std::sync::atomic::AtomicU64::new(0) }; 3];

/// Puts the chosen registers into the frame that the kernel restores.
extern "C" fn choose(_signal: i32, _info: *const u8, context: *mut u64) {
    /// Indices of words in `ucontext_t`, whose registers begin after 40 bytes.
    const PLACES: [usize; 3] = [5 + 13, 5 + 8, 5 + 9];
    for (place, chosen) in PLACES.iter().zip(&CHOSEN) {
        let register = context.wrapping_add(*place);
        // SAFETY: the kernel hands a whole `ucontext_t`, and restores it when the handler returns.
        unsafe { register.write(chosen.load(std::sync::atomic::Ordering::Relaxed)) };
    }
}

/// A call that `rt_sigreturn` starts: the kernel loads its number and arguments from a frame that
/// the program has written.
pub(crate) fn chosen_by_a_handler(number: u64, first: u64, second: u64) -> i64 {
    const SIGUSR1: i32 = 10;
    const SIGINFO: i32 = 4;
    const KILL: i64 = 62;
    for (slot, value) in CHOSEN.iter().zip([number, first, second]) {
        slot.store(value, std::sync::atomic::Ordering::Relaxed);
    }
    let handler = Handler { act: choose, mask: [0; 16], flags: SIGINFO, restorer: 0 };
    // SAFETY: the structure is live and the handler is a function of this program.
    unsafe { sigaction(SIGUSR1, &raw const handler, std::ptr::null_mut()) };
    crate::arch::calls_in_a_row(KILL, usize::try_from(std::process::id()).unwrap_or(0), 10)
}
