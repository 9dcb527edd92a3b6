//! Counts what guests were refused, and says so at a rate that they cannot raise.

use core::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::{HatchName, RunId};

/// Refused calls of one hatch.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    count: AtomicU64,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    last: Option<Instant>,
    unlogged: u64,
}

/// Between two lines.
const PAUSE: Duration = Duration::from_secs(1);

impl Refusals {
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// One more. `what` must be fit for a log already.
    pub(super) fn add(&self, hatch: Option<&HatchName>, run: RunId, what: &dyn Display) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(unlogged) = log.turn(Instant::now()) else { return };
        drop(log);
        let hatch = hatch.map_or("", HatchName::as_str);
        tracing::warn!(hatch, %run, unlogged, "hatch refused: {what}");
    }
}

impl Log {
    /// How many were not logged since the last line, if there may be a line now.
    fn turn(&mut self, now: Instant) -> Option<u64> {
        match self.last {
            Some(last) if now.duration_since(last) < PAUSE => {
                self.unlogged += 1;
                None
            }
            Some(_) | None => {
                self.last = Some(now);
                Some(core::mem::take(&mut self.unlogged))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Log;

    #[test]
    fn there_is_a_line_a_second_at_most() {
        let start = Instant::now();
        let mut log = Log::default();
        let rows = [
            (0, Some(0)),
            (1, None),
            (999, None),
            (1000, Some(2)),
            (1500, None),
            (5000, Some(1)),
            (6000, Some(0)),
        ];
        for (ms, unlogged) in rows {
            let turn = log.turn(start + Duration::from_millis(ms));
            assert_eq!(turn, unlogged, "at {ms} ms");
        }
    }
}
