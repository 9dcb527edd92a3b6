//! What a host that was killed has left on disk: known by its name and its owner, and known to be
//! nobody's by its lock, which ends with the process that held it. Nothing is read from it.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat, statat, unlinkat,
};
use rustix::process::geteuid;

/// A kind of thing that this library makes on disk, and locks while it is in use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    /// Whether a thing of that name can be one.
    pub(super) is_name: fn(&str) -> bool,
    pub(super) file_type: FileType,
    /// Its permissions.
    pub(super) mode: u32,
    /// What may be in it, if it is a directory; one that holds anything else stays.
    pub(super) holds: &'static [&'static CStr],
}

/// Removes from `directory` what is of this kind, this user's own, and locked by nobody. What cannot
/// be looked at or removed stays: it is in nobody's way.
pub(super) fn sweep(directory: BorrowedFd<'_>, kind: Kind) {
    // Removing while reading may pass over an entry.
    let Ok(entries) = Dir::read_from(directory) else { return };
    let names: Vec<_> = entries.flatten().map(|entry| entry.file_name().to_owned()).collect();
    for name in names {
        if name.to_str().is_ok_and(kind.is_name) {
            remove(directory, &name, kind);
        }
    }
}

fn remove(directory: BorrowedFd<'_>, name: &CStr, kind: Kind) -> Option<()> {
    // Without waiting, should it be a pipe, and through no link.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let thing = openat(directory, name, flags | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let here = fstat(&thing).ok()?;
    let is_one = FileType::from_raw_mode(here.st_mode) == kind.file_type
        && here.st_mode & 0o7777 == kind.mode
        && here.st_uid == geteuid().as_raw();
    if !is_one {
        return None;
    }
    flock(&thing, FlockOperation::NonBlockingLockExclusive).ok()?;
    // Whoever held it may have removed it meanwhile, and another be there by now.
    let there = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino) {
        return None;
    }
    for inner in kind.holds {
        unlinkat(&thing, *inner, AtFlags::empty()).ok();
    }
    let is_directory = kind.file_type == FileType::Directory;
    let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    unlinkat(directory, name, flags).ok()
}

#[cfg(test)]
mod tests;
