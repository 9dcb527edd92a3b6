//! The namespaces that the launcher makes one run ahead, and the limits written into namespaces.

use core::ffi::CStr;

use postern_init::step::Step;
use postern_init::supervise::Failure;
use postern_init::sys::{self as base, Errno, Fd, O_WRONLY, open_at};

use crate::identity;
use crate::sys;
use crate::wire::{List, Setup, flags, scope};

const CLONE_NEWUTS: u64 = 0x0400_0000;
const CLONE_NEWIPC: u64 = 0x0800_0000;
const CLONE_NEWNET: u64 = 0x4000_0000;

/// Whether every reported-only limit could be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limits {
    All,
    SomeMissing,
}

/// Moves the launcher into the namespaces that its next child will inherit.
pub(crate) fn make_ahead(setup: &Setup<'_>, proc: Fd) -> Result<Limits, Failure> {
    if setup.ahead_flags == 0 {
        return Ok(Limits::All);
    }
    identity::as_owner(setup, || {
        sys::unshare(setup.ahead_flags).map_err(Failure::at(Step::AheadNamespaces))?;
        if setup.ahead_flags & CLONE_NEWUTS != 0 {
            name(setup)?;
        }
        if setup.ahead_flags & CLONE_NEWNET != 0 {
            loopback(setup)?;
        }
        match setup.ahead_flags & CLONE_NEWIPC {
            0 => Ok(Limits::All),
            _ => write_limits(setup.sysctls, scope::AHEAD_IPC, Step::AheadLimits, proc),
        }
    })
}

/// What a run does in those of its own namespaces that were not made ahead.
pub(crate) fn finish_own(setup: &Setup<'_>) -> Result<(), Failure> {
    if setup.clone_flags & CLONE_NEWUTS != 0 {
        name(setup)?;
    }
    if setup.clone_flags & CLONE_NEWNET != 0 {
        loopback(setup)?;
    }
    Ok(())
}

fn name(setup: &Setup<'_>) -> Result<(), Failure> {
    match setup.hostname.is_empty() {
        true => Ok(()),
        false => sys::set_hostname(setup.hostname).map_err(Failure::at(Step::Hostname)),
    }
}

fn loopback(setup: &Setup<'_>) -> Result<(), Failure> {
    match setup.has(flags::LOOPBACK) {
        true => sys::loopback_up().map_err(Failure::at(Step::Loopback)),
        false => Ok(()),
    }
}

/// Writes the limits of one scope through a procfs that no path leads to.
pub(crate) fn write_limits(
    list: List<'_>,
    wanted: u64,
    step: Step,
    proc: Fd,
) -> Result<Limits, Failure> {
    let mut reader = list.entries;
    let mut limits = Limits::All;
    let mut index = 0u32;
    while u64::from(index) < list.count {
        let malformed = Failure::at(Step::DecodeSetup);
        let mut entry = || Ok((reader.word()?, reader.word()?, reader.string()?, reader.string()?));
        let (scope, required, path, value) = entry().map_err(malformed)?;
        if scope == wanted {
            match write(proc, path, value) {
                Ok(()) => {}
                Err(_) if required == 0 => limits = Limits::SomeMissing,
                Err(errno) => return Err(Failure::at_index(step, index)(errno)),
            }
        }
        index = index.wrapping_add(1);
    }
    Ok(limits)
}

/// Writes `value` to a file of procfs in one call.
pub(crate) fn write(proc: Fd, path: &CStr, value: &CStr) -> Result<(), Errno> {
    let file = open_at(proc, path, O_WRONLY, 0)?;
    base::write(file.fd(), value.to_bytes()).map(drop)
}
