//! The core of a live run, which the blocking and the async handle share: what happened, what is
//! due, what comes next. It waits only as long as it is told to.

mod confined;
mod heard;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use postern_hatch::RunId;
use postern_init::record::Kind;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use rustix::process::{Pid, Signal, pidfd_send_signal};

use super::capture::{Capture, End as StreamEnd, Moved};
use super::end::{End, Stage};
use super::feed::Feed;
use super::handle::ProcessHandle;
use super::streams::Streams;
use super::turn::{Taking, Turn, Wait};
use crate::enforcement::Enforcement;
use crate::error::{Error, LaunchError, Phase};
use crate::launch::socket::{self, Incoming};
use crate::plan::Plan;
use crate::result::ProcResult;
use crate::run_directory::RunDirectory;

/// How long output may still come once nothing is left that could write it.
const DRAIN: Duration = Duration::from_secs(1);
/// How long a killed run may take to be gone, its memory and files included.
const DEATH: Duration = Duration::from_secs(10);

/// What a [`Run`] is made of.
pub(crate) struct Parts {
    pub(crate) id: RunId,
    pub(crate) plan: Arc<Plan>,
    pub(crate) enforcement: Arc<Enforcement>,
    pub(crate) status: OwnedFd,
    pub(crate) streams: Streams,
    pub(crate) directory: Option<RunDirectory>,
    pub(crate) started: Instant,
    pub(crate) timeout: Option<Duration>,
}

/// A run whose request was sent. Dropping it kills the run, and everything in it, without waiting.
pub(crate) struct Run {
    id: RunId,
    plan: Arc<Plan>,
    enforcement: Arc<Enforcement>,
    status: Arc<OwnedFd>,
    /// PID 1 of the run; `None` until the launcher has made it.
    pidfd: Option<Arc<OwnedFd>>,
    pub(super) streams: Streams,
    /// Removed with the run.
    directory: Option<RunDirectory>,
    started: Instant,
    end: End,
    /// When its time is up.
    timeout_at: Option<Instant>,
    /// When a guest that was asked to end has had its time.
    grace_at: Option<Instant>,
    /// When a killed run must be gone.
    death_at: Option<Instant>,
    /// When streams that a stranger holds are given up.
    drain_at: Option<Instant>,
    /// The caller asked for its end.
    stopped: Arc<AtomicBool>,
    killed: AtomicBool,
    /// The process that started it.
    owner: Pid,
}

/// Without the plan, which is the sandbox's.
impl core::fmt::Debug for Run {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut shown = f.debug_struct("Run");
        shown.field("pidfd", &self.pidfd).field("end", &self.end).finish_non_exhaustive()
    }
}

impl Run {
    pub(crate) fn new(parts: Parts) -> Run {
        Run {
            plan: parts.plan,
            enforcement: parts.enforcement,
            status: Arc::new(parts.status),
            pidfd: None,
            streams: parts.streams,
            id: parts.id,
            directory: parts.directory,
            started: parts.started,
            end: End::default(),
            // A time that no clock can tell is no limit.
            timeout_at: parts.timeout.and_then(|timeout| parts.started.checked_add(timeout)),
            grace_at: None,
            death_at: None,
            drain_at: None,
            stopped: Arc::default(),
            killed: AtomicBool::new(false),
            owner: rustix::process::getpid(),
        }
    }

    /// Takes what the launcher said about the start: true once the pidfd is here. A short run may
    /// be over by then: PID 1 reports by itself, so that its records can be there before the
    /// launcher's.
    pub(crate) fn is_started(&mut self) -> Result<bool, LaunchError> {
        let during = Phase::Run;
        while self.pidfd.is_none() {
            match socket::receive(&self.status).map_err(lost_line)? {
                Incoming::Record(record, fds) if record.kind == Kind::Started => {
                    self.enforcement = self.enforcement.with_facts(record.facts);
                    self.pidfd = fds.into_iter().next().map(Arc::new);
                    if self.pidfd.is_none() {
                        return Err(LaunchError::LauncherLost { during });
                    }
                }
                Incoming::Record(record, fds) => self.hear(&record, fds)?,
                // What the launcher could not start it never announces.
                Incoming::End => {
                    return Err(match self.end.failure.take() {
                        Some(failure) => failure,
                        None => LaunchError::LauncherLost { during },
                    });
                }
                Incoming::Nothing => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Waits for the run's pidfd.
    pub(crate) fn wait_started(
        &mut self,
        deadline: Instant,
        after: Duration,
    ) -> Result<(), LaunchError> {
        while !self.is_started()? {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(LaunchError::Deadline { waiting_for: "starting a run", after });
            }
            socket::wait_readable(&self.status, left).map_err(lost_line)?;
        }
        Ok(())
    }

    pub(crate) const fn id(&self) -> RunId {
        self.id
    }

    pub(crate) fn enforcement(&self) -> Arc<Enforcement> {
        Arc::clone(&self.enforcement)
    }

    pub(crate) fn pidfd(&self) -> Option<&Arc<OwnedFd>> {
        self.pidfd.as_ref()
    }

    pub(crate) fn handle(&self) -> ProcessHandle {
        let terminal = self.streams.terminal.control();
        ProcessHandle::new(self.pidfd.clone(), Arc::clone(&self.stopped), terminal)
    }

    pub(crate) fn send(&self, signal: Signal) {
        if let Some(pidfd) = &self.pidfd {
            // ESRCH: the run is over already.
            pidfd_send_signal(pidfd, signal).ok();
        }
    }

    pub(crate) fn kill(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.end_now();
    }

    fn end_now(&self) {
        self.killed.store(true, Ordering::Relaxed);
        self.send(Signal::KILL);
    }

    pub(crate) fn terminate(&mut self, grace: Duration) {
        if !self.stopped.swap(true, Ordering::Relaxed) {
            self.send(Signal::TERM);
            self.grace_at = Instant::now().checked_add(grace);
        }
    }

    /// The run ends `timeout` from now at the latest.
    pub(crate) fn limit(&mut self, timeout: Duration) {
        let at = Instant::now().checked_add(timeout);
        self.timeout_at = self.timeout_at.into_iter().chain(at).min();
    }

    /// When the next thing is due, and has to be dealt with even if nothing happens.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        let dues = match self.end.stage {
            Stage::Over => [self.drain_at, None],
            Stage::Live | Stage::InitOver if self.death_at.is_some() => [self.death_at, None],
            Stage::Live | Stage::InitOver => [self.timeout_at, self.grace_at],
        };
        let input = self.streams.feed.as_ref().and_then(Feed::due_at);
        dues.into_iter().chain([input]).flatten().min()
    }

    /// Does what is due.
    pub(super) fn meet_dues(&mut self, now: Instant) -> Result<(), Error> {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if self.end.stage == Stage::Over {
            return Ok(());
        }
        if self.killed.load(Ordering::Relaxed) {
            if is_due(self.death_at) {
                return Err(LaunchError::Unreaped { after: DEATH }.into());
            }
            self.death_at = self.death_at.or(Some(now + DEATH));
        } else if is_due(self.timeout_at) || is_due(self.grace_at) {
            self.end.timed_out = is_due(self.timeout_at);
            self.end_now();
            self.death_at = Some(now + DEATH);
        }
        Ok(())
    }

    /// Deals with everything that has happened, after waiting for it where `wait` says so.
    pub(crate) fn turn(&mut self, taking: Taking, wait: Wait) -> Result<Turn, Error> {
        self.meet_dues(Instant::now())?;
        if taking == Taking::Pieces {
            // Also while there is always more to hand over: a Ctrl-C may be among it.
            self.streams.pump_input();
            let chunk = self.streams.next_chunk();
            self.enforce_cap();
            if let Some(chunk) = chunk {
                return Ok(Turn::Chunk(chunk));
            }
        }
        let is_over = self.end.stage == Stage::Over;
        if is_over && self.drain_at.is_some_and(|at| at <= Instant::now()) {
            self.give_up_streams(taking);
        }
        if self.is_done(taking) {
            return Ok(Turn::Done);
        }
        let is_init_over = self.poll(wait)?;
        let moved = match taking {
            Taking::All => self.streams.pump(),
            Taking::Pieces => self.streams.pump_input(),
        };
        self.enforce_cap();
        if !is_over {
            if is_init_over {
                self.end.stage = Stage::InitOver;
            }
            self.take_records()?;
        }
        Ok(match moved {
            // Nothing would tell of it any more.
            _ if self.is_done(taking) => Turn::Done,
            Moved::All => Turn::Again,
            Moved::Some => Turn::More,
        })
    }

    fn is_done(&self, taking: Taking) -> bool {
        let is_enough = taking == Taking::Pieces || self.end.stage == Stage::Over;
        is_enough && self.streams.are_closed()
    }

    /// Takes what is there, however late the caller has come for it, and waits for no more.
    fn give_up_streams(&mut self, taking: Taking) {
        if taking == Taking::All {
            self.streams.pump();
        }
        self.streams.captures().for_each(Capture::close);
    }

    /// Waits for one thing to happen; whether PID 1 has just been seen to be gone.
    fn poll(&self, wait: Wait) -> Result<bool, LaunchError> {
        let mut fds = Vec::with_capacity(6);
        let mut init_at = None;
        if self.end.stage != Stage::Over {
            fds.push(PollFd::new(&self.status, PollFlags::IN));
        }
        if let (Stage::Live, Some(pidfd)) = (self.end.stage, &self.pidfd) {
            init_at = Some(fds.len());
            fds.push(PollFd::new(pidfd, PollFlags::IN));
        }
        let outputs = self.streams.open_outputs().map(StreamEnd::fd);
        fds.extend(outputs.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        fds.extend(self.streams.feed.iter().flat_map(Feed::waits_for));
        let left = match wait {
            Wait::No => Some(Duration::ZERO),
            Wait::Yes => self.due_at().map(|at| at.saturating_duration_since(Instant::now())),
        };
        match poll(&mut fds, left.map(socket::timespec).as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(lost_line(errno.into())),
        }
        let init = init_at.and_then(|at| fds.get(at));
        Ok(init.is_some_and(|fd| !fd.revents().is_empty()))
    }

    fn take_records(&mut self) -> Result<(), LaunchError> {
        loop {
            match socket::receive(&self.status).map_err(lost_line)? {
                Incoming::Record(record, fds) => self.hear(&record, fds)?,
                Incoming::Nothing if !self.end.is_told(&self.plan) => return Ok(()),
                Incoming::Nothing | Incoming::End => {
                    self.end.stage = Stage::Over;
                    self.end.usage.wall = self.started.elapsed();
                    self.streams.feed = None;
                    self.streams.terminal.close_slave();
                    if let Some(directory) = &mut self.directory {
                        directory.end_servings();
                    }
                    self.drain_at = Some(Instant::now() + DRAIN);
                    return Ok(());
                }
            }
        }
    }

    /// What the run came to, once a turn has said that it is done.
    pub(crate) fn finish(&mut self) -> Result<ProcResult, Error> {
        if let Some(failure) = self.end.failure.take() {
            return Err(failure.into());
        }
        let take = |capture: &mut Option<Capture>| {
            capture.take().map(Capture::into_bytes).unwrap_or_default()
        };
        let (stdout, stdout_cut) = take(&mut self.streams.stdout);
        let (stderr, stderr_cut) = take(&mut self.streams.stderr);
        Ok(ProcResult {
            ending: self.end.ending(),
            stdout,
            stderr,
            timed_out: self.end.timed_out && self.end.guest.is_none(),
            terminated: self.stopped.load(Ordering::Relaxed),
            truncated: stdout_cut || stderr_cut,
            stdout_truncated: stdout_cut,
            stderr_truncated: stderr_cut,
            overflowed: self.end.overflowed && self.end.guest.is_none(),
            usage: self.end.usage,
            enforcement: self.enforcement(),
        })
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn status(&self) -> &Arc<OwnedFd> {
        &self.status
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn is_over(&self) -> bool {
        self.end.stage == Stage::Over
    }
}

pub(super) fn lost_line(source: io::Error) -> LaunchError {
    LaunchError::Prepare {
        what: "read the run's status line",
        object: std::path::PathBuf::new(),
        source,
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // A forked copy of the host has no say over its parent's runs.
        let is_ours = rustix::process::getpid() == self.owner;
        if self.end.stage == Stage::Over || !is_ours {
            return;
        }
        if self.pidfd.is_none() {
            // From here on the launcher cannot announce the run, and ends it; if it has done so
            // already, the announcement is here.
            shutdown(self.status.as_fd(), Shutdown::Both).ok();
            self.is_started().ok();
        }
        self.send(Signal::KILL);
    }
}
