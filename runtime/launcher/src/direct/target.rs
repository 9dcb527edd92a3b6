//! Places in the new root, the current directory: found, or made where they are missing.
//!
//! A path is resolved as if the new root were `/` already. Links on the way stay beneath it; the
//! last name is never followed, so that a planted link is no mount point.

use core::ffi::CStr;

use postern_init::supervise::is_slash;
use postern_init::sys::{self as base, Errno, Fd, O_CREATE_NEW, O_DIRECTORY, O_NOFOLLOW, O_PATH};
use postern_init::sys::{O_WRONLY, OwnedFd, c_str, open_at};

use super::report::{Failure, Fault, part};
use crate::mount::sys::{self as mount, Resolve};

/// Types of files, in a mode.
pub(super) mod kind {
    pub(in crate::direct) const MASK: u32 = 0o170_000;
    pub(in crate::direct) const DIRECTORY: u32 = 0o040_000;
    pub(in crate::direct) const LINK: u32 = 0o120_000;
}

/// The longest path, its NUL included.
const PATH_MAX: usize = 4096;

/// What has to be at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    /// A directory; a missing one is made with this mode.
    Directory(u32),
    /// Anything but a directory; a missing one is an empty file.
    File,
}

/// The mode of directories above a place of which no mode is known: they are for their owner.
pub(super) const UNSAID: u32 = parent_mode(0);

/// The directories above a place are for nobody whom the place itself shuts out.
pub(super) const fn parent_mode(mode: u32) -> u32 {
    let group = if mode & 0o070 == 0 { 0 } else { 0o050 };
    let others = if mode & 0o007 == 0 { 0 } else { 0o005 };
    0o700 | group | others
}

/// Opens what is at a place, itself and not what it may link to.
pub(super) fn open(path: &CStr) -> Result<OwnedFd, Errno> {
    resolve(path, O_PATH | O_NOFOLLOW)
}

/// `openat2(2)` cannot always tell whether `..` stays beneath while others move directories.
fn resolve(path: &CStr, flags: u32) -> Result<OwnedFd, Errno> {
    const TRIES: u32 = 64;
    let mut result = Err(Errno::EAGAIN);
    for _ in 0..TRIES {
        result = mount::open_resolved(Fd::CWD, path, flags, Resolve::InRoot);
        if !matches!(result, Err(Errno::EAGAIN | Errno::EINTR)) {
            break;
        }
    }
    result
}

/// A path cut into the directory that a place is in and its name there.
pub(super) struct Place {
    buffer: [u8; PATH_MAX],
    len: usize,
    name: usize,
}

impl Place {
    /// A path relative to the root, without slashes around it; `.` is the root itself.
    pub(super) fn new(path: &CStr) -> Result<Place, Errno> {
        let bytes = path.to_bytes();
        let mut buffer = [0; PATH_MAX];
        let room = buffer.split_last_mut().and_then(|(_nul, room)| room.get_mut(..bytes.len()));
        room.ok_or(Errno::ENAMETOOLONG)?.copy_from_slice(bytes);
        let name = bytes.iter().rposition(is_slash).map_or(0, |slash| slash.wrapping_add(1));
        Ok(Place { buffer, len: bytes.len(), name })
    }

    /// The last name.
    pub(super) fn name(&self) -> &CStr {
        part(&self.buffer, self.name, self.len).unwrap_or(c".")
    }

    /// The directory it is in; those missing on the way are made with `mode`.
    pub(super) fn parent(&mut self, mode: u32) -> Result<OwnedFd, Errno> {
        let flags = O_PATH | O_DIRECTORY;
        let Some(end) = self.name.checked_sub(1) else {
            return open_at(Fd::CWD, c".", flags, 0);
        };
        match self.prefix(end, |_, path| resolve(path, flags)) {
            Err(Errno::ENOENT) => {}
            other => return other,
        }
        let mut parent = open_at(Fd::CWD, c".", flags, 0)?;
        let mut start = 0usize;
        while start < end {
            let rest = self.buffer.get(start..end).unwrap_or_default();
            let length = rest.iter().position(is_slash).unwrap_or(rest.len());
            let stop = start.wrapping_add(length);
            if length > 0 {
                let above = parent.fd();
                parent = self.prefix(stop, |buffer, path| {
                    let name = part(buffer, start, stop).ok_or(Errno::EINVAL)?;
                    match mount::make_directory(above, name, mode) {
                        Ok(()) | Err(Errno::EEXIST) => resolve(path, flags),
                        Err(errno) => Err(errno),
                    }
                })?;
            }
            start = stop.wrapping_add(1);
        }
        Ok(parent)
    }

    /// Has `act` see the path up to `end` as a string.
    fn prefix(
        &mut self,
        end: usize,
        act: impl FnOnce(&[u8], &CStr) -> Result<OwnedFd, Errno>,
    ) -> Result<OwnedFd, Errno> {
        let slash = core::mem::take(self.buffer.get_mut(end).ok_or(Errno::EINVAL)?);
        let path = self.buffer.get(..=end).and_then(c_str).ok_or(Errno::EINVAL)?;
        let result = act(&self.buffer, path);
        if let Some(place) = self.buffer.get_mut(end) {
            *place = slash;
        }
        result
    }
}

/// What is at a place, made if it is missing; something of another type is refused.
pub(super) fn ensure(path: &CStr, node: Node, above: u32, index: u32) -> Result<OwnedFd, Failure> {
    let found = match open(path) {
        Ok(found) => found,
        Err(_) => make(path, node, above, index)?,
    };
    let mode = mount::identity(found.fd()).map_err(Fault::Target.at(index))?.mode & kind::MASK;
    match (node, mode) {
        (_, kind::LINK) => Err(Fault::TargetIsLink.plain(index)),
        (Node::Directory(_), kind::DIRECTORY) => Ok(found),
        (Node::Directory(_), _) => Err(Fault::TargetIsNoDirectory.plain(index)),
        (Node::File, kind::DIRECTORY) => Err(Fault::TargetIsDirectory.plain(index)),
        (Node::File, _) => Ok(found),
    }
}

fn make(path: &CStr, node: Node, above: u32, index: u32) -> Result<OwnedFd, Failure> {
    let mut place = Place::new(path).map_err(Fault::Parents.at(index))?;
    let parent = place.parent(above).map_err(Fault::Parents.at(index))?;
    make_at(parent.fd(), place.name(), node).map_err(Fault::Target.at(index))
}

/// Makes an entry of a directory, unless it is there.
pub(super) fn make_at(parent: Fd, name: &CStr, node: Node) -> Result<OwnedFd, Errno> {
    let made = match node {
        Node::Directory(mode) => mount::make_directory(parent, name, mode),
        Node::File => {
            const NOCTTY: u32 = 0o400;
            let flags = O_WRONLY | O_CREATE_NEW | O_NOFOLLOW | NOCTTY;
            open_at(parent, name, flags, 0o444).map(drop)
        }
    };
    match made {
        Ok(()) | Err(Errno::EEXIST) => open_at(parent, name, O_PATH | O_NOFOLLOW, 0),
        Err(errno) => Err(errno),
    }
}

/// Opens a file to write all of it anew, made if it is missing.
pub(super) fn create(path: &CStr, mode: u32, index: u32) -> Result<OwnedFd, Failure> {
    const O_CREATE_TRUNCATE: u32 = 0o100 | 0o1000;
    let mut place = Place::new(path).map_err(Fault::Parents.at(index))?;
    let parent = place.parent(parent_mode(mode)).map_err(Fault::Parents.at(index))?;
    let flags = O_WRONLY | O_CREATE_TRUNCATE | O_NOFOLLOW | 0o400;
    match open_at(parent.fd(), place.name(), flags, mode) {
        Ok(file) => Ok(file),
        Err(errno) => Err(Fault::Target.at(index)(errno)),
    }
}

/// Writes everything that a descriptor has to give.
pub(super) fn copy(from: Fd, to: Fd) -> Result<(), Errno> {
    let mut buffer = [0u8; 8192];
    loop {
        let len = match base::read(from, &mut buffer) {
            Ok(0) => return Ok(()),
            Ok(len) => len,
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(errno),
        };
        let mut left = buffer.get(..len).unwrap_or_default();
        while !left.is_empty() {
            let written = base::write(to, left)?;
            left = left.get(written..).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_a_place_shuts_out_its_parents_shut_out() {
        let rows = [
            (0o1777, 0o755),
            (0o644, 0o755),
            (0o710, 0o750),
            (0o720, 0o750),
            (0o600, 0o700),
            (0o604, 0o705),
            (0, 0o700),
        ];
        for (mode, parent) in rows {
            assert_eq!(parent_mode(mode), parent, "{mode:o}");
        }
    }

    #[test]
    fn a_path_has_a_last_name() {
        let rows = [(c"a/b//c", c"c"), (c"a", c"a"), (c".", c".")];
        for (path, name) in rows {
            assert_eq!(Place::new(path).unwrap().name(), name, "{path:?}");
        }
        let long = std::ffi::CString::new(std::vec![b'a'; PATH_MAX]).unwrap();
        assert_eq!(Place::new(&long).map(drop), Err(Errno::ENAMETOOLONG));
    }

    extern crate std;
}
