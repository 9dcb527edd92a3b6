//! Input on its way to the guest: bytes that are there, or another stream's, read as the guest takes
//! them. Waits for nothing.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use rustix::termios::{SpecialCodeIndex, tcgetattr};

use super::capture::{End, Moved, WRITES_MAX};
use super::copied::{Copied, Read};

/// Bytes that wait for the guest.
#[derive(Debug)]
enum Held {
    /// A command's, which other runs may be fed too.
    Shared(Arc<Vec<u8>>),
    Own(Vec<u8>),
}

impl Held {
    fn bytes(&self) -> &[u8] {
        match self {
            Held::Shared(bytes) => bytes,
            Held::Own(bytes) => bytes,
        }
    }
}

/// Input on its way to the guest.
#[derive(Debug)]
pub(crate) struct Feed {
    end: End,
    held: Held,
    at: usize,
    /// Where more comes from.
    from: Option<Copied>,
    /// The end of the input has been typed, or closing does it.
    is_ended: bool,
    /// So that Ctrl-D is the end and not only that of a line.
    at_line_start: bool,
    is_done: bool,
}

impl Feed {
    /// Of bytes.
    pub(crate) fn new(end: End, bytes: Arc<Vec<u8>>) -> Feed {
        let is_ended = !end.is_terminal();
        let held = Held::Shared(bytes);
        Feed { end, held, at: 0, from: None, is_ended, at_line_start: true, is_done: false }
    }

    /// Of another stream.
    pub(crate) fn copied(end: End, from: Arc<OwnedFd>) -> Feed {
        let mut feed = Feed::new(end, Arc::default());
        feed.from = Some(Copied::new(from));
        feed
    }

    /// Of nothing but the end that a person would type.
    pub(crate) fn end_of_typing(end: End, at_line_start: bool) -> Feed {
        Feed { at_line_start, ..Feed::new(end, Arc::default()) }
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn end(&self) -> &End {
        &self.end
    }

    /// The stream that is copied from.
    #[cfg(feature = "tokio")]
    pub(crate) fn source(&self) -> Option<&Copied> {
        self.from.as_ref()
    }

    /// When it is worth looking again although nothing has happened.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.from.as_ref().filter(|_| self.is_empty()).and_then(Copied::paused_until)
    }

    /// What to wait for before the next [`Feed::pump`].
    pub(crate) fn waits_for(&self) -> impl Iterator<Item = PollFd<'_>> {
        let end = |wanted| PollFd::from_borrowed_fd(self.end.fd(), wanted);
        let (end, source) = match &self.from {
            Some(from) if self.is_empty() && !from.waits_for_guest() => {
                let is_paused = from.paused_until().is_some();
                let source = (!is_paused).then(|| PollFd::new(from, PollFlags::IN));
                // A guest that no longer reads is an error, which needs no asking.
                (end(PollFlags::empty()), source)
            }
            Some(_) | None => (end(PollFlags::OUT), None),
        };
        std::iter::once(end).chain(source)
    }

    fn is_empty(&self) -> bool {
        self.at >= self.held.bytes().len()
    }

    /// Moves what can be moved at once.
    pub(crate) fn pump(&mut self) -> Moved {
        for _ in 0..WRITES_MAX {
            if self.is_done || (self.is_empty() && !self.refill()) {
                return Moved::All;
            }
            match self.end.write(self.held.bytes().get(self.at..).unwrap_or_default()) {
                Ok(Some(len)) => self.at += len,
                Ok(None) => return Moved::All,
                // Nobody reads any more.
                Err(_) => self.is_done = true,
            }
        }
        Moved::Some
    }

    /// Gets more, if more is there; at the end of all it is done.
    fn refill(&mut self) -> bool {
        if let Some(from) = &mut self.from {
            let mut buffer = match std::mem::replace(&mut self.held, Held::Own(Vec::new())) {
                Held::Own(buffer) => buffer,
                Held::Shared(_) => Vec::new(),
            };
            let read = from.read(&self.end, &mut buffer);
            (self.held, self.at) = (Held::Own(buffer), 0);
            match read {
                Read::Bytes => {
                    self.at_line_start = self.held.bytes().last() == Some(&b'\n');
                    return true;
                }
                Read::Later => return false,
                Read::GuestGone => {
                    self.is_done = true;
                    return false;
                }
                Read::End => self.from = None,
            }
        } else if let Some(last) = self.held.bytes().last() {
            self.at_line_start = *last == b'\n';
        }
        self.is_done = self.is_ended;
        if !self.is_ended {
            self.is_ended = true;
            (self.held, self.at) = (Held::Own(self.typed_end()), 0);
        }
        !self.is_done
    }

    /// Within a line it takes two: the first one ends the line.
    fn typed_end(&self) -> Vec<u8> {
        const CTRL_D: u8 = 4;
        let modes = tcgetattr(self.end.fd());
        let key = modes.map_or(CTRL_D, |modes| modes.special_codes[SpecialCodeIndex::VEOF]);
        vec![key; if self.at_line_start { 1 } else { 2 }]
    }

    /// All is written, or nobody reads it.
    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }
}

impl AsFd for Copied {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd().as_fd()
    }
}
