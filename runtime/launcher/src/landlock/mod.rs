//! The Landlock domain of one run, a second wall around files, sockets and signals; which rights
//! there are and where they are given was decided by the plan.

mod sys;

use core::ffi::CStr;

use postern_init::step::Step;
use postern_init::supervise::Failure;
use postern_init::sys::{Errno, Fd, O_PATH};

use crate::mount::{Resolve, open_resolved};
use crate::wire::Setup;

/// Enters a domain without files of its own: no device nodes are made, and, where the kernel can,
/// abstract sockets and signals stay inside. `Ok(false)`: there is no Landlock here.
#[cfg(not(postern_image))]
pub(crate) fn enter_scopes() -> Result<bool, Errno> {
    const MAKE_NODES: u64 = 1 << 6 | 1 << 11;
    const ABSTRACT_SOCKETS_AND_SIGNALS: u64 = 3;
    let ruleset = match sys::create_ruleset(MAKE_NODES, ABSTRACT_SOCKETS_AND_SIGNALS) {
        Err(Errno::E2BIG | Errno::EINVAL) => sys::create_ruleset(MAKE_NODES, 0),
        other => other,
    };
    match ruleset {
        Ok(ruleset) => sys::restrict_self(ruleset.fd()).map(|()| true),
        Err(Errno::ENOSYS | Errno::EOPNOTSUPP) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Enters the domain, for good. Needs `no_new_privs`, and every mount in its place: from here on
/// the kernel refuses any change to them.
pub(crate) fn enter(setup: &Setup<'_>) -> Result<(), Failure> {
    if setup.landlock_handled == 0 {
        return Ok(());
    }
    let ruleset = sys::create_ruleset(setup.landlock_handled, setup.landlock_scoped)
        .map_err(Failure::at(Step::LandlockRuleset))?;
    let list = setup.landlock_rules;
    let mut reader = list.entries;
    let mut index = 0u32;
    while u64::from(index) < list.count {
        let mut entry = || Ok((reader.word()?, reader.string()?));
        let (rights, path) = entry().map_err(Failure::at(Step::DecodeSetup))?;
        allow(ruleset.fd(), rights, path)
            .map_err(|(step, errno)| Failure::at_index(step, index)(errno))?;
        index = index.wrapping_add(1);
    }
    sys::restrict_self(ruleset.fd()).map_err(Failure::at(Step::LandlockDomain))
}

fn allow(ruleset: Fd, rights: u64, path: &CStr) -> Result<(), (Step, Errno)> {
    let place = match open_resolved(Fd::CWD, path, O_PATH, Resolve::NoSymlinks) {
        Ok(place) => place,
        // The guest gets no further than this process, and needs no right where it cannot get.
        Err(Errno::EACCES) => return Ok(()),
        Err(errno) => return Err((Step::LandlockPlace, errno)),
    };
    sys::add_rule(ruleset, rights, place.fd()).map_err(|errno| (Step::LandlockRule, errno))
}
