//! What a plan needs to know about a machine, as plain data; only [`Host::probe`] and
//! [`Diagnosis::probe`] look at one.

use core::fmt;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::cgroup::CgroupSupport;
use crate::plan::Rlimit;

mod diagnosis;
mod files;
mod idmap;
mod landlock;
mod probe;
mod python;
mod release;
mod subordinate;
mod sys;
mod trail;
mod venv;

pub use diagnosis::Diagnosis;
pub use landlock::LandlockSupport;
pub use probe::ProbeError;
pub(crate) use probe::small_file;
pub(crate) use release::Release;
pub use subordinate::{MapTools, Subordinate};
pub(crate) use sys::has_clone3;
pub(crate) use trail::{Shown, Trail, View, follow};
pub use venv::VenvConfig;
pub(crate) use venv::named_version;

/// A machine, as far as one profile has to do with it.
///
/// Tests write one down; [`Host::probe`] reads one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Host {
    /// The service's effective capabilities.
    pub capabilities: Capabilities,
    /// The service's effective uid.
    pub uid: u32,
    /// The service's effective gid.
    pub gid: u32,
    /// The service's supplementary groups.
    pub groups: Vec<u32>,
    /// The uids that exist in the service's user namespace.
    pub uids: Vec<IdRange>,
    /// The gids that exist in the service's user namespace.
    pub gids: Vec<IdRange>,
    /// Uids that `/etc/subuid` gives to somebody.
    pub subordinate_uids: Vec<IdRange>,
    /// Gids that `/etc/subgid` gives to somebody.
    pub subordinate_gids: Vec<IdRange>,
    /// What of them is the service's own user's, and whether it can be used; looked at only for a
    /// service that has no right to other ids.
    pub subordinate: Subordinate,
    /// Hard limits that are not infinite.
    pub hard_limits: Vec<Rlimit>,
    /// Bytes of a page of memory.
    pub page_bytes: u64,
    /// What Landlock the service can use.
    pub landlock: LandlockSupport,
    /// Where the service may make control groups; looked at only for a profile that asks for one.
    pub cgroup: CgroupSupport,
    /// One fact for each path that the profile makes interesting, and for what a link among
    /// them leads to.
    pub files: BTreeMap<PathBuf, FileFact>,
    /// What `pyvenv.cfg` of the profile's virtual environment says, if it has one.
    pub venv: Option<VenvConfig>,
    /// The names in the directories that may be the environment's Python installation, and in
    /// their `lib` and `lib64` those that Python gives; only where the guest would not see them
    /// anyway. A directory that could not be read, or holds very many names, is missing here.
    pub listings: BTreeMap<PathBuf, Vec<OsString>>,
    /// The homes of `/etc/passwd` and the service's own; only where `listings` has anything.
    pub homes: Vec<PathBuf>,
}

impl Host {
    /// The fact about a path, if the path was looked at.
    pub fn file(&self, path: &Path) -> Option<&FileFact> {
        self.files.get(path)
    }
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileFact {
    /// Nothing.
    Missing,
    /// A symbolic link to nothing.
    Dangling {
        /// What the link says.
        link: PathBuf,
    },
    /// The service was not allowed to look, or looking failed.
    Unreachable {
        /// What the kernel said.
        errno: i32,
    },
    /// A file of some kind.
    Found(FoundFile),
}

/// A file, after every symbolic link on the way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Its kind.
    pub kind: FileKind,
    /// Its path without a symbolic link.
    pub canonical: PathBuf,
    /// What the path itself says, where it is a symbolic link.
    pub link: Option<PathBuf>,
    /// Device number of its file system, as `makedev(major, minor)`.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Permission bits, with set-id and sticky bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// Kinds of files that a plan tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A directory.
    Dir,
    /// A regular file.
    Regular,
    /// A character device with this number, as `makedev(major, minor)`.
    CharDevice {
        /// `st_rdev`.
        rdev: u64,
    },
    /// A socket, a pipe or a block device.
    Other,
}

/// A run of ids, `first` and the `count - 1` after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdRange {
    /// The first id.
    pub first: u32,
    /// How many; more than 0.
    pub count: u32,
}

impl IdRange {
    /// Every id that there is.
    pub const ALL: Self = Self { first: 0, count: u32::MAX };

    /// The ids as 64-bit numbers, so that the end of the last one can be written.
    fn span(self) -> core::ops::Range<u64> {
        let first = u64::from(self.first);
        first..first + u64::from(self.count)
    }

    /// Whether every id of `other` is in this range.
    pub fn holds(self, other: Self) -> bool {
        let (outer, inner) = (self.span(), other.span());
        outer.start <= inner.start && inner.end <= outer.end
    }

    /// Whether any id of `other` is in this range.
    pub fn overlaps(self, other: Self) -> bool {
        let (left, right) = (self.span(), other.span());
        left.start < right.end && right.start < left.end
    }
}

/// The capabilities that decide what a launch can do.
///
/// See [capabilities(7)](https://man7.org/linux/man-pages/man7/capabilities.7.html).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// Write to files and directories of another owner.
    DacOverride,
    /// Write the mode of a file of another owner.
    Fowner,
    /// Take any gid and write gid maps.
    SetGid,
    /// Take any uid and write uid maps.
    SetUid,
    /// Configure a network namespace.
    NetAdmin,
    /// Mount, unshare without a user namespace, and much else.
    SysAdmin,
    /// Map uid 0.
    SetFcap,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DacOverride => "CAP_DAC_OVERRIDE",
            Self::Fowner => "CAP_FOWNER",
            Self::SetGid => "CAP_SETGID",
            Self::SetUid => "CAP_SETUID",
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::SetFcap => "CAP_SETFCAP",
        })
    }
}

/// A capability set, as the kernel writes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(u64);

impl Capabilities {
    /// No capability.
    pub const NONE: Self = Self(0);

    /// Every capability that this or a later kernel may have.
    pub const ALL: Self = Self(u64::MAX);

    /// A set from the kernel's bits, number n at bit n.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The set of these.
    pub fn of(list: &[Capability]) -> Self {
        Self(list.iter().fold(0, |bits, capability| bits | capability.bit()))
    }

    /// Whether `capability` is in the set.
    pub fn has(self, capability: Capability) -> bool {
        self.0 & capability.bit() != 0
    }
}

impl Capability {
    /// The capability's bit in a set.
    const fn bit(self) -> u64 {
        1 << match self {
            Self::DacOverride => 1,
            Self::Fowner => 3,
            Self::SetGid => 6,
            Self::SetUid => 7,
            Self::NetAdmin => 12,
            Self::SysAdmin => 21,
            Self::SetFcap => 31,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Capabilities, Capability, IdRange};

    #[test]
    fn ranges_hold_and_overlap() {
        let range = |first, count| IdRange { first, count };
        let rows = [
            ("inside", range(0, 10), range(2, 3), true, true),
            ("equal", range(5, 5), range(5, 5), true, true),
            ("one over the end", range(0, 10), range(5, 6), false, true),
            ("one under the start", range(5, 5), range(4, 2), false, true),
            ("touching", range(0, 10), range(10, 1), false, false),
            ("to the last id", IdRange::ALL, range(u32::MAX - 1, 1), true, true),
            ("apart", range(0, 1), range(100, 1), false, false),
        ];
        for (name, outer, inner, holds, overlaps) in rows {
            assert_eq!(outer.holds(inner), holds, "{name}");
            assert_eq!(outer.overlaps(inner), overlaps, "{name}");
        }
    }

    #[test]
    fn capability_numbers_are_the_kernels() {
        let rows = [
            (Capability::DacOverride, 1),
            (Capability::Fowner, 3),
            (Capability::SetGid, 6),
            (Capability::SetUid, 7),
            (Capability::NetAdmin, 12),
            (Capability::SysAdmin, 21),
            (Capability::SetFcap, 31),
        ];
        for (capability, number) in rows {
            assert!(Capabilities::from_bits(1 << number).has(capability), "{capability}");
            assert!(!Capabilities::from_bits(!(1 << number)).has(capability), "{capability}");
            assert_eq!(Capabilities::of(&[capability]), Capabilities::from_bits(1 << number));
        }
    }
}
