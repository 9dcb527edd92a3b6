//! The control group of one sandbox: made, locked, given its controllers, and removed with all in it.
//!
//! The lock says that it is in use; it ends with the process that holds it, however that ends. See
//! `leftovers`.

use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{
    Access, AtFlags, CWD, FlockOperation, Mode, OFlags, accessat, flock, fstat, mkdirat, openat,
    statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::Pid;

use super::{CgroupGap, Controller, RunGroup, leftovers};
use crate::error::{Error, LaunchError, Refusal};
use crate::plan::{Cgroup, CgroupLimit, CgroupResource};
use crate::profile::CgroupNeed;

/// Where a service is moved that was in the way.
const SERVICE: &str = "postern-service";

/// What the name of a sandbox's group begins with; then the service's pid, for people.
pub(super) const PREFIX: &str = "postern.";

/// How long what is left of killed processes may keep a group from being removed.
const REMOVAL: Duration = Duration::from_secs(2);

/// The group of a sandbox, for as long as any of its runs needs it.
#[derive(Debug)]
pub(crate) struct Tree(Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    parent: OwnedFd,
    name: String,
    path: PathBuf,
    /// Holds the lock.
    directory: OwnedFd,
    controllers: Vec<Controller>,
    /// What is written to each run's group.
    writes: Vec<(&'static str, String)>,
    gaps: Vec<(CgroupLimit, CgroupGap)>,
    next: AtomicU64,
    /// Groups of runs that are over whose last process was not quite gone.
    dying: Mutex<Vec<String>>,
    /// The process that made it: a forked copy must not remove it.
    owner: Pid,
}

impl Tree {
    /// Makes it, once what crashed services left beside it is removed.
    pub(crate) fn open(plan: &Cgroup) -> Result<Tree, Error> {
        if plan.moves_service {
            move_service(&plan.parent).map_err(|source| {
                prepare("move the service to a control group of its own in", &plan.parent, source)
            })?;
        }
        let parent = directory(CWD, &plan.parent)
            .map_err(|source| prepare("open the control group", &plan.parent, source))?;
        leftovers::remove(&parent);
        enable(parent.as_fd(), &plan.controllers)
            .map_err(|source| prepare(HAND_ON, &plan.parent, source))?;
        let (name, directory) = make(&parent)
            .map_err(|source| prepare("make a sandbox's control group in", &plan.parent, source))?;
        let path = plan.parent.join(&name);
        let mut inner = Inner {
            parent,
            name,
            path,
            directory,
            controllers: plan.controllers.clone(),
            writes: Vec::new(),
            gaps: Vec::new(),
            next: AtomicU64::new(0),
            dying: Mutex::default(),
            owner: rustix::process::getpid(),
        };
        enable(inner.directory.as_fd(), &plan.controllers)
            .map_err(|source| prepare(HAND_ON, &inner.path, source))?;
        inner.plan_writes(plan)?;
        Ok(Tree(Arc::new(inner)))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0.path
    }

    /// Limits that the plan has and the kernel knows no file for.
    pub(crate) fn gaps(&self) -> &[(CgroupLimit, CgroupGap)] {
        &self.0.gaps
    }

    /// A group for one run, with its limits.
    pub(crate) fn run(&self) -> Result<RunGroup, LaunchError> {
        self.0.sweep();
        let name = format!("run-{}", self.0.next.fetch_add(1, Ordering::Relaxed));
        let made = mkdirat(&self.0.directory, &name, Mode::from_raw_mode(0o755))
            .map_err(io::Error::from)
            .and_then(|()| directory(self.0.directory.as_fd(), Path::new(&name)));
        let made = made.map_err(|source| {
            prepare("make a run's control group", &self.0.path.join(&name), source)
        })?;
        // From here on it is removed by being dropped.
        let group = RunGroup::new(Arc::clone(&self.0), name, made);
        for (file, text) in &self.0.writes {
            group.write(file, text).map_err(|source| {
                prepare(
                    "limit a run's control group",
                    &self.0.path.join(group.name()).join(file),
                    source,
                )
            })?;
        }
        Ok(group)
    }
}

impl Inner {
    /// A file that the kernel does not have is a gap, or refused where the profile will have it.
    fn plan_writes(&mut self, plan: &Cgroup) -> Result<(), Error> {
        for limit in &plan.limits {
            let file = limit.resource.file();
            match accessat(&self.directory, file, Access::EXISTS, AtFlags::empty()) {
                Ok(()) => self.writes.push((file, limit.text())),
                Err(_missing) if plan.need == CgroupNeed::Require => {
                    let gap = CgroupGap::NoFile { file };
                    return Err(Refusal::CgroupUnavailable { limit: limit.resource, gap }.into());
                }
                Err(_missing) => self.gaps.push((*limit, CgroupGap::NoFile { file })),
            }
        }
        if self.has(Controller::Memory) {
            self.writes.push(("memory.oom.group", "1".to_owned()));
        }
        Ok(())
    }

    pub(super) fn has(&self, controller: Controller) -> bool {
        self.controllers.contains(&controller)
    }

    pub(super) fn writes(&self) -> &[(&'static str, String)] {
        &self.writes
    }

    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn is_ours(&self) -> bool {
        rustix::process::getpid() == self.owner
    }

    /// Removes a run's group, now or when the last of its processes is gone.
    pub(super) fn remove(&self, group: &RunGroup) {
        let name = group.name();
        if unlinkat(&self.directory, name, AtFlags::REMOVEDIR) == Err(Errno::BUSY) {
            group.kill();
            self.dying.lock().unwrap_or_else(PoisonError::into_inner).push(name.to_owned());
        }
    }

    /// Removes what could not be removed before.
    fn sweep(&self) {
        let busy =
            |name: &String| unlinkat(&self.directory, name, AtFlags::REMOVEDIR) == Err(Errno::BUSY);
        self.dying.lock().unwrap_or_else(PoisonError::into_inner).retain(busy);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.is_ours() {
            return;
        }
        // What stays behind is found by the next sandbox beneath the same parent.
        remove_all(&self.parent, &self.name, &self.directory, REMOVAL);
    }
}

/// Kills whatever is in a sandbox's group and removes it; whether it is gone.
pub(super) fn remove_all(parent: &OwnedFd, name: &str, group: &OwnedFd, most: Duration) -> bool {
    let end = Instant::now() + most;
    let mut pause = Duration::from_micros(200);
    let mut is_killed = false;
    loop {
        for entry in leftovers::names(group) {
            unlinkat(group, &entry, AtFlags::REMOVEDIR).ok();
        }
        match unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return true,
            Err(_) if Instant::now() >= end => return false,
            Err(_) => {}
        }
        if !is_killed {
            // Linux 5.14; before that there is nobody left who was not killed otherwise.
            write_at(group.as_fd(), "cgroup.kill", "1").ok();
            is_killed = true;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// A group of a fresh name, locked, of which no other process can have thought that nobody uses it.
fn make(parent: &OwnedFd) -> io::Result<(String, OwnedFd)> {
    const TRIES: u32 = 16;
    for _ in 0..TRIES {
        let random = RandomState::new().build_hasher().finish();
        let name = format!("{PREFIX}{}.{random:016x}", std::process::id());
        mkdirat(parent, &name, Mode::from_raw_mode(0o755))?;
        let Ok(group) = directory(parent.as_fd(), Path::new(&name)) else { continue };
        if lock(parent, &name, &group) {
            return Ok((name, group));
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Locks a group; false where somebody else has, or where it is no longer there.
pub(super) fn lock(parent: &OwnedFd, name: &str, group: &OwnedFd) -> bool {
    let same = || {
        let here = fstat(group).ok()?;
        let there = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((here.st_dev, here.st_ino) == (there.st_dev, there.st_ino))
    };
    flock(group, FlockOperation::NonBlockingLockExclusive).is_ok() && same() == Some(true)
}

pub(super) fn directory(parent: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, path, flags, Mode::empty())?)
}

pub(super) fn write_at(group: BorrowedFd<'_>, file: &str, text: &str) -> io::Result<()> {
    let file = openat(group, file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text.as_bytes())?;
    Ok(())
}

/// Gives the children of a group these controllers.
fn enable(group: BorrowedFd<'_>, controllers: &[Controller]) -> io::Result<()> {
    let given = read_at(group, "cgroup.subtree_control")?;
    for controller in controllers {
        if !given.split_ascii_whitespace().any(|word| word == controller.name()) {
            write_at(group, "cgroup.subtree_control", &format!("+{controller}"))?;
        }
    }
    Ok(())
}

/// A small file of a group as text.
pub(super) fn read_at(group: BorrowedFd<'_>, file: &str) -> io::Result<String> {
    let file = openat(group, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = String::new();
    io::Read::read_to_string(&mut fs::File::from(file), &mut text)?;
    Ok(text)
}

/// Moves this process to a leaf, as the profile asks.
fn move_service(parent: &Path) -> io::Result<()> {
    let leaf = parent.join(SERVICE);
    match fs::create_dir(&leaf) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    fs::write(leaf.join("cgroup.procs"), "0")
}

const HAND_ON: &str = "hand controllers on in the control group";

fn prepare(what: &'static str, path: &Path, source: io::Error) -> LaunchError {
    LaunchError::Prepare { what, object: path.to_owned(), source }
}

impl CgroupResource {
    /// The file of a group that takes the limit.
    pub(crate) const fn file(self) -> &'static str {
        match self {
            Self::Memory => "memory.max",
            Self::Swap => "memory.swap.max",
            Self::Pids => "pids.max",
            Self::Cpu => "cpu.max",
            Self::CpuWeight => "cpu.weight",
            Self::IoWeight => "io.weight",
        }
    }
}

impl CgroupLimit {
    /// The limit as the kernel takes it.
    pub(crate) fn text(self) -> String {
        const PERIOD_US: u64 = 100_000;
        match self.resource {
            CgroupResource::Cpu => {
                let quota = self.value.saturating_mul(PERIOD_US / 1000);
                format!("{quota} {PERIOD_US}")
            }
            CgroupResource::Memory
            | CgroupResource::Swap
            | CgroupResource::Pids
            | CgroupResource::CpuWeight
            | CgroupResource::IoWeight => self.value.to_string(),
        }
    }
}
