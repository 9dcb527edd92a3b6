//! A bound on how many runs there are at once, and a fair queue for the others. It starts no thread,
//! counts runs and not what they use, and knows nothing of other processes.

mod queue;

use core::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::error::Busy;
use queue::{Joined, Left, Queue, Ticket};

/// How many runs there may be at once, in all sandboxes that were given it or a clone of it.
///
/// A run takes a place before anything is made for it, and keeps it until everything in it is gone
/// or its handle is dropped. Where every place is taken, [`Sandbox::run`](crate::Sandbox::run) and
/// all other ways of starting one wait, in the order in which they came: a place that becomes free
/// is given to whoever has waited longest, and nobody who comes later can take it. Who gives up, by
/// its time or because its future is dropped, leaves the queue and keeps nobody else waiting. The
/// time spent waiting is [`Usage::queued`](crate::Usage::queued); it is no part of the run's own
/// time, nor of its time limit.
///
/// Places are shared by clones; how long to wait and among how many is each clone's own, so that one
/// sandbox can be more patient than another. The ceiling is of this process: for several services
/// on a machine, give each its share.
///
/// A thread that starts more runs than there are places, before it waits for the first, waits for
/// ever: nobody else will end them.
///
/// ```no_run
/// use std::time::Duration;
/// use postern::{Ceiling, Sandbox, SandboxProfile};
///
/// let ceiling = Ceiling::new(64).waiting_max(1000).queue_timeout(Duration::from_secs(30));
/// let reports = Sandbox::builder(SandboxProfile::default()).ceiling(ceiling.clone()).build()?;
/// let previews = Sandbox::builder(SandboxProfile::default())
///     .ceiling(ceiling.queue_timeout(Duration::ZERO))
///     .build()?;
/// # drop((reports, previews));
/// # Ok::<(), postern::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "a ceiling holds for the sandboxes that are given it"]
pub struct Ceiling {
    shared: Arc<Shared>,
    waiting_max: u32,
    queue_timeout: Option<Duration>,
}

type Shared = Mutex<Queue<Waker>>;

fn lock(shared: &Shared) -> MutexGuard<'_, Queue<Waker>> {
    // No waker runs under the lock, so that nobody panics in the middle of a change.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ceiling {
    /// A ceiling of this many runs at once. With 0 none starts: each waits or is refused.
    pub fn new(runs_max: u32) -> Ceiling {
        let shared = Arc::new(Mutex::new(Queue::new(runs_max)));
        Ceiling { shared, waiting_max: u32::MAX, queue_timeout: None }
    }

    /// How many may wait for a place before the next one is refused, as
    /// [`Busy::QueueFull`]; default no limit.
    pub fn waiting_max(mut self, waiting_max: u32) -> Ceiling {
        self.waiting_max = waiting_max;
        self
    }

    /// How long a run waits for its place before it is refused, as [`Busy::QueueTimeout`]; default
    /// for ever. With zero it does not wait, and is refused as [`Busy::NoPlace`]. A command can say
    /// otherwise: [`Command::queue_timeout`](crate::Command::queue_timeout).
    pub fn queue_timeout(mut self, timeout: Duration) -> Ceiling {
        self.queue_timeout = Some(timeout);
        self
    }

    /// How many runs there may be.
    #[must_use]
    pub fn runs_max(&self) -> u32 {
        lock(&self.shared).places()
    }

    /// How many places are taken.
    #[must_use]
    pub fn running(&self) -> u32 {
        lock(&self.shared).taken()
    }

    /// How many wait for one.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        lock(&self.shared).waiting()
    }

    /// Asks for a place, to wait for it until `timeout` has passed, or this ceiling's own.
    pub(crate) fn enter(&self, timeout: Option<Duration>) -> Result<Entry, Busy> {
        let timeout = timeout.or(self.queue_timeout);
        let waiting_max = match timeout {
            Some(Duration::ZERO) => 0,
            Some(_) | None => self.waiting_max,
        };
        let mut queue = lock(&self.shared);
        let joined = queue.join(waiting_max, || Waker::noop().clone());
        let runs_max = queue.places();
        drop(queue);
        let shared = Arc::clone(&self.shared);
        match joined {
            Joined::Placed => Ok(Entry::Placed(Place { shared })),
            Joined::Full if timeout.is_some_and(|timeout| timeout.is_zero()) => {
                Err(Busy::NoPlace { runs_max })
            }
            Joined::Full => Err(Busy::QueueFull { runs_max, waiting_max }),
            Joined::Waits(ticket) => {
                let since = Instant::now();
                let late = timeout.map(|after| Busy::QueueTimeout { runs_max, after });
                // A time that no clock can tell is no limit.
                let until = timeout.and_then(|timeout| since.checked_add(timeout));
                Ok(Entry::Waits(Waiting { shared, ticket: Some(ticket), until, late }))
            }
        }
    }
}

impl fmt::Debug for Ceiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = lock(&self.shared);
        f.debug_struct("Ceiling")
            .field("runs_max", &queue.places())
            .field("running", &queue.taken())
            .field("waiting", &queue.waiting())
            .field("waiting_max", &self.waiting_max)
            .field("queue_timeout", &self.queue_timeout)
            .finish()
    }
}

/// A place under a ceiling, free for the next one when dropped.
pub(crate) struct Place {
    shared: Arc<Shared>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").finish_non_exhaustive()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let next = lock(&self.shared).release();
        wake(next);
    }
}

fn wake(next: Option<Waker>) {
    if let Some(next) = next {
        next.wake();
    }
}

/// What came of asking for a place.
#[derive(Debug)]
pub(crate) enum Entry {
    Placed(Place),
    Waits(Waiting),
}

/// A turn in the queue, which dropping it gives up: a future of the place.
pub(crate) struct Waiting {
    shared: Arc<Shared>,
    /// `None` once it has its place.
    ticket: Option<Ticket>,
    until: Option<Instant>,
    /// What it is refused as when its time has passed.
    late: Option<Busy>,
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

impl Waiting {
    /// When its time has passed, and what it is refused as then.
    pub(crate) fn limit(&self) -> Option<(Instant, Busy)> {
        self.until.zip(self.late)
    }

    /// Waits on this thread.
    pub(crate) fn wait(mut self) -> Result<Place, Busy> {
        let waker = Waker::from(Arc::new(Unparker(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(place) = Pin::new(&mut self).poll(&mut context) {
                return Ok(place);
            }
            match self.limit() {
                None => std::thread::park(),
                Some((until, late)) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(late);
                    }
                    std::thread::park_timeout(left);
                }
            }
        }
    }
}

impl Future for Waiting {
    type Output = Place;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Place> {
        let waker = || context.waker().clone();
        let is_placed =
            self.ticket.is_none_or(|ticket| lock(&self.shared).is_placed(ticket, waker));
        if !is_placed {
            return Poll::Pending;
        }
        self.ticket = None;
        Poll::Ready(Place { shared: Arc::clone(&self.shared) })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let left = lock(&self.shared).leave(ticket);
        match left {
            Left::Unplaced => {}
            Left::Passed(next) => wake(next),
        }
    }
}

/// Wakes a thread that waits.
struct Unparker(Thread);

impl Wake for Unparker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests;
