//! At most one line a second of a kind that somebody else can cause; counts the others.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two lines.
const PAUSE: Duration = Duration::from_secs(1);

/// The bound of one kind of event.
#[derive(Debug)]
pub(crate) struct Rate(Mutex<Turns>);

#[derive(Debug)]
struct Turns {
    last: Option<Instant>,
    unlogged: u64,
}

impl Rate {
    pub(crate) const fn new() -> Rate {
        Rate(Mutex::new(Turns { last: None, unlogged: 0 }))
    }

    /// How many were not told since the last line, if there may be a line now.
    pub(crate) fn turn(&self) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).turn(Instant::now())
    }
}

impl Turns {
    fn turn(&mut self, now: Instant) -> Option<u64> {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) < PAUSE) {
            self.unlogged = self.unlogged.saturating_add(1);
            return None;
        }
        self.last = Some(now);
        Some(core::mem::take(&mut self.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_line_a_second_at_most() {
        let start = Instant::now();
        let mut turns = Turns { last: None, unlogged: 0 };
        let rows =
            [(0, Some(0)), (1, None), (999, None), (1000, Some(2)), (1500, None), (5000, Some(1))];
        for (ms, unlogged) in rows {
            let turn = turns.turn(start + Duration::from_millis(ms));
            assert_eq!(turn, unlogged, "at {ms} ms");
        }
    }
}
