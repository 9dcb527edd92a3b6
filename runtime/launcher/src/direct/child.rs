//! The child of a direct launch, from the fork to the program: each step in the order in which bwrap
//! takes it, since programs rely on what is possible at which point.

use postern_init::sys::{
    self as base, CapabilitySets, Errno, Fd, O_DIRECTORY, O_PATH, OwnedFd, PollFd, Wait, open_at,
    prctl, set_capabilities,
};

use super::init::{self, Watched};
use super::order::{Directory, Maps, Order};
use super::report::{Failure, Fault, Report, Text, tell};
use super::tree::Tree;
use super::{harden, sys};
use crate::namespaces;
use crate::sys::{Cloned, Ids};

const PR_CAPBSET_DROP: u32 = 24;
const PR_SET_NO_NEW_PRIVS: u32 = 38;
const PR_SET_DUMPABLE: u32 = 4;
const PR_CAP_AMBIENT: u32 = 47;
const SIGHUP: usize = 1;
const CLONE_NEWUSER: u64 = 0x1000_0000;
/// A capability number is below 64: the kernel's sets have 64 bits.
const CAPABILITIES_END: usize = 64;

/// Status of a launch that failed.
pub(super) const FAILED: i32 = 1;

/// Becomes the program, or what watches it; never returns.
pub(super) fn run(order: &Order<'_>, line: Fd, table: &mut [usize]) -> ! {
    base::close(order.parents_end);
    let mut text = Text::EMPTY;
    let failure = match become_program(order, line, table, &mut text) {
        Ok(status) => base::exit(status),
        Err(failure) => failure,
    };
    tell(line, &Report::Failed(failure, text));
    base::exit(FAILED)
}

/// Returns the status of the program only to what watches it.
fn become_program(
    order: &Order<'_>,
    line: Fd,
    table: &mut [usize],
    text: &mut Text,
) -> Result<i32, Failure> {
    // The mask stays: a caller blocks what must wait until the program can take it. So does what
    // nohup(1) does.
    crate::sys::default_signals(&[SIGHUP]).map_err(Fault::Signals.why())?;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0).map_err(Fault::NoNewPrivileges.why())?;
    if order.is_gated {
        pass(line)?;
    }
    let proc = open_at(Fd::CWD, c"/proc", O_PATH | O_DIRECTORY, 0);
    let proc = proc.map_err(Fault::HostProc.why())?;
    take_ids(order, &proc)?;
    if order.loopback {
        crate::sys::loopback_up().map_err(Fault::Loopback.why())?;
    }
    let umask = sys::replace_umask(0).map_err(Fault::Umask.why())?;
    build_root(order, text)?;
    finish_user_namespaces(order, &proc)?;
    drop(proc);
    reduce(order)?;
    if let Some(block) = order.block {
        // Its end is an answer too.
        base::read(block, &mut [0u8; 1]).ok();
    }
    sys::replace_umask(umask).map_err(Fault::Umask.why())?;
    let directory = enter(order)?;
    if order.new_session {
        base::new_session().map_err(Fault::Session.why())?;
    }
    for fd in order.closed {
        base::close(*fd);
    }
    if order.has_init
        && let Cloned::Parent(pid, pidfd) = crate::sys::clone(0).map_err(Fault::Fork.why())?
    {
        drop(pidfd);
        return init::watch(order, &Watched { pid, line });
    }
    if order.has_init {
        order.kept.iter().for_each(|fd| base::close(*fd));
    }
    die_with_parent(order, line)?;
    raise_ambient(order.capabilities)?;
    if let Some(hardening) = &order.hardening {
        harden::enter(hardening, line)?;
    }
    install_filters(order)?;
    Err(execute(order, directory, table))
}

/// Waits until the parent has told others about this process.
fn pass(line: Fd) -> Result<(), Failure> {
    match base::read(line, &mut [0u8; 1]) {
        Ok(1) => Ok(()),
        Ok(_) => Err(Fault::Gate.at(0)(Errno::ESRCH)),
        Err(errno) => Err(Fault::Gate.at(0)(errno)),
    }
}

fn take_ids(order: &Order<'_>, proc: &OwnedFd) -> Result<(), Failure> {
    if order.has_new_bounding_set {
        reduce_bounding_set(order.capabilities)?;
    }
    if let Some(gid) = order.gid {
        crate::sys::set_gid(Ids::All(gid)).map_err(Fault::Gid.why())?;
    }
    if let Some(uid) = order.uid {
        crate::sys::set_uid(Ids::All(uid)).map_err(Fault::Uid.why())?;
    }
    match &order.maps {
        None => Ok(()),
        Some(maps) => {
            namespaces::write(proc.fd(), c"self/setgroups", c"deny")
                .map_err(Fault::Setgroups.why())?;
            write_maps(proc, maps)
        }
    }
}

fn write_maps(proc: &OwnedFd, maps: &Maps<'_>) -> Result<(), Failure> {
    namespaces::write(proc.fd(), c"self/uid_map", maps.uid).map_err(Fault::UidMap.why())?;
    namespaces::write(proc.fd(), c"self/gid_map", maps.gid).map_err(Fault::GidMap.why())
}

fn build_root(order: &Order<'_>, text: &mut Text) -> Result<(), Failure> {
    let mut tree = Tree::new(order)?;
    let built = tree.build();
    *text = tree.text;
    built?;
    tree.enter()
}

/// The namespaces of users that the program is in at the end.
fn finish_user_namespaces(order: &Order<'_>, proc: &OwnedFd) -> Result<(), Failure> {
    if let Some(second) = order.second_user {
        crate::sys::join_namespaces(second, CLONE_NEWUSER).map_err(Fault::JoinSecondUser.why())?;
    }
    if let Some(inner) = &order.inner {
        if order.limit_user_namespaces {
            namespaces::write(proc.fd(), c"sys/user/max_user_namespaces", c"1")
                .map_err(Fault::LimitUserNamespaces.why())?;
        }
        crate::sys::unshare(CLONE_NEWUSER).map_err(Fault::InnerUser.why())?;
        reduce_bounding_set(order.capabilities)?;
        write_maps(proc, inner)?;
    }
    match order.assert_no_user_namespaces && crate::sys::unshare(CLONE_NEWUSER).is_ok() {
        true => Err(Fault::UserNamespacesLeft.plain(0)),
        false => Ok(()),
    }
}

/// Takes from the bounding set what is not kept. no_new_privs is what counts, so that a kernel which
/// refuses is no failure.
fn reduce_bounding_set(kept: u64) -> Result<(), Failure> {
    for capability in (0..CAPABILITIES_END).filter(|number| kept >> number & 1 == 0) {
        match prctl(PR_CAPBSET_DROP, capability, 0) {
            Ok(_) | Err(Errno::EPERM) => {}
            // The first number that this kernel does not know.
            Err(Errno::EINVAL) => break,
            Err(errno) => return Err(Fault::BoundingSet.at(0)(errno)),
        }
    }
    Ok(())
}

/// Keeps the capabilities asked for, and has the user own this process again.
fn reduce(order: &Order<'_>) -> Result<(), Failure> {
    if !order.leave_capabilities {
        let sets =
            CapabilitySets { permitted: order.capabilities, inheritable: order.capabilities };
        set_capabilities(sets).map_err(Fault::Capabilities.why())?;
    }
    prctl(PR_SET_DUMPABLE, 1, 0).map(drop).map_err(Fault::Dumpable.why())
}

fn raise_ambient(kept: u64) -> Result<(), Failure> {
    const PR_CAP_AMBIENT_RAISE: usize = 2;
    for capability in (0..CAPABILITIES_END).filter(|number| kept >> number & 1 == 1) {
        match prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability) {
            // Only what is inheritable can be ambient; root needs neither.
            Ok(_) | Err(Errno::EPERM) => {}
            Err(Errno::EINVAL) => break,
            Err(errno) => return Err(Fault::Ambient.at(0)(errno)),
        }
    }
    Ok(())
}

/// The first working directory that can be entered.
fn enter<'a>(order: &Order<'a>) -> Result<Option<&'a Directory<'a>>, Failure> {
    for directory in order.directories {
        match crate::sys::change_directory(directory.path) {
            Ok(()) => return Ok(Some(directory)),
            Err(errno) if directory.is_asked => {
                return Err(Fault::WorkingDirectory.at(0)(errno));
            }
            Err(_) => {}
        }
    }
    Ok(None)
}

/// A parent that has died before it could be asked for is seen on the line.
pub(super) fn die_with_parent(order: &Order<'_>, line: Fd) -> Result<(), Failure> {
    if !order.die_with_parent {
        return Ok(());
    }
    const POLLHUP: i16 = 0x10;
    super::die_with_parent().map_err(Fault::DieWithParent.why())?;
    let mut fds = [PollFd { events: 0, ..PollFd::readable(line) }];
    base::poll(&mut fds, Wait::No).map_err(Fault::DieWithParent.why())?;
    let [monitor] = fds;
    match monitor.revents & POLLHUP {
        0 => Ok(()),
        _ => Err(Fault::DieWithParent.at(0)(Errno::ESRCH)),
    }
}

/// The last thing before exec: filters need not know what a launch takes.
pub(super) fn install_filters(order: &Order<'_>) -> Result<(), Failure> {
    let ours = order.hardening.as_ref().map(|hardening| hardening.filter);
    for (index, filter) in (0u32..).zip(ours.iter().chain(order.filters)) {
        sys::install_filter(filter).map_err(Fault::Filter.at(index))?;
    }
    Ok(())
}

fn execute(order: &Order<'_>, directory: Option<&Directory<'_>>, table: &mut [usize]) -> Failure {
    let variable = directory.map(|directory| directory.variable);
    init::execute(order, variable, table)
}
