//! At most one line a second of a kind that a guest can cause; counts the others.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The bound of one kind of event.
#[derive(Debug, Default)]
pub(super) struct Rate(Mutex<Log>);

#[derive(Debug, Default)]
struct Log {
    last: Option<Instant>,
    unlogged: u64,
}

/// Between two lines.
const PAUSE: Duration = Duration::from_secs(1);

impl Rate {
    /// How many were not logged since the last line, if there may be a line now.
    pub(super) fn turn(&self) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).turn(Instant::now())
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
