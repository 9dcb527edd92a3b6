//! One kernel uid per sandbox, leased among all users of this library on the machine.
//!
//! A lease is a lock on a file named after the id. It ends with the process that holds it, however
//! that ends; an id is not given out again while processes of it exist.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Uid, getpriority_user};

/// The environment variable that moves the runtime directory.
pub const RUNTIME_DIRECTORY_VARIABLE: &str = "POSTERN_RUNTIME_DIR";
const RUNTIME_DIRECTORY: &str = "/run/postern";

/// A leased id, free again when dropped.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) id: u32,
    path: PathBuf,
    /// Held for its lock.
    _lock: File,
}

impl Drop for Lease {
    fn drop(&mut self) {
        // While the lock is held: whoever opened the file before sees that it is no longer there.
        // A file that stays behind is an unlocked one, which the next lease takes over.
        fs::remove_file(&self.path).ok();
    }
}

/// Why no id could be leased.
#[derive(Debug)]
pub(super) enum LeaseError {
    /// The directory of locks cannot be used.
    Directory(PathBuf, io::Error),
    /// Every id is leased or has processes.
    Exhausted,
}

/// Leases an id from an inclusive range, starting anywhere in it.
pub(super) fn take(first: u32, last: u32) -> Result<Lease, LeaseError> {
    let directory = directory()?;
    let count = u64::from(last.saturating_sub(first)) + 1;
    let start = RandomState::new().build_hasher().finish() % count;
    for step in 0..count {
        let offset = u32::try_from((start + step) % count).unwrap_or_default();
        let id = first.saturating_add(offset);
        let path = directory.join(id.to_string());
        match lock(&path) {
            Ok(Some(lock)) if has_no_process(id) => return Ok(Lease { id, path, _lock: lock }),
            Ok(_) => {}
            Err(error) => return Err(LeaseError::Directory(path, error)),
        }
    }
    Err(LeaseError::Exhausted)
}

fn directory() -> Result<PathBuf, LeaseError> {
    let root = std::env::var_os(RUNTIME_DIRECTORY_VARIABLE)
        .map_or_else(|| PathBuf::from(RUNTIME_DIRECTORY), PathBuf::from);
    let path = root.join("ids");
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
    match made.and_then(|()| owned_by_us(&path)) {
        Ok(()) => Ok(path),
        Err(error) => Err(LeaseError::Directory(path, error)),
    }
}

/// Somebody else's directory could hand one id to two sandboxes.
fn owned_by_us(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    match found.is_dir()
        && found.uid() == rustix::process::geteuid().as_raw()
        && found.mode() & 0o022 == 0
    {
        true => Ok(()),
        false => {
            let why = "not a directory of this user's that nobody else can write";
            Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
        }
    }
}

/// The lock on the file that is at `path` now; `None`: somebody holds it, or it has just gone.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.custom_flags(libc::O_NOFOLLOW).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    }
    let here = file.metadata()?;
    let there = fs::symlink_metadata(path).ok();
    let same = there.is_some_and(|there| (there.dev(), there.ino()) == (here.dev(), here.ino()));
    Ok(same.then_some(file))
}

/// `getpriority(PRIO_USER)` answers ESRCH when no process that we can see has the id.
fn has_no_process(id: u32) -> bool {
    getpriority_user(Uid::from_raw(id)) == Err(Errno::SRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lock_has_one_holder_until_it_is_dropped() {
        let directory = std::env::temp_dir().join(format!("postern-lease-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("2000000000");
        let first = lock(&path).unwrap();
        assert!(first.is_some());
        assert!(lock(&path).unwrap().is_none());
        drop(first);
        assert!(lock(&path).unwrap().is_some());
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn an_id_with_processes_is_not_free() {
        assert!(!has_no_process(rustix::process::geteuid().as_raw()));
        assert!(has_no_process(1_999_999_999));
    }
}
