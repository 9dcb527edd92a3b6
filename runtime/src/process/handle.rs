//! Ends or signals a run from elsewhere; knows nothing else of it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use rustix::process::{Signal, pidfd_send_signal};

use super::terminal;
use crate::command::WindowSize;

/// What was asked of a run, by whoever waits for it or from elsewhere.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Its end: the result tells.
    end: AtomicBool,
    killed_at: OnceLock<Instant>,
}

impl Asked {
    /// Takes note that its end was asked for; whether that is new.
    pub(super) fn end(&self) -> bool {
        !self.end.swap(true, Ordering::Relaxed)
    }

    /// Whether its end was asked for.
    pub(super) fn is_end(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    /// When it was first killed, by whomever.
    pub(super) fn killed_at(&self) -> Option<Instant> {
        self.killed_at.get().copied()
    }

    /// Sends a signal to PID 1. A kill is noted before it can show: whoever waits for the run waits
    /// for a bounded time from then on.
    pub(super) fn send(&self, pidfd: Option<&Arc<OwnedFd>>, signal: Signal) {
        if signal == Signal::KILL {
            self.killed_at.get_or_init(Instant::now);
        }
        if let Some(pidfd) = pidfd {
            // ESRCH: the run is over already.
            pidfd_send_signal(pidfd, signal).ok();
        }
    }
}

/// Ends or signals a run that another thread or task waits for. It keeps nothing alive, and once
/// the run is over it does nothing: a pidfd never names another process.
#[derive(Debug, Clone)]
pub struct ProcessHandle {
    pidfd: Option<Arc<OwnedFd>>,
    /// The run's own.
    asked: Arc<Asked>,
    terminal: Weak<OwnedFd>,
}

impl ProcessHandle {
    pub(super) fn new(
        pidfd: Option<Arc<OwnedFd>>,
        asked: Arc<Asked>,
        terminal: Weak<OwnedFd>,
    ) -> ProcessHandle {
        ProcessHandle { pidfd, asked, terminal }
    }

    /// As [`Process::signal`](crate::Process::signal).
    pub fn signal(&self, signal: Signal) {
        self.asked.send(self.pidfd.as_ref(), signal);
    }

    /// As [`Process::resize`](crate::Process::resize).
    ///
    /// # Errors
    /// As [`Process::resize`](crate::Process::resize).
    pub fn resize(&self, size: WindowSize) -> io::Result<()> {
        terminal::resize(&self.terminal, size)
    }

    /// Kills everything in the run at once. Whoever waits for the run has its result 10 seconds
    /// later at the latest, as after [`Process::kill`](crate::Process::kill).
    pub fn kill(&self) {
        self.asked.end();
        self.signal(Signal::KILL);
    }
}
