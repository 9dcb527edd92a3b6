//! One call underway: what its request and its answer must know of each other.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};

use tonic::Status;

use super::budget::Share;
use super::run::Run;

/// One call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) run: Arc<Run>,
    verdict: Mutex<Verdict>,
    /// For the message that arrived last: the handler has it until it asks for the next.
    share: Mutex<Option<Share>>,
}

/// What the hatch ends the call with, whatever the handler makes of it.
#[derive(Debug, Default)]
struct Verdict {
    status: Option<Status>,
    waker: Option<Waker>,
}

impl Call {
    pub(super) fn new(run: Arc<Run>) -> Self {
        Self { run, verdict: Mutex::default(), share: Mutex::default() }
    }

    /// Ends the call. The first verdict holds.
    pub(super) fn judge(&self, status: Status) {
        let mut verdict = self.verdict.lock().unwrap_or_else(PoisonError::into_inner);
        verdict.status.get_or_insert(status);
        let waker = verdict.waker.take();
        drop(verdict);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The verdict; without one, wakes the task when there is one.
    pub(super) fn verdict(&self, cx: &Context<'_>) -> Option<Status> {
        let mut verdict = self.verdict.lock().unwrap_or_else(PoisonError::into_inner);
        if verdict.status.is_none()
            && !verdict.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            verdict.waker = Some(cx.waker().clone());
        }
        verdict.status.clone()
    }

    /// Keeps the share of the message at hand instead of the last one's.
    pub(super) fn hold(&self, share: Option<Share>) {
        let mut held = self.share.lock().unwrap_or_else(PoisonError::into_inner);
        *held = share;
    }
}
