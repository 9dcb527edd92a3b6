//! What a sandbox is built from; checks, and leaves the work to the launcher.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use postern_hatch::Hatch;

use super::live::Live;
use super::{LAUNCH_TIMEOUT, Sandbox};
use crate::error::{Error, HatchConflict, LaunchError};
use crate::hatches::{SharedHatch, places};
use crate::host::Host;
use crate::launch::Options;
use crate::plan::{self, Wants};
use crate::profile::{SandboxProfile, Workspace, WorkspaceAccess};
use crate::workspace::WorkspaceDir;

/// Builds a [`Sandbox`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct SandboxBuilder {
    profile: SandboxProfile,
    launch_timeout: Duration,
    run_directories: bool,
    single_use: bool,
    hatches: Vec<SharedHatch>,
}

impl SandboxBuilder {
    pub(super) fn new(profile: SandboxProfile) -> SandboxBuilder {
        SandboxBuilder {
            profile,
            launch_timeout: LAUNCH_TIMEOUT,
            run_directories: true,
            single_use: false,
            hatches: Vec::new(),
        }
    }

    /// How long building the sandbox, and each start of a run, may take before the launcher is
    /// killed; default [`LAUNCH_TIMEOUT`].
    pub fn launch_timeout(mut self, timeout: Duration) -> SandboxBuilder {
        self.launch_timeout = timeout;
        self
    }

    /// Gives each run a directory of its own at `/run/postern`, which [`Command::python`](crate::Command::python),
    /// [`Command::shell`](crate::Command::shell) and [`Command::private_file`](crate::Command::private_file) need; default on. Without it a run that
    /// needs none starts a little sooner.
    pub fn run_directories(mut self, wanted: bool) -> SandboxBuilder {
        self.run_directories = wanted;
        self
    }

    /// A hatch for every run: what its guests may ask of the host. Each run has a socket of its own,
    /// whose path the guest finds in `POSTERN_HATCH`, or for a hatch with a name in
    /// `POSTERN_HATCH_NAME`; these variables win over the profile's and the command's. It is served
    /// before the guest's first instruction and until the run is over. Several calls add up; one
    /// hatch at most has no name.
    pub fn hatch(mut self, hatch: impl Hatch + 'static) -> SandboxBuilder {
        self.hatches.push(Arc::new(hatch));
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
    /// [`Error::Refused`] before anything is started when the profile breaks a rule,
    /// [`Error::Hatches`] when the hatches do;
    /// [`Error::Launch`] when a step fails. Nothing is left behind either way.
    pub fn build(self) -> Result<Sandbox, Error> {
        places(&self.hatches)?;
        if !self.hatches.is_empty() && !self.run_directories {
            return Err(HatchConflict::NoRunDirectories.into());
        }
        let host = Host::probe(&self.profile)?;
        let wants = Wants { run_directory: self.run_directories };
        let plan = plan::resolve_with(&self.profile, &host, wants)?;
        open_workspace(&self.profile)?;
        let options = Options { deadline: self.launch_timeout, single_use: self.single_use };
        let (live, workspace) = Live::start(&plan, &host, options)?;
        Ok(Sandbox {
            plan: Arc::new(plan),
            python: self.profile.python_program(),
            host,
            options,
            current: Mutex::new(Some(Arc::new(live))),
            workspace: workspace.map(WorkspaceDir::new),
            hatches: self.hatches,
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
