//! The direct way: a process forks, and its child builds a root around itself as bwrap does.
//!
//! Nothing is kept for another run, and no exec lies between the fork and the program, so that
//! `/proc/self/exe` is still whoever forked. Not part of the static image. What it does is an
//! [`Order`], made before the fork; the child allocates nothing, and says what went wrong in numbers.

mod child;
mod device;
mod harden;
mod init;
mod order;
mod overlay;
mod report;
mod sys;
mod target;
mod tree;

use postern_init::sys::{CapabilitySets, Errno, Fd, prctl, set_capabilities};

pub use order::{Access, Directory, Hardening, Maps, Masked, Operation, Order, Upper};
pub use report::{Failure, Fault, REPORT_LEN, Report, Text};

use crate::socket;
use crate::sys::Cloned;

/// A descriptor of the process that builds its root and becomes the program, or what watches it;
/// the caller's to close.
#[derive(Debug, PartialEq, Eq)]
pub struct Started(pub i32);

/// How many words [`start`] needs for the arrays of exec.
#[must_use]
pub const fn table_len(order: &Order<'_>) -> usize {
    // Each array ends in a null; a script without an interpreter has one more argument, and the
    // environment the working directory.
    order.arguments.len().saturating_add(order.environment.len()).saturating_add(5)
}

/// Forks. The child carries the order out, telling the other end of `line` what cannot be done; the
/// caller must have one thread only, since the child has no other.
///
/// # Errors
/// As `clone(2)` says.
pub fn start(order: &Order<'_>, line: Fd, table: &mut [usize]) -> Result<Started, Errno> {
    sys::default_child_signal()?;
    if order.is_nested_in_joined_pids {
        return start_nested(order, line, table);
    }
    match crate::sys::clone(order.namespaces)? {
        Cloned::Parent(_, pidfd) => Ok(Started(pidfd.into_fd().0)),
        Cloned::Child => child::run(order, line, table),
    }
}

/// A pid namespace within one that was joined can be made only by a process that is in that one: it
/// has our parent be its child's, hands over what it got, and leaves.
fn start_nested(order: &Order<'_>, line: Fd, table: &mut [usize]) -> Result<Started, Errno> {
    const CLONE_PARENT: u64 = 0x8000;
    let (ours, theirs) = socket::pair()?;
    if let Cloned::Parent(_, _pidfd) = crate::sys::clone(0)? {
        drop(theirs);
        let mut errno = [0u8; 4];
        let mut got = socket::receive(ours.fd(), &mut errno, true)?;
        let [pidfd, ..] = &mut got.fds;
        return match pidfd.take() {
            Some(pidfd) => Ok(Started(pidfd.into_fd().0)),
            None if got.len == errno.len() => Err(Errno(i32::from_ne_bytes(errno))),
            None => Err(Errno::ESRCH),
        };
    }
    drop(ours);
    postern_init::sys::close(order.parents_end);
    let told = match crate::sys::clone(order.namespaces | CLONE_PARENT) {
        Ok(Cloned::Child) => {
            drop(theirs);
            let order = Order { parents_end: Fd(-1), ..*order };
            child::run(&order, line, table)
        }
        Ok(Cloned::Parent(_, pidfd)) => socket::send_with(theirs.fd(), &[0], &[pidfd.fd()]),
        Err(errno) => socket::send_with(theirs.fd(), &errno.0.to_ne_bytes(), &[]),
    };
    postern_init::sys::exit(i32::from(told.is_err()))
}

/// Joins a namespace; a pid namespace is for children only.
///
/// # Errors
/// As `setns(2)` says.
pub fn join(namespace: Fd, kind: u64) -> Result<(), Errno> {
    crate::sys::join_namespaces(namespace, kind)
}

/// Gives up every capability, and lets the user look into this process again.
///
/// # Errors
/// As `capset(2)` and `prctl(2)` say.
pub fn drop_privileges() -> Result<(), Errno> {
    const PR_SET_DUMPABLE: u32 = 4;
    set_capabilities(CapabilitySets { permitted: 0, inheritable: 0 })?;
    prctl(PR_SET_DUMPABLE, 1, 0).map(drop)
}

/// Has the kernel kill this process when its parent dies.
///
/// # Errors
/// As `prctl(2)` says.
pub fn die_with_parent() -> Result<(), Errno> {
    const PR_SET_PDEATHSIG: u32 = 1;
    const SIGKILL: usize = 9;
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0).map(drop)
}

/// Closes every descriptor but stdio and those kept, which are in order.
///
/// # Errors
/// As `close_range(2)` says.
pub fn close_others(kept: &[Fd]) -> Result<(), Errno> {
    let mut first = 3u32;
    for fd in kept {
        let Ok(fd) = u32::try_from(fd.0) else { continue };
        if let Some(last) = fd.checked_sub(1).filter(|last| *last >= first) {
            sys::close_between(first, last)?;
        }
        first = first.max(fd.wrapping_add(1));
    }
    sys::close_between(first, u32::MAX)
}
