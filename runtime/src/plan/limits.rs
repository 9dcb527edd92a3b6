//! Resource and namespace limits of a run; sets none.

use super::{Identity, NamespaceSet, Need, Resource, Rlimit, Sysctl, SysctlScope, Tier};
use crate::host::Host;
use crate::profile::{Limits, SandboxProfile};

impl Resource {
    /// Every resource that is limited.
    pub const ALL: [Self; 10] = [
        Self::Core,
        Self::NoFile,
        Self::FileSize,
        Self::MemLock,
        Self::SigPending,
        Self::MsgQueue,
        Self::NProc,
        Self::AddressSpace,
        Self::Stack,
        Self::Cpu,
    ];
}

/// `RLIMIT_CORE`: 0 still runs a piped core handler, 1 runs none and writes none.
const CORE_BYTES: u64 = 1;

/// What PID 1 sets on itself.
pub(super) fn rlimits(profile: &SandboxProfile, host: &Host) -> Vec<Rlimit> {
    within_hard_limits(&own_rows(&profile.limits), host)
}

fn own_rows(limits: &Limits) -> [(Resource, Option<u64>); 8] {
    [
        (Resource::Core, Some(CORE_BYTES)),
        (Resource::NoFile, Some(limits.nofile)),
        (Resource::FileSize, Some(limits.fsize_bytes)),
        (Resource::MemLock, Some(limits.memlock_bytes)),
        (Resource::SigPending, Some(limits.sigpending)),
        (Resource::MsgQueue, Some(limits.msgqueue_bytes)),
        (Resource::Stack, limits.stack_bytes),
        (Resource::Cpu, limits.cpu_seconds),
    ]
}

/// Those that are set without a word, for whoever makes no plan.
pub(crate) fn by_default() -> impl Iterator<Item = (Resource, u64)> {
    let limits = Limits::default();
    let rows = own_rows(&limits).into_iter().chain(guest_rows(&limits));
    rows.filter_map(|(resource, limit)| Some((resource, limit?)))
}

/// What is set in the guest's process alone.
pub(super) fn guest_rlimits(profile: &SandboxProfile, host: &Host) -> Vec<Rlimit> {
    within_hard_limits(&guest_rows(&profile.limits), host)
}

const fn guest_rows(limits: &Limits) -> [(Resource, Option<u64>); 2] {
    [(Resource::NProc, limits.nproc), (Resource::AddressSpace, limits.address_space_bytes)]
}

/// The limits that are wanted, none above the host's own: raising one would need
/// `CAP_SYS_RESOURCE` in the initial user namespace.
fn within_hard_limits(rows: &[(Resource, Option<u64>)], host: &Host) -> Vec<Rlimit> {
    let hard = |resource| host.hard_limits.iter().find(|hard| hard.resource == resource);
    rows.iter()
        .filter_map(|(resource, wanted)| {
            let resource = *resource;
            let limit = wanted.map(|limit| hard(resource).map_or(limit, |h| h.limit.min(limit)))?;
            Some(Rlimit { resource, limit })
        })
        .collect()
}

/// Inotify instances and watches of all runs of one sandbox; the kernel's own default is 128
/// for a uid, of which some must be left to a service that shares its own. No guest needs fanotify,
/// whose marks pin inodes.
const NOTIFY: [(&core::ffi::CStr, &core::ffi::CStr); 3] = [
    (c"user/max_inotify_instances", c"64"),
    (c"user/max_inotify_watches", c"65536"),
    (c"user/max_fanotify_groups", c"0"),
];

/// System V segments and queues, and POSIX queues, of one run.
const IPC: [(&core::ffi::CStr, &core::ffi::CStr); 3] =
    [(c"kernel/shmmni", c"128"), (c"kernel/msgmni", c"32"), (c"fs/mqueue/queues_max", c"32")];

/// Every namespace limit, in the order in which it is written.
pub(super) fn sysctls(
    profile: &SandboxProfile,
    host: &Host,
    identity: &Identity,
    ahead: NamespaceSet,
) -> Vec<Sysctl> {
    let mut sysctls = Vec::new();
    let mut push = |scope, path: &core::ffi::CStr, value: &core::ffi::CStr, need| {
        sysctls.push(Sysctl { scope, path: path.to_owned(), value: value.to_owned(), need });
    };
    // A launcher without a user namespace of its own would lower the host's limits.
    match identity.tier {
        Tier::MapWriter | Tier::Subordinate | Tier::Unprivileged => {
            for (path, value) in NOTIFY {
                push(SysctlScope::LauncherUser, path, value, Need::Reported);
            }
        }
        Tier::Privileged => {}
    }
    if ahead.ipc {
        let pages = profile.shm_bytes.div_ceil(host.page_bytes.max(1));
        let pages = super::text::number(pages);
        push(SysctlScope::AheadIpc, c"kernel/shmall", &pages, Need::Reported);
        for (path, value) in IPC {
            push(SysctlScope::AheadIpc, path, value, Need::Reported);
        }
    }
    // Required: without it a guest reaches the kernel's whole mount and network code.
    push(SysctlScope::RunUser, c"user/max_user_namespaces", c"0", Need::Required);
    sysctls
}
