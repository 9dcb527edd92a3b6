//! Control groups that a crashed service left behind: found by their names and known by their locks,
//! which nobody holds. Touches none that is in use, and none of another user's.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Dir, FileType, fstat};
use rustix::process::geteuid;

use super::tree::{PREFIX, directory, lock, remove_all};

/// How long one of them may take.
const EACH: Duration = Duration::from_millis(200);

/// Kills what is in them and removes them; what cannot be removed is left for another time.
pub(super) fn remove(parent: &OwnedFd) {
    for name in names(parent) {
        if !name.to_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let Some((name, group)) = name
            .to_str()
            .ok()
            .and_then(|name| Some((name, directory(parent.as_fd(), Path::new(name)).ok()?)))
        else {
            continue;
        };
        let is_own = fstat(&group).is_ok_and(|found| found.st_uid == geteuid().as_raw());
        if is_own && lock(parent, name, &group) {
            remove_all(parent, name, &group, EACH);
        }
    }
}

/// The groups in a group.
pub(super) fn names(group: &OwnedFd) -> Vec<CString> {
    let entries = Dir::read_from(group).into_iter().flatten().flatten();
    let groups = entries.filter(|entry| entry.file_type() == FileType::Directory);
    let names = groups.map(|entry| entry.file_name().to_owned());
    names.filter(|name| !is_dots(OsStr::from_bytes(name.to_bytes()))).collect()
}

fn is_dots(name: &OsStr) -> bool {
    name == "." || name == ".."
}
