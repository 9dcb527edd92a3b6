//! Looks at a confined PID 1 from outside and compares what the kernel says with the plan.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use postern_seccomp::Level;
use procfs::process::{Process as Proc, Status};

use crate::command::Command;
use crate::enforcement::Enforcement;
use crate::error::{Error, LaunchError, Phase, Violation};
use crate::plan::Plan;
use crate::profile::SandboxProfile;
use crate::sandbox::{Attest, Sandbox};

/// How long a run may take to build its walls.
const CONFINED: Duration = Duration::from_secs(10);

/// Whether a default sandbox can be launched and verified here.
///
/// # Errors
/// Why not, with the likely cause and its fix.
pub fn available() -> Result<(), Error> {
    let sandbox = Sandbox::builder(SandboxProfile::default()).single_use(true).build()?;
    sandbox.verify().map(drop)
}

impl Sandbox {
    /// Launches a run up to the point where its program would start, reads back from the kernel
    /// what holds it, and ends it. A service that calls this first fails closed.
    ///
    /// # Errors
    /// [`Error::Launch`] when nothing can be launched; [`Error::Unconfined`] when a wall is not as
    /// planned, or when the profile has no system-call filter.
    pub fn verify(&self) -> Result<Arc<Enforcement>, Error> {
        let (violations, enforcement, ()) = self.inspect(|_| ())?;
        match violations.is_empty() {
            true => Ok(enforcement),
            false => Err(Error::Unconfined(violations)),
        }
    }

    /// What is otherwise than planned of a run's confined PID 1, and what `more` sees of it.
    pub(crate) fn inspect<T>(
        &self,
        more: impl FnOnce(&Proc) -> T,
    ) -> Result<(Vec<Violation>, Arc<Enforcement>, T), Error> {
        let mut process = self.start_with(&Command::new("verify"), Attest::Yes)?;
        process.wait_confined(CONFINED)?;
        let enforcement = process.enforcement();
        let pidfd = process.pidfd().ok_or(LaunchError::LauncherLost { during: Phase::Run })?;
        let init = Proc::new(pid_of(pidfd)?).map_err(read("look at PID 1"))?;
        let violations = look(&init, self.plan(), &enforcement)?;
        let seen = more(&init);
        process.kill();
        process.wait()?;
        Ok((violations, enforcement, seen))
    }
}

fn read(what: &'static str) -> impl Fn(procfs::ProcError) -> LaunchError {
    move |error| LaunchError::Prepare {
        what,
        object: "/proc".into(),
        source: std::io::Error::other(error),
    }
}

/// Collects what is otherwise than expected.
#[derive(Default)]
struct Findings {
    violations: Vec<Violation>,
}

impl Findings {
    fn expect<T: PartialEq + core::fmt::Debug>(&mut self, what: &'static str, found: T, wanted: T) {
        if found != wanted {
            let (expected, found) = (format!("{wanted:?}"), format!("{found:?}"));
            self.violations.push(Violation { what, expected, found });
        }
    }
}

fn look(init: &Proc, plan: &Plan, enforcement: &Enforcement) -> Result<Vec<Violation>, Error> {
    let status = init.status().map_err(read("read PID 1's status"))?;
    let mut findings = Findings::default();
    look_at_status(&mut findings, &status, enforcement);
    look_at_filter(&mut findings, &status, plan.seccomp);
    let wanted = [
        ("uid_map", plan.identity.guest_uid, enforcement.kernel_uid),
        ("gid_map", plan.identity.guest_gid, enforcement.kernel_gid),
    ];
    for (name, inside, outside) in wanted {
        let map = init.open_relative(name).map_err(read("read PID 1's id map"))?;
        findings.expect(
            name,
            words(map).map_err(read("read PID 1's id map"))?,
            [inside.to_string(), outside.to_string(), "1".to_owned()].into(),
        );
    }
    look_at_namespaces(&mut findings, init, plan).map_err(read("read PID 1's namespaces"))?;
    Ok(findings.violations)
}

/// The words of a map as this process sees them: inside, outside, count.
fn words(mut map: impl Read) -> Result<Vec<String>, procfs::ProcError> {
    let mut text = String::new();
    map.read_to_string(&mut text)?;
    Ok(text.split_ascii_whitespace().map(str::to_owned).collect())
}

pub(crate) fn pid_of(pidfd: BorrowedFd<'_>) -> Result<i32, LaunchError> {
    let path = format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd());
    let prepare =
        |source| LaunchError::Prepare { what: "find PID 1", object: path.clone().into(), source };
    let text = std::fs::read_to_string(&path).map_err(prepare)?;
    let pid = text.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok());
    match pid {
        Some(pid) if pid > 0 => Ok(pid),
        Some(_) | None => Err(prepare(std::io::ErrorKind::NotFound.into())),
    }
}

fn look_at_status(findings: &mut Findings, status: &Status, enforcement: &Enforcement) {
    let (uid, gid) = (enforcement.kernel_uid, enforcement.kernel_gid);
    for found in [status.ruid, status.euid, status.suid, status.fuid] {
        findings.expect("a uid of PID 1", found, uid);
    }
    for found in [status.rgid, status.egid, status.sgid, status.fgid] {
        findings.expect("a gid of PID 1", found, gid);
    }
    let is_foreign = |group: &u32| *group != gid && !enforcement.shared_groups.contains(group);
    let foreign = status.groups.iter().copied().filter(is_foreign);
    findings.expect("the list of foreign groups", foreign.collect::<Vec<_>>(), Vec::new());
    let sets = [
        ("the inheritable set", Some(status.capinh)),
        ("the permitted set", Some(status.capprm)),
        ("the effective set", Some(status.capeff)),
        ("the bounding set", status.capbnd),
        ("the ambient set", status.capamb),
    ];
    for (what, set) in sets {
        findings.expect(what, set, Some(0));
    }
    findings.expect("no_new_privs", status.nonewprivs, Some(1));
}

fn look_at_filter(findings: &mut Findings, status: &Status, level: Level) {
    const SECCOMP_MODE_FILTER: u32 = 2;
    findings.expect("the seccomp mode", status.seccomp, Some(SECCOMP_MODE_FILTER));
    if level == Level::Off {
        findings.violations.push(Violation {
            what: "the seccomp level",
            expected: "a filter: a sandbox without one is not a hardened one".to_owned(),
            found: level.to_string(),
        });
    }
}

fn look_at_namespaces(
    findings: &mut Findings,
    init: &Proc,
    plan: &Plan,
) -> Result<(), procfs::ProcError> {
    let set = plan.namespaces;
    let rows = [
        ("user", true),
        ("mnt", true),
        ("pid", true),
        ("net", set.net),
        ("ipc", set.ipc),
        ("uts", set.uts),
        ("cgroup", set.cgroup),
    ];
    for ((name, shared), (_, own)) in shared_namespaces(init)?.into_iter().zip(rows) {
        findings.expect(name, shared.unwrap_or(own), !own);
    }
    Ok(())
}

/// Every namespace by its name in `/proc`, and whether the run's is this process's own; `None` for
/// a kind that this kernel does not show.
pub(crate) fn shared_namespaces(
    init: &Proc,
) -> Result<[(&'static str, Option<bool>); 7], procfs::ProcError> {
    let (theirs, ours) = (init.namespaces()?.0, Proc::myself()?.namespaces()?.0);
    Ok(["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"].map(|name| {
        let key = OsString::from(name);
        let same = theirs.get(&key).zip(ours.get(&key));
        (name, same.map(|(theirs, ours)| theirs.identifier == ours.identifier))
    }))
}
