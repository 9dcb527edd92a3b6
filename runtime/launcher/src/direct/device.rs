//! `/proc` and `/dev` of a direct launch: what is in them, and what of it is covered.

use core::ffi::CStr;

use postern_init::sys::{Errno, Fd, O_NOFOLLOW, O_PATH, OwnedFd, open_at};

use super::order::Order;
use super::report::{Failure, Fault};
use super::sys;
use super::target::{Node, make_at};
use super::tree::attribute::{NO_DEVICES, NO_EXEC, NO_SUID, READ_ONLY};
use super::tree::fresh;
use crate::mount::sys::{self as mount, Reach};

/// A procfs where there is a pid namespace for it, the host's otherwise.
pub(super) fn proc(order: &Order<'_>, index: u32) -> Result<OwnedFd, Failure> {
    let failed = |errno| Fault::Proc.at(index)(errno);
    let read_only = if order.hardening.is_some() { READ_ONLY } else { 0 };
    let taken = NO_SUID | NO_DEVICES | read_only;
    if order.has_own_pids {
        return fresh(c"proc", &[], taken | NO_EXEC).map_err(failed);
    }
    let proc = mount::clone_tree(Fd::CWD, c"/proc").map_err(failed)?;
    mount::restrict(proc.fd(), Reach::Tree, taken).map_err(failed)?;
    Ok(proc)
}

/// Makes read-only what could change the machine and would be writable.
pub(super) fn cover_proc(proc: &OwnedFd, index: u32) -> Result<(), Failure> {
    const COVERED: [&CStr; 4] = [c"sys", c"sysrq-trigger", c"irq", c"bus"];
    for name in COVERED {
        match sys::may_write(proc.fd(), name) {
            Ok(()) => cover(proc.fd(), name).map_err(Fault::CoverProc.at(index))?,
            // Where nothing is covered, a procfs can be mounted again further inside.
            Err(Errno::EACCES | Errno::ENOENT | Errno::EROFS) => {}
            Err(errno) => return Err(Fault::CoverProc.at(index)(errno)),
        }
    }
    Ok(())
}

fn cover(proc: Fd, name: &CStr) -> Result<(), Errno> {
    let place = open_at(proc, name, O_PATH | O_NOFOLLOW, 0)?;
    let mount = mount::clone_tree(place.fd(), c"")?;
    mount::restrict(mount.fd(), Reach::Tree, READ_ONLY | NO_SUID | NO_DEVICES)?;
    mount::attach(mount.fd(), place.fd())
}

/// Fills a small `/dev`: six nodes of the host, a devpts of its own, the usual links.
pub(super) fn fill_dev(dev: &OwnedFd, console: Option<&CStr>, index: u32) -> Result<(), Failure> {
    const NODES: [(&CStr, &CStr); 6] = [
        (c"null", c"/dev/null"),
        (c"zero", c"/dev/zero"),
        (c"full", c"/dev/full"),
        (c"random", c"/dev/random"),
        (c"urandom", c"/dev/urandom"),
        (c"tty", c"/dev/tty"),
    ];
    const LINKS: [(&CStr, &CStr); 6] = [
        (c"stdin", c"/proc/self/fd/0"),
        (c"stdout", c"/proc/self/fd/1"),
        (c"stderr", c"/proc/self/fd/2"),
        (c"fd", c"/proc/self/fd"),
        (c"core", c"/proc/kcore"),
        (c"ptmx", c"pts/ptmx"),
    ];
    for (name, source) in NODES {
        node(dev.fd(), name, source).map_err(Fault::DevNode.at(index))?;
    }
    for (name, to) in LINKS {
        mount::make_link(to, dev.fd(), name).map_err(Fault::DevEntry.at(index))?;
    }
    mount::make_directory(dev.fd(), c"shm", 0o755).map_err(Fault::DevEntry.at(index))?;
    terminals(dev.fd()).map_err(Fault::Devpts.at(index))?;
    match console {
        None => Ok(()),
        Some(terminal) => node(dev.fd(), c"console", terminal).map_err(Fault::DevNode.at(index)),
    }
}

fn node(dev: Fd, name: &CStr, source: &CStr) -> Result<(), Errno> {
    let place = make_at(dev, name, Node::File)?;
    let mount = mount::clone_tree(Fd::CWD, source)?;
    mount::restrict(mount.fd(), Reach::Tree, NO_SUID)?;
    mount::attach(mount.fd(), place.fd())
}

fn terminals(dev: Fd) -> Result<(), Errno> {
    let options = [(c"ptmxmode", c"0666"), (c"mode", c"620")];
    let mount = fresh(c"devpts", &options, NO_SUID | NO_EXEC)?;
    let place = make_at(dev, c"pts", Node::Directory(0o755))?;
    mount::attach(mount.fd(), place.fd())
}
