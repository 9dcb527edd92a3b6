//! Carries out mount operations, in the template and in each run; decides nothing.
//!
//! Paths inside the new root are relative to the current directory, which is that root, and are
//! opened through no symlink: a planted link is an error, never a way out.

mod exports;
mod owner;
pub(crate) mod sys;

use core::ffi::CStr;

use postern_init::step::Step;
use postern_init::supervise::{self, Failure};
use postern_init::sys as base;
use postern_init::sys::{Errno, Fd, O_CREATE_NEW, O_DIRECTORY, O_NOFOLLOW, O_PATH, O_WRONLY};
use postern_init::sys::{OwnedFd, open_at};

use crate::wire::{List, MALFORMED, Reader, op};
pub(crate) use exports::{EXPORTS_MAX, Exports, Opened, open_exports, open_own_exports};
pub(crate) use owner::{OwnerMap, user_namespace};
pub(crate) use sys::{
    Reach, Resolve, attach, clone_tree, detach_here, make_mounts_private, open_resolved, pivot_here,
};

const MOUNT_ATTR_RDONLY: u32 = 1;
/// A path of ours inside the root: two names and a slash fit easily.
const JOINED_MAX: usize = 512;

/// What operations need besides their own fields.
pub(crate) struct Around<'r> {
    /// The run's own part of the exchange; empty in the template.
    pub(crate) run_directory: &'r CStr,
    /// Holds the map of an owner for whom the guest stands.
    pub(crate) owner: Option<Fd>,
}

/// Carries out a list.
pub(crate) fn apply<'a>(
    list: List<'a>,
    around: &Around<'_>,
    exports: &mut Exports<'a>,
) -> Result<(), Failure> {
    let mut reader = list.entries;
    let mut places = Places { last: None };
    let mut index = 0u32;
    while u64::from(index) < list.count {
        apply_one(&mut reader, &mut places, around, exports)
            .map_err(|(step, errno)| Failure::at_index(step, index)(errno))?;
        index = index.wrapping_add(1);
    }
    Ok(())
}

type Failed = (Step, Errno);

fn at(step: Step) -> impl FnOnce(Errno) -> Failed {
    move |errno| (step, errno)
}

/// Directories that targets are named in. Neighbours in a list share one, so the last stays open.
struct Places<'a> {
    last: Option<(&'a CStr, OwnedFd)>,
}

impl<'a> Places<'a> {
    /// The directory at `path`, reached through no symlink.
    fn directory(&mut self, path: &'a CStr, step: Step) -> Result<Fd, Failed> {
        if path == c"." {
            return Ok(Fd::CWD);
        }
        if let Some((known, directory)) = &self.last
            && *known == path
        {
            return Ok(directory.fd());
        }
        let flags = O_PATH | O_DIRECTORY;
        let directory = open_resolved(Fd::CWD, path, flags, Resolve::BeneathNoSymlinks);
        let directory = directory.map_err(at(step))?;
        let fd = directory.fd();
        self.last = Some((path, directory));
        Ok(fd)
    }

    /// Attaches a mount; what was open may lie under it now.
    fn attach(&mut self, mount: &OwnedFd, parent: &'a CStr, name: &CStr) -> Result<(), Failed> {
        let directory = self.directory(parent, Step::OpenTarget)?;
        sys::attach_at(mount.fd(), directory, name).map_err(at(Step::AttachMount))?;
        // A mount in a directory leaves that directory itself where it was.
        if self.last.as_ref().is_some_and(|(known, _)| *known != parent) {
            self.last = None;
        }
        Ok(())
    }
}

fn apply_one<'a>(
    r: &mut Reader<'a>,
    places: &mut Places<'a>,
    around: &Around<'_>,
    exports: &mut Exports<'a>,
) -> Result<(), Failed> {
    match word(r)? {
        op::ROOT => {
            let mount = fresh(r)?;
            become_root(&mount)
        }
        op::HOST_ROOT => {
            let attributes = small(r)?;
            let mount = clone_tree(Fd::CWD, c"/").map_err(at(Step::CloneSource))?;
            set_flags(&mount, Reach::Tree, attributes)?;
            become_root(&mount)
        }
        op::DIR => {
            let (mode, parent, name) = (small(r)?, string(r)?, string(r)?);
            let parent = places.directory(parent, Step::CreateTarget)?;
            sys::make_directory(parent, name, mode).map_err(at(Step::MakeDirectory))
        }
        op::FILE => {
            let (mode, parent, name) = (small(r)?, string(r)?, string(r)?);
            let contents = r.bytes().map_err(at(Step::DecodeSetup))?;
            write_new(places.directory(parent, Step::CreateTarget)?, name, mode, contents)
        }
        op::SYMLINK => {
            let (parent, name, to) = (string(r)?, string(r)?, string(r)?);
            let parent = places.directory(parent, Step::CreateTarget)?;
            sys::make_link(to, parent, name).map_err(at(Step::MakeLink))
        }
        op::BIND => {
            let mount = bound(r)?;
            places.attach(&mount, string(r)?, string(r)?)
        }
        op::BIND_AS => {
            let mount = bound(r)?;
            let owner = around.owner.ok_or((Step::DecodeSetup, MALFORMED))?;
            sys::map_ids(mount.fd(), Reach::Tree, owner).map_err(at(Step::MapOwner))?;
            places.attach(&mount, string(r)?, string(r)?)
        }
        op::FRESH => {
            let mount = fresh(r)?;
            let (export, target) = (word(r)?, string(r)?);
            places.attach(&mount, string(r)?, string(r)?)?;
            if export == 0 { Ok(()) } else { exports::keep(target, export, exports) }
        }
        op::MASK => {
            let (target, cover) = (string(r)?, string(r)?);
            mask(target, cover)
        }
        op::READ_ONLY => {
            let target = open_target(string(r)?)?;
            sys::set_mount_flags(target.fd(), c"", Reach::One, MOUNT_ATTR_RDONLY, 0)
                .map_err(at(Step::MountFlags))
        }
        op::READ_ONLY_SELF => {
            places.last = None;
            read_only_self(string(r)?)
        }
        op::RUN_DIRECTORY => {
            let (attributes, target, keep) = (small(r)?, string(r)?, string(r)?);
            places.last = None;
            own_directory(attributes, target, keep, around.run_directory)
        }
        _ => Err((Step::DecodeSetup, MALFORMED)),
    }
}

fn small(r: &mut Reader<'_>) -> Result<u32, Failed> {
    r.small().map_err(at(Step::DecodeSetup))
}

fn string<'a>(r: &mut Reader<'a>) -> Result<&'a CStr, Failed> {
    r.string().map_err(at(Step::DecodeSetup))
}

fn open_target(target: &CStr) -> Result<OwnedFd, Failed> {
    open_resolved(Fd::CWD, target, O_PATH, Resolve::BeneathNoSymlinks).map_err(at(Step::OpenTarget))
}

fn attach_to(mount: &OwnedFd, target: &CStr) -> Result<(), Failed> {
    let target = open_target(target)?;
    attach(mount.fd(), target.fd()).map_err(at(Step::AttachMount))
}

fn set_flags(mount: &OwnedFd, reach: Reach, attributes: u32) -> Result<(), Failed> {
    sys::set_mount_flags(mount.fd(), c"", reach, attributes, 0).map_err(at(Step::MountFlags))
}

/// Covers the old root with the new one and stands in it: later targets are relative to it, while
/// absolute sources are still the host's.
fn become_root(mount: &OwnedFd) -> Result<(), Failed> {
    let host = open_at(Fd::CWD, c"/", O_PATH | O_DIRECTORY, 0).map_err(at(Step::OpenTarget))?;
    attach(mount.fd(), host.fd()).map_err(at(Step::AttachMount))?;
    crate::sys::change_directory_to(mount.fd()).map_err(at(Step::MakeRoot))
}

/// step, attributes, type, count, then key and value each.
fn fresh(r: &mut Reader<'_>) -> Result<OwnedFd, Failed> {
    let step = Step::from_code(small(r)?).ok_or((Step::DecodeSetup, MALFORMED))?;
    let (attributes, kind) = (small(r)?, string(r)?);
    let context = sys::open_file_system(kind).map_err(at(step))?;
    for _ in 0..small(r)? {
        let (key, value) = (string(r)?, string(r)?);
        sys::configure(context.fd(), key, value).map_err(at(step))?;
    }
    sys::create_mount(context.fd(), attributes).map_err(at(step))
}

fn write_new(parent: Fd, name: &CStr, mode: u32, contents: &[u8]) -> Result<(), Failed> {
    let flags = O_WRONLY | O_CREATE_NEW | O_NOFOLLOW;
    let file = open_at(parent, name, flags, mode).map_err(at(Step::WriteFile))?;
    let mut left = contents;
    while !left.is_empty() {
        let written = base::write(file.fd(), left).map_err(at(Step::WriteFile))?;
        left = left.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// The source must be what the plan saw: the path is opened again here, in this mount namespace,
/// since only its own mounts can be cloned.
fn bound(r: &mut Reader<'_>) -> Result<OwnedFd, Failed> {
    let attributes = small(r)?;
    let (dev, ino) = (word(r)?, word(r)?);
    let source = open_resolved(Fd::CWD, string(r)?, O_PATH | O_NOFOLLOW, Resolve::NoSymlinks)
        .map_err(at(Step::OpenSource))?;
    let seen = sys::identity(source.fd()).map_err(at(Step::SourceChanged))?;
    if (seen.dev, seen.ino) != (dev, ino) {
        return Err((Step::SourceChanged, Errno::ESTALE));
    }
    let mount = clone_tree(source.fd(), c"").map_err(at(Step::CloneSource))?;
    set_flags(&mount, Reach::Tree, attributes)?;
    Ok(mount)
}

fn word(r: &mut Reader<'_>) -> Result<u64, Failed> {
    r.word().map_err(at(Step::DecodeSetup))
}

/// Binds our own file or directory, whose mount's flags come along, in one call. No path here leads
/// through anything that a guest could have changed: the procfs has just been mounted.
fn mask(target: &CStr, cover: &CStr) -> Result<(), Failed> {
    match sys::bind_by_path(cover, target) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(errno) => Err((Step::Mask, errno)),
    }
}

/// Keeps a part of a writable file system from being written.
fn read_only_self(target: &CStr) -> Result<(), Failed> {
    let target = match open_resolved(Fd::CWD, target, O_PATH, Resolve::BeneathNoSymlinks) {
        Ok(target) => target,
        Err(Errno::ENOENT) => return Ok(()),
        Err(errno) => return Err((Step::OpenTarget, errno)),
    };
    let mount = clone_tree(target.fd(), c"").map_err(at(Step::CloneSource))?;
    set_flags(&mount, Reach::Tree, MOUNT_ATTR_RDONLY)?;
    attach(mount.fd(), target.fd()).map_err(at(Step::AttachMount))
}

/// Binds the run's own part over the exchange, which no path leads to from then on.
fn own_directory(attributes: u32, target: &CStr, keep: &CStr, run: &CStr) -> Result<(), Failed> {
    let step = Step::RunDirectory;
    let mut buffer = [0u8; JOINED_MAX];
    let kept = match keep.is_empty() {
        true => None,
        false => {
            let name = join(&mut buffer, target, keep).ok_or((step, MALFORMED))?;
            Some(clone_tree(Fd::CWD, name).map_err(at(step))?)
        }
    };
    let own = join(&mut buffer, target, run).ok_or((step, MALFORMED))?;
    let mount = clone_tree(Fd::CWD, own).map_err(at(step))?;
    set_flags(&mount, Reach::One, attributes)?;
    attach_to(&mount, target)?;
    match kept {
        None => Ok(()),
        Some(mount) => {
            let name = join(&mut buffer, target, keep).ok_or((step, MALFORMED))?;
            attach_to(&mount, name)
        }
    }
}

/// `parent/name` for a name that is one path component.
fn join<'b>(buffer: &'b mut [u8], parent: &CStr, name: &CStr) -> Option<&'b CStr> {
    let name = name.to_bytes();
    let one = !name.is_empty() && !name.iter().any(supervise::is_slash) && name != b"..";
    if one { supervise::join(buffer, parent.to_bytes(), name) } else { None }
}

/// A fresh procfs of the caller's pid namespace, attached nowhere: writable whatever the visible
/// one is, and reached by no path.
pub(crate) fn detached_proc() -> Result<OwnedFd, Errno> {
    const NOSUID_NODEV_NOEXEC: u32 = 2 | 4 | 8;
    let context = sys::open_file_system(c"proc")?;
    sys::create_mount(context.fd(), NOSUID_NODEV_NOEXEC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_component_is_joined() {
        let rows: [(&CStr, Option<&CStr>); 5] = [
            (c"run-1", Some(c"run/postern/run-1")),
            (c"", None),
            (c"..", None),
            (c"a/b", None),
            (c"...", Some(c"run/postern/...")),
        ];
        for (name, expected) in rows {
            let mut buffer = [0u8; JOINED_MAX];
            assert_eq!(join(&mut buffer, c"run/postern", name), expected, "{name:?}");
        }
    }
}
