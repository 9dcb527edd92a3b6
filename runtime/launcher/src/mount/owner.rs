//! A user namespace that holds one map and nothing else, for id-mapped mounts; mounts nothing.

use core::ffi::CStr;

use postern_init::sys::{self as base, Errno, Fd, O_DIRECTORY, O_PATH, OwnedFd, open_at};

use crate::child::PROC;
use crate::sys::Cloned;
use crate::{namespaces, socket};

/// Lines of a user namespace's maps: the owner's id, then who stands for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnerMap<'a> {
    pub(crate) uid: &'a CStr,
    pub(crate) gid: &'a CStr,
}

/// A user namespace that no process is in once this returns. It cannot be made while the new root
/// covers the old one, which to the kernel is a chroot.
///
/// # Errors
/// As the kernel says.
pub(crate) fn user_namespace(map: OwnerMap<'_>) -> Result<OwnedFd, Errno> {
    const CLONE_NEWUSER: u64 = 0x1000_0000;
    let (ours, theirs) = socket::pair()?;
    match crate::sys::clone(CLONE_NEWUSER)? {
        Cloned::Child => {
            drop(ours);
            // Whether this works is told by what arrives; then it waits for the other end to close.
            if let Ok(own) = open_at(PROC, c"self", O_PATH | O_DIRECTORY, 0) {
                socket::send_with(theirs.fd(), &[0], &[own.fd()]).ok();
            }
            base::read(theirs.fd(), &mut [0u8; 1]).ok();
            base::exit(0)
        }
        Cloned::Parent(_, _pidfd) => {
            drop(theirs);
            let mut got = socket::receive(ours.fd(), &mut [0u8; 1], true)?;
            let [own, ..] = &mut got.fds;
            let own = own.take().ok_or(Errno::ESRCH)?;
            written(own.fd(), map)
        }
    }
}

fn written(own: Fd, map: OwnerMap<'_>) -> Result<OwnedFd, Errno> {
    namespaces::write(own, c"uid_map", map.uid)?;
    namespaces::write(own, c"gid_map", map.gid)?;
    open_at(own, c"ns/user", 0, 0)
}
