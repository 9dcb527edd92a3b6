//! A program of the host's that does small things at a steady pace and notes how long they take, to
//! show whether a guest is felt. Judges nothing.

#![expect(clippy::disallowed_methods, reason = "a host program of the tests starts what it tries")]

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often.
const PACE: Duration = Duration::from_millis(50);

/// How long each turn took, in microseconds; a turn that failed is a turn that took for ever.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Latency(Vec<f64>);

impl Latency {
    #[cfg(test)]
    pub(crate) fn of<const N: usize>(turns: [f64; N]) -> Self {
        Self(turns.to_vec())
    }

    /// What one turn in a hundred takes at least, in microseconds.
    pub(crate) fn p99_us(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let place = sorted.len().saturating_mul(99).div_ceil(100).saturating_sub(1);
        sorted.get(place).copied().unwrap_or(f64::INFINITY)
    }
}

/// The canary, on a thread of its own until it is stopped.
#[derive(Debug)]
pub(crate) struct Canary {
    turns: Arc<Mutex<Vec<f64>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Canary {
    /// Starts it; it writes to a file in the directory.
    ///
    /// # Errors
    /// A turn that fails on a host at rest.
    pub(crate) fn start(directory: &Path) -> io::Result<Self> {
        let file = directory.join(format!("canary-{}", std::process::id()));
        turn(&file)?;
        let turns = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, stopped) = (Arc::clone(&turns), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let begun = Instant::now();
                let took = match turn(&file) {
                    Ok(()) => begun.elapsed().as_secs_f64() * 1e6,
                    Err(_) => f64::INFINITY,
                };
                shared.lock().unwrap_or_else(PoisonError::into_inner).push(took);
                thread::sleep(PACE.saturating_sub(begun.elapsed()));
            }
        });
        Ok(Self { turns, stop, thread: Some(thread) })
    }

    /// The turns until now; later ones are counted anew.
    pub(crate) fn so_far(&self) -> Latency {
        Latency(std::mem::take(&mut self.turns.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The turns since [`Canary::so_far`].
    pub(crate) fn stop(mut self) -> Latency {
        self.end();
        self.so_far()
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic of the thread's is a turn less.
        self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.end();
    }
}

/// A process, a file, a pipe, a pair of sockets and a write.
fn turn(file: &Path) -> io::Result<()> {
    if !Command::new("/bin/true").status()?.success() {
        return Err(io::Error::other("/bin/true did not succeed"));
    }
    let mut opened = File::create(file)?;
    let (_reader, mut writer) = io::pipe()?;
    let (mut socket, _other) = UnixStream::pair()?;
    opened.write_all(b"word")?;
    writer.write_all(b"word")?;
    socket.write_all(b"word")?;
    fs::remove_file(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_of_a_hundred_is_found() {
        let rows: [(Vec<f64>, f64); 4] = [
            ((1..=100).map(f64::from).collect(), 99.0),
            ((1..=200).rev().map(f64::from).collect(), 198.0),
            (vec![7.0], 7.0),
            (vec![], f64::INFINITY),
        ];
        for (turns, expected) in rows {
            assert_eq!(Latency(turns.clone()).p99_us().to_bits(), expected.to_bits(), "{turns:?}");
        }
    }

    #[test]
    fn a_canary_sings_until_it_is_stopped() {
        let directory = std::env::temp_dir();
        let canary = Canary::start(&directory).unwrap();
        thread::sleep(PACE * 4);
        let before = canary.so_far();
        thread::sleep(PACE * 2);
        let during = canary.stop();
        assert!(before.p99_us().is_finite() && during.p99_us().is_finite());
    }

    #[test]
    fn a_canary_without_a_place_does_not_start() {
        assert!(Canary::start(Path::new("/nonexistent")).is_err());
    }
}
