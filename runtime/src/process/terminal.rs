//! The host's part of a guest's terminal: what comes and goes through its master, its size, its end.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::termios::{Winsize, tcsetwinsize};

use super::capture::{Cap, Capture, End};
use super::feed::Feed;
use super::streams::Streams;
use crate::command::{Input, WindowSize};
use crate::error::LaunchError;

/// A guest's terminal.
#[derive(Debug)]
pub(crate) enum Terminal {
    /// It has none, or it was hung up.
    None,
    /// PID 1 is to make it; then this is its input, and how much of its output is taken.
    Awaited(Input, Cap),
    /// It is here.
    Here {
        master: Arc<OwnedFd>,
        /// Held until all of the run is gone: a guest that closes its terminal may open it again,
        /// and until then it would look like the end.
        slave: Option<OwnedFd>,
        /// Nothing was typed since the last newline.
        at_line_start: bool,
    },
}

impl Terminal {
    /// There is one, or there will be.
    #[cfg(feature = "tokio")]
    pub(super) fn is_wanted(&self) -> bool {
        !matches!(self, Terminal::None)
    }

    pub(super) fn is_awaited(&self) -> bool {
        matches!(self, Terminal::Awaited(..))
    }

    /// What changes its size, while it is there.
    pub(super) fn control(&self) -> Weak<OwnedFd> {
        match self {
            Terminal::Here { master, .. } => Arc::downgrade(master),
            Terminal::None | Terminal::Awaited(..) => Weak::new(),
        }
    }

    /// From now on the end of its output can be seen.
    pub(super) fn close_slave(&mut self) {
        if let Terminal::Here { slave, .. } = self {
            *slave = None;
        }
    }

    /// Takes note of what is typed.
    pub(super) fn note_typed(&mut self, bytes: &[u8]) {
        if let (Terminal::Here { at_line_start, .. }, Some(last)) = (self, bytes.last()) {
            *at_line_start = *last == b'\n';
        }
    }
}

/// Gives a terminal another size.
///
/// # Errors
/// `NotConnected` without one.
pub(super) fn resize(terminal: &Weak<OwnedFd>, size: WindowSize) -> io::Result<()> {
    let none = || io::Error::new(io::ErrorKind::NotConnected, "the run has no terminal");
    let master = terminal.upgrade().ok_or_else(none)?;
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(&master, size)?)
}

impl Streams {
    /// Streams of a run whose terminal is still to be made.
    pub(super) fn awaiting(input: Input, cap: Cap) -> Streams {
        let mut streams = Streams::none();
        streams.terminal = Terminal::Awaited(input, cap);
        streams
    }

    /// Has a terminal's master, which comes with its other end, be all of the run's streams.
    pub(super) fn connect_terminal(&mut self, fds: Vec<OwnedFd>) -> Result<(), LaunchError> {
        let failed = |source| LaunchError::Prepare {
            what: "connect the guest's terminal",
            object: std::path::PathBuf::new(),
            source,
        };
        let mut fds = fds.into_iter();
        let (Some(master), Some(slave)) = (fds.next(), fds.next()) else {
            return Err(failed(io::ErrorKind::InvalidData.into()));
        };
        let Terminal::Awaited(input, cap) = std::mem::replace(&mut self.terminal, Terminal::None)
        else {
            return Err(failed(io::ErrorKind::InvalidData.into()));
        };
        fcntl_setfl(&master, OFlags::NONBLOCK).map_err(|errno| failed(errno.into()))?;
        // One each, since a runtime watches a descriptor once.
        let end = || master.as_fd().try_clone_to_owned().map(End::of_terminal).map_err(failed);
        self.stdout = Some(Capture::new(end()?, cap));
        self.set_input(end()?, &input);
        let (master, slave) = (Arc::new(master), Some(slave));
        self.terminal = Terminal::Here { master, slave, at_line_start: true };
        Ok(())
    }

    /// Nothing more will be written to stdin; on a terminal the end is typed.
    pub(crate) fn close_stdin(&mut self) {
        let Some(end) = self.stdin.take() else { return };
        if let Terminal::Here { at_line_start, .. } = &self.terminal {
            self.feed = Some(Feed::end_of_typing(end, *at_line_start));
        }
    }

    /// Ends the terminal: the guest's session is told by `SIGHUP`, as the kernel does it when a
    /// master is closed.
    pub(crate) fn hang_up(&mut self) {
        if let Terminal::Here { .. } = &self.terminal {
            (self.feed, self.stdin, self.terminal) = (None, None, Terminal::None);
            if let Some(stdout) = &mut self.stdout {
                stdout.close();
            }
        }
    }
}
