//! The namespaces that the launcher makes one run ahead, and the limits written into namespaces.

use core::ffi::CStr;

use postern_init::record::{self, Kind, Record, facts};
use postern_init::step::Step;
use postern_init::supervise::Failure;
use postern_init::sys::{self as base, Errno, Fd, O_WRONLY, OwnedFd, PollFd, Wait, open_at};

use crate::setup::HOST;
use crate::sys::{self, Cloned};
use crate::wire::{List, Setup, flags, scope};
use crate::{identity, socket};

pub(crate) const CLONE_NEWCGROUP: u64 = 0x0200_0000;
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
    match setup.ahead_flags {
        0 => Ok(Limits::All),
        _ => identity::as_owner(setup, || make(setup, proc)),
    }
}

/// The caller must be the id that owns its user namespace.
fn make(setup: &Setup<'_>, proc: Fd) -> Result<Limits, Failure> {
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
}

/// Makes the run's own control group the root of those that it sees.
pub(crate) fn hide_group(setup: &Setup<'_>) -> Result<(), Failure> {
    sys::unshare(setup.clone_flags & CLONE_NEWCGROUP).map_err(Failure::at(Step::HideGroup))
}

/// A process that makes the first run's namespaces while the launcher builds the template: on
/// most machines they cost as much as all the mounts together.
pub(crate) struct Maker {
    pidfd: OwnedFd,
    line: OwnedFd,
}

impl Maker {
    /// Starts one, while the launcher still owns its user namespace; `None`: nothing is made ahead.
    pub(crate) fn start(setup: &Setup<'_>, proc: Fd) -> Result<Option<Maker>, Failure> {
        if setup.ahead_flags == 0 {
            return Ok(None);
        }
        let failed = Failure::at(Step::StartMaker);
        let (ours, theirs) = socket::pair().map_err(Failure::at(Step::StartMaker))?;
        match sys::clone(0).map_err(failed)? {
            Cloned::Parent(_, pidfd) => Ok(Some(Maker { pidfd, line: ours })),
            Cloned::Child => {
                drop(ours);
                let record = match make(setup, proc) {
                    Ok(Limits::All) => Record::new(Kind::Ready),
                    Ok(Limits::SomeMissing) => {
                        Record { facts: facts::IPC_LIMITS_MISSING, ..Record::new(Kind::Ready) }
                    }
                    Err(failure) => failure.record(),
                };
                // Until the launcher has joined the namespaces and closes its end; one that was told
                // nothing sees this end close.
                if base::send(theirs.fd(), &record.encode()).is_ok() {
                    base::read(theirs.fd(), &mut [0u8; 1]).ok();
                }
                base::exit(0)
            }
        }
    }

    /// Joins the namespaces once they are made; the [`facts`] about them.
    pub(crate) fn join(self, setup: &Setup<'_>) -> Result<u32, Failure> {
        let mut fds = [PollFd::readable(self.line.fd()), PollFd::readable(HOST)];
        base::poll(&mut fds, Wait::Forever).map_err(Failure::at(Step::JoinMaker))?;
        let [_, host] = fds;
        if host.revents != 0 {
            return Err(Failure::at(Step::HostGone)(Errno::ESRCH));
        }
        let mut bytes = [0u8; record::LEN];
        let len = base::read(self.line.fd(), &mut bytes).map_err(Failure::at(Step::JoinMaker))?;
        let record = bytes.get(..len).and_then(Record::decode);
        let made = record.ok_or(Errno::ESRCH).map_err(Failure::at(Step::JoinMaker))?;
        match (made.kind, Step::from_code(made.step)) {
            (Kind::Failed, Some(step)) => {
                Err(Failure { step, index: made.index, errno: Errno(made.errno) })
            }
            _ => {
                sys::join_namespaces(self.pidfd.fd(), setup.ahead_flags)
                    .map_err(Failure::at(Step::JoinMaker))?;
                Ok(made.facts)
            }
        }
    }
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
