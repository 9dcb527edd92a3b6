//! How many processes of the guest the host sees: while it runs, and when it is over. A process is
//! the guest's if it has the run's token among its arguments, as everything has that was forked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fs, io};

/// Between two counts.
const PAUSE: Duration = Duration::from_millis(5);

/// Counts until it is ended.
#[derive(Debug)]
pub(crate) struct Census {
    shared: Arc<Shared>,
    counter: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    token: String,
    peak: AtomicUsize,
    is_over: AtomicBool,
}

impl Census {
    /// Begins, on a thread of its own.
    ///
    /// # Errors
    /// That of the thread.
    pub(crate) fn begin(token: &str) -> io::Result<Census> {
        let (peak, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let shared = Arc::new(Shared { token: token.to_owned(), peak, is_over });
        let counted = Arc::clone(&shared);
        let counter = thread::Builder::new().name("census".to_owned()).spawn(move || {
            while !counted.is_over.load(Ordering::Relaxed) {
                counted.peak.fetch_max(count(&counted.token), Ordering::Relaxed);
                thread::sleep(PAUSE);
            }
        })?;
        Ok(Census { shared, counter: Some(counter) })
    }

    /// The most that were there at once.
    pub(crate) fn end(mut self) -> usize {
        self.stop();
        self.shared.peak.load(Ordering::Relaxed)
    }

    fn stop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(counter) = self.counter.take() {
            // It has nothing that could panic, and nothing to hand back.
            counter.join().ok();
        }
    }
}

impl Drop for Census {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The processes that have the token among their arguments now.
pub(crate) fn count(token: &str) -> usize {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = entries.filter_map(|entry| {
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        fs::read(entry.path().join("cmdline")).ok()
    });
    let has_token = |line: &Vec<u8>| line.windows(token.len()).any(|part| part == token.as_bytes());
    lines.filter(has_token).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a process to be counted")]
    fn processes_are_counted_while_they_are_there() {
        let token = format!("census-of-{}", std::process::id());
        assert_eq!(count(&token), 0);
        let census = Census::begin(&token).unwrap();
        let mut child = std::process::Command::new("sh")
            .args(["-c", "read line", &token])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let end = std::time::Instant::now() + Duration::from_secs(30);
        while census.shared.peak.load(Ordering::Relaxed) == 0 {
            assert!(std::time::Instant::now() < end, "never seen");
            thread::sleep(PAUSE);
        }
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(census.end(), 1);
        assert_eq!(count(&token), 0);
    }
}
