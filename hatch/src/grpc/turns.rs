//! Whose turn it is to read: one connection of a run at a time, after everything else on the thread
//! has had its turn. So a run costs the others on its thread as much with many connections as with
//! one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};

use tokio::sync::Notify;

/// The connections of one run that have more to read.
#[derive(Debug, Default)]
pub(super) struct Turns {
    asking: Mutex<VecDeque<Arc<Turn>>>,
    is_asked: Notify,
}

/// A turn that was asked for.
#[derive(Debug)]
pub(super) struct Turn {
    is_given: AtomicBool,
    waker: Waker,
}

impl Turns {
    /// A turn for the task at hand, which is woken for it.
    pub(super) fn ask(&self, cx: &Context<'_>) -> Arc<Turn> {
        let turn = Turn { is_given: AtomicBool::new(false), waker: cx.waker().clone() };
        let turn = Arc::new(turn);
        self.queue(|queue| queue.push_back(Arc::clone(&turn)));
        self.is_asked.notify_one();
        turn
    }

    /// Gives turns, for as long as it is polled.
    pub(super) async fn give(&self) {
        loop {
            self.is_asked.notified().await;
            loop {
                tokio::task::yield_now().await;
                let Some(turn) = self.queue(VecDeque::pop_front) else { break };
                turn.is_given.store(true, Ordering::Release);
                turn.waker.wake_by_ref();
            }
        }
    }

    fn queue<T>(&self, act: impl FnOnce(&mut VecDeque<Arc<Turn>>) -> T) -> T {
        act(&mut self.asking.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Turn {
    pub(super) fn is_given(&self) -> bool {
        self.is_given.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::{Arc, Mutex};
    use std::task::Poll;

    use super::Turns;

    #[test]
    fn between_two_turns_everything_else_is_polled() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (turns, log) = (Arc::new(Turns::default()), Arc::new(Mutex::new(String::new())));
        runtime.block_on(async {
            let giver = Arc::clone(&turns);
            drop(tokio::spawn(async move { giver.give().await }));
            let other = Arc::clone(&log);
            drop(tokio::spawn(async move {
                loop {
                    other.lock().unwrap().push('-');
                    tokio::task::yield_now().await;
                }
            }));
            let readers = [(); 5].map(|()| {
                let (turns, log, mut turn) = (Arc::clone(&turns), Arc::clone(&log), None);
                tokio::spawn(poll_fn(move |cx| {
                    let turn = turn.get_or_insert_with(|| turns.ask(cx));
                    if !turn.is_given() {
                        return Poll::Pending;
                    }
                    log.lock().unwrap().push('r');
                    Poll::Ready(())
                }))
            });
            for reader in readers {
                reader.await.unwrap();
            }
        });
        let log = log.lock().unwrap().clone();
        assert_eq!(log.matches('r').count(), 5);
        assert!(!log.contains("rr"), "{log}");
    }
}
