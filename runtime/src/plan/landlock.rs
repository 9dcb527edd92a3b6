//! The Landlock domain of a run: where reading, writing and device control end, whatever a mount
//! says. Knows no bits; `launch` does.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{Access, Export, MountOp, SourceKind};
use crate::error::Refusal;
use crate::host::LandlockSupport;
use crate::profile;

/// The Landlock domain that every process of a run is in, PID 1 included.
///
/// It is one layer, so that a rule cannot take back what one above it gives: a read-only mount
/// within a writable directory is read-only by its mount alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Landlock {
    /// The profile does without.
    Off,
    /// There is none that could be used, and the profile asks for none in particular.
    Unavailable(LandlockSupport),
    /// A domain of this version, 2 to 6, which may be less than what the kernel has.
    Domain {
        /// The version of the interface that is used.
        abi: u32,
        /// What is allowed where; everything else is not.
        rules: Vec<LandlockRule>,
    },
}

impl Landlock {
    /// The version that is used; `None` without a domain.
    #[must_use]
    pub const fn abi(&self) -> Option<u32> {
        match self {
            Self::Domain { abi, .. } => Some(*abi),
            Self::Off | Self::Unavailable(_) => None,
        }
    }
}

/// What is allowed in one place and beneath it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandlockRule {
    /// A path in the guest. One that PID 1 cannot reach is passed over: nobody in the run can.
    pub target: CString,
    /// What is allowed there.
    pub right: LandlockRight,
}

/// A group of access rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LandlockRight {
    /// Reading files and directories, and executing.
    Read,
    /// Writing to files that are there.
    Files,
    /// The same, and the ioctls of devices.
    Devices,
    /// Everything but making device nodes and the ioctls of devices.
    Tree,
}

/// Renames from one directory to another are allowed from this version on, and forbidden before.
const ABI_MIN: u32 = 2;

/// What came later restricts nothing that the plan means: TCP without a way to leave loopback
/// out, logging, and connecting to sockets by path, which the hatches are for.
const ABI_MAX: u32 = 6;

/// The domain that a profile gets here.
pub(super) fn landlock(
    wanted: profile::Landlock,
    found: LandlockSupport,
    operations: &[&[MountOp]],
) -> Result<Landlock, Refusal> {
    let usable = match found {
        LandlockSupport::Abi(abi) if abi >= ABI_MIN => Some(abi.min(ABI_MAX)),
        LandlockSupport::Abi(_)
        | LandlockSupport::Missing
        | LandlockSupport::Disabled
        | LandlockSupport::Refused { .. } => None,
    };
    match (wanted, usable) {
        (profile::Landlock::Off, _) => Ok(Landlock::Off),
        (profile::Landlock::Require(required), usable)
            if usable.is_none_or(|abi| abi < required) =>
        {
            Err(Refusal::LandlockTooOld { required, found })
        }
        (_, None) => Ok(Landlock::Unavailable(found)),
        (_, Some(abi)) => Ok(Landlock::Domain { abi, rules: rules(operations) }),
    }
}

fn rules(operations: &[&[MountOp]]) -> Vec<LandlockRule> {
    let mut places = Places(vec![
        LandlockRule { target: c"/".to_owned(), right: LandlockRight::Read },
        LandlockRule { target: c"/dev".to_owned(), right: LandlockRight::Devices },
    ]);
    operations.iter().copied().flatten().for_each(|operation| places.learn(operation));
    places.0
}

/// Where something may be written once all operations so far are done.
struct Places(Vec<LandlockRule>);

impl Places {
    fn learn(&mut self, operation: &MountOp) {
        match operation {
            MountOp::Bind { source, target, access, .. } => {
                let right = match source.kind {
                    SourceKind::Dir => LandlockRight::Tree,
                    SourceKind::File => LandlockRight::Files,
                };
                self.mounted(target, right, *access);
            }
            // Each run covers the exchange with its own part, read-only.
            MountOp::Tmpfs { target, export: Export::Exchange, .. }
            | MountOp::RunDirectory { target, .. } => self.covered(target),
            MountOp::Tmpfs { target, access, .. } => {
                self.mounted(target, LandlockRight::Tree, *access);
            }
            MountOp::Proc { target, access, .. } => {
                self.mounted(target, LandlockRight::Files, *access);
            }
            MountOp::ReadOnly { target } => {
                self.0.retain(|rule| rule.target != *target || is_given(rule));
            }
            // Terminals are among the devices.
            MountOp::Devpts { target, .. } => self.covered(target),
            MountOp::Root { .. }
            | MountOp::HostRoot
            | MountOp::Dir { .. }
            | MountOp::File { .. }
            | MountOp::Symlink { .. }
            | MountOp::Mask { .. }
            | MountOp::ReadOnlySelf { .. } => {}
        }
    }

    fn mounted(&mut self, target: &CStr, right: LandlockRight, access: Access) {
        self.covered(target);
        if access == Access::ReadWrite {
            self.0.push(LandlockRule { target: target.to_owned(), right });
        }
    }

    /// What was at a target or beneath it can no longer be reached.
    fn covered(&mut self, target: &CStr) {
        let is_beneath = |path: &CStr| as_path(path).starts_with(as_path(target));
        self.0.retain(|rule| !is_beneath(&rule.target) || is_given(rule));
    }
}

/// The two rules of every domain.
fn is_given(rule: &LandlockRule) -> bool {
    matches!(rule.right, LandlockRight::Read | LandlockRight::Devices)
}

fn as_path(text: &CStr) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(text.to_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Landlock::{Off, Require, Use};

    #[test]
    fn a_profile_gets_what_there_is_or_is_refused() {
        use LandlockSupport::{Abi, Disabled, Missing, Refused};
        let rows = [
            (Use, Abi(7), Ok(Some(6))),
            (Use, Abi(2), Ok(Some(2))),
            (Use, Abi(1), Ok(None)),
            (Use, Missing, Ok(None)),
            (Use, Disabled, Ok(None)),
            (Off, Abi(7), Ok(None)),
            (Require(6), Abi(6), Ok(Some(6))),
            (Require(2), Abi(7), Ok(Some(6))),
            (Require(6), Abi(5), Err("this kernel has ABI 5; a newer kernel")),
            (Require(2), Abi(1), Err("this kernel has ABI 1")),
            (Require(2), Missing, Err("and the kernel has no Landlock; Linux 6.12")),
            (Require(2), Disabled, Err("lsm=landlock")),
            (Require(2), Refused { errno: libc::EPERM }, Err("not permitted (os error 1); allow")),
        ];
        for (wanted, found, expected) in rows {
            let got = landlock(wanted, found, &[]);
            match (&got, expected) {
                (Ok(Landlock::Domain { abi, .. }), Ok(Some(expected))) => {
                    assert_eq!(*abi, expected, "{wanted:?} {found:?}");
                }
                (Ok(Landlock::Off), Ok(None)) => assert_eq!(wanted, Off),
                (Ok(Landlock::Unavailable(fact)), Ok(None)) => assert_eq!(*fact, found),
                (Err(refusal), Err(words)) => {
                    let text = refusal.to_string();
                    assert!(text.to_lowercase().contains(&words.to_lowercase()), "{text}");
                }
                _ => panic!("{wanted:?} {found:?}: {got:?}"),
            }
        }
    }

    #[test]
    fn the_last_mount_at_a_place_says_what_is_allowed_there() {
        let tmpfs = |target: &CStr, access, export| MountOp::Tmpfs {
            target: target.to_owned(),
            size_bytes: 1,
            inodes: 1,
            mode: 0,
            access,
            export,
        };
        let at = |target: &CStr| tmpfs(target, Access::ReadWrite, Export::No);
        let closed = |target: &CStr| tmpfs(target, Access::ReadOnly, Export::No);
        let sealed = |target: &CStr| MountOp::ReadOnly { target: target.to_owned() };
        let rows: [(&[MountOp], &[&CStr]); 7] = [
            (&[at(c"/a"), at(c"/b")], &[c"/a", c"/b"]),
            (&[at(c"/a"), closed(c"/a")], &[]),
            (&[at(c"/a/b"), closed(c"/a")], &[]),
            (&[at(c"/a"), closed(c"/ab")], &[c"/a"]),
            (&[at(c"/a"), closed(c"/a/b")], &[c"/a"]),
            (&[at(c"/run"), at(c"/run/w"), sealed(c"/run"), sealed(c"/")], &[c"/run/w"]),
            (&[tmpfs(c"/x", Access::ReadWrite, Export::Exchange)], &[]),
        ];
        for (operations, expected) in rows {
            let found = rules(&[operations]);
            let targets: Vec<_> = found.iter().map(|rule| rule.target.as_c_str()).collect();
            assert_eq!(targets, [&[c"/", c"/dev"], expected].concat(), "{operations:?}");
        }
    }
}
