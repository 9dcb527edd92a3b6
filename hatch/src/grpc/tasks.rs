//! Everything that happens for one run - its listener, its connections, its calls - as one task of
//! the thread, which gives way after a slot of time. So the runs on a thread share it evenly,
//! however many connections and calls each of them has.

use core::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};

/// How long a run has the thread. The task at hand when it is over finishes its poll.
const SLOT: Duration = Duration::from_micros(20);

/// A poll of a connection that takes longer than this is made of what its client packed into one
/// frame: HTTP/2 has no smaller piece. The run then waits as long, up to a bound.
const LONG: Duration = Duration::from_micros(60);
const WAIT_MAX: Duration = Duration::from_micros(100);

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The tasks of a run that have been started and not polled yet.
#[derive(Default)]
pub(super) struct Tasks {
    new: Mutex<Vec<Task>>,
    slot: Arc<Slot>,
}

/// When the run must give way.
#[derive(Default)]
struct Slot {
    end: Mutex<Option<Instant>>,
    /// Not before this.
    next: Mutex<Option<Instant>>,
}

impl Tasks {
    /// Adds a task. Only a task of the same run may do it, or nobody would be woken for the new one.
    pub(super) fn start(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.add(Kind::Other, task);
    }

    /// Adds the task of a connection.
    pub(super) fn start_connection(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.add(Kind::Connection, task);
    }

    fn add(&self, kind: Kind, task: impl Future<Output = ()> + Send + 'static) {
        // A panic ends the task that has it and no other.
        let task = AssertUnwindSafe(task).catch_unwind().map(drop);
        let mut new = self.new.lock().unwrap_or_else(PoisonError::into_inner);
        new.push(Box::pin(InSlot { kind, slot: Arc::clone(&self.slot), task: Box::pin(task) }));
    }

    /// Whether the run has had its time, for a task that could go on.
    pub(super) fn is_time_up(&self) -> bool {
        self.slot.is_over()
    }

    /// Runs `first` and what is started by it and so on, until all have ended.
    pub(super) async fn run(&self, first: impl Future<Output = ()> + Send + 'static) {
        self.start(first);
        let mut begun = FuturesUnordered::new();
        core::future::poll_fn(|cx| self.poll(&mut begun, cx)).await;
    }

    fn poll(&self, begun: &mut FuturesUnordered<Task>, cx: &mut Context<'_>) -> Poll<()> {
        if self.slot.must_wait() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.slot.begin();
        loop {
            begun.extend(self.take());
            match begun.poll_next_unpin(cx) {
                Poll::Ready(Some(())) => {}
                Poll::Ready(None) if self.is_empty() => return Poll::Ready(()),
                Poll::Pending if self.is_empty() => return Poll::Pending,
                Poll::Ready(None) | Poll::Pending if self.slot.is_over() => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Ready(None) | Poll::Pending => {}
            }
        }
    }

    fn take(&self) -> Vec<Task> {
        core::mem::take(&mut self.new.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_empty(&self) -> bool {
        self.new.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").finish_non_exhaustive()
    }
}

impl Slot {
    fn begin(&self) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + SLOT);
    }

    /// Gives the thread to others for as long as a connection has had it too long.
    fn wait_after(&self, took: Duration) {
        let next = (took > LONG).then(|| Instant::now() + took.min(WAIT_MAX));
        if next.is_some() {
            *self.next.lock().unwrap_or_else(PoisonError::into_inner) = next;
        }
    }

    fn must_wait(&self) -> bool {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        next.take_if(|next| *next <= Instant::now());
        next.is_some()
    }

    fn is_over(&self) -> bool {
        let end = *self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.is_some_and(|end| end <= Instant::now())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Connection,
    Other,
}

/// A task that waits for the next slot once this one is over.
struct InSlot {
    kind: Kind,
    slot: Arc<Slot>,
    task: Task,
}

impl Future for InSlot {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.slot.is_over() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let start = Instant::now();
        let outcome = self.task.as_mut().poll(cx);
        if self.kind == Kind::Connection {
            self.slot.wait_after(start.elapsed());
        }
        outcome
    }
}

/// Lets every other task of the run go first.
pub(super) async fn give_way() {
    let mut is_over = false;
    core::future::poll_fn(|cx| {
        if core::mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use super::{Tasks, give_way};

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    fn spin() {
        spin_for(30);
    }

    fn spin_for(micros: u64) {
        let end = Instant::now() + Duration::from_micros(micros);
        while Instant::now() < end {}
    }

    /// What a busy run of many tasks and a run of one did, in order.
    #[test]
    fn a_run_of_many_tasks_gets_as_much_as_a_run_of_one() {
        let log = Arc::new(Mutex::new(String::new()));
        let [many, one] = [(); 2].map(|()| Arc::new(Tasks::default()));
        let busy = |mark: char, rounds: usize| {
            let log = Arc::clone(&log);
            async move {
                for _ in 0..rounds {
                    spin();
                    log.lock().unwrap().push(mark);
                    give_way().await;
                }
            }
        };
        runtime().block_on(async {
            let all: Vec<_> = (0..100).map(|_| busy('m', 20)).collect();
            let starter = Arc::clone(&many);
            let first = async move { all.into_iter().for_each(|task| starter.start(task)) };
            let first = tokio::spawn(async move { many.run(first).await });
            let second = busy('1', 100);
            tokio::spawn(async move { one.run(second).await }).await.unwrap();
            first.await.unwrap();
        });
        let log = log.lock().unwrap().clone();
        let (shared, alone) = log.split_at(log.rfind('1').unwrap());
        // As long as both had something to do, neither had more than a few polls at a time.
        let most = shared.split('1').map(str::len).max().unwrap();
        assert!(most <= 20, "{most} polls of the busy run between two of the other");
        assert_eq!(log.matches('m').count(), 2000);
        assert!(alone.len() > 1000, "{}", alone.len());
    }

    #[test]
    fn a_run_with_a_slow_connection_waits_for_it() {
        let log = Arc::new(Mutex::new(String::new()));
        let [slow, other] = [(); 2].map(|()| Arc::new(Tasks::default()));
        let busy = |mark: char, polls: usize, poll: u64| {
            let log = Arc::clone(&log);
            async move {
                for _ in 0..polls {
                    spin_for(poll);
                    log.lock().unwrap().push(mark);
                    give_way().await;
                }
            }
        };
        runtime().block_on(async {
            let (starter, connection) = (Arc::clone(&slow), busy('s', 50, 100));
            let first = async move { starter.start_connection(connection) };
            let first = tokio::spawn(async move { slow.run(first).await });
            let second = busy('o', 3000, 5);
            let second = tokio::spawn(async move { other.run(second).await });
            first.await.unwrap();
            second.await.unwrap();
        });
        let log = log.lock().unwrap().clone();
        let mut between: Vec<_> = log.split('s').map(str::len).collect();
        between.sort_unstable();
        // Without the wait the other run had one poll.
        assert!(between[between.len() / 2] >= 8, "{between:?}");
    }

    #[test]
    fn a_panic_ends_its_own_task() {
        let (tasks, log) = (Arc::new(Tasks::default()), Arc::new(Mutex::new(Vec::new())));
        let (starter, seen) = (Arc::clone(&tasks), Arc::clone(&log));
        runtime().block_on(tasks.run(async move {
            starter.start(async { panic!("a handler's own") });
            starter.start(async move { seen.lock().unwrap().push("the other") });
        }));
        assert_eq!(*log.lock().unwrap(), ["the other"]);
    }
}
