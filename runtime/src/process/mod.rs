//! A live run: its streams, its end, and how it is ended. Never a bare pid, never a bare wait.

mod capture;
mod copied;
mod end;
mod feed;
mod handle;
mod input;
mod lines;
mod output;
mod run;
pub(crate) mod streams;
mod terminal;
#[cfg(feature = "tokio")]
pub(crate) mod tokio;
mod turn;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use postern_hatch::RunId;
use rustix::process::Signal;

pub use handle::ProcessHandle;
pub use lines::{Lines, Output};
pub use output::{Chunk, LINE_BYTES_MAX, Line, OutputStream};
pub(crate) use run::{Parts, Run};

use crate::command::WindowSize;
use crate::error::Error;
use crate::result::ProcResult;
use capture::{Capture, End, Moved};
use output::Splitter;
use turn::{Taking, Turn, Wait};

/// A live run. Dropping it kills the run, and everything in it, without waiting.
///
/// ```no_run
/// use postern::{Command, Sandbox, SandboxProfile};
///
/// let sandbox = Sandbox::builder(SandboxProfile::default()).build()?;
/// let mut process = sandbox.start(Command::python("for i in range(3): print(i)"))?;
/// for line in process.lines() {
///     println!("{}", line?.text());
/// }
/// assert!(process.wait()?.ok());
/// # Ok::<(), postern::Error>(())
/// ```
#[derive(Debug)]
pub struct Process {
    run: Run,
    /// Of lines that have begun, whoever asks for them.
    splitter: Splitter,
}

impl Process {
    pub(crate) fn new(run: Run) -> Process {
        Process { run, splitter: Splitter::default() }
    }

    pub(crate) const fn run_mut(&mut self) -> &mut Run {
        &mut self.run
    }

    /// The run, as a hatch's handlers are told it.
    #[must_use]
    pub const fn id(&self) -> RunId {
        self.run.id()
    }

    /// A [pidfd](https://man7.org/linux/man-pages/man2/pidfd_open.2.html) of the run's PID 1, which
    /// polls readable once the run is over.
    #[must_use]
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.run.pidfd().map(AsFd::as_fd)
    }

    /// What ends the run or signals it from elsewhere, such as another thread, while this one waits.
    #[must_use]
    pub fn handle(&self) -> ProcessHandle {
        self.run.handle()
    }

    /// The writing end of stdin, for [`Stdin::Piped`](crate::Stdin::Piped); closing it ends the
    /// input. It is an ordinary pipe: writing after the guest has closed its end raises `SIGPIPE`.
    ///
    /// With [`Command::terminal`](crate::Command::terminal) each stream that is taken is a
    /// descriptor of the terminal's master, on which nothing waits (`O_NONBLOCK`), and closing one
    /// ends nothing; reading it fails with `EIO` once all of the run is gone.
    pub fn take_stdin(&mut self) -> Option<File> {
        self.run.streams.stdin.take().and_then(End::into_file)
    }

    /// The reading end of stdout; what is taken is not captured.
    pub fn take_stdout(&mut self) -> Option<File> {
        self.run.streams.stdout.take().and_then(Capture::into_file)
    }

    /// The reading end of stderr; what is taken is not captured.
    pub fn take_stderr(&mut self) -> Option<File> {
        self.run.streams.stderr.take().and_then(Capture::into_file)
    }

    /// Writes all of `bytes` to stdin, for [`Stdin::Piped`](crate::Stdin::Piped), waiting while the
    /// pipe is full. A guest that waits for its own output to be read does not read its input: for
    /// a conversation of that size give it [`Stdin::Bytes`](crate::Stdin::Bytes), or write to
    /// [`Process::take_stdin`] from a thread.
    ///
    /// # Errors
    /// `BrokenPipe` when the guest no longer reads, its time was up, or stdin is no pipe or closed.
    pub fn write_stdin(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let mut left = bytes.as_ref();
        while !left.is_empty() {
            if self.run.write(&mut left)? == Moved::All && !left.is_empty() {
                self.run.wait_writable()?;
            }
        }
        Ok(())
    }

    /// Ends the input: the guest reads what was written and then the end.
    pub fn close_stdin(&mut self) {
        self.run.streams.close_stdin();
    }

    /// The next piece of output as soon as there is one; `None` once every output has ended.
    ///
    /// The pieces of one stream come in order; of two streams, as they arrive. What is not taken
    /// stays in the pipe, and a guest that has filled it waits. The time limit holds meanwhile.
    ///
    /// # Errors
    /// [`Error::Launch`] when the run's end cannot be learnt, or it cannot be ended in bounded time.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>, Error> {
        loop {
            match self.run.turn(Taking::Pieces, Wait::Yes)? {
                Turn::Chunk(chunk) => return Ok(Some(chunk)),
                Turn::Done => return Ok(None),
                Turn::Again | Turn::More => {}
            }
        }
    }

    /// The output, a labelled piece at a time; see [`Process::next_chunk`].
    pub fn output(&mut self) -> Output<'_> {
        Output::new(self)
    }

    /// The output, a labelled line at a time; see [`Process::next_chunk`].
    pub fn lines(&mut self) -> Lines<'_> {
        Lines::new(self)
    }

    /// Gives the guest's terminal another size; the kernel tells its foreground job by `SIGWINCH`.
    ///
    /// # Errors
    /// `NotConnected` for a run without a terminal, and once it is over or was hung up.
    pub fn resize(&self, size: WindowSize) -> io::Result<()> {
        terminal::resize(&self.run.streams.terminal.control(), size)
    }

    /// Ends the guest's terminal as a closed window does: its session gets `SIGHUP`, reads and
    /// writes fail, and no more output comes. Without a terminal it does nothing.
    pub fn hang_up(&mut self) {
        self.run.streams.hang_up();
    }

    /// Kills everything in the run at once; a run that is over stays as it ended. Whoever waits for
    /// the run has its result 10 seconds later at the latest: [`Ending::Unreaped`](crate::Ending::Unreaped) where the kernel
    /// has not ended it by then.
    pub fn kill(&self) {
        self.run.kill();
    }

    /// Asks the guest to end with `SIGTERM`, and kills everything once `grace` has passed: whoever
    /// then waits for the run, or for its output, sees to that. Calling it again changes nothing.
    pub fn terminate(&mut self, grace: Duration) {
        self.run.terminate(grace);
    }

    /// Sends a signal to the guest's process group: TERM, INT, HUP, QUIT, USR1, USR2 and WINCH are
    /// passed on by PID 1; KILL ends the run; others go nowhere.
    pub fn signal(&self, signal: Signal) {
        self.run.send(signal);
    }

    /// Waits until the run and everything in it is gone, feeding and capturing its streams.
    /// What [`Process::next_chunk`] has handed over is not in the result.
    ///
    /// # Errors
    /// [`Error::Launch`] when a wall could not be built, in which case the program never ran.
    pub fn wait(mut self) -> Result<ProcResult, Error> {
        // Nobody can write to it any more.
        self.close_stdin();
        while !matches!(self.run.turn(Taking::All, Wait::Yes)?, Turn::Done) {}
        self.run.conclude()
    }

    /// As [`Process::wait`], with a time limit from now besides the command's own, and a cap on
    /// what is kept of each output instead of the command's.
    ///
    /// # Errors
    /// As [`Process::wait`].
    pub fn communicate(
        mut self,
        timeout: impl Into<Option<Duration>>,
        output_bytes_max: impl Into<Option<u64>>,
    ) -> Result<ProcResult, Error> {
        if let Some(timeout) = timeout.into() {
            self.run.limit(timeout);
        }
        if let Some(bytes_max) = output_bytes_max.into() {
            self.run.streams.captures().for_each(|capture| capture.set_bytes_max(bytes_max));
        }
        self.wait()
    }
}
