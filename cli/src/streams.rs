//! Moves bytes between this process's streams and the guest's; keeps none.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

/// As much as a pipe holds by default.
const CHUNK: usize = 64 * 1024;

/// How long output may be silent once nothing of the run is left: another process has been given
/// the guest's end of the pipe, and is not waited for.
const SILENCE: Duration = Duration::from_secs(1);

/// One output of the guest on its way, until it ends or its destination is closed.
pub(crate) struct Copying {
    outcome: Receiver<io::Result<Option<u8>>>,
    /// How often it waited for the guest; odd while it does.
    turns: Arc<AtomicU64>,
}

/// What becomes of somebody who does not read what the guest has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlowReader {
    /// A pager, say, is waited for.
    Awaited,
    /// Somebody wanted the run to be over by now.
    GivenUp,
}

/// How much of an output is passed on.
pub(crate) struct Allowed {
    pub(crate) bytes: u64,
    /// Told that there was more, which is dropped.
    pub(crate) exceeded: Arc<AtomicBool>,
    /// What becomes of the run then.
    pub(crate) then: Box<dyn Fn() + Send>,
}

impl Allowed {
    /// As many of `len` bytes as may be passed on.
    fn of(&mut self, len: usize) -> usize {
        let may = usize::try_from(self.bytes).unwrap_or(usize::MAX).min(len);
        self.bytes -= may as u64;
        if may < len && !self.exceeded.swap(true, Ordering::Relaxed) {
            (self.then)();
        }
        may
    }
}

/// Copies `from` to `to`. Either end is closed when the other is, so that each side learns of it.
/// What cannot be written calls `failed`, unless the reader is gone.
pub(crate) fn copy(
    from: File,
    to: File,
    allowed: Option<Allowed>,
    failed: impl FnOnce() + Send + 'static,
) -> Copying {
    let (teller, outcome) = channel();
    let turns = Arc::new(AtomicU64::new(0));
    let own_turns = Arc::clone(&turns);
    thread::spawn(move || {
        let copied = pass_on(from, to, allowed, &own_turns);
        let copied = copied.or_else(|error| match error.kind() == io::ErrorKind::BrokenPipe {
            true => Ok(None),
            false => Err(error),
        });
        if copied.is_err() {
            failed();
        }
        // Nobody asks any more when the process is about to end.
        teller.send(copied).ok();
    });
    Copying { outcome, turns }
}

/// By `read` and `write`. `splice(2)`, which `io::copy` would use, takes a file's position before it
/// waits and puts it back afterwards: two streams into one file, as after `2>&1`, lose bytes.
/// Returns the last byte.
fn pass_on(
    mut from: File,
    mut to: File,
    mut allowed: Option<Allowed>,
    turns: &AtomicU64,
) -> io::Result<Option<u8>> {
    let mut chunk = vec![0u8; CHUNK];
    let mut last = None;
    loop {
        turns.fetch_add(1, Ordering::Relaxed);
        let read = from.read(&mut chunk);
        turns.fetch_add(1, Ordering::Relaxed);
        match read {
            Ok(0) => return Ok(last),
            Ok(len) => {
                let len = allowed.as_mut().map_or(len, |allowed| allowed.of(len));
                let bytes = chunk.get(..len).unwrap_or_default();
                last = bytes.last().copied().or(last);
                write_all(&mut to, bytes)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // The guest's terminal, which does not wait.
                turns.fetch_add(1, Ordering::Relaxed);
                wait(&from, PollFlags::IN);
                turns.fetch_add(1, Ordering::Relaxed);
            }
            // So ends a terminal.
            Err(error) if is_io_error(&error) && from.is_terminal() => return Ok(last),
            Err(error) => return Err(error),
        }
    }
}

fn is_io_error(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

impl Copying {
    /// Waits, once the run is gone, until the guest's last byte has been passed on; that byte.
    ///
    /// # Errors
    /// As `write(2)` says; a closed pipe is not one: the reader has seen what it wanted.
    pub(crate) fn finish(self, slow: SlowReader) -> io::Result<Option<u8>> {
        let mut seen = None;
        loop {
            match self.outcome.recv_timeout(SILENCE) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("a copying thread ended early"));
                }
                Err(RecvTimeoutError::Timeout) => {
                    let turns = self.turns.load(Ordering::Relaxed);
                    let is_reading = turns % 2 == 1;
                    let may_give_up = is_reading || slow == SlowReader::GivenUp;
                    if may_give_up && seen == Some(turns) {
                        return Ok(None);
                    }
                    seen = Some(turns);
                }
            }
        }
    }
}

/// Writes everything. Whoever shares the stream may have set it not to wait, as node does.
pub(crate) fn write_all(to: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => bytes = bytes.get(len..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(to, PollFlags::OUT),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Until a stream is ready; what is wrong with it the next call says.
fn wait(stream: &File, wanted: PollFlags) {
    poll(&mut [PollFd::new(stream, wanted)], None).ok();
}

/// One of this process's own streams.
pub(crate) fn own(stream: impl AsFd) -> io::Result<File> {
    let fd: OwnedFd = stream.as_fd().try_clone_to_owned()?;
    Ok(fd.into())
}

/// `/dev/null`, which the guest is given one of its own of.
pub(crate) fn is_null(stream: &File) -> bool {
    const NULL: u64 = 1 << 8 | 3;
    let status = stream.metadata();
    status.is_ok_and(|status| status.file_type().is_char_device() && status.rdev() == NULL)
}
