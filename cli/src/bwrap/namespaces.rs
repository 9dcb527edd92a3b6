//! Which namespaces a launch makes, and who its program is in them.

use std::path::Path;

use postern_launcher::direct::Maps;

use super::invocation::{CapabilityChange, Invocation, Setup, Wish};
use super::kept;
use super::say::Wrong;

pub(super) const CLONE_NEWNS: u64 = 0x0002_0000;
pub(super) const CLONE_NEWCGROUP: u64 = 0x0200_0000;
pub(super) const CLONE_NEWUTS: u64 = 0x0400_0000;
pub(super) const CLONE_NEWIPC: u64 = 0x0800_0000;
pub(super) const CLONE_NEWUSER: u64 = 0x1000_0000;
pub(super) const CLONE_NEWPID: u64 = 0x2000_0000;
pub(super) const CLONE_NEWNET: u64 = 0x4000_0000;

/// `CLONE_NEW*` of those made.
pub(super) fn made(invocation: &Invocation) -> Result<u64, Wrong> {
    let spaces = &invocation.namespaces;
    let user = match spaces.user {
        Wish::No => false,
        Wish::Yes => true,
        Wish::IfPossible => can_make_user(),
    };
    let has_cgroup = Path::new("/proc/self/ns/cgroup").exists();
    if spaces.cgroup == Wish::Yes && !has_cgroup {
        let text = "Cannot create new cgroup namespace because the kernel does not support it";
        return Err(Wrong::new(text));
    }
    let wanted = [
        (user, CLONE_NEWUSER),
        (spaces.cgroup != Wish::No && has_cgroup, CLONE_NEWCGROUP),
        (spaces.ipc, CLONE_NEWIPC),
        (spaces.pid, CLONE_NEWPID),
        (spaces.net, CLONE_NEWNET),
        (spaces.uts, CLONE_NEWUTS),
    ];
    let flags = wanted.iter().filter(|(is_wanted, _)| *is_wanted);
    Ok(flags.fold(CLONE_NEWNS, |flags, (_, flag)| flags | flag))
}

/// Whether nothing says that there can be none.
fn can_make_user() -> bool {
    let says =
        |path, start: &str| std::fs::read_to_string(path).is_ok_and(|text| text.starts_with(start));
    Path::new("/proc/self/ns/user").exists()
        && !says("/sys/module/user_namespace/parameters/enable", "N")
        && !says("/proc/sys/user/max_user_namespaces", "0\n")
}

/// The ids of the program, here and there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ids {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// Who the program is in the user namespaces that are made.
#[derive(Debug, Default)]
pub(super) struct Identity {
    /// What the child writes in its own.
    pub(super) maps: Option<Maps<'static>>,
    /// What it writes in a second one.
    pub(super) inner: Option<Maps<'static>>,
}

impl Identity {
    /// With `/dev`, whose devpts needs root to be mapped, the child is root first and itself in a
    /// second namespace.
    pub(super) fn new(invocation: &Invocation, real: Ids, made: u64) -> Identity {
        if made & CLONE_NEWUSER == 0 || invocation.userns_block_fd.is_some() {
            return Identity::default();
        }
        let wanted = wanted(invocation, real);
        let has_devpts = invocation.setup.iter().any(|setup| matches!(setup, Setup::Dev { .. }));
        let first = if has_devpts { Ids { uid: 0, gid: 0 } } else { wanted };
        let needs_inner = first != wanted || invocation.namespaces.disable_userns;
        Identity { maps: Some(maps(first, real)), inner: needs_inner.then(|| maps(wanted, first)) }
    }
}

/// Who the program is to be.
pub(super) fn wanted(invocation: &Invocation, real: Ids) -> Ids {
    Ids { uid: invocation.uid.unwrap_or(real.uid), gid: invocation.gid.unwrap_or(real.gid) }
}

fn maps(inside: Ids, outside: Ids) -> Maps<'static> {
    Maps {
        uid: kept::text(format!("{} {} 1\n", inside.uid, outside.uid)),
        gid: kept::text(format!("{} {} 1\n", inside.gid, outside.gid)),
    }
}

/// What the program may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Capabilities {
    /// A bit each.
    pub(super) kept: u64,
    /// Nothing was said of them, and root has what it has.
    pub(super) are_left: bool,
}

impl Capabilities {
    /// Root keeps what it has, everybody else nothing, unless changed.
    pub(super) fn new(effective: u64, is_root: bool, changes: &[CapabilityChange]) -> Self {
        let bit = |number: &Option<u8>| match number {
            None => u64::MAX,
            Some(number) => 1u64.checked_shl(u32::from(*number)).unwrap_or(0),
        };
        let first = if is_root { effective } else { 0 };
        let kept = changes.iter().fold(first, |kept, change| match change {
            CapabilityChange::Add(number) => kept | bit(number),
            CapabilityChange::Drop(number) => kept & !bit(number),
        });
        Self { kept, are_left: is_root && changes.is_empty() }
    }

    /// Those that can be had: without a user namespace nobody gets more than there is.
    pub(super) const fn within(self, there: u64) -> Self {
        Self { kept: self.kept & there, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bwrap::invocation::Namespaces;

    #[test]
    fn a_second_user_namespace_is_for_devpts_and_for_being_the_last() {
        let real = Ids { uid: 1000, gid: 100 };
        let dev = Setup::Dev { target: "/dev".into() };
        let rows = [
            (CLONE_NEWUSER, vec![], false, Some(c"1000 1000 1\n"), None),
            (CLONE_NEWUSER, vec![dev.clone()], false, Some(c"0 1000 1\n"), Some(c"1000 0 1\n")),
            (CLONE_NEWUSER, vec![], true, Some(c"1000 1000 1\n"), Some(c"1000 1000 1\n")),
            (0, vec![dev], false, None, None),
        ];
        for (made, setup, disable_userns, outer, inner) in rows {
            let namespaces = Namespaces { disable_userns, ..Namespaces::default() };
            let invocation = Invocation { setup, namespaces, ..Invocation::default() };
            let identity = Identity::new(&invocation, real, made);
            assert_eq!(identity.maps.map(|maps| maps.uid), outer, "{invocation:?}");
            assert_eq!(identity.inner.map(|maps| maps.uid), inner, "{invocation:?}");
        }
    }

    #[test]
    fn capabilities_change_in_order() {
        use CapabilityChange::{Add, Drop};
        let rows: [(u64, bool, &[CapabilityChange], u64, bool); 6] = [
            (0b1111, true, &[], 0b1111, true),
            (0b1111, false, &[], 0, false),
            (0b1111, true, &[Drop(Some(1))], 0b1101, false),
            (0b1111, true, &[Drop(None), Add(Some(2))], 0b0100, false),
            (0b1111, true, &[Add(Some(2)), Drop(None)], 0, false),
            (0b0011, true, &[Add(None)], 0b0111, false),
        ];
        for (effective, is_root, changes, kept, are_left) in rows {
            let found = Capabilities::new(effective, is_root, changes).within(0b0111 | effective);
            assert_eq!(found, Capabilities { kept, are_left }, "{changes:?}");
        }
    }
}
