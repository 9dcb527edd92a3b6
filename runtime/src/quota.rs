//! Every limit of what a run may use up, and whether this host enforces it; sets none.

use core::fmt;
use std::borrow::Cow;

use postern_init::record::facts;
use serde::Serialize;

use crate::OUTPUT_BYTES_MAX;
use crate::cgroup::CgroupGap;
use crate::host::Release;
use crate::plan::{
    Access, CgroupLimit, CgroupResource, Export, KernelId, MountOp, Plan, Resource, SysctlScope,
    Tier,
};

/// What a limit is counted over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum QuotaScope {
    /// Each process.
    Process,
    /// Each run.
    Run,
    /// All runs of the sandbox.
    Sandbox,
    /// Everything with the guest's kernel uid, whoever else that is.
    KernelUid,
}

/// One limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Quota {
    /// What is limited, such as `nofile` or `/tmp inodes`.
    pub name: Cow<'static, str>,
    /// How much there may be, in the thing's own unit; `None`: no number of ours.
    pub limit: Option<u64>,
    /// What it is counted over.
    pub scope: QuotaScope,
    /// Why it is not enforced; `None` where it is.
    pub gap: Option<&'static str>,
}

impl Quota {
    /// Whether the kernel holds every run to it.
    #[must_use]
    pub const fn is_enforced(&self) -> bool {
        self.gap.is_none()
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.limit.map_or(Ok(()), |limit| write!(f, " {limit}"))?;
        self.gap.map_or(Ok(()), |gap| write!(f, ", not enforced: {gap}"))
    }
}

/// What is known only after the launch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Circumstances {
    /// `facts` of the launcher and of the run.
    pub(crate) facts: u32,
    pub(crate) kernel_uid: u32,
    pub(crate) release: Option<Release>,
}

/// Every quota of a plan.
pub(crate) fn quotas(plan: &Plan, here: Circumstances) -> Vec<Quota> {
    let mut quotas: Vec<_> = Resource::ALL.map(|resource| rlimit(plan, here, resource)).into();
    for operation in plan.template.iter().chain(&plan.run) {
        files(&mut quotas, plan, operation);
    }
    let set =
        |path: &str| plan.sysctls.iter().find(|sysctl| sysctl.path.to_bytes() == path.as_bytes());
    let value = |path: &str| set(path).and_then(|sysctl| sysctl.value.to_str().ok()?.parse().ok());
    for (name, path) in NOTIFY {
        quotas.push(notify(plan, here, name, value(path), path));
    }
    for (name, path) in IPC {
        let gap = match (plan.namespaces.ipc, here.facts & facts::IPC_LIMITS_MISSING) {
            (false, _) => Some("the ipc namespace is shared, and its limits are its owner's"),
            (true, 0) if set(path).is_some() => None,
            (true, _) => Some("the launcher could not lower it, and the kernel's own holds"),
        };
        quotas.push(Quota { name: name.into(), limit: value(path), scope: QuotaScope::Run, gap });
    }
    if plan.landlock.abi().is_some()
        && let Some(queues) = quotas.iter_mut().find(|quota| quota.name == POSIX_QUEUES)
    {
        // No path leads to them, so that no rule of the domain allows one.
        (queues.limit, queues.gap) = (Some(0), None);
    }
    let is_shared = set("user/max_user_namespaces").is_none_or(|s| s.scope != SysctlScope::RunUser);
    quotas.push(Quota {
        name: "user namespaces".into(),
        limit: Some(0),
        scope: QuotaScope::Run,
        gap: is_shared.then_some("the plan does not lower it"),
    });
    quotas.push(oom_score(plan));
    quotas.push(Quota {
        name: "captured output".into(),
        limit: Some(OUTPUT_BYTES_MAX),
        scope: QuotaScope::Run,
        gap: None,
    });
    quotas
}

/// Every limit of a run's control group.
pub(crate) fn group_quotas(plan: &Plan, gaps: &[(CgroupLimit, CgroupGap)]) -> Vec<Quota> {
    let limits = plan.cgroup.as_ref().map(|cgroup| &*cgroup.limits).unwrap_or_default();
    let quota = |resource: CgroupResource| {
        let missing = gaps.iter().find(|(limit, _)| limit.resource == resource);
        let held = limits.iter().find(|limit| limit.resource == resource);
        let (limit, gap) = match (missing, held) {
            (Some((limit, gap)), _) => (Some(limit.value), Some(gap.reason())),
            (None, Some(limit)) => (Some(limit.value), None),
            (None, None) => (None, Some("the profile sets none for the run as a whole")),
        };
        Quota { name: resource.to_string().into(), limit, scope: QuotaScope::Run, gap }
    };
    CgroupResource::ALL.map(quota).into()
}

fn rlimit(plan: &Plan, here: Circumstances, resource: Resource) -> Quota {
    let mut planned = plan.rlimits.iter().chain(&plan.guest_rlimits);
    let limit = planned.find(|limit| limit.resource == resource).map(|limit| limit.limit);
    let is_counted = match resource {
        Resource::NProc | Resource::SigPending | Resource::MsgQueue | Resource::MemLock => true,
        Resource::Core
        | Resource::NoFile
        | Resource::FileSize
        | Resource::AddressSpace
        | Resource::Stack
        | Resource::Cpu => false,
    };
    let by_namespace = here.release.is_none_or(|own| own >= Release::COUNTS_BY_NAMESPACE);
    let is_own = matches!(plan.identity.kernel_uid, KernelId::Own(_));
    let scope = match (is_counted, by_namespace, is_own) {
        (false, ..) => QuotaScope::Process,
        (true, true, _) => QuotaScope::Run,
        (true, false, true) => QuotaScope::KernelUid,
        (true, false, false) => QuotaScope::Sandbox,
    };
    let gap = if limit.is_none() {
        Some("the profile sets none")
    } else if resource == Resource::NProc && here.kernel_uid == 0 {
        Some("the kernel never counts the processes of its uid 0")
    } else if scope == QuotaScope::KernelUid {
        Some("before Linux 5.14 it is counted by kernel uid, and that is the service's own")
    } else {
        None
    };
    Quota { name: resource.to_string().into(), limit, scope, gap }
}

/// Bytes and inodes of what the guest may write to.
fn files(quotas: &mut Vec<Quota>, plan: &Plan, operation: &MountOp) {
    let mut add = |target: &std::ffi::CStr, what: &str, limit, scope, gap| {
        let name = format!("{} {what}", target.to_string_lossy()).into();
        quotas.push(Quota { name, limit, scope, gap });
    };
    match operation {
        MountOp::Tmpfs {
            target, size_bytes, inodes, access: Access::ReadWrite, export, ..
        } if *export != Export::Exchange && is_open(plan, operation) => {
            let is_runs = plan.run.contains(operation);
            let scope = if is_runs { QuotaScope::Run } else { QuotaScope::Sandbox };
            add(target, "bytes", Some(*size_bytes), scope, None);
            add(target, "inodes", Some(*inodes), scope, None);
        }
        MountOp::Bind { target, access: Access::ReadWrite, .. } => {
            let gap = Some("it is the caller's own, and no quota of ours holds there");
            add(target, "bytes", None, QuotaScope::Sandbox, gap);
        }
        MountOp::Devpts { target, max } => {
            add(target, "terminals", Some((*max).into()), QuotaScope::Run, None);
        }
        MountOp::Root { .. }
        | MountOp::HostRoot
        | MountOp::Dir { .. }
        | MountOp::File { .. }
        | MountOp::Symlink { .. }
        | MountOp::Bind { .. }
        | MountOp::Tmpfs { .. }
        | MountOp::Proc { .. }
        | MountOp::Mask { .. }
        | MountOp::ReadOnly { .. }
        | MountOp::ReadOnlySelf { .. }
        | MountOp::RunDirectory { .. } => {}
    }
}

/// Whether nothing makes a tmpfs read-only again.
fn is_open(plan: &Plan, operation: &MountOp) -> bool {
    let MountOp::Tmpfs { target, .. } = operation else { return false };
    let seals =
        |other: &MountOp| matches!(other, MountOp::ReadOnly { target: sealed } if sealed == target);
    !plan.template.iter().any(seals)
}

/// What tells of changes to files, by the setting that limits it.
const NOTIFY: [(&str, &str); 3] = [
    ("inotify instances", "user/max_inotify_instances"),
    ("inotify watches", "user/max_inotify_watches"),
    ("fanotify groups", "user/max_fanotify_groups"),
];

/// Without a user namespace of its own the launcher has none of these to lower: the host's hold,
/// counted by a kernel uid that is the sandbox's alone where it is leased.
fn notify(
    plan: &Plan,
    here: Circumstances,
    name: &'static str,
    lowered: Option<u64>,
    path: &str,
) -> Quota {
    let own =
        |path: &str| std::fs::read_to_string(format!("/proc/sys/{path}")).ok()?.trim().parse().ok();
    let (limit, scope, gap) = match (plan.identity.tier, plan.identity.kernel_uid) {
        (Tier::Privileged, KernelId::Leased { .. }) => (own(path), QuotaScope::Sandbox, None),
        (Tier::Privileged, KernelId::Fixed(_) | KernelId::Own(_)) => {
            (own(path), QuotaScope::KernelUid, None)
        }
        (Tier::MapWriter | Tier::Subordinate | Tier::Unprivileged, _) => {
            let is_missing = here.facts & facts::LAUNCHER_LIMITS_MISSING != 0 || lowered.is_none();
            let gap = "the launcher could not lower it, and the host's own holds";
            (lowered, QuotaScope::Sandbox, is_missing.then_some(gap))
        }
    };
    Quota { name: name.into(), limit, scope, gap }
}

const POSIX_QUEUES: &str = "POSIX message queues";

/// What the run's ipc namespace may hold, by the setting that limits it.
const IPC: [(&str, &str); 4] = [
    ("shared memory pages", "kernel/shmall"),
    ("shared memory segments", "kernel/shmmni"),
    ("System V message queues", "kernel/msgmni"),
    (POSIX_QUEUES, "fs/mqueue/queues_max"),
];

/// A process may lower its score to where the service's stood, if it can write to `/proc`.
fn oom_score(plan: &Plan) -> Quota {
    let is_writable = |op: &MountOp| matches!(op, MountOp::Proc { access: Access::ReadWrite, .. });
    let gap = "a guest can lower it to the service's own through its writable /proc";
    Quota {
        name: "oom score".into(),
        limit: u64::try_from(plan.oom_score_adj).ok(),
        scope: QuotaScope::Process,
        gap: plan.run.iter().any(is_writable).then_some(gap),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::plan::{Landlock, NamespaceSet, resolve};
    use crate::profile::{Limits, ProcKind, SandboxProfile};

    const HERE: Circumstances =
        Circumstances { facts: 0, kernel_uid: 7, release: Some(Release { major: 6, minor: 1 }) };

    fn plan(profile: &SandboxProfile) -> Plan {
        resolve(profile, &Host::probe(profile).unwrap()).unwrap()
    }

    #[test]
    fn each_quota_is_enforced_or_says_why_not() {
        let old = Circumstances { release: Some(Release { major: 5, minor: 13 }), ..HERE };
        let facts = |facts| Circumstances { facts, ..HERE };
        let own = |plan: &mut Plan| {
            plan.identity.tier = Tier::Unprivileged;
            plan.identity.kernel_uid = KernelId::Own(7);
        };
        type Row<'a> = (&'a str, &'a dyn Fn(&mut Plan), Circumstances, Option<&'a str>);
        let rows: [Row<'_>; 11] = [
            ("nofile", &own, HERE, None),
            ("nproc", &own, HERE, None),
            ("nproc", &own, old, Some("the service's own")),
            ("sigpending", &own, old, Some("the service's own")),
            ("nofile", &own, old, None),
            ("nproc", &own, Circumstances { kernel_uid: 0, ..HERE }, Some("uid 0")),
            ("as", &own, HERE, Some("sets none")),
            ("inotify watches", &own, facts(facts::LAUNCHER_LIMITS_MISSING), Some("lower")),
            (
                "POSIX message queues",
                &|plan| plan.landlock = Landlock::Off,
                facts(facts::IPC_LIMITS_MISSING),
                Some("lower"),
            ),
            (
                "shared memory pages",
                &|plan| plan.namespaces = NamespaceSet { ipc: false, ..plan.namespaces },
                HERE,
                Some("shared"),
            ),
            ("/tmp inodes", &own, HERE, None),
        ];
        for (name, change, here, gap) in rows {
            let mut plan = plan(&SandboxProfile::default());
            change(&mut plan);
            let quotas = quotas(&plan, here);
            let quota = quotas.iter().find(|quota| quota.name == name).unwrap();
            assert_eq!(quota.is_enforced(), gap.is_none(), "{quota}");
            assert!(quota.to_string().contains(gap.unwrap_or(name)), "{quota}");
        }
    }

    #[test]
    fn a_writable_proc_and_an_unlimited_wish_are_gaps() {
        let limits = Limits { stack_bytes: None, ..Limits::default() };
        let profile = SandboxProfile::builder().proc(ProcKind::Masked).limits(limits);
        let quotas = quotas(&plan(&profile.build().unwrap()), HERE);
        let gaps = quotas.iter().filter(|quota| !quota.is_enforced());
        let gaps: Vec<_> = gaps.map(|quota| quota.name.as_ref()).collect();
        for name in ["oom score", "stack", "as", "cpu"] {
            assert!(gaps.contains(&name), "{name}: {gaps:?}");
        }
    }
}
