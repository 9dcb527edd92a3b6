//! Carries a plan out: leases ids, starts the launcher, hands it the plan, and hands it runs.
//!
//! Makes no decision about isolation; what differs from host to host was decided by the plan.

pub(crate) mod attributes;
pub(crate) mod encode;
mod image;
mod landlock;
mod lease;
mod leftovers;
mod map_tools;
mod object;
pub(crate) mod socket;
mod spawn;
mod sys;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use postern_init::record::{Kind, Record, facts};
use postern_init::step::Step;
use postern_launcher::wire::REQUEST_INLINE_MAX;
use postern_seccomp::{Program, UserPolicy};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::process::Pid;

pub(crate) use encode::Run;
pub(crate) use image::installed_image;
pub use image::{ImageSource, LAUNCHER_VARIABLE};
pub use lease::RUNTIME_DIRECTORY_VARIABLE;

use crate::attest::filters;
use crate::error::{LaunchError, Phase, StepFailure, Symptom, likely};
use crate::host::{Capability, Diagnosis, Host};
use crate::plan::{Identity, KernelId, Plan, Tier};
use encode::Numbers;
use lease::{Lease, LeaseError};
use socket::Incoming;
use spawn::UserNamespace;

/// A running launcher. Dropping it ends it, and with it every run; it waits until they are gone.
#[derive(Debug)]
pub(crate) struct Launcher {
    pidfd: OwnedFd,
    control: OwnedFd,
    /// The process that started it: a forked copy must not end it.
    owner: Pid,
    pub(crate) ids: KernelIds,
    /// Freed after the launcher is gone, so that the id is not given out while in use.
    _lease: Option<Arc<Lease>>,
    pub(crate) image: ImageSource,
    pub(crate) passed_over: Vec<ImageSource>,
    pub(crate) facts: u32,
    /// Filters around the thread that started it, which its runs are under too.
    pub(crate) outer_filters: Option<u32>,
    pub(crate) exports: Vec<OwnedFd>,
    /// Nobody waits for its end.
    left: AtomicBool,
}

/// The kernel ids of a sandbox, which its launchers share: leased until the last of them is gone.
#[derive(Debug, Clone)]
pub(crate) struct Ids {
    kernel: KernelIds,
    lease: Option<Arc<Lease>>,
}

impl Ids {
    /// Those that the plan names, or a pair that nobody uses.
    pub(crate) fn take(identity: &Identity) -> Result<Ids, LaunchError> {
        take_ids(identity)
    }
}

/// The guest's ids as the host's kernel sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KernelIds {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// A run as it is sent.
#[derive(Debug)]
pub(crate) struct Request {
    message: Vec<u8>,
    /// Holds what is too long for a message.
    memfd: Option<OwnedFd>,
}

impl Request {
    pub(crate) fn new(run: &Run<'_>) -> Result<Request, LaunchError> {
        let message = encode::run(run);
        if message.len() <= REQUEST_INLINE_MAX {
            return Ok(Request { message, memfd: None });
        }
        let memfd = Some(sealed("postern-run", &message)?);
        Ok(Request { message: encode::run_in_memfd(run, message.len()), memfd })
    }
}

/// What a launch needs besides the plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    pub(crate) deadline: Duration,
    pub(crate) single_use: bool,
}

impl Launcher {
    /// Starts a launcher and waits until its template stands.
    pub(crate) fn start(
        plan: &Plan,
        host: &Host,
        options: Options,
        Ids { kernel: ids, lease }: Ids,
    ) -> Result<Launcher, LaunchError> {
        let deadline = Instant::now() + options.deadline;
        let numbers = numbers(plan, host, ids, options);
        let filter = plan.seccomp.native_program().map_err(LaunchError::Filter)?;
        let policy = plan.seccomp_policy.as_ref().map(UserPolicy::program);
        let filters = [filter, policy].map(|filter| filter.map_or(&[][..], Program::as_bytes));
        let setup = encode::setup(plan, &numbers, filters);
        let spawned =
            spawn::spawn(spawn_flags(&numbers), &user_namespace(plan, host, ids, &numbers)?)?;
        let mut launcher = Launcher {
            pidfd: spawned.pidfd,
            control: spawned.control,
            owner: rustix::process::getpid(),
            ids,
            _lease: lease,
            image: spawned.image,
            passed_over: spawned.passed_over,
            facts: 0,
            outer_filters: own_filters(),
            exports: Vec::new(),
            left: AtomicBool::new(false),
        };
        launcher.hand_over(&setup)?;
        launcher.wait_ready(plan, deadline, options.deadline)?;
        Ok(launcher)
    }

    fn hand_over(&self, setup: &[u8]) -> Result<(), LaunchError> {
        let memfd = sealed("postern-plan", setup)?;
        let len = (setup.len() as u64).to_le_bytes();
        match socket::send(&self.control, &len, &[memfd.as_fd()]) {
            Ok(()) => Ok(()),
            // It ended before it read this; what it said stands in the socket.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(source) => Err(prepare("hand the plan to the launcher", source)),
        }
    }

    fn wait_ready(
        &mut self,
        plan: &Plan,
        deadline: Instant,
        after: Duration,
    ) -> Result<(), LaunchError> {
        let during = Phase::Template;
        let incoming = socket::receive_until(&self.control, deadline)
            .map_err(|source| prepare("hear from the launcher", source))?;
        match incoming {
            Some(Incoming::Record(record, fds)) if record.kind == Kind::Ready => {
                self.facts = record.facts;
                self.exports = fds;
                Ok(())
            }
            Some(Incoming::Record(record, _)) => Err(failure(plan, during, &record)),
            Some(Incoming::End | Incoming::Nothing) => Err(LaunchError::LauncherLost { during }),
            None => Err(LaunchError::Deadline { waiting_for: "building the sandbox", after }),
        }
    }

    /// Whether this is the process that started it.
    pub(crate) fn is_ours(&self) -> bool {
        rustix::process::getpid() == self.owner
    }

    /// Sends a run, and with it its end of the status line, its streams and its control group; false
    /// when the socket is full, and the launcher at work on what it holds.
    pub(crate) fn try_send(
        &self,
        request: &Request,
        status: BorrowedFd<'_>,
        stdio: [BorrowedFd<'_>; 3],
        cgroup: Option<BorrowedFd<'_>>,
    ) -> Result<bool, LaunchError> {
        let memfd = request.memfd.as_ref().map(AsFd::as_fd);
        let fds: Vec<_> = [status].into_iter().chain(stdio).chain(cgroup).chain(memfd).collect();
        match socket::send(&self.control, &request.message, &fds) {
            Ok(()) => Ok(true),
            Err(error) if is_full(&error) => Ok(false),
            Err(error) if is_gone(&error) => Err(LaunchError::LauncherLost { during: Phase::Run }),
            Err(source) => Err(prepare("send a run to the launcher", source)),
        }
    }

    /// Makes dropping it end it without waiting.
    pub(crate) fn leave(&self) {
        self.left.store(true, Ordering::Relaxed);
    }

    /// Ends the launcher, and every run with it.
    pub(crate) fn kill(&self) {
        spawn::kill(&self.pidfd);
    }
}

/// How many seccomp filters this thread is under.
fn own_filters() -> Option<u32> {
    filters(&std::fs::read_to_string("/proc/thread-self/status").ok()?)
}

/// `EAGAIN`: no room; `ETOOMANYREFS`: too many descriptors in flight.
fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ETOOMANYREFS))
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPIPE | libc::ECONNRESET | libc::ENOTCONN))
}

impl Drop for Launcher {
    fn drop(&mut self) {
        if self.is_ours() {
            self.kill();
            if !self.left.load(Ordering::Relaxed) {
                spawn::reap(&self.pidfd);
            }
        }
    }
}

fn prepare(what: &'static str, source: io::Error) -> LaunchError {
    LaunchError::Prepare { what, object: PathBuf::new(), source }
}

/// The words for a failed step that the launcher reported.
pub(crate) fn failure(plan: &Plan, phase: Phase, record: &Record) -> LaunchError {
    let Some(step) = Step::from_code(record.step) else {
        return LaunchError::LauncherLost { during: phase };
    };
    let host = Diagnosis::probe();
    let symptom = Symptom { phase, step, errno: record.errno, host: &host };
    LaunchError::Step(Box::new(StepFailure {
        phase,
        step,
        object: object::of(plan, phase, step, record.index),
        source: io::Error::from_raw_os_error(record.errno),
        cause: likely(&symptom),
    }))
}

/// A sealed memfd that holds `bytes`.
fn sealed(name: &str, bytes: &[u8]) -> Result<OwnedFd, LaunchError> {
    let make = || -> io::Result<OwnedFd> {
        let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let mut file = std::fs::File::from(fd);
        io::Write::write_all(&mut file, bytes)?;
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        fcntl_add_seals(&file, seals)?;
        Ok(file.into())
    };
    make().map_err(|source| prepare("make a memfd", source))
}

fn take_ids(identity: &Identity) -> Result<Ids, LaunchError> {
    let (uid, lease) = match identity.kernel_uid {
        KernelId::Own(id) | KernelId::Fixed(id) => (id, None),
        KernelId::Leased { first, last } => {
            let lease = lease::take(first, last).map_err(|error| match error {
                LeaseError::Exhausted => LaunchError::NoFreeId { first, last },
                LeaseError::Directory(object, source) => {
                    LaunchError::Prepare { what: "lease a kernel uid", object, source }
                }
            })?;
            (lease.id, Some(Arc::new(lease)))
        }
    };
    let gid = match (identity.kernel_gid, identity.kernel_uid) {
        (KernelId::Own(id) | KernelId::Fixed(id), _) => id,
        // One lease stands for both: the same number, or the one at the same place.
        (KernelId::Leased { first, .. }, KernelId::Leased { first: first_uid, .. }) => {
            first.saturating_add(uid.saturating_sub(first_uid))
        }
        (KernelId::Leased { first, .. }, KernelId::Own(_) | KernelId::Fixed(_)) => first,
    };
    Ok(Ids { kernel: KernelIds { uid, gid }, lease })
}

/// The launcher's id in a user namespace whose maps the service writes.
const MAPPED_ID: u32 = 65_534;

fn numbers(plan: &Plan, host: &Host, ids: KernelIds, options: Options) -> Numbers {
    let (launcher_uid, launcher_gid) = match plan.identity.tier {
        Tier::Privileged => (ids.uid, ids.gid),
        Tier::MapWriter | Tier::Subordinate => (MAPPED_ID, MAPPED_ID),
        Tier::Unprivileged => (0, 0),
    };
    let own_user_namespace = plan.identity.tier != Tier::Privileged;
    // What runs need of the launcher: namespaces, their limits and names, loopback, id maps.
    let wanted = [
        (Capability::SetGid, 6),
        (Capability::SetUid, 7),
        (Capability::NetAdmin, 12),
        (Capability::SysAdmin, 21),
        (Capability::SetFcap, 31),
    ];
    let holds = |wanted: &(Capability, u32)| own_user_namespace || host.capabilities.has(wanted.0);
    // The files of a control group that the service may write to belong to another id than ours.
    let group = plan.cgroup.is_some().then_some((Capability::DacOverride, 1));
    let keep_capabilities = wanted
        .into_iter()
        .chain(group)
        .filter(holds)
        .fold(0, |bits, (_, number)| bits | 1u64 << number);
    Numbers {
        launcher_uid,
        launcher_gid,
        keep_capabilities,
        takes_ids: plan.identity.tier != Tier::Unprivileged,
        own_user_namespace,
        maps_workspace: plan.identity.tier == Tier::Subordinate,
        single_use: options.single_use,
    }
}

fn spawn_flags(numbers: &Numbers) -> u64 {
    let user = if numbers.own_user_namespace { libc::CLONE_NEWUSER } else { 0 };
    u64::from((libc::CLONE_NEWPID | libc::CLONE_NEWNS | user).unsigned_abs())
}

fn user_namespace(
    plan: &Plan,
    host: &Host,
    ids: KernelIds,
    numbers: &Numbers,
) -> Result<UserNamespace, LaunchError> {
    let nul = |_| prepare("write an id map", io::ErrorKind::InvalidInput.into());
    Ok(match plan.identity.tier {
        Tier::Privileged => UserNamespace::Shared {
            // Exec as uid 0 keeps all that there is.
            keep_capabilities: if host.uid == 0 { 0 } else { numbers.keep_capabilities },
        },
        Tier::MapWriter | Tier::Subordinate => UserNamespace::Mapped {
            uid_map: format!("0 {} 1\n{MAPPED_ID} {} 1\n", host.uid, ids.uid),
            gid_map: format!("0 {} 1\n{MAPPED_ID} {} 1\n", host.gid, ids.gid),
            tools: plan.identity.map_tools.clone(),
        },
        Tier::Unprivileged => UserNamespace::OneId {
            uid_map: CString::new(format!("0 {} 1", host.uid)).map_err(nul)?,
            gid_map: CString::new(format!("0 {} 1", host.gid)).map_err(nul)?,
        },
    })
}

/// The launcher's fact about keyrings.
pub(crate) const NO_KEYRINGS: u32 = facts::NO_KEYRINGS;

/// The facts of a launcher that are worth telling, as words.
pub(crate) fn fact_names(bits: u32) -> Vec<&'static str> {
    let rows = [
        (facts::CLONE3_REFUSED, "clone3 refused, clone used"),
        (facts::NO_KEYRINGS, "no session keyring: the kernel or an outer filter has none for us"),
        (facts::LAUNCHER_LIMITS_MISSING, "inotify and fanotify limits not lowered"),
        (facts::IPC_LIMITS_MISSING, "ipc limits not lowered"),
        (facts::MOVED_ROOT, "root moved, pivot_root does not work on this root"),
        (facts::WORKSPACE_BY_GROUP, "owned workspace reached by group: tmpfs cannot be id-mapped"),
        (facts::HOST_PROC, "id maps written through the outer /proc, no fresh one here"),
    ];
    rows.iter().filter(|row| bits & row.0 != 0).map(|row| row.1).collect()
}
