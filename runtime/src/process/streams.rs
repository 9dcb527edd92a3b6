//! Both ends of a run's stdin, stdout and stderr, as a command asks for them.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::pipe::{PipeFlags, pipe_with};

use super::capture::{Cap, Capture, End, Moved};
use super::feed::Feed;
use super::output::{Chunk, OutputStream};
use super::terminal::Terminal;
use crate::command::{Command, Input, OUTPUT_BYTES_MAX};
use crate::error::LaunchError;

/// The host's ends of a run's streams.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) feed: Option<Feed>,
    pub(crate) stdin: Option<End>,
    pub(crate) stdout: Option<Capture>,
    pub(crate) stderr: Option<Capture>,
    /// Whether the guest's terminal, if it is to have one, is still to come or is here.
    pub(super) terminal: Terminal,
    /// Whose turn it is to be read first.
    first: OutputStream,
    /// Where pieces of output are read; without room until one is asked for.
    scratch: Vec<u8>,
}

/// As much as a pipe holds by default.
const CHUNK: usize = 64 * 1024;

/// The guest's ends.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    /// `None`: stdout's.
    pub(crate) stderr: Option<OwnedFd>,
}

impl Streams {
    pub(crate) fn new(command: &Command) -> Result<(Streams, Ends), LaunchError> {
        let pipe = || {
            pipe_with(PipeFlags::CLOEXEC).map_err(|errno| LaunchError::Prepare {
                what: "make a pipe",
                object: std::path::PathBuf::new(),
                source: errno.into(),
            })
        };
        let cap = Cap {
            bytes_max: command.output_bytes_max.unwrap_or(OUTPUT_BYTES_MAX),
            beyond: command.output_cap,
        };
        if command.terminal.is_some() {
            return Ok((Streams::awaiting(command.input.clone(), cap), Ends::null()?));
        }
        let (stdout, stdout_end) = pipe()?;
        let (stderr, stderr_end) = match command.merge_output {
            true => (None, None),
            false => pipe().map(|(ours, theirs)| (Some(ours), Some(theirs)))?,
        };
        let mut streams = Streams::none();
        let stdin_end = match &command.input {
            // Opened for each run: what a guest does to its descriptor is no other run's business.
            Input::Null => null()?,
            input @ (Input::Piped | Input::Bytes(_) | Input::Copied(_)) => {
                let (theirs, ours) = pipe()?;
                streams.set_input(End::new(ours), input);
                theirs
            }
        };
        streams.stdout = Some(Capture::new(End::new(stdout), cap));
        streams.stderr = stderr.map(|stderr| Capture::new(End::new(stderr), cap));
        Ok((streams, Ends { stdin: stdin_end, stdout: stdout_end, stderr: stderr_end }))
    }

    /// Nothing, to begin with.
    pub(super) fn none() -> Streams {
        Streams {
            feed: None,
            stdin: None,
            stdout: None,
            stderr: None,
            terminal: Terminal::None,
            first: OutputStream::Stdout,
            scratch: Vec::new(),
        }
    }

    /// Has what was asked for go to the guest's input.
    pub(super) fn set_input(&mut self, end: End, input: &Input) {
        match input {
            Input::Piped => self.stdin = Some(end),
            Input::Null => self.feed = Some(Feed::new(end, Arc::default())),
            Input::Bytes(bytes) => self.feed = Some(Feed::new(end, Arc::clone(bytes))),
            Input::Copied(from) => self.feed = Some(Feed::copied(end, Arc::clone(from))),
        }
    }

    /// An output is beyond a cap that is to end the run.
    pub(crate) fn are_overflowed(&self) -> bool {
        [&self.stdout, &self.stderr].into_iter().flatten().any(Capture::is_overflowed)
    }

    /// The outputs that are captured.
    pub(crate) fn captures(&mut self) -> impl Iterator<Item = &mut Capture> {
        [&mut self.stdout, &mut self.stderr].into_iter().flatten()
    }

    /// The outputs that have not ended.
    pub(crate) fn open_outputs(&self) -> impl Iterator<Item = &End> {
        [&self.stdout, &self.stderr].into_iter().flatten().filter_map(Capture::end)
    }

    /// Moves what can be moved without waiting.
    pub(crate) fn pump(&mut self) -> Moved {
        let read = self.captures().map(Capture::read_all).fold(Moved::All, Moved::and);
        read.and(self.pump_input())
    }

    /// Feeds what the guest takes.
    pub(crate) fn pump_input(&mut self) -> Moved {
        let Some(feed) = self.feed.as_mut() else { return Moved::All };
        let moved = feed.pump();
        if feed.is_done() {
            self.feed = None;
        }
        moved
    }

    /// A piece of output, if one is there. The two take turns, so that neither starves the other.
    pub(crate) fn next_chunk(&mut self) -> Option<Chunk> {
        // What a small piece left would be room beside it.
        self.scratch.clear();
        self.scratch.reserve_exact(CHUNK);
        for stream in [self.first, self.first.other()] {
            let capture = match stream {
                OutputStream::Stdout => &mut self.stdout,
                OutputStream::Stderr => &mut self.stderr,
            };
            if let Some(bytes) = capture.as_mut().and_then(|c| c.next_chunk(&mut self.scratch)) {
                self.first = stream.other();
                return Some(Chunk { stream, bytes });
            }
        }
        None
    }

    /// Every output has ended, or was taken.
    pub(crate) fn are_closed(&self) -> bool {
        self.open_outputs().next().is_none()
    }
}

impl Ends {
    /// What stands in for a terminal until it is made.
    fn null() -> Result<Ends, LaunchError> {
        Ok(Ends { stdin: null()?, stdout: null()?, stderr: None })
    }
}

fn null() -> Result<OwnedFd, LaunchError> {
    let null = File::open("/dev/null").map_err(|source| LaunchError::Prepare {
        what: "open",
        object: "/dev/null".into(),
        source,
    })?;
    Ok(null.into())
}
