//! A live run: its streams, its end, and how it is ended. Never a bare pid, never a bare wait.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use postern_init::record::{Kind, Record};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, pidfd_send_signal};

use crate::capture::Capture;
use crate::enforcement::Enforcement;
use crate::error::{Error, LaunchError, Phase};
use crate::launch::{self, socket};
use crate::plan::Plan;
use crate::result::{Ending, ProcResult, Usage};
use crate::run_directory::RunDirectory;
use crate::streams::Streams;
use socket::Incoming;

/// How long output may still come once nothing is left that could write it.
const DRAIN: Duration = Duration::from_secs(1);
/// How long a killed run may take to be gone, its memory and files included.
const DEATH: Duration = Duration::from_secs(10);

/// What a [`Process`] is made of.
pub(crate) struct Parts {
    pub(crate) plan: Arc<Plan>,
    pub(crate) enforcement: Arc<Enforcement>,
    pub(crate) status: OwnedFd,
    pub(crate) streams: Streams,
    pub(crate) directory: Option<RunDirectory>,
    pub(crate) started: Instant,
    pub(crate) timeout: Option<Duration>,
}

/// A live run. Dropping it kills the run, and everything in it, without waiting.
#[derive(Debug)]
pub struct Process {
    plan: Arc<Plan>,
    enforcement: Arc<Enforcement>,
    status: OwnedFd,
    /// PID 1 of the run; `None` until the launcher has made it.
    pidfd: Option<OwnedFd>,
    streams: Streams,
    /// Removed with the run.
    _directory: Option<RunDirectory>,
    started: Instant,
    timeout: Option<Duration>,
    end: End,
    over: bool,
    /// The process that started it.
    owner: Pid,
}

/// How far a run's end has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Live,
    /// PID 1 is gone, and has told nothing yet, or not all is gone with it.
    InitOver,
    /// All of it is gone.
    Over,
}

/// What is known of a run's end so far.
#[derive(Debug, Default)]
struct End {
    guest: Option<Ending>,
    failure: Option<LaunchError>,
    init_signal: Option<i32>,
    /// PID 1 waits for the host's inspection.
    confined: bool,
    timed_out: bool,
    stage: Stage,
    usage: Usage,
}

impl Process {
    pub(crate) fn new(parts: Parts) -> Process {
        Process {
            plan: parts.plan,
            enforcement: parts.enforcement,
            status: parts.status,
            pidfd: None,
            streams: parts.streams,
            _directory: parts.directory,
            started: parts.started,
            timeout: parts.timeout,
            end: End::default(),
            over: false,
            owner: rustix::process::getpid(),
        }
    }

    /// Waits for the run's pidfd. A short run may be over by then: PID 1 reports by itself, so that
    /// its records can be there before the launcher's.
    pub(crate) fn wait_started(
        &mut self,
        deadline: Instant,
        after: Duration,
    ) -> Result<(), LaunchError> {
        let during = Phase::Run;
        while self.pidfd.is_none() {
            match self.next_record(deadline)? {
                Some(Incoming::Record(record, fds)) if record.kind == Kind::Started => {
                    self.enforcement = self.enforcement.with_facts(record.facts);
                    self.pidfd = fds.into_iter().next();
                    if self.pidfd.is_none() {
                        return Err(LaunchError::LauncherLost { during });
                    }
                }
                Some(Incoming::Record(record, _)) => self.end.learn(&self.plan, &record),
                // What the launcher could not start it never announces.
                Some(Incoming::End | Incoming::Nothing) => {
                    return Err(match self.end.failure.take() {
                        Some(failure) => failure,
                        None => LaunchError::LauncherLost { during },
                    });
                }
                None => {
                    return Err(LaunchError::Deadline { waiting_for: "starting a run", after });
                }
            }
        }
        Ok(())
    }

    /// Waits until PID 1 says that every wall stands.
    pub(crate) fn wait_confined(&mut self, after: Duration) -> Result<(), LaunchError> {
        let deadline = Instant::now() + after;
        while !self.end.confined {
            match self.next_record(deadline)? {
                Some(Incoming::Record(record, _)) => self.end.learn(&self.plan, &record),
                Some(Incoming::End | Incoming::Nothing) => {
                    return Err(LaunchError::LauncherLost { during: Phase::Run });
                }
                None => {
                    return Err(LaunchError::Deadline { waiting_for: "confining a run", after });
                }
            }
            if let Some(failure) = self.end.failure.take() {
                return Err(failure);
            }
        }
        Ok(())
    }

    fn next_record(&self, deadline: Instant) -> Result<Option<Incoming>, LaunchError> {
        socket::receive_until(&self.status, deadline).map_err(lost_line)
    }

    /// What holds this run.
    pub(crate) fn enforcement(&self) -> Arc<Enforcement> {
        Arc::clone(&self.enforcement)
    }

    /// A [pidfd](https://man7.org/linux/man-pages/man2/pidfd_open.2.html) of the run's PID 1, which
    /// polls readable once the run is over.
    #[must_use]
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// The writing end of stdin, for [`Stdin::Piped`](crate::Stdin::Piped); closing it ends the input.
    ///
    /// Writing after the guest has closed its end raises `SIGPIPE` as for any pipe.
    pub fn take_stdin(&mut self) -> Option<File> {
        self.streams.stdin.take().map(File::from)
    }

    /// The reading end of stdout; what is taken is not captured.
    pub fn take_stdout(&mut self) -> Option<File> {
        self.streams.stdout.take().and_then(Capture::into_file)
    }

    /// The reading end of stderr; what is taken is not captured.
    pub fn take_stderr(&mut self) -> Option<File> {
        self.streams.stderr.take().and_then(Capture::into_file)
    }

    /// Kills everything in the run at once; a run that is over stays as it ended.
    pub fn kill(&self) {
        self.send(Signal::KILL);
    }

    /// Sends a signal to the guest's process group: TERM, INT, HUP, QUIT, USR1, USR2 and WINCH are
    /// passed on by PID 1; KILL ends the run; others go nowhere.
    pub fn signal(&self, signal: Signal) {
        self.send(signal);
    }

    fn send(&self, signal: Signal) {
        if let Some(pidfd) = &self.pidfd {
            // ESRCH: the run is over already.
            pidfd_send_signal(pidfd, signal).ok();
        }
    }

    /// Waits until the run and everything in it is gone, feeding and capturing its streams.
    ///
    /// # Errors
    /// [`Error::Launch`] when a wall could not be built, in which case the program never ran.
    pub fn wait(mut self) -> Result<ProcResult, Error> {
        // Nobody can write to it any more.
        self.streams.stdin = None;
        let mut end = std::mem::take(&mut self.end);
        let mut limit = self.timeout.map(|timeout| self.started + timeout);
        // A stream that is still held when all is over: by someone the guest handed it to.
        while !(end.stage == Stage::Over && self.streams.are_closed()) {
            let now = Instant::now();
            match limit {
                Some(at) if now >= at && end.stage == Stage::Over => break,
                Some(at) if now >= at && end.timed_out => return Err(unreaped()),
                Some(at) if now >= at => {
                    end.timed_out = true;
                    self.kill();
                    limit = Some(now + DEATH);
                }
                _ => {}
            }
            let was_over = end.stage == Stage::Over;
            self.step(&mut end, limit.map(|at| at.saturating_duration_since(now)))?;
            if end.stage == Stage::Over && !was_over {
                end.usage.wall = self.started.elapsed();
                self.streams.feed = None;
                limit = Some(Instant::now() + DRAIN);
            }
        }
        self.over = true;
        self.finish(end)
    }

    /// Waits for one thing to happen and deals with all that has.
    fn step(&mut self, end: &mut End, left: Option<Duration>) -> Result<(), LaunchError> {
        let streams = &self.streams;
        let mut fds = Vec::with_capacity(4);
        let mut init_at = None;
        if end.stage != Stage::Over {
            fds.push(PollFd::new(&self.status, PollFlags::IN));
        }
        if end.stage == Stage::Live {
            init_at = self.pidfd.is_some().then_some(fds.len());
            fds.extend(self.pidfd.as_ref().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)));
        }
        for capture in [&streams.stdout, &streams.stderr].into_iter().flatten() {
            fds.extend(capture.fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        }
        if let Some(feed) = &streams.feed {
            fds.push(PollFd::from_borrowed_fd(feed.fd(), PollFlags::OUT));
        }
        let timeout = left.map(socket::timespec);
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(lost_line(errno.into())),
        }
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        let is_init_over = init_at.is_some_and(is_ready);
        self.streams.pump();
        if end.stage != Stage::Over {
            if is_init_over {
                end.stage = Stage::InitOver;
            }
            self.take_records(end)?;
        }
        Ok(())
    }

    fn take_records(&mut self, end: &mut End) -> Result<(), LaunchError> {
        loop {
            match socket::receive(&self.status).map_err(lost_line)? {
                Incoming::Record(record, _) => end.learn(&self.plan, &record),
                Incoming::End => {
                    end.stage = Stage::Over;
                    return Ok(());
                }
                Incoming::Nothing => {
                    // PID 1 tells the guest's end after it has ended and reaped all the rest. In a
                    // shared pid namespace it cannot, and the launcher's word is waited for.
                    let told = end.guest.is_some() || end.failure.is_some();
                    if told && self.plan.namespaces.pid {
                        end.stage = Stage::Over;
                    }
                    return Ok(());
                }
            }
        }
    }

    fn finish(&mut self, end: End) -> Result<ProcResult, Error> {
        if let Some(failure) = end.failure {
            return Err(failure.into());
        }
        let ending = match (end.guest, end.init_signal) {
            (Some(ending), _) => ending,
            (None, Some(signal)) => Ending::Killed(signal),
            (None, None) => Ending::LauncherLost,
        };
        let take = |capture: &mut Option<Capture>| {
            capture.take().map(Capture::into_bytes).unwrap_or_default()
        };
        let (stdout, stdout_cut) = take(&mut self.streams.stdout);
        let (stderr, stderr_cut) = take(&mut self.streams.stderr);
        Ok(ProcResult {
            ending,
            stdout,
            stderr,
            timed_out: end.timed_out && end.guest.is_none(),
            truncated: stdout_cut || stderr_cut,
            usage: end.usage,
            enforcement: Arc::clone(&self.enforcement),
        })
    }
}

impl End {
    fn learn(&mut self, plan: &Plan, record: &Record) {
        match record.kind {
            Kind::GuestEnded => {
                self.usage.set(record);
                self.guest = Some(match record.signal {
                    0 => Ending::Exited(record.code),
                    signal => Ending::Signaled(signal),
                });
            }
            Kind::ExecFailed => self.guest = Some(Ending::ExecFailed(record.errno)),
            Kind::Failed => self.failure = Some(launch::failure(plan, Phase::Run, record)),
            Kind::Reaped => {
                if self.guest.is_none() {
                    self.usage.set(record);
                }
                self.init_signal = (record.signal != 0).then_some(record.signal);
                // PID 1 left by itself without a word: it had lost its host, or its line.
                if self.guest.is_none() && self.init_signal.is_none() && self.failure.is_none() {
                    self.failure = Some(LaunchError::LauncherLost { during: Phase::Run });
                }
            }
            Kind::Confined => self.confined = true,
            Kind::Ready | Kind::Started => {}
        }
    }
}

fn lost_line(source: io::Error) -> LaunchError {
    LaunchError::Prepare {
        what: "read the run's status line",
        object: std::path::PathBuf::new(),
        source,
    }
}

fn unreaped() -> Error {
    LaunchError::Unreaped { after: DEATH }.into()
}

impl Drop for Process {
    fn drop(&mut self) {
        // A forked copy of the host has no say over its parent's runs.
        if !self.over && rustix::process::getpid() == self.owner {
            self.kill();
        }
    }
}
