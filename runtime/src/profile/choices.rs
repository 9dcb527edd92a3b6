//! The closed choices of a profile, each with what it means to the guest; decides nothing itself.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The one directory that the guest owns.
///
/// In a file: `workspace.owned = { size_bytes = 1048576 }` or
/// `workspace.directory = { path = "/srv/job", access = "shared" }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Workspace {
    /// A bounded [tmpfs(5)](https://man7.org/linux/man-pages/man5/tmpfs.5.html) that lives as
    /// long as the sandbox and belongs to the guest's kernel uid, mode 0700.
    Owned {
        /// Bytes that it may hold; default 256 MiB.
        #[serde(default = "owned_size_bytes")]
        size_bytes: u64,
        /// Inodes that it may hold; default 65,536.
        #[serde(default = "owned_inodes")]
        inodes: u64,
    },
    /// A directory of the caller's, bound read-write; reported as unbounded, since no quota of
    /// ours applies to it. Must exist.
    Directory {
        /// Absolute path on the host.
        path: PathBuf,
        /// How the guest comes to be allowed to write there; default as it is.
        #[serde(default)]
        access: WorkspaceAccess,
    },
}

/// Bytes of an owned workspace unless the profile says otherwise.
const fn owned_size_bytes() -> u64 {
    256 << 20
}

/// Inodes of an owned workspace unless the profile says otherwise.
const fn owned_inodes() -> u64 {
    65_536
}

impl Default for Workspace {
    fn default() -> Self {
        Self::Owned { size_bytes: owned_size_bytes(), inodes: owned_inodes() }
    }
}

/// What is done to a caller's workspace before the first run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceAccess {
    /// Nothing: the guest's kernel uid must already be able to write there.
    #[default]
    AsIs,
    /// `chmod 1777`, so that every local user can write there. For drop-in use only.
    Shared,
    /// Nothing, and what the guest makes belongs to the directory's owner: an id-mapped mount
    /// shows the guest's kernel ids to the host as the owner's. For a privileged service, or one
    /// that owns the directory; not every file system can do it, and the directory is not root's.
    Mapped,
}

/// What the guest's `/` is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Root {
    /// A small read-only tmpfs that holds the system directories and little else.
    #[default]
    Curated,
    /// The host's own tree, read-only, with fresh `/proc`, `/dev`, `/run` and `/tmp`. Everything
    /// that is readable by the guest's kernel ids is readable by the guest.
    HostView,
}

/// What the guest's `/etc` holds; [`Root::HostView`] has the host's own and ignores this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Etc {
    /// Generated `passwd`, `group`, `hosts`, `nsswitch.conf` and `host.conf`, and the few
    /// world-readable host entries that ordinary programs look for.
    #[default]
    Generated,
    /// `ld.so.cache` alone.
    None,
}

/// What the guest's `/proc` is. See [proc(5)](https://man7.org/linux/man-pages/man5/proc.5.html).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProcKind {
    /// A fresh read-only procfs with masks over the files that leak when read. Writing to
    /// `/proc/self` (another thread's `comm`, `oom_score_adj`) is refused.
    #[default]
    ReadOnly,
    /// A fresh read-only procfs with processes only (`subset=pid`, Linux 5.8).
    Minimal,
    /// A fresh procfs whose per-process files are writable; machine-wide directories are
    /// read-only or masked. For nested namespaces.
    Masked,
    /// No procfs at all, in the guest's world or behind it.
    None,
}

/// Whether `lo` is up in the guest's own network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Loopback {
    /// Programs in one run can reach one another on 127.0.0.1 and `::1`.
    #[default]
    Up,
    /// No address works.
    Down,
}

/// Whether the guest has a namespace to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// A fresh one for each run; that it cannot be made is a failed launch.
    #[default]
    Own,
    /// Not the run's own, which is reported as a warning: that of the service; for `pid` that of
    /// the launcher, which holds no process of the host, and one run at a time.
    Shared,
}

/// The namespaces that a profile may share; user and mount are always the run's own.
///
/// See [namespaces(7)](https://man7.org/linux/man-pages/man7/namespaces.7.html).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Namespaces {
    /// Process ids.
    pub pid: Sharing,
    /// Network; shared means the host's network, with its resolver.
    pub net: Sharing,
    /// System V IPC and POSIX message queues.
    pub ipc: Sharing,
    /// Hostname.
    pub uts: Sharing,
    /// Control groups.
    pub cgroup: Sharing,
}

/// What to do about a guest that would have the service's own kernel uid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SharedUid {
    /// Go on, with a warning that names it.
    #[default]
    Report,
    /// Refuse the launch.
    Refuse,
}

/// What to do about supplementary groups that the host cannot drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SharedGroups {
    /// Go on, with a warning that lists them.
    #[default]
    Report,
    /// Refuse the launch.
    Refuse,
}

/// Whether the kernel's Landlock is a second wall around files, sockets and signals.
///
/// In a file: `landlock = "use"` or `landlock = { require = 6 }`. What an ABI adds is in
/// [landlock(7)](https://man7.org/linux/man-pages/man7/landlock.7.html). With it there are no
/// POSIX message queues, to which no path leads, and no device node can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Landlock {
    /// Not used.
    Off,
    /// As much of it as the kernel has; what that is, or why it is nothing, is reported.
    #[default]
    Use,
    /// A kernel with less than this ABI, 2 to 6, is refused. 2 restricts files, 3 truncation, 5
    /// ioctl on devices, 6 abstract sockets and signals too.
    Require(u32),
}
