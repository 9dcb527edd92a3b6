//! Starts the launcher: each source of its image in turn, by one clone that shares memory.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use postern_init::step::Step;
use postern_init::sys::{Errno, Fd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

use super::image::{self, ImageSource};
use super::map_tools::{self, ToolFailure};
use super::socket::timespec;
use super::sys::{Birth, BirthFailure, Maps, Newborn, give_birth};
use crate::error::{LaunchError, Phase, StepFailure, Symptom, likely};
use crate::host::Diagnosis;
use crate::plan::MapToolPaths;

/// Numbers below this one have a meaning in the child.
const FIRST_FREE_FD: i32 = 16;

/// The user namespace of a launcher.
pub(super) enum UserNamespace {
    /// The service's own, where a uid other than 0 must carry these capabilities over the exec.
    Shared { keep_capabilities: u64 },
    /// A new one with one extent, which the child writes.
    OneId { uid_map: CString, gid_map: CString },
    /// A new one whose maps only the service may write, or these tools.
    Mapped { uid_map: String, gid_map: String, tools: Option<MapToolPaths> },
}

/// A launcher that has exec'ed its image.
#[derive(Debug)]
pub(super) struct Spawned {
    pub(super) pidfd: OwnedFd,
    pub(super) control: OwnedFd,
    pub(super) image: ImageSource,
    /// Sources that were tried before it and could not be used.
    pub(super) passed_over: Vec<ImageSource>,
}

/// Starts the launcher from the first image that can be exec'ed.
pub(super) fn spawn(namespaces: u64, user: &UserNamespace) -> Result<Spawned, LaunchError> {
    let mut attempts = Vec::new();
    for source in ImageSource::ALL {
        let image = match image::open(source) {
            Ok(Some(image)) => image,
            Ok(None) => continue,
            Err(error) => {
                attempts.push((source, error));
                continue;
            }
        };
        match spawn_from(&image, namespaces, user)? {
            Ok((pidfd, control)) => {
                let passed_over = attempts.into_iter().map(|attempt| attempt.0).collect();
                return Ok(Spawned { pidfd, control, image: source, passed_over });
            }
            Err(errno) => attempts.push((source, io::Error::from_raw_os_error(errno.0))),
        }
    }
    let errno = attempts.iter().find_map(|attempt| attempt.1.raw_os_error()).unwrap_or_default();
    let host = Diagnosis::probe();
    let symptom = Symptom { phase: Phase::Spawn, step: Step::Exec, errno, host: &host };
    Err(LaunchError::Image { attempts, cause: likely(&symptom) })
}

fn number(fd: &OwnedFd) -> Fd {
    Fd(fd.as_raw_fd())
}

type Started = (OwnedFd, OwnedFd);

/// The inner error is an exec that failed: another image may do better.
fn spawn_from(
    image: &OwnedFd,
    namespaces: u64,
    user: &UserNamespace,
) -> Result<Result<Started, Errno>, LaunchError> {
    let prepare = |what| {
        move |source: io::Error| LaunchError::Prepare {
            what,
            object: std::path::PathBuf::new(),
            source,
        }
    };
    let (ours, theirs) = super::socket::pair().map_err(prepare("make the launcher's socket"))?;
    let host = pidfd_open(rustix::process::getpid(), PidfdFlags::empty())
        .map_err(|errno| prepare("open a pidfd of this process")(errno.into()))?;
    let null = File::options().read(true).write(true).open("/dev/null");
    let null = null.map_err(prepare("open /dev/null"))?;
    let high = |fd: BorrowedFd<'_>| {
        fcntl_dupfd_cloexec(fd, FIRST_FREE_FD).map_err(|errno| {
            // The kernel's word for a limit that is below the number asked for.
            let limited = errno == rustix::io::Errno::INVAL;
            let errno = if limited { rustix::io::Errno::MFILE } else { errno };
            prepare("duplicate a descriptor")(errno.into())
        })
    };
    let (control, host) = (high(theirs.as_fd())?, high(host.as_fd())?);
    let (image, null) = (high(image.as_fd())?, high(null.as_fd())?);
    drop(theirs);
    let keep_capabilities = match user {
        UserNamespace::Shared { keep_capabilities } => *keep_capabilities,
        UserNamespace::OneId { .. } | UserNamespace::Mapped { .. } => 0,
    };
    let birth = |maps| Birth {
        image: number(&image),
        control: number(&control),
        host: number(&host),
        null: number(&null),
        namespaces,
        maps,
        keep_capabilities,
    };
    let born = match user {
        UserNamespace::Shared { .. } => born(&birth(Maps::None)),
        UserNamespace::OneId { uid_map, gid_map } => born(&birth(Maps::Child { uid_map, gid_map })),
        UserNamespace::Mapped { uid_map, gid_map, tools } => {
            let (gate, key) = pipe_with(PipeFlags::CLOEXEC)
                .map_err(|errno| prepare("make a pipe")(errno.into()))?;
            let (ended, end) = pipe_with(PipeFlags::CLOEXEC)
                .map_err(|errno| prepare("make a pipe")(errno.into()))?;
            let (gate, alive) = (high(gate.as_fd())?, high(end.as_fd())?);
            let birth = birth(Maps::Parent { gate: number(&gate), alive: number(&alive) });
            let newborn = give_birth(&birth);
            // The child's copy alone tells when it is over.
            drop((end, alive));
            let maps = [("uid_map", uid_map.as_str()), ("gid_map", gid_map.as_str())];
            newborn
                .map_err(|errno| Stillborn::Step(Step::CloneLauncher, errno))
                .and_then(|newborn| admit(newborn, &ended, maps, tools.as_ref(), &key))
        }
    };
    match born {
        Ok(pidfd) => Ok(Ok((pidfd, ours))),
        Err(Stillborn::Step(Step::Exec, errno)) => Ok(Err(errno)),
        Err(Stillborn::Step(step, errno)) => Err(step_failure((step, errno))),
        Err(Stillborn::Tool(failure)) => Err(failure.into()),
    }
}

/// The parent sleeps until the exec, so that the answer is there when it goes on.
fn born(birth: &Birth<'_>) -> Result<OwnedFd, Stillborn> {
    let newborn = give_birth(birth).map_err(|errno| Stillborn::Step(Step::CloneLauncher, errno))?;
    finish(newborn)
}

fn finish(newborn: Newborn<'_>) -> Result<OwnedFd, Stillborn> {
    match newborn.failure() {
        None => Ok(newborn.pidfd),
        Some((step, errno)) => {
            reap(&newborn.pidfd);
            Err(Stillborn::Step(step, errno))
        }
    }
}

/// Why a launcher did not come to its exec.
enum Stillborn {
    Step(Step, Errno),
    Tool(ToolFailure),
}

/// Writes the maps, opens the gate, and waits for the exec: until then the child runs in this
/// process's memory, which must not be given back.
fn admit(
    newborn: Newborn<'_>,
    ended: &OwnedFd,
    maps: [(&'static str, &str); 2],
    tools: Option<&MapToolPaths>,
    key: &OwnedFd,
) -> Result<OwnedFd, Stillborn> {
    let admitted = map_ids(newborn.pid, maps, tools).and_then(|()| {
        let sent = rustix::io::write(key, &[1]);
        let errno = |errno: rustix::io::Errno| Errno(errno.raw_os_error());
        sent.map(drop).map_err(|error| Stillborn::Step(Step::WriteUidMap, errno(error)))
    });
    if admitted.is_err() {
        kill(&newborn.pidfd);
    }
    wait_for_end(ended);
    match admitted {
        Ok(()) => finish(newborn),
        Err(failure) => {
            reap(&newborn.pidfd);
            Err(failure)
        }
    }
}

/// Has both maps written, by the tools where there are any.
fn map_ids(
    pid: i32,
    [uid, gid]: [(&'static str, &str); 2],
    tools: Option<&MapToolPaths>,
) -> Result<(), Stillborn> {
    let Some(tools) = tools else {
        let write = |(name, map), step| {
            write_map(pid, name, map).map_err(|errno| Stillborn::Step(step, errno))
        };
        write(uid, Step::WriteUidMap)?;
        return write(gid, Step::WriteGidMap);
    };
    let run = |tool, (name, map)| map_tools::write(tool, pid, name, map).map_err(Stillborn::Tool);
    run(&tools.newuidmap, uid)?;
    run(&tools.newgidmap, gid)
}

fn write_map(pid: i32, name: &str, map: &str) -> Result<(), Errno> {
    let path = format!("/proc/{pid}/{name}");
    let write = || File::options().write(true).open(path)?.write_all(map.as_bytes());
    write().map_err(|error| Errno(error.raw_os_error().unwrap_or(libc::EIO)))
}

fn wait_for_end(pipe: &OwnedFd) {
    let mut byte = [0u8; 1];
    while matches!(rustix::io::read(pipe, &mut byte), Err(rustix::io::Errno::INTR)) {}
}

/// Ends a launcher, and with it every process of its pid namespace.
pub(super) fn kill(pidfd: &OwnedFd) {
    // It may have ended by itself, which is as good.
    rustix::process::pidfd_send_signal(pidfd, rustix::process::Signal::KILL).ok();
}

/// How long a killed launcher may take to be gone: one that hangs in a dead network mount cannot be
/// waited for, and must not hold its host.
const DEATH: Duration = Duration::from_secs(5);

/// Waits for a killed or failed child. Somebody else's `waitpid(-1)` may have been faster, or
/// `SIGCHLD` be ignored, which is as good.
pub(super) fn reap(pidfd: &OwnedFd) {
    let deadline = Instant::now() + DEATH;
    let mut left = DEATH;
    while !left.is_zero() {
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        match poll(&mut fds, Some(&timespec(left))) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => break,
        }
        left = deadline.saturating_duration_since(Instant::now());
    }
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    while matches!(waitid(WaitId::PidFd(pidfd.as_fd()), options), Err(rustix::io::Errno::INTR)) {}
}

fn step_failure((step, errno): BirthFailure) -> LaunchError {
    let host = Diagnosis::probe();
    let symptom = Symptom { phase: Phase::Spawn, step, errno: errno.0, host: &host };
    LaunchError::Step(Box::new(StepFailure {
        phase: Phase::Spawn,
        step,
        object: String::new(),
        source: io::Error::from_raw_os_error(errno.0),
        cause: likely(&symptom),
    }))
}
