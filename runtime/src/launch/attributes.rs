//! The flags of each mount that a plan makes, for the launcher to set and for `verify` to find.

use std::ffi::CStr;

use crate::plan::{Access, Export, MountOp};

/// `MOUNT_ATTR_*`, as in `<linux/mount.h>`.
pub(crate) const RDONLY: u64 = 1;
pub(crate) const NOSUID: u64 = 2;
pub(crate) const NODEV: u64 = 4;
pub(crate) const NOEXEC: u64 = 8;

/// The flags that an operation mounts with; `None` for one that mounts nothing of its own.
pub(crate) fn attributes(operation: &MountOp) -> Option<u64> {
    Some(match operation {
        MountOp::Root { .. } => NOSUID | NODEV,
        MountOp::HostRoot => RDONLY | NOSUID | NODEV,
        MountOp::Bind { target, access, devices, .. } => {
            let kind = if *devices { NOEXEC } else { NODEV };
            let noexec = if in_run_postern(target) { NOEXEC } else { 0 };
            NOSUID | kind | noexec | unless_writable(*access)
        }
        MountOp::Tmpfs { access, export, .. } => {
            let noexec = if *export == Export::Exchange { NOEXEC } else { 0 };
            NOSUID | NODEV | noexec | unless_writable(*access)
        }
        MountOp::Proc { access, .. } => NOSUID | NODEV | NOEXEC | unless_writable(*access),
        MountOp::Devpts { .. } => NOSUID | NOEXEC,
        MountOp::RunDirectory { .. } => RDONLY | NOSUID | NODEV | NOEXEC,
        MountOp::Dir { .. }
        | MountOp::File { .. }
        | MountOp::Symlink { .. }
        | MountOp::Mask { .. }
        | MountOp::ReadOnly { .. }
        | MountOp::ReadOnlySelf { .. } => return None,
    })
}

const fn unless_writable(access: Access) -> u64 {
    match access {
        Access::ReadOnly => RDONLY,
        Access::ReadWrite => 0,
    }
}

fn in_run_postern(target: &CStr) -> bool {
    target.to_bytes().starts_with(b"/run/postern/")
}
