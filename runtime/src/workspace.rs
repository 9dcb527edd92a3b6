//! The host's way into an owned workspace: by descriptor, through no symlink, regular files only.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

/// A workspace that belongs to a sandbox. The guest is hostile: nothing it plants is followed.
#[derive(Debug)]
pub struct WorkspaceDir {
    directory: OwnedFd,
}

impl WorkspaceDir {
    pub(crate) fn new(directory: OwnedFd) -> WorkspaceDir {
        WorkspaceDir { directory }
    }

    /// Writes a new file, or all of an old one, with mode 0666 less nothing: the directory itself
    /// is the guest's alone.
    ///
    /// # Errors
    /// `ELOOP` or `EXDEV` for a path through a symlink or out of the workspace; `InvalidInput` for
    /// something that is not a regular file; else as `openat2(2)` and `write(2)` say.
    pub fn write(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE;
        let mut file = self.open(path.as_ref(), flags, Mode::from_raw_mode(0o666))?;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(0o666))?;
        file.set_len(0)?;
        file.write_all(bytes.as_ref())
    }

    /// Reads a whole file of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// As [`WorkspaceDir::write`]; `FileTooLarge` for a longer file.
    pub fn read(&self, path: impl AsRef<Path>, bytes_max: u64) -> io::Result<Vec<u8>> {
        let file = self.open(path.as_ref(), OFlags::RDONLY, Mode::empty())?;
        let mut bytes = Vec::new();
        file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > bytes_max {
            true => Err(io::ErrorKind::FileTooLarge.into()),
            false => Ok(bytes),
        }
    }

    /// Non-blocking, so that a planted FIFO cannot hold the host.
    fn open(&self, path: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let file = File::from(openat2(&self.directory, path, flags, mode, resolve)?);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        }
    }
}

impl AsFd for WorkspaceDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}
