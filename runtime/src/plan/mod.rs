//! The plan: every decision of a launch as one value that can be read, compared and tested.
//!
//! Nothing here makes a system call: [`resolve()`] sees the machine only through a
//! [`Host`](crate::host::Host) value. Carrying the plan out belongs to `launch`.

use std::ffi::CString;
use std::path::PathBuf;

use postern_seccomp::{Level, UserPolicy};

use crate::cgroup::CgroupGap;

mod cgroup;
mod dev;
mod display;
mod env;
mod etc;
mod identity;
mod landlock;
mod limits;
mod mounts;
mod proc;
mod python;
mod resolve;
mod rules;
mod set_id;
mod shared;
mod subordinate;
mod system;
mod text;
mod tree;
mod user;
mod warning;
mod workspace;

pub use cgroup::{Cgroup, CgroupLimit, CgroupResource};
pub(crate) use dev::{DEVICES, MASK_DIR};
pub(crate) use env::search_path;
pub(crate) use etc::ETC_ENTRIES;
pub use landlock::{Landlock, LandlockRight, LandlockRule};
pub(crate) use limits::by_default as limits_by_default;
pub(crate) use mounts::EXCHANGE;
pub(crate) use proc::{LEAKS, ROOTS_ALONE};
pub use python::{Interpreter, Python};
pub use resolve::{Wants, resolve, resolve_with};
pub use shared::WhyShared;
pub(crate) use system::SYSTEM_DIRECTORIES;
pub use warning::Warning;

/// What one launch will do, in the order in which it is done.
///
/// `Display` prints one step a line; golden files, `postern plan` and bug reports show that text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Who the launcher and the guest are, inside and outside.
    pub identity: Identity,
    /// The namespaces that each run gets for itself.
    pub namespaces: NamespaceSet,
    /// Which of them the launcher makes one run ahead, off the run's critical path.
    pub ahead: NamespaceSet,
    /// Mount operations done once, by the launcher, while it builds the template root.
    pub template: Vec<MountOp>,
    /// Mount operations done by each run's PID 1, in its own copy of the template.
    pub run: Vec<MountOp>,
    /// The hostname inside (`uts` namespace only).
    pub hostname: Option<CString>,
    /// Whether `lo` is brought up in the run's network namespace.
    pub loopback: bool,
    /// Namespace limits, written through a private procfs.
    pub sysctls: Vec<Sysctl>,
    /// Resource limits set by PID 1 on itself, inherited by the guest.
    pub rlimits: Vec<Rlimit>,
    /// Resource limits set in the guest's process alone, just before its exec: a process count
    /// (counted in the run's user namespace) and an address-space limit.
    pub guest_rlimits: Vec<Rlimit>,
    /// Added to the kernel's badness score of every process of a run (`oom_score_adj`, 0..=1000).
    pub oom_score_adj: i16,
    /// The guest's working directory.
    pub cwd: CString,
    /// The guest's whole environment, `NAME=value`, before the run's own additions.
    pub env: Vec<CString>,
    /// The control groups, where the profile asks for a limit that this host can hold.
    pub cgroup: Option<Cgroup>,
    /// Limits of the run as a whole that this host cannot hold, and why.
    pub cgroup_gaps: Vec<(CgroupLimit, CgroupGap)>,
    /// The Landlock domain, entered after the last mount and before the filter.
    pub landlock: Landlock,
    /// The system-call filter.
    pub seccomp: Level,
    /// A second filter, for the guest's program and what it starts.
    pub seccomp_policy: Option<UserPolicy>,
    /// What is known about the guest's Python interpreter; not part of the printed plan.
    pub python: Python,
    /// What the caller should know although the launch goes on, such as a shared kernel uid.
    pub warnings: Vec<Warning>,
}

/// A host by what it lets us do: decided by effective capabilities, never by uid 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// `CAP_SYS_ADMIN`, `CAP_SETUID`, `CAP_SETGID` and `CAP_SETFCAP`: the launcher needs no user namespace of its own.
    Privileged,
    /// `CAP_SETUID`, `CAP_SETGID` and `CAP_SETFCAP` only, as root in a default container: the
    /// library writes a two-extent map for the launcher.
    MapWriter,
    /// No such capability, and subordinate ids: newuidmap(1) and newgidmap(1) write a two-extent
    /// map for the launcher.
    Subordinate,
    /// No such capability: the launcher maps its own uid, and nothing else.
    Unprivileged,
}

/// The ids of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// What kind of host this is.
    pub tier: Tier,
    /// The guest's uid as it sees it.
    pub guest_uid: u32,
    /// The guest's gid as it sees it.
    pub guest_gid: u32,
    /// The guest's uid as the host's kernel sees it.
    pub kernel_uid: KernelId,
    /// The guest's gid as the host's kernel sees it.
    pub kernel_gid: KernelId,
    /// Supplementary groups that stay with the guest because this host cannot drop them.
    pub shared_groups: Vec<u32>,
    /// Why the guest's kernel uid is the service's own; `None` where it is not.
    pub why_shared: Option<WhyShared>,
    /// What writes the launcher's maps, for [`Tier::Subordinate`] alone.
    pub map_tools: Option<MapToolPaths>,
}

/// Where the set-uid tools are that write subordinate ids into a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapToolPaths {
    /// newuidmap(1).
    pub newuidmap: PathBuf,
    /// newgidmap(1).
    pub newgidmap: PathBuf,
}

/// Where a kernel id comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelId {
    /// One id per sandbox, leased from this inclusive range at launch.
    Leased {
        /// The first id of the range.
        first: u32,
        /// The last id of the range.
        last: u32,
    },
    /// The id that the profile names.
    Fixed(u32),
    /// The service's own id: an unprivileged host has no other.
    Own(u32),
}

/// A set of namespaces (user and mount are always fresh and not listed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "a set: one flag per namespace the kernel has")]
pub struct NamespaceSet {
    /// Process ids.
    pub pid: bool,
    /// Network.
    pub net: bool,
    /// System V IPC and POSIX message queues.
    pub ipc: bool,
    /// Hostname.
    pub uts: bool,
    /// Control groups.
    pub cgroup: bool,
}

/// One thing done to the mount tree. `target` is always absolute inside the new root, without
/// `.` or `..`, and is resolved beneath it, never following a symlink out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountOp {
    /// The root itself, a fresh tmpfs; always first, unless [`MountOp::HostRoot`] is.
    Root {
        /// Bytes that the tmpfs may hold.
        size_bytes: u64,
        /// Inodes that the tmpfs may hold.
        inodes: u64,
    },
    /// The host's own tree, bound recursively and made read-only; always first.
    HostRoot,
    /// A directory on a file system that we made.
    Dir {
        /// Where.
        target: CString,
        /// Permission bits.
        mode: u32,
    },
    /// A regular file with fixed contents on a file system that we made.
    File {
        /// Where.
        target: CString,
        /// Permission bits.
        mode: u32,
        /// What it holds.
        contents: Vec<u8>,
    },
    /// A symbolic link on a file system that we made.
    Symlink {
        /// Where.
        target: CString,
        /// What it says.
        to: CString,
    },
    /// A recursive bind of a host file or directory.
    Bind {
        /// What is bound.
        source: Source,
        /// Where.
        target: CString,
        /// Whether the guest may write through it.
        access: Access,
        /// Whether device nodes work through it: only for the nodes of `/dev`.
        devices: bool,
        /// Whose files the guest's are on the host: the mount is id-mapped. `None`: as they are.
        owner: Option<Owner>,
    },
    /// A fresh tmpfs.
    Tmpfs {
        /// Where.
        target: CString,
        /// Bytes that it may hold.
        size_bytes: u64,
        /// Inodes that it may hold.
        inodes: u64,
        /// Permission bits of its root.
        mode: u32,
        /// Read-only once made?
        access: Access,
        /// Whether the host gets a descriptor of it.
        export: Export,
    },
    /// A fresh procfs of the run's pid namespace (in the template: of the launcher's), in which what
    /// may not be traced may not be looked at (`hidepid=1`).
    Proc {
        /// Where.
        target: CString,
        /// Whether it may be written to at all.
        access: Access,
        /// `subset=pid`: only processes.
        only_pids: bool,
    },
    /// A fresh devpts instance.
    Devpts {
        /// Where.
        target: CString,
        /// How many terminals it may hold (`max=`).
        max: u32,
    },
    /// Covers what is there, if anything is, with something empty and unreadable of the same kind.
    Mask {
        /// What is covered. A missing target is passed over.
        target: CString,
        /// What covers it: a mode-0000 file of ours for a file, an empty directory for a directory.
        cover: CString,
    },
    /// Makes the mount that holds `target` read-only.
    ReadOnly {
        /// A mount point.
        target: CString,
    },
    /// Binds what is at `target` over itself, read-only, leaving the rest of its file system
    /// writable. A missing target is passed over.
    ReadOnlySelf {
        /// A directory.
        target: CString,
    },
    /// Binds the run's own directory of the exchange over the exchange itself, read-only, so that
    /// no run sees another's files; `keep` names an entry of the exchange that is carried over.
    RunDirectory {
        /// The exchange's mount point.
        target: CString,
        /// A mounted subdirectory that every run keeps, such as `stubs`.
        keep: Option<CString>,
    },
}

/// A host path to bind, as it was when the plan was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Canonical absolute path on the host (no symlink in it).
    pub path: PathBuf,
    /// Directory or not.
    pub kind: SourceKind,
    /// Device number (`st_dev`, as `makedev(major, minor)`) that the launcher must find again.
    pub dev: u64,
    /// Inode number that the launcher must find again.
    pub ino: u64,
}

/// An owner on the host, for whom the guest's kernel ids stand on an id-mapped mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Its uid, never 0 unless the filter keeps set-id bits away.
    pub uid: u32,
    /// Its gid, likewise.
    pub gid: u32,
}

/// What kind of mount point a source needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// A directory.
    Dir,
    /// Anything else: a regular file, a socket, a device node.
    File,
}

/// Read-only or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Nothing can be changed through this mount.
    ReadOnly,
    /// The guest may write where permission bits let it.
    ReadWrite,
}

/// Whether the host is handed a directory descriptor of a tmpfs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Export {
    /// It stays inside.
    No,
    /// The workspace, owned by the guest's kernel uid.
    Workspace,
    /// Where the host puts files and sockets for one run each.
    Exchange,
}

/// A kernel limit that belongs to a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysctl {
    /// Whose limit it is.
    pub scope: SysctlScope,
    /// Path below `/proc/sys/`.
    pub path: CString,
    /// What is written.
    pub value: CString,
    /// What a refusal by the kernel means.
    pub need: Need,
}

/// When and where a [`Sysctl`] is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SysctlScope {
    /// Once, in the launcher's own user namespace.
    LauncherUser,
    /// By the launcher, in the ipc namespace made ahead for the next run.
    AheadIpc,
    /// By each run's PID 1, in its own user namespace, after the last mount.
    RunUser,
}

/// What a missing feature means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The launch fails.
    Required,
    /// The launch goes on and the enforcement report names it.
    Reported,
}

/// One resource limit; soft and hard are the same unless the host's hard limit is lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rlimit {
    /// `RLIMIT_*`, as in `<sys/resource.h>`.
    pub resource: Resource,
    /// Soft and hard limit in the resource's own unit.
    pub limit: u64,
}

/// The resources that we limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Size of a core dump in bytes; always 1, which stops handlers and files alike.
    Core,
    /// Open descriptors.
    NoFile,
    /// Bytes of a file.
    FileSize,
    /// Bytes of locked memory.
    MemLock,
    /// Queued signals.
    SigPending,
    /// Bytes in POSIX message queues.
    MsgQueue,
    /// Processes and threads, counted in the run's user namespace.
    NProc,
    /// Bytes of address space.
    AddressSpace,
    /// Bytes of stack.
    Stack,
    /// Seconds of processor time.
    Cpu,
}
