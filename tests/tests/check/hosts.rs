//! The made-up hosts and what the check must say on each; the hosts themselves are scenarios of the
//! host program.

use postern::check::{Name, Status};

/// Who can make such a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    Anybody,
    Root,
}

use Maker::{Anybody, Root};

/// A host, and what the check must say there.
pub(super) struct Row {
    pub(super) host: &'static [&'static str],
    pub(super) maker: Maker,
    pub(super) status: u64,
    pub(super) cause: &'static str,
    /// Places of fixes, and words of their texts, files or commands.
    pub(super) fixes: &'static [(&'static str, &'static str)],
    /// Findings that are as they must be: name, status, words of detail, why or fix.
    pub(super) findings: &'static [(Name, Status, &'static str)],
}

const SYSCTL_FILE: &str = "/etc/sysctl.d/60-postern.conf";
const NOTHING_LAUNCHED: (Name, Status, &str) = (Name::Seccomp, Status::Unknown, "nothing");

pub(super) const ROWS: [Row; 15] = [
    Row {
        host: &["plain"],
        maker: Anybody,
        status: 0,
        cause: "",
        fixes: &[],
        findings: &[
            (Name::Launch, Status::Enforced, "verified"),
            (Name::Program, Status::Enforced, "ended with 0"),
            (Name::LimitUserNamespaces, Status::Enforced, "as read inside"),
            (Name::LimitIpc, Status::Enforced, "as read inside"),
            (Name::Memory, Status::NotUsed, "not limited per run"),
            (
                Name::Landlock,
                Status::Enforced,
                "ABI 6: files, truncation, ioctl on devices, abstract sockets, signals",
            ),
        ],
    },
    Row {
        host: &["no-user-namespaces"],
        maker: Anybody,
        status: 1,
        cause: "user-namespaces-limited",
        fixes: &[
            ("host", "user.max_user_namespaces = 15000\n"),
            ("host", SYSCTL_FILE),
            ("host", "sysctl -p /etc/sysctl.d/60-postern.conf"),
        ],
        findings: &[(Name::Launch, Status::Failed, "clone: No space left"), NOTHING_LAUNCHED],
    },
    Row {
        host: &["chroot"],
        maker: Anybody,
        status: 1,
        cause: "chroot",
        fixes: &[("systemd", "RootDirectory="), ("service", "pivot_root . .old")],
        findings: &[(Name::Launch, Status::Failed, "clone: "), NOTHING_LAUNCHED],
    },
    Row {
        host: &["clone-switched-off"],
        maker: Anybody,
        status: 1,
        cause: "unprivileged-userns-clone",
        fixes: &[("host", "kernel.unprivileged_userns_clone = 1\n"), ("host", SYSCTL_FILE)],
        findings: &[(Name::Launch, Status::Failed, "clone: "), NOTHING_LAUNCHED],
    },
    Row {
        host: &["container-filter"],
        maker: Anybody,
        status: 1,
        cause: "outer-seccomp",
        fixes: &[
            ("docker", "--security-opt seccomp=unconfined"),
            ("docker", "--security-opt systempaths=unconfined"),
            ("kubernetes", "seccompProfile:\n          type: Unconfined"),
            ("kubernetes", "hostUsers: false"),
        ],
        findings: &[(Name::Launch, Status::Failed, "clone: "), NOTHING_LAUNCHED],
    },
    Row {
        host: &["proc-masked"],
        maker: Anybody,
        status: 1,
        cause: "proc-masked",
        fixes: &[
            ("profile", "proc = \"none\""),
            ("docker", "--security-opt systempaths=unconfined"),
            ("kubernetes", "procMount: Unmasked"),
            ("kubernetes", "hostUsers: false"),
            ("systemd", "ProtectKernelTunables=no"),
        ],
        findings: &[
            (Name::Launch, Status::Failed, "fsmount: "),
            (Name::Proc, Status::Failed, "proc = \"none\" works"),
            (Name::Proc, Status::Failed, "proc = \"minimal\" fails too"),
            NOTHING_LAUNCHED,
        ],
    },
    // What the row above advises.
    Row {
        host: &["proc-masked", "proc = \"none\""],
        maker: Anybody,
        status: 0,
        cause: "",
        fixes: &[],
        findings: &[
            (Name::Proc, Status::Enforced, "none"),
            (Name::LimitUserNamespaces, Status::Enforced, "required step"),
        ],
    },
    Row {
        host: &["proc-read-only"],
        maker: Anybody,
        status: 1,
        cause: "proc-read-only",
        fixes: &[("host", "mount -o remount,rw /proc")],
        findings: &[(Name::Launch, Status::Failed, "Read-only file system"), NOTHING_LAUNCHED],
    },
    Row {
        host: &["apparmor"],
        maker: Anybody,
        status: 1,
        cause: "apparmor-userns",
        fixes: &[
            ("host", "abi <abi/4.0>,\n"),
            ("host", "flags=(unconfined) {\n  userns,\n"),
            ("host", "apparmor_parser -r /etc/apparmor.d/postern"),
            ("host", "kernel.apparmor_restrict_unprivileged_userns = 0\n"),
        ],
        findings: &[(Name::Launch, Status::Failed, "move_mount: "), NOTHING_LAUNCHED],
    },
    Row {
        host: &["mount-forbidden"],
        maker: Anybody,
        status: 1,
        cause: "mount-forbidden",
        fixes: &[
            ("docker", "--security-opt apparmor=unconfined"),
            ("kubernetes", "appArmorProfile:\n          type: Unconfined"),
        ],
        findings: &[(Name::Launch, Status::Failed, "move_mount: "), NOTHING_LAUNCHED],
    },
    Row {
        host: &["no-more-processes"],
        maker: Anybody,
        status: 1,
        cause: "process-limit",
        fixes: &[
            ("systemd", "TasksMax="),
            ("docker", "--pids-limit"),
            ("service", "prlimit --nproc="),
        ],
        findings: &[(Name::Launch, Status::Failed, "clone: "), NOTHING_LAUNCHED],
    },
    Row {
        host: &["old-kernel"],
        maker: Anybody,
        status: 1,
        cause: "old-kernel",
        fixes: &[("host", "Linux 5.12 or later"), ("docker", "seccomp=unconfined")],
        findings: &[(Name::Kernel, Status::Unknown, "calls are hidden"), NOTHING_LAUNCHED],
    },
    Row {
        host: &["installed"],
        maker: Anybody,
        status: 0,
        cause: "",
        fixes: &[],
        findings: &[
            (Name::Launcher, Status::Weaker, "memfd: "),
            (Name::Launcher, Status::Weaker, "not owned by root, or writable by others"),
            (Name::Launcher, Status::Weaker, "chown root:root "),
            (Name::Launcher, Status::Weaker, "chmod 755 "),
        ],
    },
    Row {
        host: &["memfd-noexec"],
        maker: Root,
        status: 0,
        cause: "",
        fixes: &[],
        findings: &[
            (Name::Launcher, Status::Weaker, "private-file: "),
            (Name::Launcher, Status::Weaker, "vm.memfd_noexec is 2"),
            (Name::Launcher, Status::Weaker, "sysctl vm.memfd_noexec=1"),
        ],
    },
    Row {
        host: &["memfd-noexec-everywhere"],
        maker: Root,
        status: 1,
        cause: "memfd-noexec",
        fixes: &[("host", "vm.memfd_noexec = 1\n"), ("service", "POSTERN_LAUNCHER=/")],
        findings: &[(Name::Launch, Status::Failed, "memfd: Permission denied"), NOTHING_LAUNCHED],
    },
];
