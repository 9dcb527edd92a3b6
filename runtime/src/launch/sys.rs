//! The birth of the launcher: one clone, one function, one exec; decides nothing.
//!
//! # Safety
//! The child shares this process's memory until its exec. It makes raw system calls only: no
//! allocation, no lock, no thread-local storage (`errno` included), and it writes one value,
//! through the `Start` that it was given.
#![expect(unsafe_code, reason = "a child that shares memory until its exec")]

use std::ffi::CStr;
use std::os::fd::{FromRawFd, OwnedFd};

use postern_init::process::{self, Parent, Pointers, Sharing, Start};
use postern_init::step::Step;
use postern_init::sys::{self, CapabilitySets, Errno, Fd, O_CLOEXEC, O_WRONLY};
use postern_launcher::wire::{CONTROL_FD, HOST_FD};

use crate::sys::SignalsBlocked;

/// Room for a few calls; the kernel writes signal frames nowhere, since all are blocked.
const STACK_LEN: usize = 64 * 1024;

/// Everything the child needs. Descriptors are numbers of the moment of the clone, when the child
/// gets a table of its own; they are 16 and up, so that none is in another's way.
pub(super) struct Birth<'a> {
    pub(super) image: Fd,
    pub(super) control: Fd,
    pub(super) host: Fd,
    pub(super) null: Fd,
    pub(super) namespaces: u64,
    pub(super) maps: Maps<'a>,
    /// Capabilities that must survive the exec, which a uid other than 0 would lose; 0: none.
    pub(super) keep_capabilities: u64,
}

/// Who writes the id maps of the launcher's user namespace.
#[derive(Clone, Copy)]
pub(super) enum Maps<'a> {
    /// It has none of its own.
    None,
    /// The child itself: one extent, its own id.
    Child { uid_map: &'a CStr, gid_map: &'a CStr },
    /// The parent; the child waits for one byte at `gate`, and `alive` closes with its exec or exit.
    Parent { gate: Fd, alive: Fd },
}

/// A step of the child that failed before the exec.
pub(super) type BirthFailure = (Step, Errno);

struct Shared<'a> {
    birth: &'a Birth<'a>,
    arguments: Pointers,
    environment: Pointers,
    failure: Option<BirthFailure>,
}

/// A launcher on its way to its exec.
pub(super) struct Newborn<'a> {
    pub(super) pid: i32,
    pub(super) pidfd: OwnedFd,
    start: Box<Start<Shared<'a>>>,
    _stack: Vec<u8>,
}

impl Newborn<'_> {
    /// What failed before the exec; to be asked once the exec is known to be over.
    pub(super) fn failure(&self) -> Option<BirthFailure> {
        let failure = &raw const self.start.shared.failure;
        // SAFETY: a live, aligned place; volatile, since another process may have written it.
        unsafe { failure.read_volatile() }
    }
}

/// Clones the launcher. With [`Maps::Parent`] the value returned must be kept until the child has
/// exec'ed or exited: it owns the memory that the child runs in.
pub(super) fn give_birth<'a>(birth: &'a Birth<'a>) -> Result<Newborn<'a>, Errno> {
    // argv is one constant word, envp empty; both live for ever.
    static ARGV: Words = Words([c"postern-launcher".as_ptr(), std::ptr::null()]);
    static ENVP: Words = Words([std::ptr::null(), std::ptr::null()]);
    // SAFETY: a NULL-terminated array of C strings, both static.
    let arguments = unsafe { Pointers::new(ARGV.0.as_ptr().expose_provenance()) };
    // SAFETY: an empty, static, NULL-terminated array.
    let environment = unsafe { Pointers::new(ENVP.0.as_ptr().expose_provenance()) };
    let shared = Shared { birth, arguments, environment, failure: None };
    let mut start = Box::new(Start { enter: be_born, shared });
    let mut stack = vec![0u8; STACK_LEN];
    let parent = match birth.maps {
        Maps::None | Maps::Child { .. } => Parent::Sleeps,
        Maps::Parent { .. } => Parent::GoesOn,
    };
    // The child starts with this mask, so that no handler of this process runs in it.
    let _blocked = SignalsBlocked::all()?;
    // SAFETY: the child runs `be_born`, which keeps to this file's contract; stack and start are
    // kept by `Newborn`, whose owner waits for the exec.
    let child =
        unsafe { process::spawn_sharing(birth.namespaces, parent, &mut stack, &mut start) }?;
    let Sharing { pid, pidfd } = child;
    let pidfd = pidfd.ok_or(Errno::EINVAL)?;
    // SAFETY: the kernel has just made this descriptor for us.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd.0) };
    Ok(Newborn { pid, pidfd, start, _stack: stack })
}

#[repr(transparent)]
struct Words([*const std::ffi::c_char; 2]);

// SAFETY: the pointers are to constants, and nothing writes them.
unsafe impl Sync for Words {}

/// Runs in the child, in shared memory.
fn be_born(shared: &mut Shared<'_>) -> ! {
    let failure = match prepare(shared.birth) {
        Err(failure) => failure,
        Ok(image) => {
            let errno = process::execute_file(image, &shared.arguments, &shared.environment);
            (Step::Exec, errno)
        }
    };
    shared.failure = Some(failure);
    sys::exit(127)
}

fn prepare(birth: &Birth<'_>) -> Result<Fd, BirthFailure> {
    const IMAGE: Fd = Fd(5);
    const ALIVE: Fd = Fd(6);
    const GATE: Fd = Fd(7);
    keep_capabilities(birth.keep_capabilities).map_err(|errno| (Step::KeepCapabilities, errno))?;
    match birth.maps {
        Maps::None | Maps::Parent { .. } => {}
        Maps::Child { uid_map, gid_map } => {
            write(c"/proc/self/setgroups", c"deny", Step::DenySetgroups)?;
            write(c"/proc/self/uid_map", uid_map, Step::WriteUidMap)?;
            write(c"/proc/self/gid_map", gid_map, Step::WriteGidMap)?;
        }
    }
    let place = |from: Fd, onto: i32, flags| {
        sys::dup_onto(from, Fd(onto), flags).map_err(|errno| (Step::Descriptors, errno))
    };
    for stdio in 0..=2 {
        place(birth.null, stdio, 0)?;
    }
    place(birth.control, CONTROL_FD, 0)?;
    place(birth.host, HOST_FD, 0)?;
    place(birth.image, IMAGE.0, O_CLOEXEC)?;
    let first_closed = match birth.maps {
        Maps::Parent { gate, alive } => {
            place(alive, ALIVE.0, O_CLOEXEC)?;
            place(gate, GATE.0, O_CLOEXEC)?;
            GATE.0 + 1
        }
        Maps::None | Maps::Child { .. } => ALIVE.0,
    };
    sys::close_from(first_closed).map_err(|errno| (Step::Descriptors, errno))?;
    match birth.maps {
        // Only now: with a copy of the key among its descriptors it would outlive its host here.
        Maps::Parent { .. } => pass(GATE).map_err(|errno| (Step::WriteUidMap, errno))?,
        Maps::None | Maps::Child { .. } => {}
    }
    Ok(IMAGE)
}

/// Waits for the parent's word; its death is one too.
fn pass(gate: Fd) -> Result<(), Errno> {
    match sys::read(gate, &mut [0u8; 1])? {
        1 => Ok(()),
        _ => Err(Errno::EPERM),
    }
}

/// Ambient capabilities are those that an exec leaves to a uid other than 0.
fn keep_capabilities(bits: u64) -> Result<(), Errno> {
    const PR_CAP_AMBIENT: u32 = 47;
    const PR_CAP_AMBIENT_RAISE: usize = 2;
    if bits == 0 {
        return Ok(());
    }
    sys::set_capabilities(CapabilitySets { permitted: bits, inheritable: bits })?;
    for capability in (0..64usize).filter(|capability| bits >> capability & 1 == 1) {
        sys::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability)?;
    }
    Ok(())
}

fn write(path: &CStr, text: &CStr, step: Step) -> Result<(), BirthFailure> {
    let file = sys::open_at(Fd::CWD, path, O_WRONLY, 0).map_err(|errno| (step, errno))?;
    sys::write(file.fd(), text.to_bytes()).map(drop).map_err(|errno| (step, errno))
}
