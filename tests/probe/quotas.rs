//! Uses something up until the kernel refuses; how much there was, and how it refused.

use std::ffi::{CString, OsString};
use std::io;

use crate::json::Value;
use crate::sys::{call, child, short};

mod nr {
    pub(super) const WRITE: i64 = 1;
    pub(super) const MMAP: i64 = 9;
    pub(super) const PAUSE: i64 = 34;
    pub(super) const KILL: i64 = 62;
    pub(super) const SHMGET: i64 = 29;
    pub(super) const DUP: i64 = 32;
    pub(super) const MSGGET: i64 = 68;
    pub(super) const MLOCK: i64 = 149;
    pub(super) const TIMER_CREATE: i64 = 222;
    pub(super) const MQ_OPEN: i64 = 240;
    pub(super) const OPENAT: i64 = 257;
    pub(super) const INOTIFY_INIT1: i64 = 294;
    pub(super) const RT_SIGACTION: i64 = 13;
    pub(super) const FANOTIFY_INIT: i64 = 300;
}

/// Nothing is used up further than this.
const MOST: usize = 100_000;

/// `use-up WHAT`: how many there were, and the errno of the next.
pub(crate) fn use_up(arguments: &[OsString]) -> Value {
    let what = arguments.first().map(|what| what.to_string_lossy().into_owned());
    let more: &dyn Fn(usize) -> io::Result<usize> = match what.as_deref() {
        Some("descriptors") => &|_| short(nr::DUP, [0]),
        Some("processes") => &|_| process(),
        Some("file-bytes") => &file_bytes,
        Some("locked-pages") => &|_| locked_page(),
        Some("timers") => &|_| timer(),
        Some("inotify") => &|_| short(nr::INOTIFY_INIT1, [0]),
        // Reports file handles, which asks for no privilege.
        Some("fanotify") => &|_| short(nr::FANOTIFY_INIT, [0x200, 0]),
        Some("terminals") => &|_| terminal(),
        Some("segments") => &|_| short(nr::SHMGET, [0, 4096, 0o600]),
        Some("segment-megabytes") => &|_| short(nr::SHMGET, [0, 1 << 20, 0o600]),
        Some("queues") => &|_| short(nr::MSGGET, [0, 0o600]),
        Some("posix-queues") => &posix_queue,
        Some("posix-queue-bytes") => &large_posix_queue,
        _ => return false.into(),
    };
    let mut made = 0;
    let refused = loop {
        match more(made) {
            Ok(_) if made < MOST => made += 1,
            Ok(_) => break 0,
            Err(error) => break error.raw_os_error().unwrap_or(-1),
        }
    };
    // Those that wait are the only processes besides this one.
    short(nr::KILL, [usize::MAX, 9]).ok();
    Value::map([("made", made.into()), ("errno", refused.into())])
}

fn process() -> io::Result<usize> {
    child(|| drop(short::<0>(nr::PAUSE, []))).map(|pid| usize::try_from(pid).unwrap_or(0))
}

/// Sixteen megabytes of one file, as a hole and one byte.
fn file_bytes(made: usize) -> io::Result<usize> {
    const O_WRONLY_CREATE: usize = 0o101;
    const SIGXFSZ: usize = 25;
    const PWRITE64: i64 = 18;
    let ignore = [1u64, 0, 0, 0];
    call(nr::RT_SIGACTION, [SIGXFSZ, ignore.as_ptr().addr(), 0, 8, 0, 0])?;
    let path = c"/tmp/large";
    let fd = short(nr::OPENAT, [usize::MAX, path.as_ptr().addr(), O_WRONLY_CREATE, 0o600])?;
    let byte = [1u8];
    let end = ((made + 1) << 24) - 1;
    let written = short(PWRITE64, [fd, byte.as_ptr().addr(), 1, end]);
    short(3, [fd])?;
    written.and_then(|_| short(nr::WRITE, [1, byte.as_ptr().addr(), 0]))
}

fn locked_page() -> io::Result<usize> {
    const READ_WRITE: usize = 3;
    const PRIVATE_ANONYMOUS: usize = 0x22;
    let at = call(nr::MMAP, [0, 4096, READ_WRITE, PRIVATE_ANONYMOUS, usize::MAX, 0])?;
    short(nr::MLOCK, [at, 4096])
}

/// Each holds a signal in reserve.
fn timer() -> io::Result<usize> {
    let mut id = 0i32;
    short(nr::TIMER_CREATE, [1, 0, (&raw mut id).addr()])
}

fn terminal() -> io::Result<usize> {
    const O_RDWR_NOCTTY: usize = 0o402;
    short(nr::OPENAT, [usize::MAX, c"/dev/ptmx".as_ptr().addr(), O_RDWR_NOCTTY])
}

fn posix_queue(made: usize) -> io::Result<usize> {
    open_queue(made, 1, 1)
}

fn large_posix_queue(made: usize) -> io::Result<usize> {
    open_queue(made, 10, 8192)
}

fn open_queue(made: usize, messages: u64, bytes: u64) -> io::Result<usize> {
    const O_RDWR_CREATE: usize = 0o102;
    let name = CString::new(format!("queue-{made}"))?;
    let attributes = [0u64, messages, bytes, 0, 0, 0, 0, 0];
    let name = name.as_ptr().addr();
    short(nr::MQ_OPEN, [name, O_RDWR_CREATE, 0o600, attributes.as_ptr().addr()])
}
