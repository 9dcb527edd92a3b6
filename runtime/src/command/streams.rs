//! What a command says of its streams; opens and moves nothing.

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::termios::tcgetwinsize;

use super::Command;

/// The guest's standard input.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Stdin {
    /// `/dev/null`: a read sees the end at once.
    #[default]
    Null,
    /// These bytes, then the end.
    Bytes(Vec<u8>),
    /// A pipe whose writing end is [`Process::take_stdin`](crate::Process::take_stdin).
    Piped,
    /// What is read from this descriptor, a file, pipe, socket or terminal, until its end; made by
    /// [`Stdin::copied`].
    Copied(Arc<OwnedFd>),
}

impl Stdin {
    /// What a stream of the caller's holds, copied as the guest takes it. The guest never holds the
    /// stream itself.
    ///
    /// No thread is started: whoever waits for the run, or for its output, moves the bytes. A piece
    /// of at most 64 KiB is read when the guest's pipe has room for more, so that this much, and
    /// what a pipe holds, may be read and not taken. The stream's flags stay as they are, and its
    /// end, or an error of reading it, is the end of the guest's input. A terminal that is another
    /// job's is left alone until it is the caller's again; the caller is not stopped
    /// (`SIGTTIN`).
    ///
    /// A regular file is read where its position is, and must not take for ever to be read: the
    /// time limit is not met meanwhile.
    #[must_use]
    pub fn copied(from: impl Into<OwnedFd>) -> Stdin {
        Stdin::Copied(Arc::new(from.into()))
    }

    /// [`Stdin::copied`] of this process's own standard input.
    ///
    /// # Errors
    /// `EBADF` when it is closed, `EMFILE` when there is no descriptor left for a second one.
    pub fn inherit() -> io::Result<Stdin> {
        Ok(Stdin::copied(io::stdin().as_fd().try_clone_to_owned()?))
    }
}

/// A [`Stdin`] whose bytes are shared with the run that is fed them.
#[derive(Debug, Clone, Default)]
pub(crate) enum Input {
    #[default]
    Null,
    Bytes(Arc<Vec<u8>>),
    Piped,
    Copied(Arc<OwnedFd>),
}

/// What becomes of a run that writes more than its cap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutputCap {
    /// What is beyond is read and dropped, and the run goes on.
    #[default]
    Drop,
    /// Everything in the run is killed; what was written up to the cap is kept, and the result says
    /// [`overflowed`](crate::ProcResult::overflowed), also where the run had just ended by itself.
    Kill,
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a terminal has these two")]
pub struct WindowSize {
    /// Lines.
    pub rows: u16,
    /// Characters of a line.
    pub columns: u16,
}

impl WindowSize {
    /// That of a terminal; `None` for what is no terminal, or does not know its size.
    #[must_use]
    pub fn of(terminal: impl AsFd) -> Option<WindowSize> {
        let fd = terminal.as_fd();
        let size = fd.is_terminal().then(|| tcgetwinsize(fd)).and_then(Result::ok)?;
        let size = WindowSize { rows: size.ws_row, columns: size.ws_col };
        (size.rows > 0 && size.columns > 0).then_some(size)
    }
}

/// 24 lines of 80 characters.
impl Default for WindowSize {
    fn default() -> WindowSize {
        WindowSize { rows: 24, columns: 80 }
    }
}

/// Bytes that are kept of each output stream unless [`Command::output_bytes_max`] says otherwise:
/// 64 MiB.
pub const OUTPUT_BYTES_MAX: u64 = 64 << 20;

impl Command {
    /// Standard input; default [`Stdin::Null`].
    pub fn stdin(mut self, stdin: Stdin) -> Command {
        self.input = match stdin {
            Stdin::Null => Input::Null,
            Stdin::Bytes(bytes) => Input::Bytes(Arc::new(bytes)),
            Stdin::Piped => Input::Piped,
            Stdin::Copied(fd) => Input::Copied(fd),
        };
        self
    }

    /// Bytes kept of stdout and of stderr, each; default [`OUTPUT_BYTES_MAX`]. What happens beyond
    /// is [`Command::output_cap`]'s to say, and the result says `truncated`. With
    /// [`Command::merge_output`], or on a terminal, it is the cap of both together.
    ///
    /// Output that is handed over a piece at a time is not kept, so that nothing is dropped of it;
    /// [`OutputCap::Kill`] counts it all the same. Output that was taken as a file is not counted.
    pub fn output_bytes_max(mut self, bytes: u64) -> Command {
        self.output_bytes_max = Some(bytes);
        self
    }

    /// What becomes of a run that writes more than [`Command::output_bytes_max`]; default
    /// [`OutputCap::Drop`].
    pub fn output_cap(mut self, cap: OutputCap) -> Command {
        self.output_cap = cap;
        self
    }

    /// Gives the guest one pipe for both outputs, so that their true order is kept: all of it is
    /// stdout's, and stderr stays empty. Default off.
    pub fn merge_output(mut self, merge: bool) -> Command {
        self.merge_output = merge;
        self
    }

    /// Gives the guest a terminal of this size for its three streams; default none. It is made in
    /// the run's own `/dev/pts` and is the guest's controlling terminal: job control works, Ctrl-C
    /// and the like are typed, [`Process::resize`](crate::Process::resize) tells the foreground job
    /// by `SIGWINCH`.
    ///
    /// All output is stdout's, as a terminal shows it: a newline comes as `\r\n`, and what is typed
    /// comes back, unless the guest turns that off. The end of the input is typed too, as Ctrl-D;
    /// with [`Stdin::Null`] that is all there is, a program that reads characters and not lines
    /// sees the character, and of a line longer than 4,095 bytes the kernel drops the rest.
    /// `TERM` is the profile's or the command's to set.
    pub fn terminal(mut self, size: WindowSize) -> Command {
        self.terminal = Some(size);
        self
    }
}
