//! A run that waits behind its walls, before its program, to be looked at.

use std::sync::Arc;
use std::time::{Duration, Instant};

use postern_init::record::Record;

use super::{Run, lost_line};
use crate::enforcement::Enforcement;
use crate::error::{LaunchError, Phase};
use crate::launch::socket::{self, Incoming};

impl Run {
    /// Takes what PID 1 said, without waiting: its record, once every wall stands.
    pub(crate) fn confined(&mut self) -> Result<Option<Record>, LaunchError> {
        while self.end.confined.is_none() {
            match socket::receive(&self.status).map_err(lost_line)? {
                Incoming::Record(record, fds) => self.note(&record, fds)?,
                Incoming::Nothing => return Ok(None),
                Incoming::End => {
                    return Err(LaunchError::LauncherLost { during: Phase::Run });
                }
            }
            if let Some(failure) = self.end.failure.take() {
                return Err(failure);
            }
        }
        Ok(self.end.confined)
    }

    /// Waits until PID 1 says that every wall stands.
    pub(crate) fn wait_confined(
        &mut self,
        deadline: Instant,
        after: Duration,
    ) -> Result<Record, LaunchError> {
        loop {
            if let Some(record) = self.confined()? {
                return Ok(record);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(LaunchError::Deadline { waiting_for: "confining a run", after });
            }
            socket::wait_readable(&self.status, left).map_err(lost_line)?;
        }
    }

    /// Why it has failed, if it has said so by now.
    pub(crate) fn failure(&mut self) -> Option<LaunchError> {
        while let Ok(Incoming::Record(record, fds)) = socket::receive(&self.status) {
            self.note(&record, fds).ok()?;
        }
        self.end.failure.take()
    }

    /// Lets PID 1 go on to its program.
    pub(crate) fn let_go(&self) -> Result<(), LaunchError> {
        socket::send(&self.status, &[1], &[]).map_err(lost_line)
    }

    /// What holds it, now that more is known.
    pub(crate) fn learn_enforcement(&mut self, enforcement: Arc<Enforcement>) {
        self.enforcement = enforcement;
    }
}
