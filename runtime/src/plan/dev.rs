//! The guest's `/dev`: six nodes of the host's, links, and places for pseudo-terminals and
//! shared memory; no node is made, since a user namespace may make none.

use std::path::Path;

use super::tree::{Bounds, Tree};
use super::{Access, Export, MountOp, Plan};
use crate::error::Refusal;
use crate::host::{FileFact, FileKind};
use crate::plan::text::c_string;
use crate::profile::{Field, ProcKind, Root, SandboxProfile};

/// A device node that the guest gets.
#[derive(Debug)]
pub(crate) struct Device {
    /// Where it is, on both sides.
    pub(crate) path: &'static str,
    /// Its major number.
    major: u32,
    /// Its minor number.
    minor: u32,
    /// Whether a host without it is refused.
    is_required: bool,
}

const fn device(path: &'static str, major: u32, minor: u32, is_required: bool) -> Device {
    Device { path, major, minor, is_required }
}

/// The nodes. See [null(4)](https://man7.org/linux/man-pages/man4/null.4.html) and
/// [random(4)](https://man7.org/linux/man-pages/man4/random.4.html).
pub(crate) const DEVICES: [Device; 6] = [
    device("/dev/null", 1, 3, true),
    device("/dev/zero", 1, 5, true),
    device("/dev/full", 1, 7, true),
    device("/dev/random", 1, 8, true),
    device("/dev/urandom", 1, 9, true),
    device("/dev/tty", 5, 0, false),
];

/// Links that programs expect.
const LINKS: [(&str, &str); 5] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
];

/// An unreadable file that masks files; hidden in turn by the run's own `/dev/shm`.
pub(super) const MASK_FILE: &str = "/dev/shm/.mask";

/// An empty directory that masks directories; hidden likewise.
pub(crate) const MASK_DIR: &str = "/dev/shm/.empty";

/// Builds `/dev`: on the root tmpfs, or on one of its own over the host's.
pub(super) fn add(tree: &mut Tree<'_>, profile: &SandboxProfile) -> Result<(), Refusal> {
    let field = Field::new("root");
    match profile.root {
        Root::Curated => tree.dir(field, Path::new("/dev"), 0o755)?,
        Root::HostView => {
            let bounds =
                Bounds { size_bytes: 1 << 16, inodes: 64, mode: 0o755, access: Access::ReadWrite };
            tree.tmpfs(field, Path::new("/dev"), bounds, Export::No)?;
        }
    }
    for device in &DEVICES {
        node(tree, field, device)?;
    }
    for (target, to) in LINKS {
        tree.symlink(field, Path::new(target), Path::new(to))?;
    }
    for target in ["/dev/pts", "/dev/shm"] {
        tree.dir(field, Path::new(target), 0o755)?;
    }
    if has_masks(profile.proc) {
        tree.file(field, Path::new(MASK_FILE), 0, Vec::new())?;
        tree.dir(field, Path::new(MASK_DIR), 0o555)?;
    }
    tree.fresh(field, Path::new("/dev/shm"))
}

/// Whether anything of this kind of `/proc` is masked.
pub(super) const fn has_masks(kind: ProcKind) -> bool {
    match kind {
        ProcKind::ReadOnly | ProcKind::Masked => true,
        ProcKind::Minimal | ProcKind::None => false,
    }
}

/// One node, if it is the device that its name says.
fn node(tree: &mut Tree<'_>, field: Field, device: &Device) -> Result<(), Refusal> {
    let path = Path::new(device.path);
    let rdev = libc::makedev(device.major, device.minor);
    match tree.host().file(path) {
        Some(FileFact::Found(found)) if found.kind == FileKind::CharDevice { rdev } => {
            tree.device(field, found, path)
        }
        None => Err(Refusal::NotProbed { path: path.to_owned() }),
        Some(_) if device.is_required => Err(Refusal::Device { path: path.to_owned() }),
        Some(_) => Ok(()),
    }
}

/// Each run's own terminals; to devpts, `max=0` is no limit at all.
pub(super) fn terminals(profile: &SandboxProfile) -> Result<Option<MountOp>, Refusal> {
    let target = c_string(Field::new("pty_max"), "/dev/pts")?;
    Ok((profile.pty_max > 0).then_some(MountOp::Devpts { target, max: profile.pty_max }))
}

impl Plan {
    /// A run has a place of its own to make a terminal in.
    pub(crate) fn has_terminals(&self) -> bool {
        let is_place = |operation: &MountOp| matches!(operation, MountOp::Devpts { target, .. } if target.as_c_str() == c"/dev/pts");
        self.run.iter().any(is_place)
    }
}

/// Each run's own shared memory, over the sources of masks.
pub(super) fn shared_memory(profile: &SandboxProfile) -> Result<MountOp, Refusal> {
    Ok(MountOp::Tmpfs {
        target: c_string(Field::new("shm_bytes"), "/dev/shm")?,
        size_bytes: profile.shm_bytes,
        inodes: profile.shm_inodes,
        mode: 0o1777,
        access: Access::ReadWrite,
        export: Export::No,
    })
}
