//! The guest's `/proc`: one procfs for the launcher, one for each run, and what is masked in it.

use std::path::Path;

use super::dev::{MASK_DIR, MASK_FILE};
use super::text::c_string;
use super::tree::{Bounds, Tree};
use super::{Access, Export, MountOp};
use crate::error::Refusal;
use crate::profile::{Field, ProcKind, Root, SandboxProfile, Sharing};

/// Where it is.
const PROC: &str = "/proc";

/// What leaks when it is read: kernel memory and addresses, other users' keys, other tenants'
/// timers and page counts, the machine's layout. Missing ones are passed over.
const MASKED: [(&str, &str); 21] = [
    ("/proc/kcore", MASK_FILE),
    ("/proc/kmsg", MASK_FILE),
    ("/proc/kallsyms", MASK_FILE),
    ("/proc/kpageflags", MASK_FILE),
    ("/proc/kpagecount", MASK_FILE),
    ("/proc/kpagecgroup", MASK_FILE),
    ("/proc/vmallocinfo", MASK_FILE),
    ("/proc/slabinfo", MASK_FILE),
    ("/proc/timer_list", MASK_FILE),
    ("/proc/sched_debug", MASK_FILE),
    ("/proc/pagetypeinfo", MASK_FILE),
    ("/proc/iomem", MASK_FILE),
    ("/proc/ioports", MASK_FILE),
    ("/proc/modules", MASK_FILE),
    ("/proc/keys", MASK_FILE),
    ("/proc/key-users", MASK_FILE),
    ("/proc/latency_stats", MASK_FILE),
    ("/proc/config.gz", MASK_FILE),
    ("/proc/sysrq-trigger", MASK_FILE),
    ("/proc/acpi", MASK_DIR),
    ("/proc/scsi", MASK_DIR),
];

/// Machine-wide directories, read-only where the rest of the procfs is not.
const READ_ONLY: [&str; 4] = ["/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs"];

/// How a kind of procfs is mounted: access, and whether with processes only.
const fn options(kind: ProcKind) -> Option<(Access, bool)> {
    match kind {
        ProcKind::ReadOnly => Some((Access::ReadOnly, false)),
        ProcKind::Minimal => Some((Access::ReadOnly, true)),
        ProcKind::Masked => Some((Access::ReadWrite, false)),
        ProcKind::None => None,
    }
}

/// Adds the launcher's procfs, never masked: the kernel mounts a fresh one for a run only where
/// it sees one in full. Without one, the host's own is covered.
pub(super) fn add(tree: &mut Tree<'_>, profile: &SandboxProfile) -> Result<(), Refusal> {
    let (field, proc) = (Field::new("proc"), Path::new(PROC));
    match (options(profile.proc), profile.root) {
        (Some((access, only_pids)), Root::Curated) => {
            tree.dir(field, proc, 0o555)?;
            tree.proc(field, proc, access, only_pids)
        }
        (Some((access, only_pids)), Root::HostView) => tree.proc(field, proc, access, only_pids),
        (None, Root::Curated) => Ok(()),
        (None, Root::HostView) => {
            let bounds =
                Bounds { size_bytes: 4096, inodes: 4, mode: 0o555, access: Access::ReadOnly };
            tree.tmpfs(field, proc, bounds, Export::No)
        }
    }
}

/// What each run mounts: its own procfs, then the masks over it. A run without a pid namespace of
/// its own may mount no procfs, and sees the launcher's.
pub(super) fn run(profile: &SandboxProfile) -> Result<Vec<MountOp>, Refusal> {
    let field = Field::new("proc");
    let Some((access, only_pids)) = options(profile.proc) else { return Ok(Vec::new()) };
    let mut ops = Vec::new();
    if profile.namespaces.pid == Sharing::Own {
        ops.push(MountOp::Proc { target: c_string(field, PROC)?, access, only_pids });
    }
    if super::dev::has_masks(profile.proc) {
        for (target, cover) in MASKED {
            let cover = c_string(field, cover)?;
            ops.push(MountOp::Mask { target: c_string(field, target)?, cover });
        }
    }
    if profile.proc == ProcKind::Masked {
        for target in READ_ONLY {
            ops.push(MountOp::ReadOnlySelf { target: c_string(field, target)? });
        }
    }
    Ok(ops)
}
