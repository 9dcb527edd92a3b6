//! Looks at a confined PID 1 from outside and compares what the kernel says with the plan.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::{AsRawFd, BorrowedFd};
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
    pub fn verify(&self) -> Result<std::sync::Arc<Enforcement>, Error> {
        let mut process = self.start_with(&Command::new("verify"), Attest::Yes)?;
        process.wait_confined(CONFINED)?;
        let enforcement = process.enforcement();
        let looked = process.pidfd().ok_or(LaunchError::LauncherLost { during: Phase::Run });
        let violations = look(looked?, self.plan(), &enforcement)?;
        process.kill();
        process.wait()?;
        match violations.is_empty() {
            true => Ok(enforcement),
            false => Err(Error::Unconfined(violations)),
        }
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

fn look(
    pidfd: BorrowedFd<'_>,
    plan: &Plan,
    enforcement: &Enforcement,
) -> Result<Vec<Violation>, Error> {
    let read = |what| {
        move |error: procfs::ProcError| LaunchError::Prepare {
            what,
            object: "/proc".into(),
            source: std::io::Error::other(error),
        }
    };
    let init = Proc::new(pid_of(pidfd)?).map_err(read("look at PID 1"))?;
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
    look_at_namespaces(&mut findings, &init, plan).map_err(read("read PID 1's namespaces"))?;
    Ok(findings.violations)
}

/// The words of a map as this process sees them: inside, outside, count.
fn words(mut map: impl Read) -> Result<Vec<String>, procfs::ProcError> {
    let mut text = String::new();
    map.read_to_string(&mut text)?;
    Ok(text.split_ascii_whitespace().map(str::to_owned).collect())
}

fn pid_of(pidfd: BorrowedFd<'_>) -> Result<i32, LaunchError> {
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
    let (theirs, ours) = (init.namespaces()?.0, Proc::myself()?.namespaces()?.0);
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
    for (name, own) in rows {
        let key = OsString::from(name);
        let same = match (theirs.get(&key), ours.get(&key)) {
            (Some(theirs), Some(ours)) => theirs.identifier == ours.identifier,
            (None, _) | (_, None) => own,
        };
        findings.expect(name, same, !own);
    }
    Ok(())
}
