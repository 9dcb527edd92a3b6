//! Ends or signals a run from elsewhere; knows nothing else of it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use rustix::process::{Signal, pidfd_send_signal};

use super::terminal;
use crate::command::WindowSize;

/// Ends or signals a run that another thread or task waits for. It keeps nothing alive, and once
/// the run is over it does nothing: a pidfd never names another process.
#[derive(Debug, Clone)]
pub struct ProcessHandle {
    pidfd: Option<Arc<OwnedFd>>,
    /// The run's own: its result tells that its end was asked for.
    stopped: Arc<AtomicBool>,
    terminal: Weak<OwnedFd>,
}

impl ProcessHandle {
    pub(crate) fn new(
        pidfd: Option<Arc<OwnedFd>>,
        stopped: Arc<AtomicBool>,
        terminal: Weak<OwnedFd>,
    ) -> ProcessHandle {
        ProcessHandle { pidfd, stopped, terminal }
    }

    /// As [`Process::signal`](crate::Process::signal).
    pub fn signal(&self, signal: Signal) {
        if let Some(pidfd) = &self.pidfd {
            // ESRCH: the run is over already.
            pidfd_send_signal(pidfd, signal).ok();
        }
    }

    /// As [`Process::resize`](crate::Process::resize).
    ///
    /// # Errors
    /// As [`Process::resize`](crate::Process::resize).
    pub fn resize(&self, size: WindowSize) -> io::Result<()> {
        terminal::resize(&self.terminal, size)
    }

    /// Kills everything in the run at once.
    pub fn kill(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.signal(Signal::KILL);
    }
}
