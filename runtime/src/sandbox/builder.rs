//! What a sandbox is built from; checks, and leaves the work to the launcher.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use postern_hatch::Hatch;

use super::launchers::Launchers;
use super::live::Live;
use super::{LAUNCH_TIMEOUT, Sandbox};
use crate::ceiling::Ceiling;
use crate::error::{Error, HatchConflict, LaunchError};
use crate::hatches::{SharedHatch, places};
use crate::host::Host;
use crate::launch::{Ids, Options};
use crate::plan::{self, Wants};
use crate::profile::{SandboxProfile, Workspace, WorkspaceAccess};
use crate::telemetry::{Audit, SandboxId, Teller, events};
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
    ceiling: Option<Ceiling>,
    launchers: NonZeroUsize,
    audit: Option<Audit>,
}

impl SandboxBuilder {
    pub(super) fn new(profile: SandboxProfile) -> SandboxBuilder {
        SandboxBuilder {
            profile,
            launch_timeout: LAUNCH_TIMEOUT,
            run_directories: true,
            single_use: false,
            hatches: Vec::new(),
            ceiling: None,
            launchers: NonZeroUsize::MIN,
            audit: None,
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

    /// How many runs there may be at once, in this sandbox and all others that are given this
    /// ceiling or a clone of it; further ones wait, first come, first served. Default none.
    pub fn ceiling(mut self, ceiling: Ceiling) -> SandboxBuilder {
        self.ceiling = Some(ceiling);
        self
    }

    /// How many launchers share the runs of this sandbox; default 1, and 0 is 1. Each run goes to the
    /// one that has fewest, and a launcher that is lost takes its own runs along and no others.
    ///
    /// A launcher starts one run after the other; several start more at once where there are
    /// processors for them. On two processors, two launchers make for one in seven more runs a
    /// second where runs do nothing, and more launchers for little beyond that. They share the kernel uid; limits of the
    /// [scope](crate::QuotaScope) `sandbox` hold for the runs of each launcher. An owned workspace
    /// belongs to one launcher: a sandbox that has one has no other, whatever is asked for here.
    pub fn launchers(mut self, count: usize) -> SandboxBuilder {
        self.launchers = NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN);
        self
    }

    /// Writes a record of each run, when it has ended; default none. See [`Audit`].
    pub fn audit(mut self, audit: Audit) -> SandboxBuilder {
        self.audit = Some(audit);
        self
    }

    /// Looks at the machine, makes the plan, starts the launcher and waits until its root stands.
    ///
    /// # Errors
    /// [`Error::Refused`] before anything is started when the profile breaks a rule,
    /// [`Error::Hatches`] when the hatches do;
    /// [`Error::Launch`] when a step fails. Nothing is left behind either way.
    pub fn build(self) -> Result<Sandbox, Error> {
        let (id, began) = (SandboxId::next(), Instant::now());
        let building = events::building(id).entered();
        let built = self.build_as(id);
        match &built {
            Ok(sandbox) => {
                if let Some(live) = sandbox.launchers.any() {
                    events::sandbox_built(id, live.enforcement(), began.elapsed());
                }
                events::sandbox_weaker(id, &sandbox.plan.warnings);
            }
            Err(error) => events::sandbox_not_built(id, error),
        }
        drop(building);
        built
    }

    fn build_as(self, id: SandboxId) -> Result<Sandbox, Error> {
        places(&self.hatches)?;
        if !self.hatches.is_empty() && !self.run_directories {
            return Err(HatchConflict::NoRunDirectories.into());
        }
        let host = Host::probe(&self.profile)?;
        let wants = Wants { run_directory: self.run_directories };
        let plan = plan::resolve_with(&self.profile, &host, wants)?;
        open_workspace(&self.profile)?;
        let options = Options { deadline: self.launch_timeout, single_use: self.single_use };
        let ids = Ids::take(&plan.identity)?;
        let (first, workspace) = Live::start(&plan, &host, options, ids.clone())?;
        let first = started(id, first);
        let more = if workspace.is_some() { 0 } else { self.launchers.get() - 1 };
        let others = std::iter::repeat_with(|| {
            let (live, _) = Live::start(&plan, &host, options, ids.clone())?;
            Ok::<_, Error>(started(id, live))
        });
        let others = others.take(more).collect::<Result<_, _>>()?;
        Ok(Sandbox {
            plan: Arc::new(plan),
            python: self.profile.python_program(),
            host,
            options,
            launchers: Launchers::new(first, others),
            ids,
            workspace: workspace.map(WorkspaceDir::new),
            hatches: self.hatches,
            ceiling: self.ceiling,
            teller: Teller::new(id, self.audit),
        })
    }
}

/// A launcher that was started; it is told of.
pub(super) fn started(sandbox: SandboxId, live: Live) -> Arc<Live> {
    events::launcher_started(sandbox, live.launcher.image, live.launcher.ids.uid);
    Arc::new(live)
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
