//! What filters cost on this machine: instructions, time to install, time of a call; for the levels
//! and, where `POSTERN_PEER_BLOB` names it, the filter of the PyPI package `postern`. No promise.

#[path = "../../tests/kernel/sys.rs"]
#[expect(dead_code, reason = "the kernel tests use the rest")]
mod sys;

use std::error::Error;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use postern_seccomp::{Arch, Level, Program, program};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const ROUNDS: u32 = 400;
const CALLS: u32 = 200_000;

/// A call that every filter lets through whatever its arguments, and one that `default` looks at.
const TIMED: [(&str, i64, [u64; 3]); 2] =
    [("getppid", libc::SYS_getppid, [0; 3]), ("fcntl", libc::SYS_fcntl, [u32::MAX as u64, 1, 0])];

fn main() -> Outcome<()> {
    let arch = Arch::native()?;
    let mut filters: Vec<(String, Program)> = Vec::new();
    for level in Level::ALL {
        filters.extend(program(level, arch)?.map(|program| (level.to_string(), program)));
    }
    if let Some(path) = std::env::var_os("POSTERN_PEER_BLOB") {
        filters.push(("peer".to_owned(), Program::from_bytes(&std::fs::read(path)?)?));
    }
    let mut installed = vec![Vec::new(); filters.len()];
    // In turns, so that what drifts in the machine drifts in all.
    for _ in 0..ROUNDS {
        for ((_, filter), times) in filters.iter().zip(&mut installed) {
            times.push(in_thread(|| {
                let start = Instant::now();
                sys::install(filter.as_bytes(), filter.len())?;
                Ok(start.elapsed())
            })?);
        }
    }
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{:8} {:>12} {:>10}  ns a call: none, filtered",
        "", "instructions", "install us"
    )?;
    for ((name, filter), times) in filters.iter().zip(&mut installed) {
        times.sort();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        let (length, us) = (filter.len(), median.as_secs_f64() * 1e6);
        write!(out, "{name:8} {length:>12} {us:>10.1} ")?;
        for (call, number, arguments) in TIMED {
            let plain = in_thread(|| Ok(timed(number, arguments)))?;
            let filtered = in_thread(|| {
                sys::install(filter.as_bytes(), filter.len())?;
                Ok(timed(number, arguments))
            })?;
            let ns = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(CALLS);
            write!(out, " {call} {:.0} {:.0}", ns(plain), ns(filtered))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A filter is for good, so each has a thread of its own.
fn in_thread(act: impl FnOnce() -> Outcome<Duration> + Send) -> Outcome<Duration> {
    thread::scope(|scope| scope.spawn(act).join()).map_err(|_panic| "a thread panicked")?
}

/// The best of five.
fn timed(number: i64, arguments: [u64; 3]) -> Duration {
    let once = || {
        let start = Instant::now();
        (0..CALLS).for_each(|_| assert!(sys::attempt(number, arguments) >= 0));
        start.elapsed()
    };
    (0..5).map(|_| once()).min().unwrap_or_default()
}
