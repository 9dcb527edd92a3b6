//! Where audit records go: a file that only grows. One record is one line is one write; it never
//! waits for long, and what could not be written is counted.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::events;
use crate::launch::socket::timespec;
use crate::sys::write_without_sigpipe;

/// Bytes of a record at the most, its newline included: what a pipe takes whole or not at all.
pub const AUDIT_LINE_BYTES_MAX: usize = 4096;

/// How long a record may wait for room in a pipe that nobody empties.
const PATIENCE: Duration = Duration::from_millis(50);

/// A record of every run, one JSON object a line, for
/// [`SandboxBuilder::audit`](crate::SandboxBuilder::audit).
///
/// A record is written once, when the run's end is known, by one
/// [write(2)](https://man7.org/linux/man-pages/man2/write.2.html) of at most
/// [`AUDIT_LINE_BYTES_MAX`] bytes, so that several processes can append to one file. It holds what
/// was run, how it ended, what it used and what held it; never output, input or environment. Its
/// keys are in `docs/telemetry.md`.
///
/// Auditing never fails a run: a record that cannot be written, or not within 50 milliseconds, is
/// lost,
/// [`Audit::lost`] counts it, and an event at the level WARN tells why. Clones write to the
/// same file and count together.
#[derive(Debug, Clone)]
pub struct Audit {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    log: Mutex<Log>,
    written: AtomicU64,
    lost: AtomicU64,
}

#[derive(Debug)]
struct Log {
    file: OwnedFd,
    /// The last record was written in part: the next begins a line of its own.
    is_cut: bool,
    /// The last record waited for room in vain: the next does not wait.
    is_full: bool,
}

impl Audit {
    /// Appends to the file at `path`, made with mode 0600 if it is not there. A FIFO is one too,
    /// once it has a reader.
    ///
    /// # Errors
    /// Those of [open(2)](https://man7.org/linux/man-pages/man2/open.2.html); `ENXIO` for a FIFO
    /// without a reader.
    pub fn append_to(path: impl AsRef<Path>) -> io::Result<Audit> {
        // Without waiting: for a reader, or for room in a pipe.
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
        Ok(Audit::from(OwnedFd::from(file)))
    }

    /// How many records have been written.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.shared.written.load(Ordering::Relaxed)
    }

    /// How many could not be.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Writes one record, which has its newline.
    pub(super) fn write(&self, line: &[u8]) {
        let mut log = self.shared.log.lock().unwrap_or_else(PoisonError::into_inner);
        let written = log.write(line);
        drop(log);
        match written {
            Ok(()) => drop(self.shared.written.fetch_add(1, Ordering::Relaxed)),
            Err(errno) => {
                let lost = self.shared.lost.fetch_add(1, Ordering::Relaxed) + 1;
                events::audit_lost(&errno.into(), lost);
            }
        }
    }
}

/// An open file, pipe or socket, written to as it is. Give a file that others write too `O_APPEND`.
impl From<OwnedFd> for Audit {
    fn from(file: OwnedFd) -> Audit {
        let log = Mutex::new(Log { file, is_cut: false, is_full: false });
        let shared = Shared { log, written: AtomicU64::new(0), lost: AtomicU64::new(0) };
        Audit { shared: Arc::new(shared) }
    }
}

impl From<File> for Audit {
    fn from(file: File) -> Audit {
        Audit::from(OwnedFd::from(file))
    }
}

impl Log {
    fn write(&mut self, line: &[u8]) -> Result<(), Errno> {
        let patience = if self.is_full { Duration::ZERO } else { PATIENCE };
        let mut fds = [PollFd::new(&self.file, PollFlags::OUT)];
        // What is wrong with it the write says.
        self.is_full = poll(&mut fds, Some(&timespec(patience))) == Ok(0);
        if self.is_full {
            return Err(Errno::AGAIN);
        }
        let whole;
        let bytes = match self.is_cut {
            true => {
                whole = [b"\n", line].concat();
                &whole
            }
            false => line,
        };
        let len = loop {
            match write_without_sigpipe(self.file.as_fd(), bytes) {
                Err(Errno::INTR) => {}
                answer => break answer?,
            }
        };
        self.is_cut = len < bytes.len() && (len > 0 || self.is_cut);
        if len < bytes.len() { Err(Errno::NOSPC) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_pipe_that_nobody_empties_loses_records_and_holds_nobody_up() {
        let (mut reader, writer) = io::pipe().unwrap();
        let audit = Audit::from(OwnedFd::from(writer));
        let line = [&[b'x'; AUDIT_LINE_BYTES_MAX - 1][..], b"\n"].concat();
        let start = std::time::Instant::now();
        for _ in 0..20 {
            audit.write(&line);
        }
        assert!(start.elapsed() < PATIENCE * 3, "{:?}", start.elapsed());
        // A pipe holds 64 KiB.
        assert_eq!((audit.written(), audit.lost()), (16, 4));
        drop(audit);
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), 16 * line.len());
        assert!(bytes.ends_with(b"\n"), "a record in pieces");
    }

    #[test]
    fn a_reader_that_has_gone_is_counted() {
        let (reader, writer) = io::pipe().unwrap();
        let audit = Audit::from(OwnedFd::from(writer));
        drop(reader);
        audit.write(b"{}\n");
        assert_eq!((audit.written(), audit.lost()), (0, 1));
        let full = Audit::from(File::options().write(true).open("/dev/full").unwrap());
        full.write(b"{}\n");
        assert_eq!((full.written(), full.lost()), (0, 1));
    }

    #[test]
    fn a_file_is_made_for_its_owner_and_only_grows() {
        let path = std::env::temp_dir().join(format!("postern-audit-{}", std::process::id()));
        for _ in 0..2 {
            let audit = Audit::append_to(&path).unwrap();
            audit.write(b"{}\n");
            assert_eq!(audit.clone().written(), 1);
        }
        let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read(&path).unwrap(), b"{}\n{}\n");
        std::fs::remove_file(&path).unwrap();
        assert!(Audit::append_to("/nonexistent/log").is_err());
    }
}
