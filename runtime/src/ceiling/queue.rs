//! Who has a place and who is next, first come, first served: a value. It holds no lock, wakes nobody
//! and waits for nothing.

use std::collections::BTreeMap;

/// A waiter's number. They count up, so that the smallest one has waited longest.
pub(super) type Ticket = u64;

/// What came of asking for a place. `W` is how a waiter is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joined {
    /// There is one, and nobody had waited for it.
    Placed,
    /// There will be one.
    Waits(Ticket),
    /// There is none, and no more may wait.
    Full,
}

/// A waiter that has gone away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left<W> {
    /// It had no place yet.
    Unplaced,
    /// It had been given one, which is the next one's now, or nobody's.
    Passed(Option<W>),
}

/// Places and those who wait for them.
#[derive(Debug)]
pub(super) struct Queue<W> {
    places: u32,
    taken: u32,
    pub(super) waiting: BTreeMap<Ticket, W>,
    next: Ticket,
}

impl<W> Queue<W> {
    pub(super) fn new(places: u32) -> Queue<W> {
        Queue { places, taken: 0, waiting: BTreeMap::new(), next: 0 }
    }

    pub(super) fn places(&self) -> u32 {
        self.places
    }

    pub(super) fn taken(&self) -> u32 {
        self.taken
    }

    pub(super) fn waiting(&self) -> u32 {
        u32::try_from(self.waiting.len()).unwrap_or(u32::MAX)
    }

    /// Asks for a place, to wait among at most `waiting_max`.
    pub(super) fn join(&mut self, waiting_max: u32, waker: impl FnOnce() -> W) -> Joined {
        // Whoever waits has been here longer.
        if self.taken < self.places && self.waiting.is_empty() {
            self.taken += 1;
            return Joined::Placed;
        }
        if self.waiting() >= waiting_max {
            return Joined::Full;
        }
        let ticket = self.next;
        self.next += 1;
        self.waiting.insert(ticket, waker());
        Joined::Waits(ticket)
    }

    /// Whether a waiter has been given its place; one that has not is woken by `waker` from now on.
    pub(super) fn is_placed(&mut self, ticket: Ticket, waker: impl FnOnce() -> W) -> bool {
        match self.waiting.get_mut(&ticket) {
            None => true,
            Some(kept) => {
                *kept = waker();
                false
            }
        }
    }

    /// Takes a waiter out, whether it has been given its place or not.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Left<W> {
        match self.waiting.remove(&ticket) {
            Some(_) => Left::Unplaced,
            None => Left::Passed(self.release()),
        }
    }

    /// Gives a place back: it is the next one's at once, who is to be woken.
    pub(super) fn release(&mut self) -> Option<W> {
        let next = self.waiting.pop_first();
        if next.is_none() {
            self.taken = self.taken.saturating_sub(1);
        }
        next.map(|(_, waker)| waker)
    }
}
