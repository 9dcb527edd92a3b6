//! A sandbox: one profile, one launcher, any number of runs. Owns the launcher, decides nothing.

mod admission;
mod builder;
mod launchers;
mod live;
mod start;
#[cfg(feature = "tokio")]
mod tokio;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use postern_hatch::RunId;

pub use builder::SandboxBuilder;
pub(crate) use live::{Live, Load};
pub(crate) use start::Attest;

use crate::ceiling::{Ceiling, Entry};
use crate::command::{Checked, Command};
use crate::enforcement::Enforcement;
use crate::error::{CommandError, Error, LaunchError};
use crate::hatches::{SharedHatch, places};
use crate::host::Host;
use crate::launch::{Ids, Options};
use crate::plan::Plan;
use crate::process::{Process, Run};
use crate::profile::SandboxProfile;
use crate::result::ProcResult;
use crate::script::World;
use crate::telemetry::{Chronicle, SandboxId, Teller, events};
use crate::workspace::WorkspaceDir;
use admission::attendance;
use builder::started;
use launchers::Launchers;
use start::Unstarted;

/// How long building a sandbox or starting a run may take unless the builder says otherwise.
pub const LAUNCH_TIMEOUT: Duration = Duration::from_secs(10);

/// A place to run untrusted programs in.
///
/// All runs share the read-only root and the workspace, and nothing else: each has namespaces,
/// `/tmp`, `/dev/shm` and processes of its own. Runs may be started from any thread. Dropping the
/// sandbox ends every run and waits until they are gone.
///
/// Needs Linux 5.12 and user namespaces.
///
/// ```no_run
/// use postern::{Sandbox, SandboxProfile};
///
/// let sandbox = Sandbox::builder(SandboxProfile::default()).build()?;
/// sandbox.verify()?;
/// let result = sandbox.run_python("print(6 * 7)")?;
/// assert_eq!(result.stdout_text(), "42\n");
/// # Ok::<(), postern::error::Error>(())
/// ```
#[derive(Debug)]
pub struct Sandbox {
    plan: Arc<Plan>,
    /// The guest's interpreter.
    python: PathBuf,
    host: Host,
    options: Options,
    launchers: Launchers,
    /// Of every launcher.
    ids: Ids,
    workspace: Option<WorkspaceDir>,
    hatches: Vec<SharedHatch>,
    ceiling: Option<Ceiling>,
    /// Dropped last, when the sandbox has ended.
    teller: Teller,
}

impl Sandbox {
    /// Starts building a sandbox for `profile`.
    pub fn builder(profile: SandboxProfile) -> SandboxBuilder {
        SandboxBuilder::new(profile)
    }

    /// This sandbox, as events and audit records name it.
    #[must_use]
    pub fn id(&self) -> SandboxId {
        self.teller.sandbox
    }

    /// How many launchers share its runs; see [`SandboxBuilder::launchers`].
    #[must_use]
    pub fn launchers(&self) -> usize {
        self.launchers.count()
    }

    /// What every launch of this sandbox does.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The owned workspace; `None` when the workspace is the caller's directory.
    #[must_use]
    pub fn workspace(&self) -> Option<&WorkspaceDir> {
        self.workspace.as_ref()
    }

    /// Runs a command and waits until it and everything it started are gone.
    ///
    /// # Errors
    /// [`Error::Command`] for a command that breaks a rule; [`Error::Launch`] when the run could
    /// not be confined or started; [`Error::Unconfined`] when it is the first and a wall is not as
    /// planned. How the program itself ends is in the result.
    pub fn run(&self, command: impl Into<Command>) -> Result<ProcResult, Error> {
        self.start(command)?.wait()
    }

    /// Runs Python source code; [`Command::python`] says how, and takes arguments, input and limits.
    ///
    /// # Errors
    /// As [`Sandbox::run`].
    pub fn run_python(&self, code: impl Into<Vec<u8>>) -> Result<ProcResult, Error> {
        self.run(Command::python(code))
    }

    /// Runs a script with `bash`; [`Command::shell`] says how, and takes another shell.
    ///
    /// # Errors
    /// As [`Sandbox::run`].
    pub fn run_bash(&self, script: impl Into<Vec<u8>>) -> Result<ProcResult, Error> {
        self.run(Command::bash(script))
    }

    /// Starts a command and returns as soon as its PID 1 exists.
    ///
    /// The first run of a sandbox waits behind its walls until what the kernel says of them has been
    /// compared with the plan, which takes about a millisecond.
    ///
    /// A step that fails after that, such as a missing working directory, is reported by
    /// [`Process::wait`].
    ///
    /// # Errors
    /// As [`Sandbox::run`].
    pub fn start(&self, command: impl Into<Command>) -> Result<Process, Error> {
        self.start_with(&command.into(), Attest::No)
    }

    /// Starts Python source code; see [`Sandbox::run_python`] and [`Sandbox::start`].
    ///
    /// # Errors
    /// As [`Sandbox::run`].
    pub fn start_python(&self, code: impl Into<Vec<u8>>) -> Result<Process, Error> {
        self.start(Command::python(code))
    }

    /// Starts a script with `bash`; see [`Sandbox::run_bash`] and [`Sandbox::start`].
    ///
    /// # Errors
    /// As [`Sandbox::run`].
    pub fn start_bash(&self, script: impl Into<Vec<u8>>) -> Result<Process, Error> {
        self.start(Command::bash(script))
    }

    pub(crate) fn start_with(&self, command: &Command, attest: Attest) -> Result<Process, Error> {
        let checked = self.check(command)?;
        let mut chronicle = self.teller.begin(RunId::next(), &checked, attest);
        let place = self.enter(command, attest, &mut chronicle);
        let started = place.and_then(|place| {
            let mut again = true;
            loop {
                let live = self.live()?;
                let load = live.load();
                match self.launch(&live, command, &checked, attest, &chronicle) {
                    Ok(run) => return Ok((run, place, load)),
                    Err(why) => self.retry(&live, why, &mut again)?,
                }
            }
        });
        let (mut run, place, load) = chronicle.told(started)?;
        run.attend(attendance(chronicle, place, load));
        Ok(Process::new(run))
    }

    fn check(&self, command: &Command) -> Result<Checked, Error> {
        let hatches: Vec<_> = self.hatches.iter().chain(&command.hatches).cloned().collect();
        let places = places(&hatches)?;
        let checked = command.check(&World::new(&self.plan, &self.python, &places))?;
        if command.terminal.is_some() && !self.plan.has_terminals() {
            return Err(CommandError::NoTerminals.into());
        }
        Ok(Checked { hatches, places, ..checked })
    }

    fn launch(
        &self,
        live: &Live,
        command: &Command,
        checked: &Checked,
        attest: Attest,
        chronicle: &Chronicle,
    ) -> Result<Run, Unstarted> {
        let after = self.options.deadline;
        let attest = attest.or_first(live);
        let outgoing = self.outgoing(live, command, checked, attest, chronicle)?;
        let deadline = outgoing.deadline;
        let late = |_busy| unsent(after);
        let turn = match live.turn(deadline).map_err(late)? {
            Entry::Placed(turn) => turn,
            Entry::Waits(waiting) => waiting.wait().map_err(late)?,
        };
        while !outgoing.is_sent(live)? {
            if Instant::now() >= deadline {
                return Err(unsent(after).into());
            }
            std::thread::sleep(FULL_PAUSE);
        }
        drop(turn);
        events::run_sent(&chronicle.span);
        let mut run = outgoing.into_run();
        run.wait_started(deadline, after)?;
        run.wait_terminal(deadline, after).map_err(Unstarted::ended)?;
        if attest == Attest::First {
            let told = run.wait_confined(deadline, after).map_err(Unstarted::ended)?;
            self.attest(live, &mut run, &told).map_err(Unstarted::Ended)?;
            events::run_attested(&chronicle.span);
        }
        Ok(run)
    }

    /// The least busy launcher, started anew when the last one was lost and no workspace with it.
    fn live(&self) -> Result<Arc<Live>, Error> {
        self.launchers.pick(|| {
            if self.workspace.is_some() {
                return Err(LaunchError::WorkspaceLost.into());
            }
            let ids = self.ids.clone();
            let (live, _) = Live::start(&self.plan, &self.host, self.options, ids)?;
            Ok(started(self.id(), live))
        })
    }

    /// Kills a launcher that did not answer, unless another run has replaced it already.
    fn forget(&self, live: &Arc<Live>) {
        live.launcher.kill();
        if self.launchers.forget(live) {
            events::launcher_lost(self.id());
        }
    }

    /// What holds every run of this sandbox; what the kernel says of it is there from the first run
    /// on.
    ///
    /// # Errors
    /// As [`Sandbox::start`], when the launcher was lost and cannot be started again.
    pub fn enforcement(&self) -> Result<Arc<Enforcement>, Error> {
        let live = self.launchers.any().filter(|live| live.launcher.is_ours());
        Ok(Arc::clone(live.map_or_else(|| self.live(), Ok)?.enforcement()))
    }

    /// Ends the sandbox as dropping it does, without waiting: for a process that exits next, and
    /// whose launcher is then reaped by whoever inherits it.
    pub fn leave(self) {
        self.launchers.leave();
    }
}

/// How long to leave the launcher to what it was sent before.
const FULL_PAUSE: Duration = Duration::from_micros(200);

fn unsent(after: Duration) -> LaunchError {
    LaunchError::Deadline { waiting_for: "handing a run to the launcher", after }
}
