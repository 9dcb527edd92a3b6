//! Ends or signals a run from elsewhere; knows nothing else of it.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Signal, pidfd_send_signal};

/// Ends or signals a run that another thread or task waits for. It keeps nothing alive, and once
/// the run is over it does nothing: a pidfd never names another process.
#[derive(Debug, Clone)]
pub struct ProcessHandle {
    pidfd: Option<Arc<OwnedFd>>,
    /// The run's own: its result tells that its end was asked for.
    stopped: Arc<AtomicBool>,
}

impl ProcessHandle {
    pub(crate) fn new(pidfd: Option<Arc<OwnedFd>>, stopped: Arc<AtomicBool>) -> ProcessHandle {
        ProcessHandle { pidfd, stopped }
    }

    /// As [`Process::signal`](crate::Process::signal).
    pub fn signal(&self, signal: Signal) {
        if let Some(pidfd) = &self.pidfd {
            // ESRCH: the run is over already.
            pidfd_send_signal(pidfd, signal).ok();
        }
    }

    /// Kills everything in the run at once.
    pub fn kill(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.signal(Signal::KILL);
    }
}
