//! The launchers of a sandbox: most have one; several share its runs, each run going to the one that
//! has fewest. A launcher that is lost leaves its seat empty, and the next run there starts another.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::live::Live;
use crate::error::{Error, LaunchError};

type Seat = Mutex<Option<Arc<Live>>>;

/// One seat for each launcher, at least one.
#[derive(Debug)]
pub(super) struct Launchers {
    first: Seat,
    others: Vec<Seat>,
    /// Where to look first: of launchers that are equally busy, another one each time, so that one
    /// makes namespaces while another starts a run.
    next: AtomicUsize,
}

fn lock(seat: &Seat) -> MutexGuard<'_, Option<Arc<Live>>> {
    // A launcher is replaced whole, so that a panic elsewhere leaves it as good as before.
    seat.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Launchers {
    pub(super) fn new(first: Arc<Live>, others: Vec<Arc<Live>>) -> Launchers {
        let seat = |live| Mutex::new(Some(live));
        let others = others.into_iter().map(seat).collect();
        Launchers { first: seat(first), others, next: AtomicUsize::new(0) }
    }

    fn seats(&self) -> impl Iterator<Item = &Seat> {
        std::iter::once(&self.first).chain(&self.others)
    }

    pub(super) fn count(&self) -> usize {
        1 + self.others.len()
    }

    /// The least busy launcher; `start` makes one where it was lost.
    pub(super) fn pick(
        &self,
        start: impl FnOnce() -> Result<Arc<Live>, Error>,
    ) -> Result<Arc<Live>, Error> {
        let mut current = lock(self.least_busy());
        match &*current {
            Some(live) if live.launcher.is_ours() => Ok(Arc::clone(live)),
            Some(_) => Err(LaunchError::Forked.into()),
            None => {
                let live = start()?;
                *current = Some(Arc::clone(&live));
                Ok(live)
            }
        }
    }

    fn least_busy(&self) -> &Seat {
        if self.others.is_empty() {
            return &self.first;
        }
        let from = self.next.fetch_add(1, Ordering::Relaxed) % self.count();
        let ring = self.seats().chain(self.seats()).skip(from).take(self.count());
        // One whose launcher is being started is as busy as can be.
        let runs = |seat: &&Seat| match seat.try_lock() {
            Ok(current) => current.as_ref().map_or(0, |live| live.runs()),
            Err(TryLockError::Poisoned(poison)) => {
                poison.into_inner().as_ref().map_or(0, |live| live.runs())
            }
            Err(TryLockError::WouldBlock) => usize::MAX,
        };
        ring.min_by_key(runs).unwrap_or(&self.first)
    }

    /// Any that is there, one that was looked at before the others.
    pub(super) fn any(&self) -> Option<Arc<Live>> {
        let live = || self.seats().filter_map(|seat| lock(seat).clone());
        live().find(|live| live.is_attested()).or_else(|| live().next())
    }

    /// Leaves the seat of a launcher empty; false when somebody else has done so.
    pub(super) fn forget(&self, live: &Arc<Live>) -> bool {
        self.seats().any(|seat| {
            let mut current = lock(seat);
            let is_it = current.as_ref().is_some_and(|current| Arc::ptr_eq(current, live));
            if is_it {
                *current = None;
            }
            is_it
        })
    }

    /// Makes dropping them end them without waiting.
    pub(super) fn leave(&self) {
        self.seats().filter_map(|seat| lock(seat).clone()).for_each(|live| live.launcher.leave());
    }
}
