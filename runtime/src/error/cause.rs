//! The table of likely causes: what a step and an errno mean on a host of which certain things are
//! known. A row claims nothing that its facts do not show.

use core::fmt;

use postern_init::step::Step;

use super::Phase;
use crate::host::Diagnosis;

/// Why a step most likely failed on this host, and what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause {
    /// The rule's name, for tests and logs.
    pub name: &'static str,
    /// What is the matter.
    pub text: &'static str,
    /// What to do.
    pub fix: &'static str,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "likely cause: {}; fix: {}", self.text, self.fix)
    }
}

/// A failed step and the host it failed on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Symptom<'a> {
    pub(crate) phase: Phase,
    pub(crate) step: Step,
    pub(crate) errno: i32,
    pub(crate) host: &'a Diagnosis,
}

impl Symptom<'_> {
    /// A namespace could not be made.
    fn no_namespace(&self) -> bool {
        let made_by =
            [Step::CloneLauncher, Step::CloneRun, Step::CloneIntoGroup, Step::AheadNamespaces];
        made_by.contains(&self.step)
    }

    fn refused(&self) -> bool {
        matches!(self.errno, libc::EPERM | libc::EACCES)
    }
}

struct Row {
    cause: Cause,
    holds: fn(&Symptom<'_>) -> bool,
}

/// The first row that holds is the answer, so that the more certain come first.
static ROWS: [Row; 22] = [
    Row {
        cause: Cause {
            name: "user-namespaces-limited",
            text: "user.max_user_namespaces is 0 here, or its limit is reached",
            fix: "sysctl user.max_user_namespaces=15000 (errno ENOSPC is not about a disk)",
        },
        holds: |s| s.no_namespace() && s.errno == libc::ENOSPC,
    },
    Row {
        cause: Cause {
            name: "process-limit",
            text: "the service may not have one more process: its limit (ulimit -u), its cgroup's \
                   pids.max or the machine's is reached",
            fix: "raise that limit, or end sandboxes and runs that are no longer needed",
        },
        holds: |s| {
            let made = [Step::StartMaker, Step::ForkGuest];
            (s.no_namespace() || made.contains(&s.step)) && s.errno == libc::EAGAIN
        },
    },
    Row {
        cause: Cause {
            name: "chroot",
            text: "this process is in a chroot, where the kernel makes no user namespace",
            fix: "start the service in a mount namespace of its own (pivot_root, systemd \
                  RootDirectory=) instead of a chroot",
        },
        holds: |s| s.no_namespace() && s.errno == libc::EPERM && s.host.chroot == Some(true),
    },
    Row {
        cause: Cause {
            name: "unprivileged-userns-clone",
            text: "kernel.unprivileged_userns_clone is 0",
            fix: "sysctl kernel.unprivileged_userns_clone=1",
        },
        holds: |s| {
            s.no_namespace() && s.refused() && s.host.unprivileged_user_namespaces == Some(false)
        },
    },
    Row {
        cause: Cause {
            name: "outer-seccomp",
            text: "a seccomp filter around this process, such as a container engine's default, \
                   refuses clone and unshare with namespaces",
            fix: "allow clone, clone3, unshare, mount, umount2, pivot_root, fsopen, fsconfig, \
                  fsmount, open_tree, move_mount and mount_setattr in that filter (docker: \
                  --security-opt seccomp=FILE)",
        },
        holds: |s| {
            let refused = s.refused() || s.errno == libc::ENOSYS;
            s.no_namespace() && refused && s.host.seccomp_filter == Some(true)
        },
    },
    Row {
        cause: Cause {
            name: "apparmor-userns",
            text: "AppArmor restricts unprivileged user namespaces \
                   (kernel.apparmor_restrict_unprivileged_userns is 1)",
            fix: "load an AppArmor profile with `userns,` for this executable, or set that sysctl \
                  to 0",
        },
        holds: |s| {
            s.refused()
                && s.phase != Phase::Run
                && s.host.apparmor_restricts_user_namespaces == Some(true)
        },
    },
    Row {
        cause: Cause {
            name: "cgroup-apart",
            text: "the control group of the run is gone, or the service was moved to where it may \
                   not put a process into it",
            fix: "leave the service in a leaf of its delegated control group, and its groups to it",
        },
        holds: |s| {
            let apart = [libc::EACCES, libc::ENOENT, libc::ENODEV, libc::EOPNOTSUPP, libc::EBUSY];
            s.step == Step::CloneIntoGroup && apart.contains(&s.errno)
        },
    },
    Row {
        cause: Cause {
            name: "namespaces-refused",
            text: "this process may not make user namespaces: a security module forbids it, or its \
                   root is a chroot at a mount point",
            fix: "allow user namespaces to the service, or give it a root by pivot_root",
        },
        holds: |s| s.no_namespace() && s.refused(),
    },
    Row {
        cause: Cause {
            name: "proc-read-only",
            text: "the /proc of this process is mounted read-only, so that no id map can be \
                   written",
            fix: "mount a writable /proc for the service",
        },
        holds: |s| {
            matches!(s.step, Step::WriteUidMap | Step::WriteGidMap | Step::DenySetgroups)
                && s.errno == libc::EROFS
        },
    },
    Row {
        cause: Cause {
            name: "proc-masked",
            text: "parts of this process's /proc are covered, as container engines do, so that \
                   the kernel refuses a fresh one",
            fix: "set `proc = \"none\"` in the profile, or uncover /proc (docker: --security-opt \
                  systempaths=unconfined; Kubernetes: procMount: Unmasked)",
        },
        holds: |s| {
            s.step == Step::MakeProc && s.errno == libc::EPERM && !s.host.proc_masks.is_empty()
        },
    },
    Row {
        cause: Cause {
            name: "memfd-noexec",
            text: "vm.memfd_noexec forbids executing a memfd",
            fix: "install the launcher as a file (POSTERN_LAUNCHER), or set vm.memfd_noexec to 0 \
                  or 1",
        },
        holds: |s| {
            s.phase == Phase::Spawn
                && s.step == Step::Exec
                && s.refused()
                && s.host.memfd_noexec.is_some_and(|value| value > 1)
        },
    },
    Row {
        cause: Cause {
            name: "exec-forbidden",
            text: "a security module or a noexec mount forbids executing the launcher",
            fix: "install the launcher as a file that the rule allows (POSTERN_LAUNCHER)",
        },
        holds: |s| s.phase == Phase::Spawn && s.step == Step::Exec && s.refused(),
    },
    Row {
        cause: Cause {
            name: "source-missing",
            text: "a path of the profile has disappeared since it was looked at",
            fix: "keep the sources of binds in place while a sandbox is built",
        },
        holds: |s| s.step == Step::OpenSource && s.errno == libc::ENOENT,
    },
    Row {
        cause: Cause {
            name: "source-swapped",
            text: "a path of the profile leads elsewhere than when it was looked at",
            fix: "keep others from writing to the directories that lead to it",
        },
        holds: |s| {
            let opened = s.step == Step::OpenSource;
            s.step == Step::SourceChanged && s.errno == libc::ESTALE
                || opened && matches!(s.errno, libc::ELOOP | libc::ENOTDIR)
        },
    },
    Row {
        cause: Cause {
            name: "workspace-file-system",
            text: "the workspace's file system, or one mounted in it, cannot be id-mapped: \
                   overlayfs and network file systems, and tmpfs before Linux 6.3",
            fix: "move the workspace to ext4, xfs or btrfs, or give it to a fixed id (`access = \
                  \"as_is\"` with `host_uid` and `host_gid` of its owner)",
        },
        holds: |s| s.step == Step::MapOwner && matches!(s.errno, libc::EINVAL | libc::ENOSYS),
    },
    Row {
        cause: Cause {
            name: "old-kernel",
            text: "this kernel is older than Linux 5.12 or a filter hides its mount calls",
            fix: "use Linux 5.12 or later, and allow the new mount calls",
        },
        holds: |s| {
            let newer = [Step::MountFlags, Step::CloneSource, Step::AttachMount, Step::MakeRoot];
            s.errno == libc::ENOSYS && newer.contains(&s.step)
        },
    },
    Row {
        cause: Cause {
            name: "mount-forbidden",
            text: "a security module (AppArmor docker-default, SELinux) forbids mounting",
            fix: "run the service under a profile that allows mount and pivot_root (docker: \
                  --security-opt apparmor=unconfined)",
        },
        holds: |s| {
            let mounting = [Step::Propagation, Step::AttachMount, Step::PivotRoot, Step::MakeRoot];
            s.errno == libc::EACCES && mounting.contains(&s.step)
        },
    },
    Row {
        cause: Cause {
            name: "keyring-quota",
            text: "this user's quota of keys is used up",
            fix: "raise kernel.keys.maxkeys, or end sandboxes that are no longer needed",
        },
        holds: |s| s.step == Step::Keyring && s.errno == libc::EDQUOT,
    },
    Row {
        cause: Cause {
            name: "landlock-layers",
            text: "the service is beneath as many Landlock domains as the kernel nests",
            fix: "start the service from fewer of them, or do without (profile: landlock = \"off\")",
        },
        holds: |s| s.step == Step::LandlockDomain && s.errno == libc::E2BIG,
    },
    Row {
        cause: Cause {
            name: "too-many-runs",
            text: "this sandbox has as many runs as one launcher keeps",
            fix: "wait for runs to end, or build a second sandbox",
        },
        holds: |s| s.step == Step::TooManyRuns,
    },
    Row { cause: DESCRIPTOR_LIMIT, holds: |s| scarce(s.errno) == Some(DESCRIPTOR_LIMIT) },
    Row { cause: MEMORY, holds: |s| scarce(s.errno) == Some(MEMORY) },
];

const DESCRIPTOR_LIMIT: Cause = Cause {
    name: "descriptor-limit",
    text: "the service has as many descriptors open as its limit (ulimit -n) or the machine \
           (fs.file-max) allows",
    fix: "raise that limit, or have fewer runs at once (a `Ceiling`)",
};

const MEMORY: Cause = Cause {
    name: "memory",
    text: "the kernel has no memory for it: the machine's or that of the service's cgroup \
           (memory.max) is used up",
    fix: "give the service more, or have fewer runs at once (a `Ceiling`)",
};

/// What there is too little of, where the errno alone says so.
pub(super) const fn scarce(errno: i32) -> Option<Cause> {
    match errno {
        libc::EMFILE | libc::ENFILE => Some(DESCRIPTOR_LIMIT),
        libc::ENOMEM => Some(MEMORY),
        _ => None,
    }
}

/// The likely cause, where a row of the table holds.
pub(crate) fn likely(symptom: &Symptom<'_>) -> Option<Cause> {
    ROWS.iter().find(|row| (row.holds)(symptom)).map(|row| row.cause)
}

/// Every cause that can be named.
pub fn causes() -> impl Iterator<Item = Cause> {
    ROWS.iter().map(|row| row.cause)
}
