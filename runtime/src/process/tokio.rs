//! The async twin of [`Process`](super::Process): waits on the caller's tokio runtime, starts none.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use postern_hatch::RunId;
use postern_init::record::Record;
use rustix::process::Signal;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::capture::{Capture, End, Moved};
use super::copied::Copied;
use super::feed::Feed;
use super::handle::ProcessHandle;
use super::output::{Chunk, Line, Splitter};
use super::run::{Run, lost_line};
use super::terminal;
use super::turn::{Taking, Turn, Wait};
use crate::command::WindowSize;
use crate::error::{Error, LaunchError};
use crate::result::ProcResult;
use crate::sys;

/// A live run in an async service. Dropping it kills the run, and everything in it, without waiting.
///
/// Needs a tokio runtime with its I/O and time drivers; tokio panics without them. Where a method says nothing else, dropping
/// its future loses nothing and ends nothing: the next call goes on.
#[derive(Debug)]
pub struct AsyncProcess {
    ready: Readiness,
    run: Run,
    splitter: Splitter,
}

/// The runtime's watch over the descriptors of a run.
#[derive(Debug, Default)]
struct Readiness {
    status: Option<Watch>,
    stdout: Option<Watch>,
    stderr: Option<Watch>,
    input: Option<Watch>,
    /// What is copied to the guest.
    source: Option<Watch>,
}

type Watch = AsyncFd<Arc<OwnedFd>>;

fn watch(end: Option<&End>, interest: Interest) -> io::Result<Option<Watch>> {
    end.map(|end| sys::watch(end.share(), interest)).transpose()
}

impl Readiness {
    fn new(run: &Run) -> io::Result<Readiness> {
        let output = |capture: &Option<Capture>| {
            watch(capture.as_ref().and_then(Capture::end), Interest::READABLE)
        };
        let streams = &run.streams;
        let input = streams.stdin.as_ref().or(streams.feed.as_ref().map(Feed::end));
        Ok(Readiness {
            status: Some(sys::watch(Arc::clone(run.status()), Interest::READABLE)?),
            stdout: output(&streams.stdout)?,
            stderr: output(&streams.stderr)?,
            input: watch(input, Interest::WRITABLE)?,
            source: streams.feed.as_ref().and_then(Feed::source).and_then(watch_source),
        })
    }

    /// Stops watching what has ended, which would be ready for ever.
    fn forget_ended(&mut self, run: &Run) {
        let is_open = |capture: &Option<Capture>| capture.as_ref().and_then(Capture::end).is_some();
        if run.is_final() {
            self.status = None;
        }
        if !is_open(&run.streams.stdout) {
            self.stdout = None;
        }
        if !is_open(&run.streams.stderr) {
            self.stderr = None;
        }
        if run.streams.stdin.is_none() && run.streams.feed.is_none() {
            self.input = None;
        }
        if run.streams.feed.as_ref().and_then(Feed::source).is_none() {
            self.source = None;
        }
    }

    /// Ready when something may have happened since the last turn. What was ready is taken note of:
    /// a turn goes on until nothing is left, so that only news make it ready again.
    fn poll(&self, context: &mut Context<'_>, with_input: bool) -> Poll<io::Result<()>> {
        let mut any = false;
        for fd in [&self.status, &self.stdout, &self.stderr].into_iter().flatten() {
            if let Poll::Ready(guard) = fd.poll_read_ready(context) {
                guard?.clear_ready();
                any = true;
            }
        }
        if let (Some(fd), true) = (&self.source, with_input)
            && let Poll::Ready(guard) = fd.poll_read_ready(context)
        {
            guard?.clear_ready();
            any = true;
        }
        if let (Some(fd), true) = (&self.input, with_input)
            && let Poll::Ready(guard) = fd.poll_write_ready(context)
        {
            guard?.clear_ready();
            any = true;
        }
        if any { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

/// A descriptor of its own, since a runtime watches each once; none for a file, which is always
/// ready.
fn watch_source(source: &Copied) -> Option<Watch> {
    let own = source.as_fd().try_clone_to_owned().ok()?;
    sys::watch(Arc::new(own), Interest::READABLE).ok()
}

/// Lets the other tasks of the runtime have a turn.
async fn let_others() {
    let mut yielded = false;
    let once = |context: &mut Context<'_>| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    };
    std::future::poll_fn(once).await;
}

impl AsyncProcess {
    pub(crate) fn new(run: Run) -> Result<AsyncProcess, LaunchError> {
        let ready = Readiness::new(&run).map_err(lost_line)?;
        Ok(AsyncProcess { ready, run, splitter: Splitter::default() })
    }

    /// Waits for news, until `until` at the latest; false when that has passed.
    async fn news(&mut self, until: Option<Instant>, with_input: bool) -> io::Result<bool> {
        self.ready.forget_ended(&self.run);
        let news = std::future::poll_fn(|context| self.ready.poll(context, with_input));
        match until {
            None => news.await.map(|()| true),
            Some(at) => match tokio::time::timeout_at(at.into(), news).await {
                Ok(found) => found.map(|()| true),
                Err(_elapsed) => Ok(false),
            },
        }
    }

    pub(crate) async fn wait_started(
        &mut self,
        deadline: Instant,
        after: Duration,
    ) -> Result<(), LaunchError> {
        while !self.run.is_started()? {
            if !self.news(Some(deadline), false).await.map_err(lost_line)? {
                return Err(LaunchError::Deadline { waiting_for: "starting a run", after });
            }
        }
        Ok(())
    }

    /// Waits for the guest's terminal, if it is to have one, and watches it from then on.
    pub(crate) async fn wait_terminal(
        &mut self,
        deadline: Instant,
        after: Duration,
    ) -> Result<(), LaunchError> {
        if !self.run.streams.terminal.is_wanted() {
            return Ok(());
        }
        while !self.run.has_terminal()? {
            if !self.news(Some(deadline), false).await.map_err(lost_line)? {
                return Err(LaunchError::Deadline { waiting_for: "making a terminal", after });
            }
        }
        // The runtime watches no descriptor twice.
        self.ready = Readiness::default();
        self.ready = Readiness::new(&self.run).map_err(lost_line)?;
        Ok(())
    }

    /// Waits until PID 1 says that every wall stands.
    pub(crate) async fn wait_confined(
        &mut self,
        deadline: Instant,
        after: Duration,
    ) -> Result<Record, LaunchError> {
        loop {
            if let Some(record) = self.run.confined()? {
                return Ok(record);
            }
            if !self.news(Some(deadline), false).await.map_err(lost_line)? {
                return Err(LaunchError::Deadline { waiting_for: "confining a run", after });
            }
        }
    }

    pub(crate) const fn run_mut(&mut self) -> &mut Run {
        &mut self.run
    }

    /// Turns until there is something to hand over, or nothing any more.
    async fn turn(&mut self, taking: Taking) -> Result<Option<Chunk>, Error> {
        loop {
            let mut more = false;
            // Twice, since what a first turn learns can make a second one the last.
            for _ in 0..2 {
                match self.run.turn(taking, Wait::No)? {
                    Turn::Chunk(chunk) => return Ok(Some(chunk)),
                    Turn::Done => return Ok(None),
                    Turn::Again => more = false,
                    Turn::More => more = true,
                }
            }
            if more {
                // No news will tell of what is there already.
                let_others().await;
                continue;
            }
            let with_input = self.run.streams.feed.is_some();
            let due = self.run.due_at();
            self.news(due, with_input).await.map_err(lost_line)?;
        }
    }

    /// As [`Process::id`](super::Process::id).
    #[must_use]
    pub const fn id(&self) -> RunId {
        self.run.id()
    }

    /// As [`Process::pidfd`](super::Process::pidfd).
    #[must_use]
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.run.pidfd().map(AsFd::as_fd)
    }

    /// As [`Process::handle`](super::Process::handle).
    #[must_use]
    pub fn handle(&self) -> ProcessHandle {
        self.run.handle()
    }

    /// As [`Process::write_stdin`](super::Process::write_stdin). When its future is dropped, a part
    /// may have been written.
    ///
    /// # Errors
    /// As [`Process::write_stdin`](super::Process::write_stdin).
    pub async fn write_stdin(&mut self, bytes: impl AsRef<[u8]> + Send) -> io::Result<()> {
        let mut left = bytes.as_ref();
        while !left.is_empty() {
            let moved = self.run.write(&mut left)?;
            self.run.meet_dues(Instant::now()).map_err(io::Error::other)?;
            if moved == Moved::Some {
                let_others().await;
            } else if !left.is_empty() {
                self.news_of_input(self.run.due_at()).await?;
            }
        }
        Ok(())
    }

    /// Waits for the input alone: output that nobody takes would be news for ever.
    async fn news_of_input(&mut self, until: Option<Instant>) -> io::Result<()> {
        self.ready.forget_ended(&self.run);
        let Some(input) = &self.ready.input else { return Ok(()) };
        let writable = async { input.writable().await.map(|mut guard| guard.clear_ready()) };
        match until {
            None => writable.await,
            Some(at) => tokio::time::timeout_at(at.into(), writable).await.unwrap_or(Ok(())),
        }
    }

    /// As [`Process::close_stdin`](super::Process::close_stdin).
    pub fn close_stdin(&mut self) {
        self.run.streams.close_stdin();
        self.ready.forget_ended(&self.run);
    }

    /// As [`Process::next_chunk`](super::Process::next_chunk).
    ///
    /// # Errors
    /// As [`Process::next_chunk`](super::Process::next_chunk).
    pub async fn next_chunk(&mut self) -> Result<Option<Chunk>, Error> {
        self.turn(Taking::Pieces).await
    }

    /// The next line of output as soon as there is one; `None` once every output has ended.
    ///
    /// # Errors
    /// As [`AsyncProcess::next_chunk`].
    pub async fn next_line(&mut self) -> Result<Option<Line>, Error> {
        loop {
            if let Some(line) = self.splitter.next() {
                return Ok(Some(line));
            }
            match self.next_chunk().await? {
                Some(chunk) => self.splitter.push(&chunk),
                None => return Ok(self.splitter.rest()),
            }
        }
    }

    /// As [`Process::resize`](super::Process::resize).
    ///
    /// # Errors
    /// As [`Process::resize`](super::Process::resize).
    pub fn resize(&self, size: WindowSize) -> io::Result<()> {
        terminal::resize(&self.run.streams.terminal.control(), size)
    }

    /// As [`Process::hang_up`](super::Process::hang_up).
    pub fn hang_up(&mut self) {
        self.run.streams.hang_up();
        self.ready.forget_ended(&self.run);
    }

    /// As [`Process::kill`](super::Process::kill).
    pub fn kill(&self) {
        self.run.kill();
    }

    /// As [`Process::terminate`](super::Process::terminate).
    pub fn terminate(&mut self, grace: Duration) {
        self.run.terminate(grace);
    }

    /// As [`Process::signal`](super::Process::signal).
    pub fn signal(&self, signal: Signal) {
        self.run.send(signal);
    }

    /// As [`Process::wait`](super::Process::wait), except that the handle lives on, so that
    /// another branch of a `select!` can terminate the run. A second call has no output to give.
    ///
    /// # Errors
    /// As [`Process::wait`](super::Process::wait).
    pub async fn wait(&mut self) -> Result<ProcResult, Error> {
        self.close_stdin();
        self.turn(Taking::All).await?;
        self.run.conclude()
    }

    /// As [`Process::communicate`](super::Process::communicate).
    ///
    /// # Errors
    /// As [`AsyncProcess::wait`].
    pub async fn communicate(
        &mut self,
        timeout: impl Into<Option<Duration>> + Send,
        output_bytes_max: impl Into<Option<u64>> + Send,
    ) -> Result<ProcResult, Error> {
        if let Some(timeout) = timeout.into() {
            self.run.limit(timeout);
        }
        if let Some(bytes_max) = output_bytes_max.into() {
            self.run.streams.captures().for_each(|capture| capture.set_bytes_max(bytes_max));
        }
        self.wait().await
    }
}
