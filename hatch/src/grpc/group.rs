//! The thread that hatches serve on, and how long it lives. What runs on it is not decided here.

use core::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Hatches that share one thread. A clone is the same group.
///
/// The thread starts when the first hatch of the group is opened, and ends when the group, its
/// hatches and what they serve have all been dropped. Handlers run on it, so one that blocks holds
/// up all runs of the group: let it use `tokio::task::spawn_blocking`, give slow hatches a group of
/// their own, or serve on a runtime with more threads.
#[derive(Debug, Clone, Default)]
pub struct HatchGroup {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    thread: Mutex<Option<Thread>>,
}

/// Dropping it ends the thread, which nobody waits for: the last owner may be a handler on it.
struct Thread {
    handle: Handle,
    _end: oneshot::Sender<()>,
}

impl HatchGroup {
    /// A group without a hatch, and without a thread yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn handle(&self) -> io::Result<Handle> {
        let mut thread = self.shared.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = &*thread {
            return Ok(thread.handle.clone());
        }
        let started = Thread::start()?;
        let handle = started.handle.clone();
        *thread = Some(started);
        Ok(handle)
    }
}

impl Thread {
    fn start() -> io::Result<Self> {
        // Sockets are looked at between any two tasks, or a busy run would hide that others wake.
        let runtime =
            Builder::new_current_thread().event_interval(1).enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        thread::Builder::new().name("postern-hatch".to_owned()).spawn(move || {
            // Nothing is ever sent: the sender's drop is the signal.
            drop(runtime.block_on(ended));
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, _end: end })
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_started = self.thread.lock().map_or(true, |thread| thread.is_some());
        f.debug_struct("Shared").field("is_started", &is_started).finish()
    }
}

/// Where a hatch serves. Its owners keep it alive.
#[derive(Debug, Clone)]
pub(super) enum Runtime {
    Group(HatchGroup),
    Caller(Handle),
}

impl Runtime {
    /// Started, if it is ours to start.
    pub(super) fn handle(&self) -> io::Result<Handle> {
        match self {
            Self::Group(group) => group.handle(),
            Self::Caller(handle) => Ok(handle.clone()),
        }
    }
}
