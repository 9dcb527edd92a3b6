//! What is said on a run's status line besides its end, and what follows from its streams; waits only
//! for a terminal to be made.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use postern_init::record::{Kind, Record};
use rustix::process::Signal;

use super::{Run, lost_line};
use crate::error::{LaunchError, Phase};
use crate::launch::socket::{self, Incoming};

impl Run {
    /// Takes note of a record, and of what came with it.
    pub(super) fn note(&mut self, record: &Record, fds: Vec<OwnedFd>) -> Result<(), LaunchError> {
        if record.kind == Kind::Terminal {
            return self.streams.connect_terminal(fds);
        }
        self.end.learn(&self.plan, record);
        Ok(())
    }

    /// Takes what was said: true once the terminal is here, or never will be, or none is wanted.
    pub(crate) fn has_terminal(&mut self) -> Result<bool, LaunchError> {
        while self.streams.terminal.is_awaited() && self.end.failure.is_none() {
            match socket::receive(&self.status).map_err(lost_line)? {
                Incoming::Record(record, fds) => self.note(&record, fds)?,
                Incoming::Nothing => return Ok(false),
                Incoming::End => return Err(LaunchError::LauncherLost { during: Phase::Run }),
            }
        }
        Ok(true)
    }

    /// Waits for the guest's terminal.
    pub(crate) fn wait_terminal(
        &mut self,
        deadline: Instant,
        after: Duration,
    ) -> Result<(), LaunchError> {
        while !self.has_terminal()? {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(LaunchError::Deadline { waiting_for: "making a terminal", after });
            }
            socket::wait_readable(&self.status, left).map_err(lost_line)?;
        }
        Ok(())
    }

    /// Ends a run that has written more than it may.
    pub(super) fn enforce_cap(&mut self) {
        let is_killed = self.asked.killed_at().is_some();
        if !is_killed && !self.end.stage.is_final() && self.streams.are_overflowed() {
            self.send(Signal::KILL);
        }
    }
}
