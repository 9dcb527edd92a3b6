//! The plan as text: `plan 1`, then one step a line in the order in which it is done.
//!
//! Numbers that differ from boot to boot, such as the inodes of sources, are left out.

use core::fmt;
use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;

use super::{
    Access, Export, Identity, KernelId, Landlock, LandlockRight, LandlockRule, MountOp,
    NamespaceSet, Need, Plan, Resource, Rlimit, SourceKind, Sysctl, SysctlScope, Tier, Warning,
};

/// Contents longer than this are given by length alone.
const CONTENTS_SHOWN_BYTES: usize = 1024;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan 1")?;
        identity(f, &self.identity)?;
        writeln!(f, "namespaces user mount{}", Listed(self.namespaces))?;
        sysctls(f, &self.sysctls, SysctlScope::LauncherUser)?;
        for op in &self.template {
            writeln!(f, "template {op}")?;
        }
        writeln!(f, "ahead{}", Listed(self.ahead))?;
        sysctls(f, &self.sysctls, SysctlScope::AheadIpc)?;
        if let Some(hostname) = &self.hostname {
            writeln!(f, "hostname {}", Escaped(hostname))?;
        }
        if self.namespaces.net {
            writeln!(f, "loopback {}", if self.loopback { "up" } else { "down" })?;
        }
        writeln!(f, "oom-score-adj {}", self.oom_score_adj)?;
        cgroup(f, self)?;
        for op in &self.run {
            writeln!(f, "run {op}")?;
        }
        sysctls(f, &self.sysctls, SysctlScope::RunUser)?;
        rlimits(f, "rlimit", &self.rlimits)?;
        landlock(f, &self.landlock)?;
        writeln!(f, "seccomp {}", self.seccomp)?;
        rlimits(f, "guest-rlimit", &self.guest_rlimits)?;
        if let Some(policy) = &self.seccomp_policy {
            let name = policy.name().escape_debug();
            let (matched, mismatched) = (policy.matched(), policy.mismatched());
            writeln!(
                f,
                "guest-seccomp {name} rules {} match {matched} mismatch {mismatched} sha256 {}",
                policy.rules().len(),
                policy.program().digest(),
            )?;
        }
        writeln!(f, "cwd {}", Escaped(&self.cwd))?;
        for variable in &self.env {
            writeln!(f, "env {}", Escaped(variable))?;
        }
        self.warnings.iter().try_for_each(|warning| writeln!(f, "warning {warning}"))
    }
}

/// Where the run's control group is, what it is given, and what cannot be.
fn cgroup(f: &mut fmt::Formatter<'_>, plan: &Plan) -> fmt::Result {
    if let Some(group) = &plan.cgroup {
        let parent = group.parent.display().to_string();
        let moved = if group.moves_service { " moves the service" } else { "" };
        write!(f, "cgroup beneath {} with", parent.escape_debug())?;
        group.controllers.iter().try_for_each(|controller| write!(f, " {controller}"))?;
        writeln!(f, "{moved}")?;
        for limit in &group.limits {
            writeln!(f, "cgroup {} {}", limit.resource.file(), limit.text())?;
        }
    }
    for (limit, gap) in &plan.cgroup_gaps {
        writeln!(f, "cgroup {} {} not available: {gap}", limit.resource.file(), limit.text())?;
    }
    Ok(())
}

/// Who the guest is, inside and outside.
fn identity(f: &mut fmt::Formatter<'_>, identity: &Identity) -> fmt::Result {
    let tier = match identity.tier {
        Tier::Privileged => "privileged",
        Tier::MapWriter => "map-writer",
        Tier::Subordinate => "subordinate",
        Tier::Unprivileged => "unprivileged",
    };
    writeln!(f, "tier {tier}")?;
    writeln!(f, "uid {} is {}", identity.guest_uid, identity.kernel_uid)?;
    writeln!(f, "gid {} is {}", identity.guest_gid, identity.kernel_gid)?;
    identity.shared_groups.iter().try_for_each(|group| writeln!(f, "shared-group {group}"))
}

impl fmt::Display for KernelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leased { first, last } => write!(f, "leased {first}-{last}"),
            Self::Fixed(id) => write!(f, "fixed {id}"),
            Self::Own(id) => write!(f, "own {id}"),
        }
    }
}

impl NamespaceSet {
    /// Every namespace by its name in `/proc/PID/ns`, and whether it is in the set.
    pub fn named(self) -> impl Iterator<Item = (&'static str, bool)> {
        [
            ("pid", self.pid),
            ("net", self.net),
            ("ipc", self.ipc),
            ("uts", self.uts),
            ("cgroup", self.cgroup),
        ]
        .into_iter()
    }
}

/// The names of a set, each after a space.
struct Listed(NamespaceSet);

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = self.0.named().filter(|(_, is_in)| *is_in);
        names.try_for_each(|(name, _)| write!(f, " {name}"))
    }
}

/// Text with everything but printable ASCII escaped, so that a step stays one line.
struct Escaped<'a>(&'a CStr);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.to_bytes().escape_ascii().fmt(f)
    }
}

impl fmt::Display for MountOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root { size_bytes, inodes } => {
                write!(f, "root tmpfs size={size_bytes} inodes={inodes}")
            }
            Self::HostRoot => f.write_str("root host ro"),
            Self::Dir { target, mode } => write!(f, "dir {} mode={mode:04o}", Escaped(target)),
            Self::File { target, mode, contents } => {
                write!(f, "file {} mode={mode:04o} ", Escaped(target))?;
                if contents.len() > CONTENTS_SHOWN_BYTES {
                    write!(f, "bytes={}", contents.len())
                } else {
                    write!(f, "\"{}\"", contents.escape_ascii())
                }
            }
            Self::Symlink { target, to } => {
                write!(f, "symlink {} to {}", Escaped(target), Escaped(to))
            }
            Self::Bind { source, target, access, devices, owner } => {
                let kind = match (source.kind, devices) {
                    (SourceKind::Dir, _) => "dir",
                    (SourceKind::File, false) => "file",
                    (SourceKind::File, true) => "device",
                };
                let path = source.path.as_os_str().as_bytes().escape_ascii();
                write!(f, "bind {} {access} {kind} from {path}", Escaped(target))?;
                owner.iter().try_for_each(|owner| write!(f, " as {}:{}", owner.uid, owner.gid))
            }
            Self::Tmpfs { target, size_bytes, inodes, mode, access, export } => {
                write!(f, "tmpfs {} {access} size={size_bytes} ", Escaped(target))?;
                write!(f, "inodes={inodes} mode={mode:04o}{export}")
            }
            Self::Proc { target, access, only_pids } => {
                let subset = if *only_pids { " subset=pid" } else { "" };
                write!(f, "proc {} {access}{subset}", Escaped(target))
            }
            Self::Devpts { target, max } => write!(f, "devpts {} max={max}", Escaped(target)),
            Self::Mask { target, cover } => {
                write!(f, "mask {} with {}", Escaped(target), Escaped(cover))
            }
            Self::ReadOnly { target } => write!(f, "read-only {}", Escaped(target)),
            Self::ReadOnlySelf { target } => write!(f, "read-only-self {}", Escaped(target)),
            Self::RunDirectory { target, keep } => {
                write!(f, "run-directory {}", Escaped(target))?;
                keep.iter().try_for_each(|keep| write!(f, " keep={}", Escaped(keep)))
            }
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnly => "ro",
            Self::ReadWrite => "rw",
        })
    }
}

impl fmt::Display for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::No => "",
            Self::Workspace => " export=workspace",
            Self::Exchange => " export=exchange",
        })
    }
}

/// The limits of one scope.
fn sysctls(f: &mut fmt::Formatter<'_>, sysctls: &[Sysctl], scope: SysctlScope) -> fmt::Result {
    let name = match scope {
        SysctlScope::LauncherUser => "launcher",
        SysctlScope::AheadIpc => "ahead",
        SysctlScope::RunUser => "run",
    };
    for sysctl in sysctls.iter().filter(|sysctl| sysctl.scope == scope) {
        let need = match sysctl.need {
            Need::Required => "required",
            Need::Reported => "reported",
        };
        writeln!(f, "sysctl {name} {}={} {need}", Escaped(&sysctl.path), Escaped(&sysctl.value))?;
    }
    Ok(())
}

/// The domain, and each of its rules.
fn landlock(f: &mut fmt::Formatter<'_>, landlock: &Landlock) -> fmt::Result {
    match landlock {
        Landlock::Off => writeln!(f, "landlock off"),
        Landlock::Unavailable(found) => writeln!(f, "landlock none: {found}"),
        Landlock::Domain { abi, rules } => {
            writeln!(f, "landlock abi {abi}")?;
            let line = |rule: &LandlockRule| {
                let right = match rule.right {
                    LandlockRight::Read => "read",
                    LandlockRight::Files => "files",
                    LandlockRight::Devices => "devices",
                    LandlockRight::Tree => "tree",
                };
                (right, Escaped(&rule.target).to_string())
            };
            let mut lines = rules.iter().map(line);
            lines.try_for_each(|(right, target)| writeln!(f, "landlock {right} {target}"))
        }
    }
}

/// Limits under a heading.
fn rlimits(f: &mut fmt::Formatter<'_>, heading: &str, rlimits: &[Rlimit]) -> fmt::Result {
    rlimits
        .iter()
        .try_for_each(|rlimit| writeln!(f, "{heading} {} {}", rlimit.resource, rlimit.limit))
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Core => "core",
            Self::NoFile => "nofile",
            Self::FileSize => "fsize",
            Self::MemLock => "memlock",
            Self::SigPending => "sigpending",
            Self::MsgQueue => "msgqueue",
            Self::NProc => "nproc",
            Self::AddressSpace => "as",
            Self::Stack => "stack",
            Self::Cpu => "cpu",
        })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SharedUid(uid) => write!(f, "shared-uid {uid}"),
            Self::SharedGroups(groups) => {
                f.write_str("shared-groups")?;
                groups.iter().try_for_each(|group| write!(f, " {group}"))
            }
            Self::UnboundedWorkspace => f.write_str("unbounded-workspace"),
            Self::SeccompOff => f.write_str("seccomp-off"),
            Self::SharedNamespace(name) => write!(f, "shared-namespace {name}"),
        }
    }
}
