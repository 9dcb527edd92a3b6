//! What the kernel says of one confined PID 1, as a value that can be printed and compared. It is
//! compared with the plan in `judge`; nothing here decides what should be.

mod judge;
mod mounts;
mod read;
#[cfg(test)]
mod tests;

#[cfg(test)]
use std::path::Path;
use std::path::PathBuf;

use serde::Serialize;

pub(crate) use judge::{Expected, judge};
pub(crate) use mounts::plain;
pub(crate) use read::{attest, filters, limit_of, shared_namespaces};

/// What the kernel said of one run's PID 1, when every wall stood and its program had not been
/// started. The guest inherits all of it but the descriptors.
///
/// Most is read from `/proc` by the host, see [proc(5)](https://man7.org/linux/man-pages/man5/proc.5.html);
/// what the kernel tells to nobody but the process itself was asked by PID 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Attestation {
    /// Every namespace that this kernel shows.
    pub namespaces: Vec<AttestedNamespace>,
    /// Real, effective, saved and file-system uid, as the host's kernel has them.
    pub uids: [u32; 4],
    /// Real, effective, saved and file-system gid.
    pub gids: [u32; 4],
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// The uid map, as this process sees it: inside, outside, count.
    pub uid_map: Vec<[u32; 3]>,
    /// The gid map.
    pub gid_map: Vec<[u32; 3]>,
    /// The five capability sets.
    pub capabilities: AttestedCapabilities,
    /// The securebits, by PID 1's own word; 0xef is every one of them set and locked but
    /// `KEEP_CAPS`, which is off and locked.
    pub securebits: u32,
    /// `no_new_privs`.
    pub no_new_privs: Option<bool>,
    /// 0: no system-call filter; 2: a filter.
    pub seccomp_mode: Option<u32>,
    /// How many filters, those around the service among them.
    pub seccomp_filters: Option<u32>,
    /// Whether a Landlock domain refused PID 1 what nothing else refuses.
    pub landlock: bool,
    /// Whether the session keyring is closed to PID 1 itself.
    pub keyring_closed: bool,
    /// Whether processes of the same uid may look into PID 1.
    pub dumpable: bool,
    /// What is added to the kernel's badness score.
    pub oom_score_adj: i16,
    /// Every resource limit that a plan may set.
    pub rlimits: Vec<AttestedRlimit>,
    /// Every mount that a path leads to.
    pub mounts: Vec<AttestedMount>,
    /// Every open descriptor.
    pub descriptors: Vec<AttestedDescriptor>,
}

/// A namespace of PID 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttestedNamespace {
    /// Its name in `/proc/PID/ns`.
    pub name: &'static str,
    /// Its inode number, which tells it from every other; `None` where the kernel shows none.
    pub inode: Option<u64>,
    /// Whether it is the service's.
    pub is_shared: Option<bool>,
}

/// Capability sets, a bit for each capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[expect(missing_docs, reason = "the names of the sets in capabilities(7)")]
pub struct AttestedCapabilities {
    pub inheritable: u64,
    pub permitted: u64,
    pub effective: u64,
    pub bounding: u64,
    pub ambient: u64,
}

/// A resource limit; `None` is unlimited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttestedRlimit {
    /// Its name as in a plan.
    pub resource: String,
    /// The soft limit.
    pub soft: Option<u64>,
    /// The hard limit.
    pub hard: Option<u64>,
}

/// A mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttestedMount {
    /// Where, in the guest.
    pub target: PathBuf,
    /// The kind of its file system.
    pub file_system: String,
    /// Those of `ro`, `nosuid`, `nodev` and `noexec` that are set.
    pub flags: Vec<&'static str>,
}

/// A descriptor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttestedDescriptor {
    /// Its number.
    pub number: i32,
    /// What it leads to, as `/proc/PID/fd` names it.
    pub what: PathBuf,
}
