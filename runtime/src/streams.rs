//! Both ends of a run's stdin, stdout and stderr, as a command asks for them.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, pipe_with};

use crate::capture::{Capture, Feed};
use crate::command::{Command, OUTPUT_BYTES_MAX, Stdin};
use crate::error::LaunchError;

/// The host's ends of a run's streams.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) feed: Option<Feed>,
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: Option<Capture>,
    pub(crate) stderr: Option<Capture>,
}

/// The guest's ends.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
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
        let bytes_max = command.output_bytes_max.unwrap_or(OUTPUT_BYTES_MAX);
        let (stdout, stdout_end) = pipe()?;
        let (stderr, stderr_end) = pipe()?;
        let (feed, stdin, stdin_end) = match &command.stdin {
            // Opened for each run: what a guest does to its descriptor is no other run's business.
            Stdin::Null => (None, None, null()?),
            Stdin::Piped => {
                let (end, stdin) = pipe()?;
                (None, Some(stdin), end)
            }
            Stdin::Bytes(bytes) => {
                let (end, stdin) = pipe()?;
                (Some(Feed::new(stdin, bytes.clone())), None, end)
            }
        };
        let streams = Streams {
            feed,
            stdin,
            stdout: Some(Capture::new(stdout, bytes_max)),
            stderr: Some(Capture::new(stderr, bytes_max)),
        };
        Ok((streams, Ends { stdin: stdin_end, stdout: stdout_end, stderr: stderr_end }))
    }
}

impl Streams {
    /// Moves what can be moved without waiting.
    pub(crate) fn pump(&mut self) {
        for capture in [&mut self.stdout, &mut self.stderr].into_iter().flatten() {
            capture.read_all();
        }
        if self.feed.as_mut().is_some_and(Feed::is_done_after_write) {
            self.feed = None;
        }
    }

    /// Both outputs have ended, or were taken.
    pub(crate) fn are_closed(&self) -> bool {
        let open = |capture: &&Option<Capture>| {
            capture.as_ref().is_some_and(|capture| capture.fd().is_some())
        };
        ![&self.stdout, &self.stderr].iter().any(open)
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
