//! A sandbox: one profile, one launcher, any number of runs. Owns the launcher, decides nothing.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use postern_seccomp::Program;

use crate::command::{Checked, Command};
use crate::enforcement::Enforcement;
use crate::error::{Error, LaunchError, Phase};
use crate::host::Host;
use crate::launch::{self, Launcher, Options, Run, socket};
use crate::plan::{self, Export, MountOp, Plan, Wants};
use crate::process::Process;
use crate::profile::{SandboxProfile, Workspace, WorkspaceAccess};
use crate::result::ProcResult;
use crate::run_directory::RunDirectory;
use crate::streams::Streams;
use crate::workspace::WorkspaceDir;

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
/// let result = sandbox.run(["python3", "-c", "print(6 * 7)"])?;
/// assert_eq!(result.stdout_text(), "42\n");
/// # Ok::<(), postern::error::Error>(())
/// ```
#[derive(Debug)]
pub struct Sandbox {
    plan: Arc<Plan>,
    host: Host,
    options: Options,
    state: Mutex<State>,
    workspace: Option<WorkspaceDir>,
    runs: AtomicU64,
}

/// The launcher and what it reported; replaced when it is lost.
#[derive(Debug)]
struct State {
    launcher: Option<Arc<Live>>,
}

/// A launcher with what belongs to it.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) launcher: Launcher,
    pub(crate) enforcement: Arc<Enforcement>,
    exchange: Option<OwnedFd>,
}

/// Builds a [`Sandbox`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct SandboxBuilder {
    profile: SandboxProfile,
    launch_timeout: Duration,
    run_directories: bool,
    single_use: bool,
}

impl SandboxBuilder {
    /// How long building the sandbox, and each start of a run, may take before the launcher is
    /// killed; default [`LAUNCH_TIMEOUT`].
    pub fn launch_timeout(mut self, timeout: Duration) -> SandboxBuilder {
        self.launch_timeout = timeout;
        self
    }

    /// Gives each run a directory of its own at `/run/postern`, for
    /// [`Command::private_file`]; default off.
    pub fn run_directories(mut self, wanted: bool) -> SandboxBuilder {
        self.run_directories = wanted;
        self
    }

    /// Says that one run is all there will be, so that nothing is made ahead for another; default
    /// off. Further runs work and take longer.
    pub fn single_use(mut self, single_use: bool) -> SandboxBuilder {
        self.single_use = single_use;
        self
    }

    /// Looks at the machine, makes the plan, starts the launcher and waits until its root stands.
    ///
    /// # Errors
    /// [`Error::Refused`] before anything is started when the profile breaks a rule;
    /// [`Error::Launch`] when a step fails. Nothing is left behind either way.
    pub fn build(self) -> Result<Sandbox, Error> {
        let host = Host::probe(&self.profile)?;
        let wants = Wants { run_directory: self.run_directories };
        let plan = plan::resolve_with(&self.profile, &host, wants)?;
        open_workspace(&self.profile)?;
        let options = Options { deadline: self.launch_timeout, single_use: self.single_use };
        let (live, workspace) = start(&plan, &host, options)?;
        Ok(Sandbox {
            plan: Arc::new(plan),
            host,
            options,
            state: Mutex::new(State { launcher: Some(Arc::new(live)) }),
            workspace: workspace.map(WorkspaceDir::new),
            runs: AtomicU64::new(0),
        })
    }
}

/// The legacy access that the profile may ask for.
fn open_workspace(profile: &SandboxProfile) -> Result<(), LaunchError> {
    let Workspace::Directory { path, access: WorkspaceAccess::Shared } = &profile.workspace else {
        return Ok(());
    };
    let shared = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
    std::fs::set_permissions(path, shared).map_err(|source| LaunchError::Prepare {
        what: "open the workspace to every user (chmod 1777)",
        object: path.clone(),
        source,
    })
}

fn start(
    plan: &Plan,
    host: &Host,
    options: Options,
) -> Result<(Live, Option<OwnedFd>), LaunchError> {
    let mut launcher = Launcher::start(plan, host, options)?;
    let digest = launch::filter(plan.seccomp)?.map_or(0, Program::digest);
    let enforcement = Arc::new(Enforcement::new(plan, &launcher, digest));
    let (mut workspace, mut exchange) = (None, None);
    // The launcher hands over one descriptor for each export, in the order of the plan.
    let exports = std::mem::take(&mut launcher.exports);
    let wanted = plan.template.iter().filter_map(|operation| {
        let MountOp::Tmpfs { export, .. } = operation else { return None };
        (*export != Export::No).then_some(*export)
    });
    for (export, fd) in wanted.zip(exports) {
        match export {
            Export::Workspace => workspace = Some(fd),
            Export::Exchange => exchange = Some(fd),
            Export::No => {}
        }
    }
    Ok((Live { launcher, enforcement, exchange }, workspace))
}

impl Sandbox {
    /// Starts building a sandbox for `profile`.
    pub fn builder(profile: SandboxProfile) -> SandboxBuilder {
        SandboxBuilder {
            profile,
            launch_timeout: LAUNCH_TIMEOUT,
            run_directories: false,
            single_use: false,
        }
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
    /// not be confined or started. How the program itself ends is in the result.
    pub fn run(&self, command: impl Into<Command>) -> Result<ProcResult, Error> {
        self.start(command)?.wait()
    }

    /// Starts a command and returns as soon as its PID 1 exists.
    ///
    /// A step that fails after that, such as a missing working directory, is reported by
    /// [`Process::wait`].
    ///
    /// # Errors
    /// As [`Sandbox::run`].
    pub fn start(&self, command: impl Into<Command>) -> Result<Process, Error> {
        self.start_with(&command.into(), Attest::No)
    }

    pub(crate) fn start_with(&self, command: &Command, attest: Attest) -> Result<Process, Error> {
        let checked = command.check(&self.plan.env)?;
        let mut again = true;
        loop {
            let live = self.live()?;
            match self.launch(&live, command, &checked, attest) {
                Ok(process) => return Ok(process),
                // Nothing was sent: a fresh launcher may take the run.
                Err(Unstarted::NotSent) if again => again = false,
                Err(Unstarted::NotSent) => {
                    let during = Phase::Run;
                    return Err(LaunchError::LauncherLost { during }.into());
                }
                Err(Unstarted::Failed(error)) => {
                    if error.is_launcher_gone() {
                        self.forget(&live);
                    }
                    return Err(error);
                }
            }
            self.forget(&live);
        }
    }

    fn launch(
        &self,
        live: &Live,
        command: &Command,
        checked: &Checked,
        attest: Attest,
    ) -> Result<Process, Unstarted> {
        let started = Instant::now();
        let deadline = started + self.options.deadline;
        let directory = self.run_directory(live, command)?;
        let (streams, ends) = Streams::new(command)?;
        let (ours, theirs) = socket::pair().map_err(|source| LaunchError::Prepare {
            what: "make the run's status line",
            object: std::path::PathBuf::new(),
            source,
        })?;
        let run = Run {
            arguments: &checked.arguments,
            environment: &checked.environment,
            cwd: checked.cwd.as_deref(),
            run_directory: directory.as_ref().map(RunDirectory::name),
            attest: attest == Attest::Yes,
        };
        let stdio = [ends.stdin.as_fd(), ends.stdout.as_fd(), ends.stderr.as_fd()];
        match live.launcher.request(&run, theirs.as_fd(), stdio, deadline) {
            Ok(()) => {}
            Err(LaunchError::LauncherLost { .. }) => return Err(Unstarted::NotSent),
            Err(error) => return Err(error.into()),
        }
        drop((theirs, ends));
        let mut process = Process::new(crate::process::Parts {
            plan: Arc::clone(&self.plan),
            enforcement: Arc::clone(&live.enforcement),
            status: ours,
            streams,
            directory,
            started,
            timeout: command.timeout,
        });
        process.wait_started(deadline, self.options.deadline)?;
        Ok(process)
    }

    fn run_directory(&self, live: &Live, command: &Command) -> Result<Option<RunDirectory>, Error> {
        let Some(exchange) = &live.exchange else {
            return match command.private_files.is_empty() {
                true => Ok(None),
                false => Err(crate::error::CommandError::NoRunDirectories.into()),
            };
        };
        let name = format!("run-{}", self.runs.fetch_add(1, Ordering::Relaxed));
        RunDirectory::new(exchange, &name, self.kept(), &command.private_files).map(Some)
    }

    /// The entry of the exchange that every run keeps.
    fn kept(&self) -> Option<&CStr> {
        self.plan.run.iter().find_map(|operation| {
            let MountOp::RunDirectory { keep, .. } = operation else { return None };
            keep.as_deref()
        })
    }

    /// The launcher, started anew when the last one was lost and no workspace with it.
    fn live(&self) -> Result<Arc<Live>, Error> {
        let mut state = self.lock();
        match &state.launcher {
            Some(live) if live.launcher.is_ours() => Ok(Arc::clone(live)),
            Some(_) => Err(LaunchError::Forked.into()),
            None if self.workspace.is_some() => Err(LaunchError::WorkspaceLost.into()),
            None => {
                let (live, _) = start(&self.plan, &self.host, self.options)?;
                let live = Arc::new(live);
                state.launcher = Some(Arc::clone(&live));
                Ok(live)
            }
        }
    }

    /// Kills a launcher that did not answer, unless another run has replaced it already.
    fn forget(&self, live: &Arc<Live>) {
        live.launcher.kill();
        let mut state = self.lock();
        if state.launcher.as_ref().is_some_and(|current| Arc::ptr_eq(current, live)) {
            state.launcher = None;
        }
    }

    /// What holds every run of this sandbox.
    ///
    /// # Errors
    /// As [`Sandbox::start`], when the launcher was lost and cannot be started again.
    pub fn enforcement(&self) -> Result<Arc<Enforcement>, Error> {
        Ok(Arc::clone(&self.live()?.enforcement))
    }

    /// Ends the sandbox as dropping it does, without waiting: for a process that exits next, and
    /// whose launcher is then reaped by whoever inherits it.
    pub fn leave(self) {
        if let Some(live) = &self.lock().launcher {
            live.launcher.leave();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is replaced whole, so that a panic elsewhere leaves it as good as before.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a run was not started.
enum Unstarted {
    /// The launcher was gone before the request reached it.
    NotSent,
    Failed(Error),
}

impl<E: Into<Error>> From<E> for Unstarted {
    fn from(error: E) -> Unstarted {
        Unstarted::Failed(error.into())
    }
}

/// Whether a run waits for the host's inspection before its guest is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attest {
    No,
    Yes,
}
