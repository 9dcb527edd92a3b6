//! One run being served: what bounds it, which connections it has, and how all of it ends at once.

use core::fmt::{self, Display};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::net::{Shutdown, shutdown};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use super::budget::{Budget, Share, Waiting};
use super::limits::Limits;
use super::tasks::Tasks;
use super::{Inner, Route};
use crate::RunId;

/// A handler that has answered has made its message already, however long it is.
const ANSWERS_WAITING_MAX: u32 = 32;

/// One run.
pub(super) struct Run {
    id: RunId,
    hatch: Arc<Inner>,
    arriving: Budget,
    leaving: Budget,
    /// Places for answers that are there and have no share yet: one each.
    answers: Budget,
    tasks: Tasks,
    end: CancellationToken,
    sockets: Mutex<Sockets>,
}

/// The open connections of a run.
#[derive(Debug, Default)]
struct Sockets {
    is_ended: bool,
    next: u64,
    open: HashMap<u64, Arc<UnixStream>>,
}

impl Run {
    pub(super) fn new(id: RunId, hatch: Arc<Inner>) -> Self {
        let bytes = hatch.limits.buffered_bytes_max;
        Self {
            id,
            arriving: Budget::new(bytes),
            leaving: Budget::new(bytes),
            answers: Budget::new(ANSWERS_WAITING_MAX),
            tasks: Tasks::default(),
            end: CancellationToken::new(),
            sockets: Mutex::default(),
            hatch,
        }
    }

    pub(super) fn id(&self) -> RunId {
        self.id
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.hatch.limits
    }

    /// For messages of the guest.
    pub(super) fn arriving(&self) -> &Budget {
        &self.arriving
    }

    /// Room for the longest message of an answer.
    pub(super) fn room(&self) -> Result<Share, Waiting> {
        self.leaving.take(u64::from(self.limits().response_bytes_max))
    }

    /// A place for an answer that waits for room; none if too many wait already.
    pub(super) fn place(&self) -> Option<Share> {
        self.answers.take(1).ok()
    }

    /// All that is done for the run.
    pub(super) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Cancelled at the run's end.
    pub(super) fn ending(&self) -> &CancellationToken {
        &self.end
    }

    pub(super) fn allows(&self, method: &str) -> bool {
        self.hatch.allowed.contains(method)
    }

    pub(super) fn route(&self, service: &str) -> Option<Route> {
        self.hatch.routes.get(service).cloned()
    }

    /// Counts and logs what the guest was refused.
    pub(super) fn refuse(&self, what: &dyn Display) {
        self.hatch.refusals.add(self.hatch.name.as_ref(), self.id, what);
    }

    /// Logs that a connection could not be accepted, which a guest may bring about.
    pub(super) fn tell_not_accepting(&self, error: &io::Error) {
        let Some(unlogged) = self.hatch.not_accepting.turn() else { return };
        tracing::warn!(
            name: "hatch.not_accepting",
            target: "postern",
            run = %self.id,
            %error,
            unlogged,
            "hatch cannot accept a connection"
        );
    }

    /// Ends everything. When this returns nothing is read or written any more, even if a handler
    /// holds the thread that will close the descriptors. The listener is left to that thread: shut
    /// down, it would be ready for ever, and have nothing to accept.
    pub(super) fn end(&self) {
        self.end.cancel();
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.is_ended = true;
        let open = core::mem::take(&mut sockets.open);
        drop(sockets);
        for socket in open.into_values() {
            // A socket that the guest has shut down already is what is wanted.
            shutdown(&*socket, Shutdown::Both).ok();
        }
    }

    /// Has the end of the run end this connection; none if the run has ended.
    pub(super) fn seat(self: &Arc<Self>, socket: &Arc<UnixStream>) -> Option<Seat> {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        if sockets.is_ended {
            return None;
        }
        let key = sockets.next;
        sockets.next += 1;
        sockets.open.insert(key, Arc::clone(socket));
        drop(sockets);
        Some(Seat { run: Arc::clone(self), key })
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A connection's place among those of its run, until it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    run: Arc<Run>,
    key: u64,
}

impl Seat {
    pub(super) fn run(&self) -> &Run {
        &self.run
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut sockets = self.run.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.open.remove(&self.key);
    }
}
