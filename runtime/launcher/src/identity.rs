//! The launcher's own ids and capabilities: what it takes, keeps and gives up.

use postern_init::step::Step;
use postern_init::supervise::Failure;
use postern_init::sys::{CapabilitySets, prctl, set_capabilities};

use crate::sys::{self, Ids};
use crate::wire::{Setup, flags};

const PR_SET_DUMPABLE: u32 = 4;
const PR_SET_KEEPCAPS: u32 = 8;

/// Takes the sandbox's kernel ids for good, keeping the few capabilities that runs need.
pub(crate) fn take(setup: &Setup<'_>) -> Result<(), Failure> {
    if setup.has(flags::DROP_GROUPS) {
        sys::drop_groups().map_err(Failure::at(Step::DropGroups))?;
    }
    if setup.has(flags::TAKE_IDS) {
        prctl(PR_SET_KEEPCAPS, 1, 0).map_err(Failure::at(Step::KeepCapabilities))?;
        sys::set_gid(Ids::All(setup.launcher_gid)).map_err(Failure::at(Step::TakeIds))?;
        sys::set_uid(Ids::All(setup.launcher_uid)).map_err(Failure::at(Step::TakeIds))?;
    }
    settle(setup)
}

/// A change of ids empties the effective set and clears the dumpable flag, without which the
/// launcher's children could not open their own id maps.
fn settle(setup: &Setup<'_>) -> Result<(), Failure> {
    set_capabilities(CapabilitySets { permitted: setup.keep_capabilities, inheritable: 0 })
        .map_err(Failure::at(Step::ReduceCapabilities))?;
    prctl(PR_SET_DUMPABLE, 1, 0).map(drop).map_err(Failure::at(Step::LauncherDumpable))
}

/// Runs `act` as the id that owns the namespaces made ahead, which alone may lower ipc limits.
pub(crate) fn as_owner<T>(
    setup: &Setup<'_>,
    act: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    if !setup.has(flags::TAKE_IDS) {
        return act();
    }
    // Also after a call that failed on its way back, so that one failure stays one.
    settle(setup)?;
    sys::set_uid(Ids::Effective(0)).map_err(Failure::at(Step::AheadIds))?;
    let result = act();
    sys::set_uid(Ids::Effective(setup.launcher_uid)).map_err(Failure::at(Step::AheadIds))?;
    settle(setup)?;
    result
}
