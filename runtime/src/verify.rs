//! Looks at a confined PID 1 from outside and compares what the kernel says with the plan.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use postern_init::record::Record;
use postern_seccomp::Level;
use procfs::process::Process as Proc;

use crate::attest::{attest, judge};
use crate::command::Command;
use crate::enforcement::Enforcement;
use crate::error::{Error, LaunchError, Phase, Violation};
use crate::host::small_file;
use crate::process::Run;
use crate::profile::SandboxProfile;
use crate::sandbox::{Attest, Live, Sandbox};
use crate::telemetry::events;

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
            false => {
                events::unconfined(self.id(), &violations);
                Err(Error::Unconfined(violations))
            }
        }
    }

    /// What is otherwise than planned of a run's confined PID 1, and what `more` sees of it.
    pub(crate) fn inspect<T>(
        &self,
        more: impl FnOnce(&Proc) -> T,
    ) -> Result<(Vec<Violation>, Arc<Enforcement>, T), Error> {
        let mut process = self.start_with(&Command::new("verify"), Attest::Only)?;
        let run = process.run_mut();
        let told = run.wait_confined(Instant::now() + CONFINED, CONFINED)?;
        let init = init_of(run)?;
        let attestation = attest(&init, &told).map_err(unreadable)?;
        let enforcement = run.enforcement();
        let mut violations = judge(&attestation, self.plan(), &enforcement.expected());
        violations.extend(unfiltered(self.plan().seccomp));
        violations.extend(ungrouped(run, init.pid));
        let seen = more(&init);
        let enforcement = enforcement.with_attestation(attestation);
        process.kill();
        process.wait()?;
        Ok((violations, enforcement, seen))
    }

    /// Looks at the first run of a launcher and lets it go on; what cannot be seen is not let go.
    pub(crate) fn attest(&self, live: &Live, run: &mut Run, told: &Record) -> Result<(), Error> {
        let (attestation, ungrouped) = init_of(run)
            .and_then(|init| {
                Ok((attest(&init, told).map_err(unreadable)?, ungrouped(run, init.pid)))
            })
            // A PID 1 that has ended meanwhile has said why, and that is what matters.
            .map_err(|error| run.failure().unwrap_or(error))?;
        let mut violations = judge(&attestation, self.plan(), &run.enforcement().expected());
        violations.extend(ungrouped);
        if !violations.is_empty() {
            run.kill();
            events::unconfined(self.id(), &violations);
            return Err(Error::Unconfined(violations));
        }
        run.learn_enforcement(run.enforcement().with_attestation(attestation.clone()));
        live.attest(attestation);
        Ok(run.let_go()?)
    }
}

/// PID 1 of a run, in this process's own `/proc`.
fn init_of(run: &Run) -> Result<Proc, LaunchError> {
    let pidfd = run.pidfd().ok_or(LaunchError::LauncherLost { during: Phase::Run })?;
    Proc::new(pid_of(pidfd.as_fd())?).map_err(unreadable)
}

fn unreadable(error: procfs::ProcError) -> LaunchError {
    LaunchError::Prepare {
        what: "read what the kernel says of PID 1",
        object: "/proc".into(),
        source: std::io::Error::other(error),
    }
}

/// What is otherwise than planned of the run's control group.
fn ungrouped(run: &Run, pid: i32) -> Vec<Violation> {
    run.group().map(|group| group.judge(pid)).unwrap_or_default()
}

/// A sandbox without a filter may be wanted, and is not a hardened one.
fn unfiltered(level: Level) -> Option<Violation> {
    (level == Level::Off).then(|| Violation {
        what: "the seccomp level",
        expected: "a filter: a sandbox without one is not a hardened one".to_owned(),
        found: level.to_string(),
    })
}

pub(crate) fn pid_of(pidfd: BorrowedFd<'_>) -> Result<i32, LaunchError> {
    let path = format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd());
    let prepare =
        |source| LaunchError::Prepare { what: "find PID 1", object: path.clone().into(), source };
    let text = small_file(&path).map_err(|errno| prepare(errno.into()))?;
    let pid = text.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok());
    match pid {
        Some(pid) if pid > 0 => Ok(pid),
        Some(_) | None => Err(prepare(std::io::ErrorKind::NotFound.into())),
    }
}
