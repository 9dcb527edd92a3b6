//! The mount and path calls; decides nothing.
//!
//! # Safety
//! As in `crate::sys`: pointers derive from references that outlive the call.

use core::ffi::CStr;

use postern_init::arch::nr;
use postern_init::sys::{Fd, O_CLOEXEC, OwnedFd, Result};

use crate::sys::{arg, at, call, low, new_fd, path};

/// How `openat2(2)` may resolve a path.
#[derive(Debug, Clone, Copy)]
#[repr(u64)]
pub(crate) enum Resolve {
    /// From the root, through no symlink at all.
    NoSymlinks = 0x04 | 0x02,
    /// Beneath the directory, through no symlink.
    BeneathNoSymlinks = 0x08 | 0x04 | 0x02,
    /// As if the directory were the root: links and `..` stay beneath it, and those of procfs that
    /// are no paths are refused.
    #[cfg(not(postern_image))]
    InRoot = 0x10 | 0x02,
}

/// `openat2(2)`.
///
/// # Errors
/// As the kernel says.
pub(crate) fn open_resolved(dir: Fd, name: &CStr, flags: u32, resolve: Resolve) -> Result<OwnedFd> {
    let how: [u64; 3] = [u64::from(flags | O_CLOEXEC), 0, resolve as u64];
    let at = [arg(dir), path(name), how.as_ptr().expose_provenance(), size_of_val(&how), 0, 0];
    new_fd(call(nr::OPENAT2, at))
}

/// What `statx(2)` says that we compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Device, as `makedev(3)` packs it.
    pub(crate) dev: u64,
    /// Inode.
    pub(crate) ino: u64,
    /// Type and permission bits.
    pub(crate) mode: u32,
}

/// `statx(2)` of an open descriptor.
///
/// # Errors
/// As the kernel says.
pub(crate) fn identity(fd: Fd) -> Result<Identity> {
    const AT_EMPTY_PATH: usize = 0x1000;
    const BASIC: usize = 0x7ff;
    let mut buffer = [0u64; 32];
    let to = buffer.as_mut_ptr().expose_provenance();
    call(nr::STATX, [arg(fd), path(c""), AT_EMPTY_PATH, BASIC, to, 0])?;
    // struct statx: mode at byte 28, ino at 32, dev_major and dev_minor at 136 and 140.
    let [_, _, _, word3, ino, .., _] = buffer;
    let word17 = buffer.get(17).copied().unwrap_or_default();
    let (major, minor) = (word17 & 0xffff_ffff, word17 >> 32);
    let dev = (major & 0xffff_f000) << 32
        | (major & 0xfff) << 8
        | (minor & 0xffff_ff00) << 12
        | minor & 0xff;
    let mode = u32::try_from(word3 >> 32 & 0xffff).unwrap_or_default();
    Ok(Identity { dev, ino, mode })
}

/// `statx(2)`: the mount and the inode that a descriptor is open on. Linux 5.8.
///
/// # Errors
/// As the kernel says.
#[cfg(not(postern_image))]
pub(crate) fn mount_and_inode(fd: Fd) -> Result<(u64, u64)> {
    const AT_EMPTY_PATH: usize = 0x1000;
    const STATX_INO_MNT_ID: usize = 0x100 | 0x1000;
    let mut buffer = [0u64; 32];
    let to = buffer.as_mut_ptr().expose_provenance();
    call(nr::STATX, [arg(fd), path(c""), AT_EMPTY_PATH, STATX_INO_MNT_ID, to, 0])?;
    // struct statx: ino at byte 32, mnt_id at 144.
    let [_, _, _, _, ino, .., _] = buffer;
    Ok((buffer.get(18).copied().unwrap_or_default(), ino))
}

/// `mkdirat(2)`.
///
/// # Errors
/// As the kernel says.
pub(crate) fn make_directory(dir: Fd, name: &CStr, mode: u32) -> Result<()> {
    call(nr::MKDIRAT, [arg(dir), path(name), low(mode), 0, 0, 0]).map(drop)
}

/// `symlinkat(2)`.
///
/// # Errors
/// As the kernel says.
pub(crate) fn make_link(to: &CStr, dir: Fd, name: &CStr) -> Result<()> {
    call(nr::SYMLINKAT, [path(to), arg(dir), path(name), 0, 0, 0]).map(drop)
}

/// `mount(2)` of propagation: nothing of ours reaches the host, nothing of the host's reaches us.
///
/// # Errors
/// As the kernel says.
pub(crate) fn make_mounts_private() -> Result<()> {
    const MS_REC_PRIVATE: usize = 0x4000 | 0x4_0000;
    call(nr::MOUNT, [0, path(c"/"), 0, MS_REC_PRIVATE, 0, 0]).map(drop)
}

/// `mount(2)` binding one file or directory over another, with the flags of its own mount.
///
/// # Errors
/// As the kernel says: `ENOTDIR` when only one of them is a directory.
pub(crate) fn bind_by_path(from: &CStr, over: &CStr) -> Result<()> {
    const MS_BIND: usize = 0x1000;
    call(nr::MOUNT, [path(from), path(over), 0, MS_BIND, 0, 0]).map(drop)
}

/// `pivot_root(2)` with both directories the current one.
///
/// # Errors
/// As the kernel says.
pub(crate) fn pivot_here() -> Result<()> {
    call(nr::PIVOT_ROOT, [path(c"."), path(c"."), 0, 0, 0, 0]).map(drop)
}

/// `umount2(2)` of the current directory's mount, lazily.
///
/// # Errors
/// As the kernel says.
pub(crate) fn detach_here() -> Result<()> {
    const MNT_DETACH: usize = 2;
    call(nr::UMOUNT2, [path(c"."), MNT_DETACH, 0, 0, 0, 0]).map(drop)
}

/// `pivot_root(2)`.
///
/// # Errors
/// As the kernel says.
#[cfg(not(postern_image))]
pub(crate) fn pivot(root: &CStr, host: &CStr) -> Result<()> {
    call(nr::PIVOT_ROOT, [path(root), path(host), 0, 0, 0, 0]).map(drop)
}

/// `umount2(2)`, lazily, of what is mounted on a path that is no link.
///
/// # Errors
/// As the kernel says.
#[cfg(not(postern_image))]
pub(crate) fn detach(name: &CStr) -> Result<()> {
    const DETACH_NOFOLLOW: usize = 2 | 8;
    call(nr::UMOUNT2, [path(name), DETACH_NOFOLLOW, 0, 0, 0, 0]).map(drop)
}

/// `fsopen(2)`.
///
/// # Errors
/// As the kernel says.
pub(crate) fn open_file_system(name: &CStr) -> Result<OwnedFd> {
    const FSOPEN_CLOEXEC: usize = 1;
    new_fd(call(nr::FSOPEN, [path(name), FSOPEN_CLOEXEC, 0, 0, 0, 0]))
}

/// `fsconfig(2)` with a string value.
///
/// # Errors
/// As the kernel says.
pub(crate) fn configure(context: Fd, key: &CStr, value: &CStr) -> Result<()> {
    const SET_STRING: usize = 1;
    call(nr::FSCONFIG, [arg(context), SET_STRING, path(key), path(value), 0, 0]).map(drop)
}

/// `fsconfig(FSCONFIG_CMD_CREATE)` and `fsmount(2)` with the given `MOUNT_ATTR_*` bits.
///
/// # Errors
/// As the kernel says.
pub(crate) fn create_mount(context: Fd, attributes: u32) -> Result<OwnedFd> {
    const CMD_CREATE: usize = 6;
    const FSMOUNT_CLOEXEC: usize = 1;
    call(nr::FSCONFIG, [arg(context), CMD_CREATE, 0, 0, 0, 0])?;
    new_fd(call(nr::FSMOUNT, [arg(context), FSMOUNT_CLOEXEC, low(attributes), 0, 0, 0]))
}

/// `open_tree(2)` with `OPEN_TREE_CLONE`, the whole tree below `name`.
///
/// # Errors
/// As the kernel says.
pub(crate) fn clone_tree(dir: Fd, name: &CStr) -> Result<OwnedFd> {
    const CLONE_CLOEXEC_RECURSIVE_EMPTY: usize = 1 | 0o2_000_000 | 0x8000 | 0x1000;
    new_fd(call(nr::OPEN_TREE, [arg(dir), path(name), CLONE_CLOEXEC_RECURSIVE_EMPTY, 0, 0, 0]))
}

/// `move_mount(2)` from a mount descriptor onto an open directory or file.
///
/// # Errors
/// As the kernel says.
pub(crate) fn attach(mount: Fd, target: Fd) -> Result<()> {
    const FROM_EMPTY_TO_EMPTY: usize = 0x4 | 0x40;
    let empty = path(c"");
    call(nr::MOVE_MOUNT, [arg(mount), empty, arg(target), empty, FROM_EMPTY_TO_EMPTY, 0]).map(drop)
}

/// [`attach`] by the name of an entry, itself and not what it may link to.
///
/// # Errors
/// As the kernel says.
pub(crate) fn attach_at(mount: Fd, directory: Fd, name: &CStr) -> Result<()> {
    const FROM_EMPTY: usize = 0x4;
    let args = [arg(mount), path(c""), arg(directory), path(name), FROM_EMPTY, 0];
    call(nr::MOVE_MOUNT, args).map(drop)
}

/// `fchownat(2)` and `fchmodat(2)` of a directory.
///
/// # Errors
/// As the kernel says.
pub(crate) fn set_owner_and_mode(name: &CStr, uid: u32, gid: u32, mode: u32) -> Result<()> {
    let dir = arg(Fd::CWD);
    call(nr::FCHOWNAT, [dir, path(name), low(uid), low(gid), 0, 0])?;
    call(nr::FCHMODAT, [dir, path(name), low(mode), 0, 0, 0]).map(drop)
}

/// How far [`set_mount_flags`] reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// This mount.
    One,
    /// This mount and all below it.
    Tree,
}

/// `mount_setattr(2)` with `MOUNT_ATTR_IDMAP`. Linux 5.12.
///
/// # Errors
/// `EINVAL` when the file system cannot be mapped or the mount is attached; else as the kernel says.
pub(crate) fn map_ids(mount: Fd, reach: Reach, user_namespace: Fd) -> Result<()> {
    const MOUNT_ATTR_IDMAP: u64 = 0x10_0000;
    let descriptor = u64::try_from(user_namespace.0).unwrap_or(u64::MAX);
    set_attributes(mount, c"", reach, [MOUNT_ATTR_IDMAP, 0, 0, descriptor])
}

/// `mount_setattr(2)`: sets and clears `MOUNT_ATTR_*` bits. Linux 5.12.
///
/// # Errors
/// As the kernel says.
pub(crate) fn set_mount_flags(
    dir: Fd,
    name: &CStr,
    reach: Reach,
    set: u32,
    clear: u32,
) -> Result<()> {
    // What is mounted on the host later does not appear in a tree that has been cloned from it.
    const MS_PRIVATE: u64 = 1 << 18;
    let propagation = match reach {
        Reach::One => 0,
        Reach::Tree => MS_PRIVATE,
    };
    set_attributes(dir, name, reach, [u64::from(set), u64::from(clear), propagation, 0])
}

/// `mount_setattr(2)` that only takes away, from a whole tree, and leaves its propagation.
///
/// # Errors
/// As the kernel says.
#[cfg(not(postern_image))]
pub(crate) fn restrict(mount: Fd, reach: Reach, set: u32) -> Result<()> {
    set_attributes(mount, c"", reach, [u64::from(set), 0, 0, 0])
}

/// `attr` is a `struct mount_attr`: set, clear, propagation, user namespace.
fn set_attributes(dir: Fd, name: &CStr, reach: Reach, attr: [u64; 4]) -> Result<()> {
    const AT_EMPTY_PATH: usize = 0x1000;
    const AT_RECURSIVE: usize = 0x8000;
    let flags = match reach {
        Reach::One => AT_EMPTY_PATH,
        Reach::Tree => AT_EMPTY_PATH | AT_RECURSIVE,
    };
    let args = [arg(dir), path(name), flags, at(&attr), size_of_val(&attr), 0];
    call(nr::MOUNT_SETATTR, args).map(drop)
}
