//! The core of a live run, which the blocking and the async handle share: what happened, what is
//! due, what comes next. It waits only as long as it is told to.

mod attended;
mod confined;
mod dues;
mod heard;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use postern_hatch::RunId;
use postern_init::record::Kind;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use rustix::process::{Pid, Signal};

use super::capture::{Capture, End as StreamEnd, Moved};
use super::end::{End, Stage};
use super::feed::Feed;
use super::handle::{Asked, ProcessHandle};
use super::streams::Streams;
use super::turn::{Taking, Turn, Wait};
use crate::cgroup::{Counts, RunGroup};
use crate::enforcement::Enforcement;
use crate::error::{Error, LaunchError, Phase};
use crate::launch::socket::{self, Incoming};
use crate::plan::Plan;
use crate::result::{ProcResult, Usage};
use crate::run_directory::RunDirectory;
use crate::telemetry::Attendance;

/// What a [`Run`] is made of.
pub(crate) struct Parts {
    pub(crate) id: RunId,
    pub(crate) plan: Arc<Plan>,
    pub(crate) enforcement: Arc<Enforcement>,
    pub(crate) status: OwnedFd,
    pub(crate) streams: Streams,
    pub(crate) directory: Option<RunDirectory>,
    pub(crate) group: Option<RunGroup>,
    pub(crate) started: Instant,
    pub(crate) timeout: Option<Duration>,
}

/// What a look at a run that is not over has found.
#[derive(Debug, Clone, Copy)]
struct News {
    /// PID 1 has just been seen to be gone.
    is_init_over: bool,
    /// Something was said.
    is_status_ready: bool,
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
    /// Likewise, with whatever is in it.
    group: Option<RunGroup>,
    started: Instant,
    end: End,
    /// When its time is up, and how long that is.
    timeout: Option<(Instant, Duration)>,
    /// When a guest that was asked to end has had its time.
    grace_at: Option<Instant>,
    /// When a launcher must have said how a PID 1 that is gone has ended.
    answer_at: Option<Instant>,
    /// When streams that a stranger holds are given up.
    drain_at: Option<Instant>,
    asked: Arc<Asked>,
    /// From its start on.
    attendance: Option<Attendance>,
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
            group: parts.group,
            started: parts.started,
            end: End::default(),
            timeout: parts.timeout.and_then(|timeout| dues::until(parts.started, timeout)),
            grace_at: None,
            answer_at: None,
            drain_at: None,
            asked: Arc::default(),
            attendance: None,
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
                        // It came, and this process may have no more descriptors.
                        return Err(lost_pidfd());
                    }
                }
                Incoming::Record(record, fds) => self.note(&record, fds)?,
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

    pub(crate) const fn group(&self) -> Option<&RunGroup> {
        self.group.as_ref()
    }

    pub(crate) fn handle(&self) -> ProcessHandle {
        let terminal = self.streams.terminal.control();
        ProcessHandle::new(self.pidfd.clone(), Arc::clone(&self.asked), terminal)
    }

    pub(crate) fn send(&self, signal: Signal) {
        self.asked.send(self.pidfd.as_ref(), signal);
    }

    pub(crate) fn kill(&self) {
        self.asked.end();
        self.send(Signal::KILL);
        if let Some(group) = &self.group {
            group.kill();
        }
    }

    pub(crate) fn terminate(&mut self, grace: Duration) {
        if self.asked.end() {
            self.send(Signal::TERM);
            self.grace_at = Instant::now().checked_add(grace);
        }
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
        let is_final = self.end.stage.is_final();
        if is_final && self.drain_at.is_some_and(|at| at <= Instant::now()) {
            self.give_up_streams(taking);
        }
        if self.is_done(taking) {
            return Ok(Turn::Done);
        }
        let news = self.poll(wait)?;
        let moved = match taking {
            Taking::All => self.streams.pump(),
            Taking::Pieces => self.streams.pump_input(),
        };
        self.enforce_cap();
        if !is_final {
            self.hear(news)?;
        }
        Ok(match moved {
            // Nothing would tell of it any more.
            _ if self.is_done(taking) => Turn::Done,
            Moved::All => Turn::Again,
            Moved::Some => Turn::More,
        })
    }

    fn is_done(&self, taking: Taking) -> bool {
        let is_enough = taking == Taking::Pieces || self.end.stage.is_final();
        is_enough && self.streams.are_closed()
    }

    /// Takes what is there, however late the caller has come for it, and waits for no more.
    fn give_up_streams(&mut self, taking: Taking) {
        if taking == Taking::All {
            self.streams.pump();
        }
        self.streams.captures().for_each(Capture::close);
    }

    /// Waits for one thing to happen; what of it is about the run's end.
    fn poll(&self, wait: Wait) -> Result<News, LaunchError> {
        let mut fds = Vec::with_capacity(6);
        let mut init_at = None;
        if !self.end.stage.is_final() {
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
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok(News { is_init_over: init_at.is_some_and(is_ready), is_status_ready: is_ready(0) })
    }

    /// What the run came to, once a turn has said that it is done.
    fn finish(&mut self) -> Result<ProcResult, Error> {
        if let Some(failure) = self.end.failure.take() {
            return Err(failure.into());
        }
        let take = |capture: &mut Option<Capture>| {
            capture.take().map(Capture::into_bytes).unwrap_or_default()
        };
        let counts = match self.group.take() {
            Some(group) => group.counts(),
            None => Counts::none(self.enforcement.why_no_group()),
        };
        // Whether it had ended by itself before that was seen is chance.
        let overflowed = self.streams.are_overflowed();
        let (stdout, stdout_cut) = take(&mut self.streams.stdout);
        let (stderr, stderr_cut) = take(&mut self.streams.stderr);
        // A guest that ended by itself as its time was up was in time.
        let time = self.end.timed_out.filter(|_| self.end.guest.is_none());
        Ok(ProcResult {
            ending: self.end.ending(),
            stdout,
            stderr,
            timed_out: time.is_some(),
            time,
            terminated: self.asked.is_end(),
            truncated: stdout_cut || stderr_cut,
            stdout_truncated: stdout_cut,
            stderr_truncated: stderr_cut,
            overflowed,
            oom: counts.oom,
            pids_limit: counts.pids,
            usage: Usage { cgroup: counts.usage, ..self.end.usage },
            enforcement: self.enforcement(),
        })
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn status(&self) -> &Arc<OwnedFd> {
        &self.status
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn is_final(&self) -> bool {
        self.end.stage.is_final()
    }
}

fn lost_pidfd() -> LaunchError {
    LaunchError::Prepare {
        what: "take the run's pidfd",
        object: std::path::PathBuf::new(),
        source: Errno::MFILE.into(),
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
            // already, the announcement is here. Where this process has no descriptor for it, PID 1
            // ends by itself, since its line has.
            shutdown(self.status.as_fd(), Shutdown::Both).ok();
            self.is_started().ok();
        }
        self.send(Signal::KILL);
    }
}
