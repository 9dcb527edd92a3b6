//! The walls around one process: capabilities, privileges, limits and the system-call filter.

use postern_init::process::install_filter;
use postern_init::step::Step;
use postern_init::supervise::{Failure, lower_limit};
use postern_init::sys::{self as base, Errno, prctl, set_name};

use crate::wire::{List, Setup};

/// Empties all five capability sets. The order matters: dropping from the bounding set and setting
/// the securebits each need a capability that the last call takes away.
pub(crate) fn drop_capabilities() -> Result<(), Failure> {
    const PR_CAPBSET_DROP: u32 = 24;
    const PR_SET_SECUREBITS: u32 = 28;
    const PR_CAP_AMBIENT: u32 = 47;
    const PR_CAP_AMBIENT_CLEAR_ALL: usize = 4;
    /// NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE on and locked; KEEP_CAPS off and locked.
    const LOCKED: usize = 0xef;
    /// A capability number is below 64: the kernel's sets have 64 bits.
    const CAPABILITIES_END: usize = 64;
    for capability in 0..CAPABILITIES_END {
        match prctl(PR_CAPBSET_DROP, capability, 0) {
            Ok(_) => {}
            // The first number that this kernel does not know; all below it are gone.
            Err(Errno::EINVAL) if capability > 0 => break,
            Err(errno) => return Err(Failure::at(Step::BoundingSet)(errno)),
        }
    }
    prctl(PR_SET_SECUREBITS, LOCKED, 0).map_err(Failure::at(Step::Securebits))?;
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0).map_err(Failure::at(Step::AmbientSet))?;
    let none = base::CapabilitySets { permitted: 0, inheritable: 0 };
    base::set_capabilities(none).map_err(Failure::at(Step::CapabilitySets))
}

/// No new privileges by exec, no core dump or inspection of PID 1 by its own guests.
pub(crate) fn seal_process() -> Result<(), Failure> {
    const PR_SET_NO_NEW_PRIVS: u32 = 38;
    const PR_SET_DUMPABLE: u32 = 4;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0).map_err(Failure::at(Step::NoNewPrivs))?;
    prctl(PR_SET_DUMPABLE, 0, 0).map_err(Failure::at(Step::NonDumpable))?;
    // A name for people who look at process lists from the host; nothing depends on it.
    set_name(c"postern-init").ok();
    Ok(())
}

/// Sets the limits of PID 1, which the guest inherits and cannot raise.
pub(crate) fn limit(list: List<'_>) -> Result<(), Failure> {
    let mut reader = list.entries;
    let mut index = 0u32;
    while u64::from(index) < list.count {
        let mut entry = || Ok((reader.small()?, reader.word()?));
        let (resource, value) = entry().map_err(Failure::at(Step::DecodeSetup))?;
        lower_limit(resource, value).map_err(Failure::at_index(Step::Rlimit, index))?;
        index = index.wrapping_add(1);
    }
    Ok(())
}

/// Installs the filter last of all: it locks what was set before it.
pub(crate) fn filter(setup: &Setup<'_>) -> Result<(), Failure> {
    match setup.filter.is_empty() {
        true => Ok(()),
        false => install_filter(setup.filter).map_err(Failure::at(Step::Filter)),
    }
}
