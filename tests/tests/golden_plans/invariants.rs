//! What holds for every plan, whatever the profile and the host.

use std::collections::BTreeSet;
use std::ffi::CString;

use postern::plan::{
    Access, Export, KernelId, Landlock, LandlockRight, LandlockRule, MountOp, Need, Plan, Resource,
    SysctlScope, Tier, Warning,
};
use postern::profile::{ProcKind, Root, SandboxProfile, WORKSPACE, Workspace};

type Invariant = (&'static str, fn(&SandboxProfile, &Plan) -> bool);

pub(crate) const ALL: [Invariant; 17] = [
    ("the root comes first and once", root_first),
    ("what is ours is sealed after the last change to it", sealed_last),
    ("only the workspace, the exchange and listed mounts stay writable", writable_listed),
    ("no system directory is writable unasked", system_read_only),
    ("targets are absolute and plain", targets_plain),
    ("parents come before children", parents_first),
    ("a mask comes after the procfs it covers and before its own source is hidden", masks_placed),
    ("only masked runs have a writable procfs", proc_read_only),
    ("one procfs for the launcher and one for each run, or none at all", proc_none),
    ("a run binds nothing of the host's", run_without_sources),
    ("only nodes of /dev work as devices", devices_in_dev),
    ("no further user namespace can be made", user_namespaces_zero),
    ("the launcher's limits are not the host's", launcher_limits),
    ("Landlock allows writing where a mount is writable, and nowhere else", landlock_mounts),
    ("core dumps are off", core_one),
    ("the guest is not root outside", not_root),
    ("what is shared is said", warned),
];

fn target(op: &MountOp) -> Option<&CString> {
    match op {
        MountOp::Root { .. } | MountOp::HostRoot => None,
        MountOp::Dir { target, .. }
        | MountOp::File { target, .. }
        | MountOp::Symlink { target, .. }
        | MountOp::Bind { target, .. }
        | MountOp::Tmpfs { target, .. }
        | MountOp::Proc { target, .. }
        | MountOp::Devpts { target, .. }
        | MountOp::Mask { target, .. }
        | MountOp::ReadOnly { target }
        | MountOp::ReadOnlySelf { target }
        | MountOp::RunDirectory { target, .. } => Some(target),
    }
}

fn path(op: &MountOp) -> &str {
    target(op).map_or("/", |target| target.to_str().unwrap())
}

fn beneath(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn all(plan: &Plan) -> impl Iterator<Item = &MountOp> {
    plan.template.iter().chain(&plan.run)
}

fn root_first(profile: &SandboxProfile, plan: &Plan) -> bool {
    let is_root = |op: &&MountOp| matches!(op, MountOp::Root { .. } | MountOp::HostRoot);
    let is_host = matches!(plan.template.first(), Some(MountOp::HostRoot));
    is_host == (profile.root == Root::HostView)
        && plan.template.first().as_ref().is_some_and(is_root)
        && all(plan).filter(is_root).count() == 1
}

fn sealed_last(profile: &SandboxProfile, plan: &Plan) -> bool {
    let wanted: &[&str] = match profile.root {
        Root::Curated => &["/"],
        Root::HostView => &["/dev", "/run"],
    };
    let tail = plan.template.len() - wanted.len();
    plan.template[tail..]
        .iter()
        .zip(wanted)
        .all(|(op, wanted)| matches!(op, MountOp::ReadOnly { .. }) && path(op) == *wanted)
}

/// What the profile itself puts somewhere, and may make writable.
fn is_listed(profile: &SandboxProfile, op: &MountOp) -> bool {
    let binds = profile.rw_binds.iter().map(|bind| bind.target.as_path());
    let mut listed = profile.mounts.iter().map(|mount| mount.target()).chain(binds);
    listed.any(|target| target.to_str() == Some(path(op)))
}

/// The caller's directory, at the usual place or, in the host's view, at its own or in `/run`.
fn is_workspace(profile: &SandboxProfile, op: &MountOp) -> bool {
    let MountOp::Bind { source, .. } = op else { return false };
    let is_own = source.path.to_str() == Some(path(op));
    let is_usual = [WORKSPACE, "/run/workspace"].contains(&path(op));
    matches!(profile.workspace, Workspace::Directory { .. }) && (is_own || is_usual)
}

fn writable_listed(profile: &SandboxProfile, plan: &Plan) -> bool {
    let sealed: Vec<_> = plan
        .template
        .iter()
        .filter(|op| matches!(op, MountOp::ReadOnly { .. }))
        .map(path)
        .collect();
    plan.template.iter().all(|op| match op {
        MountOp::Tmpfs { access: Access::ReadWrite, export: Export::No, .. }
        | MountOp::Bind { access: Access::ReadWrite, .. } => {
            sealed.contains(&path(op))
                || is_listed(profile, op)
                || is_workspace(profile, op)
                || path(op) == "/tmp"
        }
        MountOp::Tmpfs { .. }
        | MountOp::Bind { .. }
        | MountOp::Root { .. }
        | MountOp::HostRoot
        | MountOp::Dir { .. }
        | MountOp::File { .. }
        | MountOp::Symlink { .. }
        | MountOp::Proc { .. }
        | MountOp::ReadOnly { .. } => true,
        MountOp::Devpts { .. }
        | MountOp::Mask { .. }
        | MountOp::ReadOnlySelf { .. }
        | MountOp::RunDirectory { .. } => false,
    })
}

fn system_read_only(profile: &SandboxProfile, plan: &Plan) -> bool {
    let system = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc"];
    let is_writable = |op: &&MountOp| {
        matches!(
            op,
            MountOp::Bind { access: Access::ReadWrite, .. }
                | MountOp::Tmpfs { access: Access::ReadWrite, .. }
        )
    };
    !all(plan)
        .filter(is_writable)
        .filter(|op| !is_listed(profile, op) && !is_workspace(profile, op))
        .any(|op| system.iter().any(|directory| beneath(path(op), directory)))
}

fn targets_plain(_: &SandboxProfile, plan: &Plan) -> bool {
    all(plan).all(|op| {
        let names = path(op).strip_prefix('/').map(|rest| rest.split('/').collect::<Vec<_>>());
        names.is_some_and(|names| {
            path(op) == "/" || names.iter().all(|name| !matches!(*name, "" | "." | ".."))
        })
    })
}

fn parents_first(_: &SandboxProfile, plan: &Plan) -> bool {
    let makes = |op: &MountOp| {
        matches!(op, MountOp::Dir { .. } | MountOp::File { .. } | MountOp::Symlink { .. })
    };
    plan.template.iter().enumerate().all(|(index, op)| {
        let later = &plan.template[index + 1..];
        !later
            .iter()
            .any(|other| makes(other) && path(other) != path(op) && beneath(path(op), path(other)))
    })
}

fn masks_placed(profile: &SandboxProfile, plan: &Plan) -> bool {
    let position = |wanted: fn(&MountOp) -> bool| plan.run.iter().position(wanted);
    let last = |wanted: fn(&MountOp) -> bool| plan.run.iter().rposition(wanted);
    let proc = position(|op| matches!(op, MountOp::Proc { .. }));
    let first_mask = position(|op| matches!(op, MountOp::Mask { .. }));
    let last_mask = last(|op| matches!(op, MountOp::Mask { .. }));
    let shm = position(|op| matches!(op, MountOp::Tmpfs { .. }) && path(op) == "/dev/shm");
    let masked = matches!(profile.proc, ProcKind::ReadOnly | ProcKind::Masked);
    masked == first_mask.is_some()
        && (!masked || (proc < first_mask && last_mask < shm))
        && plan.run.iter().all(|op| {
            let MountOp::Mask { cover, .. } = op else { return true };
            plan.template.iter().any(|made| target(made) == Some(cover))
        })
}

fn proc_read_only(profile: &SandboxProfile, plan: &Plan) -> bool {
    let wanted =
        if profile.proc == ProcKind::Masked { Access::ReadWrite } else { Access::ReadOnly };
    all(plan).all(|op| {
        let MountOp::Proc { access, .. } = op else { return true };
        *access == wanted
    })
}

fn proc_none(profile: &SandboxProfile, plan: &Plan) -> bool {
    let procs =
        |ops: &[MountOp]| ops.iter().filter(|op| matches!(op, MountOp::Proc { .. })).count();
    let some = usize::from(profile.proc != ProcKind::None);
    // A run without a pid namespace of its own sees the launcher's.
    let own = if plan.namespaces.pid { some } else { 0 };
    (procs(&plan.template), procs(&plan.run)) == (some, own)
}

fn run_without_sources(_: &SandboxProfile, plan: &Plan) -> bool {
    !plan.run.iter().any(|op| matches!(op, MountOp::Bind { .. }))
}

fn devices_in_dev(_: &SandboxProfile, plan: &Plan) -> bool {
    all(plan).all(|op| {
        let MountOp::Bind { devices: true, source, .. } = op else { return true };
        source.path.to_str() == Some(path(op)) && beneath(path(op), "/dev")
    })
}

fn user_namespaces_zero(_: &SandboxProfile, plan: &Plan) -> bool {
    plan.sysctls.iter().any(|sysctl| {
        sysctl.scope == SysctlScope::RunUser
            && sysctl.path.as_c_str() == c"user/max_user_namespaces"
            && sysctl.value.as_c_str() == c"0"
            && sysctl.need == Need::Required
    })
}

fn launcher_limits(_: &SandboxProfile, plan: &Plan) -> bool {
    let has = |scope| plan.sysctls.iter().any(|sysctl| sysctl.scope == scope);
    has(SysctlScope::LauncherUser) == (plan.identity.tier != Tier::Privileged)
        && has(SysctlScope::AheadIpc) == plan.ahead.ipc
}

fn core_one(_: &SandboxProfile, plan: &Plan) -> bool {
    let cores: Vec<_> =
        plan.rlimits.iter().filter(|rlimit| rlimit.resource == Resource::Core).collect();
    matches!(cores.as_slice(), [core] if core.limit == 1)
}

fn not_root(_: &SandboxProfile, plan: &Plan) -> bool {
    [plan.identity.kernel_uid, plan.identity.kernel_gid].iter().all(|id| match id {
        KernelId::Leased { first, .. } => *first > 0,
        KernelId::Fixed(id) | KernelId::Own(id) => *id > 0,
    })
}

fn warned(_: &SandboxProfile, plan: &Plan) -> bool {
    let shared = plan.namespaces.named().filter(|(_, is_own)| !is_own);
    let own = matches!(plan.identity.kernel_uid, KernelId::Own(_));
    let says_uid = plan.warnings.iter().any(|warning| matches!(warning, Warning::SharedUid(_)));
    own == says_uid
        && shared
            .map(|(name, _)| Warning::SharedNamespace(name))
            .all(|w| plan.warnings.contains(&w))
}

/// By the mounts as they stand at the end: what a later one covers counts no more.
fn landlock_mounts(_: &SandboxProfile, plan: &Plan) -> bool {
    let Landlock::Domain { rules, .. } = &plan.landlock else {
        return matches!(plan.landlock, Landlock::Unavailable(_));
    };
    let mut writable = BTreeSet::new();
    for op in all(plan) {
        let is_open = match op {
            MountOp::Tmpfs { access, export, .. } => {
                *access == Access::ReadWrite && *export != Export::Exchange
            }
            MountOp::Bind { access, .. } | MountOp::Proc { access, .. } => {
                *access == Access::ReadWrite
            }
            MountOp::ReadOnly { .. } => {
                writable.remove(path(op));
                continue;
            }
            MountOp::Devpts { .. } | MountOp::RunDirectory { .. } => false,
            MountOp::Root { .. }
            | MountOp::HostRoot
            | MountOp::Dir { .. }
            | MountOp::File { .. }
            | MountOp::Symlink { .. }
            | MountOp::Mask { .. }
            | MountOp::ReadOnlySelf { .. } => continue,
        };
        writable.retain(|other: &&str| !beneath(other, path(op)));
        if is_open {
            writable.insert(path(op));
        }
    }
    let rule = |rule: &LandlockRule| (rule.target.to_str().unwrap().to_owned(), rule.right);
    let mut rules = rules.iter().map(rule);
    let given =
        [("/".to_owned(), LandlockRight::Read), ("/dev".to_owned(), LandlockRight::Devices)];
    let is_given = rules.by_ref().take(2).eq(given);
    let allowed: BTreeSet<_> = rules.map(|rule| rule.0).collect();
    is_given && allowed.iter().map(String::as_str).eq(writable)
}
