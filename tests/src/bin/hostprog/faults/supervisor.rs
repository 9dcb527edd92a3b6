//! Stands over a host and all its processes: lets every call happen but the one that shall fail.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::calls::Call;
use super::host::be_host;
use super::roles::{Role, Roles};
use crate::sys::{self, Answer, Fork};
use crate::world::{self, ensure, text};

/// A launch that takes longer hangs.
const HANG: Duration = Duration::from_secs(5);

/// A place in a launch: the n-th time that this role makes this call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Site {
    pub(super) role: Role,
    pub(super) call: Call,
    pub(super) nth: usize,
}

/// The call that shall fail, once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fault {
    pub(super) site: Site,
    pub(super) errno: i32,
}

/// What was seen of one host.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Every call of the launch, in the order in which they waited.
    pub(super) sites: Vec<Site>,
    /// What the host told.
    pub(super) told: String,
    /// The fault was met.
    pub(super) hit: bool,
    /// It had to be killed.
    pub(super) hung: bool,
}

/// Starts a host, with at most one fault, and stays until everything of it is gone.
pub(super) fn supervise(fault: Option<Fault>) -> Result<Seen, String> {
    let (told, tell) = rustix::pipe::pipe().map_err(text)?;
    // The number that the listener will have in the child, which opens nothing before it.
    let number = rustix::io::dup(&told).map(|fd| fd.as_raw_fd());
    let number = number.map_err(text)?;
    let host = match sys::fork().map_err(text)? {
        Fork::Child => be_host(tell),
        Fork::Parent(host) => host,
    };
    drop(tell);
    let pid = Pid::from_raw(host).ok_or("no pid")?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(text)?;
    let listener = take_listener(&pidfd, number)?;
    let mut seen = Seen::default();
    let watched = watch(listener.as_fd(), host, fault, &mut seen);
    // Without a listener whatever still waits fails, and ends.
    drop(listener);
    end_all(watched.is_err() || seen.hung)?;
    watched?;
    io::Read::read_to_string(&mut std::fs::File::from(told), &mut seen.told).map_err(text)?;
    Ok(seen)
}

/// Waits for the host and for whatever it left, all of it this process's children, being their
/// subreaper; what hangs must be killed.
pub(crate) fn end_all(kill: bool) -> Result<(), String> {
    let start = Instant::now();
    loop {
        for child in world::children().iter().filter(|_| kill) {
            // It may have ended since.
            sys::kill(child.pid, libc::SIGKILL).ok();
        }
        match sys::wait_any(libc::WNOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => std::thread::yield_now(),
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(()),
            Err(error) => return Err(text(error)),
        }
        ensure(start.elapsed() < HANG, || format!("left: {:?}", world::children()))?;
    }
}

/// A copy of the child's listener, as soon as there is one.
pub(crate) fn take_listener(pidfd: &OwnedFd, number: i32) -> Result<OwnedFd, String> {
    let start = Instant::now();
    loop {
        match pidfd_getfd(pidfd, number, PidfdGetfdFlags::empty()) {
            // Until then the number is that of whatever the child looks at.
            Ok(fd) if is_listener(&fd) => return Ok(fd),
            Ok(_) => {}
            Err(errno) => ensure(start.elapsed() < HANG, || format!("no listener: {errno}"))?,
        }
        std::thread::yield_now();
    }
}

fn is_listener(fd: &OwnedFd) -> bool {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    link.is_ok_and(|link| link.as_os_str() == "anon_inode:seccomp notify")
}

fn watch(
    listener: BorrowedFd<'_>,
    host: i32,
    fault: Option<Fault>,
    seen: &mut Seen,
) -> Result<(), String> {
    let (mut roles, mut counts) = (Roles::new(host), BTreeMap::new());
    let start = Instant::now();
    loop {
        let mut fds = [PollFd::from_borrowed_fd(listener, PollFlags::IN)];
        let moment = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        poll(&mut fds, Some(&moment)).map_err(text)?;
        if start.elapsed() > HANG {
            seen.hung = true;
            return Ok(());
        }
        let events = fds[0].revents();
        if !events.contains(PollFlags::IN) {
            // Nobody lives under the filter any more.
            match events.contains(PollFlags::HUP) {
                true => return Ok(()),
                false => continue,
            }
        }
        let waiting = match sys::next_call(listener) {
            Ok(waiting) => waiting,
            // Killed while it waited.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => continue,
            Err(error) => return Err(text(error)),
        };
        let call = Call::new(i64::from(waiting.data.nr), waiting.data.args[0]);
        let pid = i32::try_from(waiting.pid).map_err(text)?;
        let role = roles.of(pid, call);
        let nth = counts.entry((role, call)).and_modify(|count| *count += 1).or_insert(0usize);
        let site = Site { role, call, nth: *nth };
        if !matches!(role, Role::Host | Role::Other) {
            seen.sites.push(site);
        }
        let fails = fault.filter(|fault| fault.site == site && !seen.hit);
        seen.hit |= fails.is_some();
        match sys::answer_call(
            listener,
            waiting.id,
            fails.map_or(Answer::Go, |f| Answer::Fails(f.errno)),
        ) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
            Err(error) => return Err(text(error)),
        }
    }
}
