//! The mount tree of a direct launch: operations in their order over a root that is discovered as it
//! is built; decides nothing.

use core::ffi::CStr;

use postern_init::sys::{
    self as base, Errno, Fd, O_DIRECTORY, O_NOFOLLOW, O_PATH, OwnedFd, open_at,
};

use super::order::{Access, Operation, Order, Upper};
use super::overlay::{self, Overlay};
use super::report::{Failure, Fault, Text, fd_path};
use super::target::{self, Node, Place, UNSAID, ensure, kind, parent_mode};
use super::{device, harden, sys};
use crate::mount::sys::{self as mount, Reach};
use crate::sys::change_directory_to;

pub(super) mod attribute {
    pub(in crate::direct) const READ_ONLY: u32 = 1;
    pub(in crate::direct) const NO_SUID: u32 = 2;
    pub(in crate::direct) const NO_DEVICES: u32 = 4;
    pub(in crate::direct) const NO_EXEC: u32 = 8;
}
use attribute::{NO_DEVICES, NO_SUID, READ_ONLY};

/// Names in the base.
const HOST: &CStr = c"oldroot";
const ROOT: &CStr = c"newroot";
const DATA: &CStr = c"bindfile";

/// The tree while it is built.
pub(super) struct Tree<'a> {
    order: &'a Order<'a>,
    /// What holds the host's tree and the new root meanwhile, and what is bound but on no path.
    base: OwnedFd,
    /// What a failure says besides.
    pub(super) text: Text,
}

/// Contents for a file that is bound.
struct Data {
    fd: Fd,
    mode: u32,
    access: Access,
}

impl<'a> Tree<'a> {
    /// Sees that every source is there, then stands in an empty root: absolute paths are still the
    /// host's, whose tree holds nothing of ours, so that all of it can be bound.
    pub(super) fn new(order: &'a Order<'a>) -> Result<Tree<'a>, Failure> {
        find_sources(order)?;
        sys::make_mounts_slave().map_err(Fault::Propagation.why())?;
        let base = fresh(c"tmpfs", &[], NO_SUID | NO_DEVICES).map_err(Fault::MakeRoot.why())?;
        place_base(&base).map_err(Fault::MakeRoot.why())?;
        Ok(Tree { order, base, text: Text::EMPTY })
    }

    /// Leaves the host's tree, the new root being the only one.
    pub(super) fn enter(self) -> Result<(), Failure> {
        leave_host(&self.base).map_err(Fault::PivotRoot.why())
    }

    /// Carries out everything.
    pub(super) fn build(&mut self) -> Result<(), Failure> {
        for (index, operation) in (0u32..).zip(self.order.operations) {
            self.apply(operation, index)?;
        }
        Ok(())
    }

    fn apply(&mut self, operation: &Operation<'_>, index: u32) -> Result<(), Failure> {
        match *operation {
            Operation::Bind { .. } => self.bind(operation, index),
            Operation::RemountReadOnly { target } => {
                let place = existing(target, index)?;
                let taken = READ_ONLY | NO_SUID | NO_DEVICES;
                mount::restrict(place.fd(), Reach::One, taken)
                    .map_err(Fault::RemountReadOnly.at(index))
            }
            Operation::Overlay { layers, upper, target } => {
                let place = directory(target, index)?;
                let overlay = Overlay { layers, upper };
                let mount = overlay::make(&overlay, self.base.fd(), index)?;
                self.attach(&mount, &place, Fault::Overlay, index)
            }
            Operation::Proc { target } => {
                let place = directory(target, index)?;
                let proc = device::proc(self.order, index)?;
                self.attach(&proc, &place, Fault::Proc, index)?;
                device::cover_proc(&proc, index)?;
                match &self.order.hardening {
                    None => Ok(()),
                    Some(hardening) => harden::mask_proc(hardening, &proc, self.base.fd())
                        .map_err(Fault::CoverProc.at(index)),
                }
            }
            Operation::Dev { target } => {
                let place = directory(target, index)?;
                let dev = tmpfs(0o755, None).map_err(Fault::Tmpfs.at(index))?;
                self.attach(&dev, &place, Fault::Tmpfs, index)?;
                device::fill_dev(&dev, self.order.console, index)
            }
            Operation::Tmpfs { target, mode, size } => {
                let node = Node::Directory(0o755);
                let place = ensure(target, node, parent_mode(mode), index)?;
                let mount = tmpfs(mode, size).map_err(Fault::Tmpfs.at(index))?;
                self.attach(&mount, &place, Fault::Tmpfs, index)
            }
            Operation::Mqueue { target } => {
                let place = directory(target, index)?;
                let mount = fresh(c"mqueue", &[], 0).map_err(Fault::Mqueue.at(index))?;
                self.attach(&mount, &place, Fault::Mqueue, index)
            }
            Operation::Dir { target, mode } => ensure_directory(target, mode, index),
            Operation::File { fd, target, mode } => {
                let file = target::create(target, mode, index)?;
                take_in(fd, &file, index)
            }
            Operation::BindData { fd, target, mode, access } => {
                let place = ensure(target, Node::File, parent_mode(mode), index)?;
                let mount = self.data(&Data { fd, mode, access }, index)?;
                self.attach(&mount, &place, Fault::Bind, index)?;
                // Only now: what has no name cannot be attached.
                sys::unlink(self.base.fd(), DATA).map_err(Fault::TemporaryFile.at(index))
            }
            Operation::Symlink { to, target } => self.link(to, target, index),
            Operation::Chmod { target, mode } => {
                let place = target::open(target).map_err(Fault::OpenTarget.at(index))?;
                let mut buffer = [0; 32];
                let path = fd_path(&mut buffer, place.fd()).unwrap_or(c"");
                sys::change_mode(path, mode).map_err(Fault::Chmod.at(index))
            }
            Operation::Hostname { name } => {
                crate::sys::set_hostname(name).map_err(Fault::Hostname.at(index))
            }
        }
    }

    fn bind(&self, operation: &Operation<'_>, index: u32) -> Result<(), Failure> {
        let Operation::Bind { source, target, access, may_miss, seen } = *operation else {
            return Ok(());
        };
        let mount = match mount::clone_tree(Fd::CWD, source) {
            Ok(mount) => mount,
            Err(Errno::ENOENT) if may_miss => return Ok(()),
            Err(errno) => return Err(Fault::OpenSource.at(index)(errno)),
        };
        let found = mount::identity(mount.fd()).map_err(Fault::OpenSource.at(index))?;
        if seen.is_some_and(|seen| seen != (found.dev, found.ino)) {
            return Err(Fault::SourceChanged.plain(index));
        }
        let node = match found.mode & kind::MASK {
            kind::DIRECTORY => Node::Directory(0o755),
            _ => Node::File,
        };
        let place = ensure(target, node, UNSAID, index)?;
        let taken = taken(access);
        match mount::restrict(mount.fd(), Reach::Tree, taken) {
            Ok(()) => {}
            Err(_) if self.order.is_fail_open => {
                mount::restrict(mount.fd(), Reach::One, taken)
                    .map_err(Fault::BindFlags.at(index))?;
            }
            Err(errno) => return Err(Fault::BindFlags.at(index)(errno)),
        }
        self.attach(&mount, &place, Fault::Bind, index)
    }

    /// Attaches a mount; one over the root becomes the root that is stood in.
    fn attach(
        &self,
        mount: &OwnedFd,
        place: &OwnedFd,
        fault: Fault,
        index: u32,
    ) -> Result<(), Failure> {
        let is_root = is_root(place).map_err(fault.at(index))?;
        mount::attach(mount.fd(), place.fd()).map_err(fault.at(index))?;
        if is_root {
            change_directory_to(mount.fd()).map_err(fault.at(index))?;
        }
        Ok(())
    }

    fn data(&self, data: &Data, index: u32) -> Result<OwnedFd, Failure> {
        const O_RDWR_CREATE_NEW: u32 = 0o302;
        let base = self.base.fd();
        let failed = |errno| Fault::TemporaryFile.at(index)(errno);
        let file = open_at(base, DATA, O_RDWR_CREATE_NEW, data.mode).map_err(failed)?;
        take_in(data.fd, &file, index)?;
        let mount = mount::clone_tree(base, DATA).map_err(failed)?;
        mount::restrict(mount.fd(), Reach::One, taken(data.access))
            .map_err(Fault::BindFlags.at(index))?;
        Ok(mount)
    }

    fn link(&mut self, to: &CStr, target: &CStr, index: u32) -> Result<(), Failure> {
        let mut place = Place::new(target).map_err(Fault::Parents.at(index))?;
        let parent = place.parent(UNSAID).map_err(Fault::Parents.at(index))?;
        match mount::make_link(to, parent.fd(), place.name()) {
            Ok(()) => Ok(()),
            Err(Errno::EEXIST) => match Text::of_link(parent.fd(), place.name()) {
                Ok(text) if text.bytes() == to.to_bytes() => Ok(()),
                Ok(text) => {
                    self.text = text;
                    Err(Fault::LinkLeadsElsewhere.plain(index))
                }
                Err(_) => Err(Fault::LinkIsOther.plain(index)),
            },
            Err(errno) => Err(Fault::Link.at(index)(errno)),
        }
    }
}

/// Puts the host's tree below the base and the new root beside it, then takes the host's as root
/// again for as long as its paths are needed.
fn place_base(base: &OwnedFd) -> Result<(), Errno> {
    let host = open_at(Fd::CWD, c"/", O_PATH | O_DIRECTORY, 0)?;
    mount::attach(base.fd(), host.fd())?;
    mount::make_directory(base.fd(), HOST, 0o755)?;
    mount::make_directory(base.fd(), ROOT, 0o755)?;
    let root = mount::clone_tree(base.fd(), ROOT)?;
    mount::attach_at(root.fd(), base.fd(), ROOT)?;
    change_directory_to(base.fd())?;
    mount::pivot(c".", HOST)?;
    crate::sys::change_directory(HOST)?;
    crate::sys::change_root(c".")?;
    change_directory_to(root.fd())
}

/// From the new root, the current directory.
fn leave_host(base: &OwnedFd) -> Result<(), Errno> {
    let root = open_at(Fd::CWD, c".", O_PATH | O_DIRECTORY, 0)?;
    change_directory_to(base.fd())?;
    crate::sys::change_root(c".")?;
    mount::detach(HOST)?;
    change_directory_to(root.fd())?;
    mount::pivot_here()?;
    mount::detach_here()?;
    crate::sys::change_directory(c"/")
}

/// Nothing has been done yet when a source turns out to be missing.
fn find_sources(order: &Order<'_>) -> Result<(), Failure> {
    for (index, operation) in (0u32..).zip(order.operations) {
        let find = |source: &CStr| open_at(Fd::CWD, source, O_PATH, 0).map(drop);
        let found = match operation {
            Operation::Bind { source, may_miss, .. } => match find(source) {
                Err(Errno::ENOENT) if *may_miss => Ok(()),
                other => other,
            },
            Operation::Overlay { layers, upper, .. } => {
                let upper = match upper {
                    Upper::Directory { upper, work } => find(upper).and_then(|()| find(work)),
                    Upper::Memory | Upper::ReadOnly => Ok(()),
                };
                layers.iter().fold(upper, |found, layer| found.and_then(|()| find(layer)))
            }
            Operation::RemountReadOnly { .. }
            | Operation::Proc { .. }
            | Operation::Dev { .. }
            | Operation::Tmpfs { .. }
            | Operation::Mqueue { .. }
            | Operation::Dir { .. }
            | Operation::File { .. }
            | Operation::BindData { .. }
            | Operation::Symlink { .. }
            | Operation::Chmod { .. }
            | Operation::Hostname { .. } => Ok(()),
        };
        found.map_err(Fault::FindSource.at(index))?;
    }
    Ok(())
}

fn taken(access: Access) -> u32 {
    match access {
        Access::ReadWrite => NO_SUID | NO_DEVICES,
        Access::ReadOnly => NO_SUID | NO_DEVICES | READ_ONLY,
        Access::Devices => NO_SUID,
    }
}

fn existing(target: &CStr, index: u32) -> Result<OwnedFd, Failure> {
    let place = match target::open(target) {
        Ok(place) => place,
        // The directories above are made, as for every target: `..` may need them.
        Err(_) => {
            let mut place = Place::new(target).map_err(Fault::Parents.at(index))?;
            let parent = place.parent(UNSAID).map_err(Fault::Parents.at(index))?;
            let place = open_at(parent.fd(), place.name(), O_PATH | O_NOFOLLOW, 0);
            place.map_err(Fault::Target.at(index))?
        }
    };
    let found = mount::identity(place.fd()).map_err(Fault::Target.at(index))?;
    match found.mode & kind::MASK {
        kind::LINK => Err(Fault::TargetIsLink.plain(index)),
        _ => Ok(place),
    }
}

fn directory(target: &CStr, index: u32) -> Result<OwnedFd, Failure> {
    ensure(target, Node::Directory(0o755), UNSAID, index)
}

fn ensure_directory(target: &CStr, mode: u32, index: u32) -> Result<(), Failure> {
    ensure(target, Node::Directory(mode), parent_mode(mode), index).map(drop)
}

/// Empties a descriptor into a file; nobody else needs it.
fn take_in(from: Fd, file: &OwnedFd, index: u32) -> Result<(), Failure> {
    target::copy(from, file.fd()).map_err(Fault::WriteFile.at(index))?;
    base::close(from);
    Ok(())
}

/// A file system of its own that is on no path yet.
pub(super) fn fresh(
    kind: &CStr,
    options: &[(&CStr, &CStr)],
    attributes: u32,
) -> Result<OwnedFd, Errno> {
    let context = mount::open_file_system(kind)?;
    // What lists of mounts show as the device.
    mount::configure(context.fd(), c"source", kind)?;
    for (key, value) in options {
        mount::configure(context.fd(), key, value)?;
    }
    mount::create_mount(context.fd(), attributes)
}

/// A tmpfs; a mode is four octal digits.
pub(super) fn tmpfs(mode: u32, size: Option<&CStr>) -> Result<OwnedFd, Errno> {
    let digit = |shift: u32| b'0'.wrapping_add(u8::try_from(mode >> shift & 7).unwrap_or(0));
    let text = [digit(9), digit(6), digit(3), digit(0), 0];
    let mode = (c"mode", postern_init::sys::c_str(&text).ok_or(Errno::EINVAL)?);
    match size {
        None => fresh(c"tmpfs", &[mode], NO_SUID | NO_DEVICES),
        Some(size) => fresh(c"tmpfs", &[mode, (c"size", size)], NO_SUID | NO_DEVICES),
    }
}

fn is_root(place: &OwnedFd) -> Result<bool, Errno> {
    Ok(mount::mount_and_inode(Fd::CWD)? == mount::mount_and_inode(place.fd())?)
}
