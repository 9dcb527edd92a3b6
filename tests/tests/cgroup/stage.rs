//! The delegated group that a test has, and what the kernel says of what is in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::sleep;
use std::time::{Duration, Instant};

use postern::profile::{Cgroup, CgroupNeed};
use postern::{ProcResult, Sandbox, SandboxProfile};

/// How long a thing that happens soon may take on an emulated processor.
const SOON: Duration = Duration::from_secs(60);

static TURN: RwLock<()> = RwLock::new(());

/// Keeps away tests that want the delegated group to themselves.
pub(crate) fn shared() -> RwLockReadGuard<'static, ()> {
    TURN.read().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps away all others.
pub(crate) fn alone() -> RwLockWriteGuard<'static, ()> {
    TURN.write().unwrap_or_else(PoisonError::into_inner)
}

/// The group.
pub(crate) struct Stage {
    pub(crate) parent: PathBuf,
}

impl Stage {
    /// The one that the runner has delegated.
    pub(crate) fn here() -> Option<Stage> {
        let parent = std::env::var_os("POSTERN_TEST_CGROUP_DIR").map(PathBuf::from)?;
        Some(Stage { parent })
    }

    /// A sandbox with these limits, all of them required.
    pub(crate) fn sandbox(&self, limits: Cgroup) -> Sandbox {
        let sandbox = Sandbox::builder(profile(Cgroup { need: CgroupNeed::Require, ..limits }));
        let sandbox = sandbox.build().unwrap();
        sandbox.verify().unwrap();
        let own = sandbox.enforcement().unwrap().cgroup.clone().unwrap();
        assert!(own.starts_with(&self.parent), "{}", own.display());
        sandbox
    }

    /// The groups of sandboxes in it.
    pub(crate) fn groups(&self) -> Vec<PathBuf> {
        below(&self.parent).into_iter().filter(|group| is_sandbox(group)).collect()
    }
}

fn is_sandbox(group: &Path) -> bool {
    group.file_name().is_some_and(|name| name.to_string_lossy().starts_with("postern."))
}

pub(crate) fn profile(cgroup: Cgroup) -> SandboxProfile {
    SandboxProfile::builder().cgroup(cgroup).build().unwrap()
}

/// The groups in a group.
pub(crate) fn below(group: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.is_dir()).collect()
}

/// The one group of a run that is going on.
pub(crate) fn only_run(sandbox: &Sandbox) -> PathBuf {
    let own = sandbox.enforcement().unwrap().cgroup.clone().unwrap();
    let is_alive = |group: &PathBuf| {
        let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        members.lines().count() > 1
    };
    soon(|| below(&own).into_iter().find(is_alive))
}

/// Tries until there is an answer.
pub(crate) fn soon<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + SOON;
    loop {
        match attempt() {
            Some(answer) => return answer,
            None if Instant::now() < end => sleep(Duration::from_millis(5)),
            None => panic!("not within {SOON:?}"),
        }
    }
}

pub(crate) fn shell(sandbox: &Sandbox, script: &str) -> ProcResult {
    let command = postern::Command::new("sh").args(["-c", script]).timeout(SOON * 2);
    sandbox.run(command).unwrap()
}
