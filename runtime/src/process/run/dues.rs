//! What is due in a run's life, and how it comes to its end; waits for nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::super::end::Stage;
use super::super::feed::Feed;
use super::super::turn::Wait;
use super::{News, Run, lost_line};
use crate::error::LaunchError;
use crate::launch::socket::{self, Incoming};

/// How long output may still come once nothing is left that could write it.
const DRAIN: Duration = Duration::from_secs(1);
/// How long a killed run may take to be gone, its memory and files included.
const DEATH: Duration = Duration::from_secs(10);

/// The end of a time, beside how long it is; a time that no clock can tell is no limit.
pub(super) fn until(from: Instant, time: Duration) -> Option<(Instant, Duration)> {
    from.checked_add(time).map(|at| (at, time))
}

impl Run {
    /// The run ends `timeout` from now at the latest.
    pub(crate) fn limit(&mut self, timeout: Duration) {
        let limits = self.timeout.into_iter().chain(until(Instant::now(), timeout));
        self.timeout = limits.min();
    }

    /// When a killed run must be gone.
    fn death_at(&self) -> Option<Instant> {
        self.asked.killed_at().map(|at| at + DEATH)
    }

    /// When to look whether a handle has killed the run, where there is one: often enough to find
    /// out before the run must be gone.
    fn look_at(&self) -> Option<Instant> {
        (Arc::strong_count(&self.asked) > 1).then(|| Instant::now() + DEATH)
    }

    /// When the next thing is due, and has to be dealt with even if nothing happens.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        let dues = match self.end.stage {
            Stage::Over | Stage::Unreaped => [self.drain_at, None, None],
            Stage::InitOver => [self.answer_at, None, None],
            Stage::Live => match self.death_at() {
                Some(at) => [Some(at), None, None],
                None => [self.timeout.map(|(at, _)| at), self.grace_at, self.look_at()],
            },
        };
        let input = self.streams.feed.as_ref().and_then(Feed::due_at);
        dues.into_iter().chain([input]).flatten().min()
    }

    /// Does what is due.
    pub(in crate::process) fn meet_dues(&mut self, now: Instant) -> Result<(), LaunchError> {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let death_at = self.death_at();
        let end_at = if self.end.stage == Stage::InitOver { self.answer_at } else { death_at };
        if !self.end.stage.is_final() && is_due(end_at) {
            // It may have ended long ago, while the caller was elsewhere.
            let news = self.poll(Wait::No)?;
            self.hear(news)?;
            match self.end.stage {
                Stage::Live => self.end_as(Stage::Unreaped, now),
                Stage::InitOver if is_due(self.answer_at) => self.end_as(Stage::Over, now),
                Stage::InitOver | Stage::Over | Stage::Unreaped => {}
            }
        }
        if self.end.stage != Stage::Live || death_at.is_some() {
            return Ok(());
        }
        let over = self.timeout.filter(|(at, _)| *at <= now);
        if over.is_some() || is_due(self.grace_at) {
            self.end.timed_out = over.map(|(_, time)| time);
            self.send(Signal::KILL);
        }
        Ok(())
    }

    /// Nothing more of its end is waited for, and of its output until then.
    fn end_as(&mut self, stage: Stage, drain_at: Instant) {
        self.end.stage = stage;
        self.drain_at = Some(drain_at);
        self.end.usage.wall = self.started.elapsed();
        self.streams.feed = None;
        self.streams.terminal.close_slave();
        if let Some(directory) = &mut self.directory {
            directory.end_servings();
        }
        if stage == Stage::Over {
            self.give_place();
        }
    }

    /// Takes what was said of the end.
    pub(super) fn hear(&mut self, news: News) -> Result<(), LaunchError> {
        if news.is_init_over {
            self.end.stage = Stage::InitOver;
            self.answer_at = self.death_at().or_else(|| Instant::now().checked_add(DEATH));
        }
        if !news.is_status_ready && !self.end.is_told(&self.plan) {
            return Ok(());
        }
        loop {
            match socket::receive(&self.status).map_err(lost_line)? {
                Incoming::Record(record, fds) => self.note(&record, fds)?,
                Incoming::Nothing if !self.end.is_told(&self.plan) => return Ok(()),
                Incoming::Nothing | Incoming::End => {
                    self.end_as(Stage::Over, Instant::now() + DRAIN);
                    return Ok(());
                }
            }
        }
    }
}
