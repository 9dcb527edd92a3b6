//! One kernel uid per sandbox, leased among all users of this library on the machine.
//!
//! A lease is a lock on a file named after the id. It ends with the process that holds it, however
//! that ends, and a file that stays behind is one that nobody holds, which the next service to start
//! removes. An id is not given out while
//! processes of it exist, so that two services that disagree about the directory still get two ids;
//! nothing is read from the files.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, mkdirat, openat,
    stat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Uid, geteuid, getpriority_user};

use super::leftovers::{Kind, sweep};

/// The environment variable that moves the runtime directory.
///
/// By default it is `/run/postern` for root, and for others `postern` in `$XDG_RUNTIME_DIR`, or
/// `/tmp/postern-UID`. It must be a directory of the service's or of root's that nobody else can
/// write to, and no symbolic link.
pub const RUNTIME_DIRECTORY_VARIABLE: &str = "POSTERN_RUNTIME_DIR";

/// A leased id, free again when dropped.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) id: u32,
    directory: Arc<OwnedFd>,
    /// Held for its lock.
    _lock: OwnedFd,
}

impl Drop for Lease {
    fn drop(&mut self) {
        // While the lock is held: whoever opened the file before sees that it is no longer there.
        unlinkat(&self.directory, self.id.to_string(), AtFlags::empty()).ok();
    }
}

/// Why no id could be leased.
#[derive(Debug)]
pub(super) enum LeaseError {
    /// The directory of locks, or a file in it, cannot be used.
    Directory(PathBuf, io::Error),
    /// Every id is leased or has processes.
    Exhausted,
}

/// Leases an id from an inclusive range, starting anywhere in it.
pub(super) fn take(first: u32, last: u32) -> Result<Lease, LeaseError> {
    static SWEEP: Once = Once::new();
    let root = runtime_directory();
    SWEEP.call_once(|| sweep_in(&root));
    take_in(&root, first, last)
}

/// A file of which nobody holds the lock.
const STALE: Kind = Kind {
    is_name: |name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()),
    file_type: FileType::RegularFile,
    mode: 0o600,
    holds: &[],
};

/// Removes what killed services have left. Once a process: it looks at every lease there is.
fn sweep_in(root: &Path) {
    // Whoever leases next says what is wrong with the directory.
    if let Ok(directory) = directory(root) {
        sweep(directory.as_fd(), STALE);
    }
}

fn take_in(root: &Path, first: u32, last: u32) -> Result<Lease, LeaseError> {
    let directory = Arc::new(directory(root)?);
    let count = u64::from(last.saturating_sub(first)) + 1;
    let start = RandomState::new().build_hasher().finish() % count;
    for step in 0..count {
        let offset = u32::try_from((start + step) % count).unwrap_or_default();
        let id = first.saturating_add(offset);
        match lock(directory.as_fd(), &id.to_string()) {
            Ok(Some(lock)) => {
                // One that cannot be used takes its file along.
                let lease = Lease { id, directory: Arc::clone(&directory), _lock: lock };
                if has_no_process(id) {
                    return Ok(lease);
                }
            }
            Ok(None) => {}
            Err(error) => {
                return Err(LeaseError::Directory(root.join(IDS).join(id.to_string()), error));
            }
        }
    }
    Err(LeaseError::Exhausted)
}

const IDS: &str = "ids";

fn runtime_directory() -> PathBuf {
    let named = std::env::var_os(RUNTIME_DIRECTORY_VARIABLE).map(PathBuf::from);
    named.unwrap_or_else(|| {
        let sessions = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        // One that another user's session has left in the environment is of no use.
        let is_own = |path: &PathBuf| {
            path.is_absolute() && stat(path).is_ok_and(|found| found.st_uid == geteuid().as_raw())
        };
        match (geteuid(), sessions.filter(is_own)) {
            (Uid::ROOT, _) => PathBuf::from("/run/postern"),
            (_, Some(sessions)) => sessions.join("postern"),
            (own, None) => PathBuf::from(format!("/tmp/postern-{}", own.as_raw())),
        }
    })
}

/// The directory of locks, made if missing, by a descriptor that no later rename can redirect.
fn directory(root: &Path) -> Result<OwnedFd, LeaseError> {
    let at = |path: PathBuf| move |error| LeaseError::Directory(path, error);
    let root_directory = trusted(CWD, root).map_err(at(root.to_owned()))?;
    trusted(root_directory.as_fd(), Path::new(IDS)).map_err(at(root.join(IDS)))
}

/// Somebody else's directory could hand one id to two sandboxes.
fn trusted(parent: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    const OTHERS_WRITE: u32 = 0o022;
    match mkdirat(parent, path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno.into()),
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = openat(parent, path, flags, Mode::empty())?;
    let found = fstat(&directory)?;
    match is_trusted(&found) && found.st_mode & OTHERS_WRITE == 0 {
        true => Ok(directory),
        false => Err(refused("others can write to it, or it is another user's")),
    }
}

/// Root could do anything anyway.
fn is_trusted(found: &Stat) -> bool {
    found.st_uid == geteuid().as_raw() || found.st_uid == 0
}

fn refused(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// The lock on the file of that name; `None`: somebody holds it, or it has just gone.
fn lock(directory: BorrowedFd<'_>, name: &str) -> io::Result<Option<OwnedFd>> {
    // Without waiting: the file could be a pipe.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?;
    let here = fstat(&file)?;
    if FileType::from_raw_mode(here.st_mode) != FileType::RegularFile || !is_trusted(&here) {
        return Err(refused("not a regular file of this user's"));
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    }
    let there = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok();
    let same =
        there.is_some_and(|there| (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino));
    Ok(same.then_some(file))
}

/// `getpriority(PRIO_USER)` answers ESRCH when no process that we can see has the id.
fn has_no_process(id: u32) -> bool {
    getpriority_user(Uid::from_raw(id)) == Err(Errno::SRCH)
}

#[cfg(test)]
mod tests;
