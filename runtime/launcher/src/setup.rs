//! What the launcher does once: its own place, the template root, its ids, the first namespaces.

use postern_init::record::{Kind, Record, facts};
use postern_init::step::Step;
use postern_init::supervise::Failure;
use postern_init::sys::{self as base, Errno, Fd, O_CLOEXEC, O_DIRECTORY, O_PATH, open_at};
use postern_init::sys::{OwnedFd, Signals};

use crate::child::PROC;
use crate::mount::{self, Around, EXPORTS_MAX, Opened, OwnerMap};
use crate::namespaces::{self, Limits, Maker};
use crate::processors::Processors;
use crate::sys::{self, Mapping};
use crate::wire::{CONTROL_FD, HOST_FD, MALFORMED, Reader, Setup, flags, scope};
use crate::{identity, socket};

pub(crate) const CONTROL: Fd = Fd(CONTROL_FD);
pub(crate) const HOST: Fd = Fd(HOST_FD);
/// The launcher's signals, one number above the procfs that runs inherit.
pub(crate) const SIGNALS: Fd = Fd(6);

/// Puts descriptors, signals and session in their places.
pub(crate) fn settle() -> Result<(), Failure> {
    base::set_signal_mask(Signals::AllBlocked).map_err(Failure::at(Step::Signals))?;
    sys::default_signals(&[]).map_err(Failure::at(Step::Signals))?;
    let place = || {
        // The numbers are taken before anything else can open them.
        base::dup_onto(Fd(0), PROC, O_CLOEXEC)?;
        base::dup_onto(Fd(0), SIGNALS, O_CLOEXEC)?;
        sys::close_on_exec(CONTROL)?;
        sys::close_on_exec(HOST)
    };
    place().map_err(Failure::at(Step::Descriptors))?;
    let signals = base::signal_fd().map_err(Failure::at(Step::SignalFd))?;
    base::dup_onto(signals.fd(), SIGNALS, O_CLOEXEC).map_err(Failure::at(Step::Descriptors))?;
    raise_descriptor_limit().map_err(Failure::at(Step::RaiseDescriptors))?;
    base::new_session().map_err(Failure::at(Step::Session))
}

/// Each live run keeps one descriptor here; the soft limit is often the smaller one.
fn raise_descriptor_limit() -> Result<(), Errno> {
    const RLIMIT_NOFILE: u32 = 7;
    let [_, hard] = base::limit(RLIMIT_NOFILE)?;
    base::set_limit(RLIMIT_NOFILE, [hard, hard])
}

/// Waits for the setup message, whose one word is the length of the memfd that comes with it.
pub(crate) fn receive() -> Result<Mapping, Failure> {
    let mut word = [0u8; 8];
    let mut got =
        socket::receive(CONTROL, &mut word, true).map_err(Failure::at(Step::ReceiveSetup))?;
    let [memfd, ..] = &mut got.fds;
    let len = Reader::new(&word).word().ok().and_then(|len| usize::try_from(len).ok());
    let (Some(memfd), Some(len), 8) = (memfd.take(), len, got.len) else {
        return Err(Failure::at(Step::ReceiveSetup)(MALFORMED));
    };
    Mapping::new(memfd.fd(), len).map_err(Failure::at(Step::ReceiveSetup))
}

/// Builds the template and everything around it; returns what the library is told.
pub(crate) fn build(setup: &Setup<'_>) -> Result<(Record, Opened), Failure> {
    let mut ready = Record::new(Kind::Ready);
    if setup.has(flags::HOST_USER_NAMESPACE) {
        mount::make_mounts_private().map_err(Failure::at(Step::Propagation))?;
    }
    ready.facts |= place_proc()?;
    let maker = Maker::start(setup, PROC)?;
    let processors = Processors::of_launcher().filter(|_| maker.is_some());
    if let Some(processors) = processors
        && processors.step_aside()
    {
        processors.roam().map_err(Failure::at(Step::Processors))?;
    }
    // Modes are given whole.
    sys::set_umask(0).map_err(Failure::at(Step::Umask))?;
    let mut exports = [None; EXPORTS_MAX];
    let owner = owner(setup)?;
    let around = Around { run_directory: c"", owner: owner.as_ref().map(OwnedFd::fd) };
    mount::apply(setup.template, &around, &mut exports)?;
    drop(owner);
    ready.facts |= enter_root()?;
    let step = Step::LauncherLimits;
    if namespaces::write_limits(setup.sysctls, scope::LAUNCHER_USER, step, PROC)? != Limits::All {
        ready.facts |= facts::LAUNCHER_LIMITS_MISSING;
    }
    if let Some(maker) = maker {
        ready.facts |= maker.join(setup)?;
    }
    let mut opened = [const { None }; EXPORTS_MAX];
    ready.facts |= mount::open_own_exports(setup, &exports, &mut opened)?;
    identity::take(setup)?;
    mount::open_exports(&exports, &mut opened)?;
    ready.facts |= join_keyring()?;
    Ok((ready, opened))
}

/// The namespace that has the guest stand for an owner, if there is one.
fn owner(setup: &Setup<'_>) -> Result<Option<OwnedFd>, Failure> {
    if setup.owner_uid_map.is_empty() {
        return Ok(None);
    }
    let map = OwnerMap { uid: setup.owner_uid_map, gid: setup.owner_gid_map };
    mount::user_namespace(map).map(Some).map_err(Failure::at(Step::MapOwner))
}

/// The procfs through which runs write their maps: a fresh one that no path leads to, or, where
/// none can be mounted because the outer one is masked, the host's by descriptor.
fn place_proc() -> Result<u32, Failure> {
    let fresh = mount::detached_proc();
    let (proc, fact): (OwnedFd, u32) = match fresh {
        Ok(proc) => (proc, 0),
        Err(Errno::EPERM) => {
            let host = open_at(Fd::CWD, c"/proc", O_PATH | O_DIRECTORY, 0);
            (host.map_err(Failure::at(Step::OpenHostProc))?, facts::HOST_PROC)
        }
        Err(errno) => return Err(Failure::at(Step::MakeProc)(errno)),
    };
    base::dup_onto(proc.fd(), PROC, O_CLOEXEC).map_err(Failure::at(Step::Descriptors))?;
    Ok(fact)
}

/// Leaves the host's tree for the new root, the current directory, which already covers it.
fn enter_root() -> Result<u32, Failure> {
    let moved = match mount::pivot_here() {
        Ok(()) => {
            mount::detach_here().map_err(Failure::at(Step::DetachHost))?;
            0
        }
        // The root of an initramfs cannot be pivoted; covering it and taking the cover as root is
        // as final, since nothing in a run can unmount the cover.
        Err(Errno::EINVAL) => {
            sys::change_root(c".").map_err(Failure::at(Step::PivotRoot))?;
            facts::MOVED_ROOT
        }
        Err(errno) => return Err(Failure::at(Step::PivotRoot)(errno)),
    };
    sys::change_directory(c"/").map_err(Failure::at(Step::PivotRoot))?;
    Ok(moved)
}

/// One empty session keyring for all runs, with no permission on it left: the host's is not theirs,
/// and one per run would use up the kernel uid's quota.
pub(crate) fn join_keyring() -> Result<u32, Failure> {
    const JOIN_SESSION: usize = 1;
    const SETPERM: usize = 5;
    /// `KEY_SPEC_SESSION_KEYRING`.
    const SESSION: usize = (-3isize).cast_unsigned();
    match sys::keyctl(JOIN_SESSION, 0, 0) {
        Ok(_) => {}
        // No keyrings in this kernel, or an outer filter keeps them from us and from the guest.
        Err(Errno::ENOSYS | Errno::EPERM) => return Ok(facts::NO_KEYRINGS),
        Err(errno) => return Err(Failure::at(Step::Keyring)(errno)),
    }
    sys::keyctl(SETPERM, SESSION, 0).map_err(Failure::at(Step::Keyring))?;
    Ok(0)
}
