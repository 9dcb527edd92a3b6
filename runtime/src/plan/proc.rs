//! The guest's `/proc`: one procfs for the launcher, one for each run, and what is masked in it.

use std::path::Path;

use super::dev::{MASK_DIR, MASK_FILE};
use super::text::c_string;
use super::tree::{Bounds, Tree};
use super::{Access, Export, MountOp};
use crate::error::Refusal;
use crate::host::{FileFact, FileKind, Host};
use crate::profile::{Field, ProcKind, Root, SandboxProfile, Sharing};

/// Where it is.
const PROC: &str = "/proc";

/// What leaks when it is read: kernel addresses, other users' keys, the machine's layout, its boot
/// and its boot's parameters, and what other tenants do, from which much can be told. Missing ones
/// are passed over. What stays is what ordinary programs ask for: meminfo, cpuinfo, stat, uptime,
/// loadavg, version, filesystems, cgroups, devices and a few more that never change.
pub(crate) const LEAKS: [(&str, &str); 31] = [
    ("/proc/kallsyms", MASK_FILE),
    ("/proc/sched_debug", MASK_FILE),
    ("/proc/iomem", MASK_FILE),
    ("/proc/ioports", MASK_FILE),
    ("/proc/modules", MASK_FILE),
    ("/proc/keys", MASK_FILE),
    ("/proc/key-users", MASK_FILE),
    ("/proc/latency_stats", MASK_FILE),
    ("/proc/config.gz", MASK_FILE),
    ("/proc/sysrq-trigger", MASK_FILE),
    ("/proc/cmdline", MASK_FILE),
    ("/proc/interrupts", MASK_FILE),
    ("/proc/softirqs", MASK_FILE),
    ("/proc/schedstat", MASK_FILE),
    ("/proc/diskstats", MASK_FILE),
    ("/proc/partitions", MASK_FILE),
    ("/proc/swaps", MASK_FILE),
    ("/proc/vmstat", MASK_FILE),
    ("/proc/zoneinfo", MASK_FILE),
    ("/proc/buddyinfo", MASK_FILE),
    ("/proc/locks", MASK_FILE),
    ("/proc/mdstat", MASK_FILE),
    ("/proc/sys/kernel/random/boot_id", MASK_FILE),
    ("/proc/acpi", MASK_DIR),
    ("/proc/asound", MASK_DIR),
    ("/proc/bus", MASK_DIR),
    ("/proc/driver", MASK_DIR),
    ("/proc/fs", MASK_DIR),
    ("/proc/irq", MASK_DIR),
    ("/proc/pressure", MASK_DIR),
    ("/proc/scsi", MASK_DIR),
];

/// What leaks, and is closed to everybody but root on kernels of our time: masked unless the host
/// shows that it is so here too, since each mask costs every run 7 µs.
pub(crate) const ROOTS_ALONE: [&str; 9] = [
    "/proc/kcore",
    "/proc/kmsg",
    "/proc/kpageflags",
    "/proc/kpagecount",
    "/proc/kpagecgroup",
    "/proc/vmallocinfo",
    "/proc/slabinfo",
    "/proc/timer_list",
    "/proc/pagetypeinfo",
];

/// Machine-wide directories, read-only where the rest of the procfs is not.
const READ_ONLY: [&str; 1] = ["/proc/sys"];

/// Whether permission bits alone keep a file from every guest: none is root outside.
fn is_closed(host: &Host, path: &str) -> bool {
    const OTHERS: u32 = 0o077;
    match host.file(Path::new(path)) {
        Some(FileFact::Found(found)) => {
            found.kind == FileKind::Regular && found.uid == 0 && found.mode & OTHERS == 0
        }
        Some(FileFact::Missing | FileFact::Dangling { .. } | FileFact::Unreachable { .. })
        | None => false,
    }
}

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
pub(super) fn run(profile: &SandboxProfile, host: &Host) -> Result<Vec<MountOp>, Refusal> {
    let field = Field::new("proc");
    let Some((access, only_pids)) = options(profile.proc) else { return Ok(Vec::new()) };
    let mut ops = Vec::new();
    if profile.namespaces.pid == Sharing::Own {
        ops.push(MountOp::Proc { target: c_string(field, PROC)?, access, only_pids });
    }
    // Before the masks, which it would take along.
    if profile.proc == ProcKind::Masked {
        for target in READ_ONLY {
            ops.push(MountOp::ReadOnlySelf { target: c_string(field, target)? });
        }
    }
    if super::dev::has_masks(profile.proc) {
        let roots = ROOTS_ALONE.into_iter().filter(|path| !is_closed(host, path));
        for (target, cover) in roots.map(|path| (path, MASK_FILE)).chain(LEAKS) {
            let cover = c_string(field, cover)?;
            ops.push(MountOp::Mask { target: c_string(field, target)?, cover });
        }
    }
    Ok(ops)
}
