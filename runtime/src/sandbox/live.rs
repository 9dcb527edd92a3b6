//! A launcher with what it handed over; knows nothing of commands.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use postern_seccomp::Program;

use crate::attest::Attestation;
use crate::ceiling::{Ceiling, Entry};
use crate::cgroup::Tree;
use crate::enforcement::Enforcement;
use crate::error::{Busy, Error, LaunchError};
use crate::host::Host;
use crate::launch::{Ids, Launcher, Options};
use crate::plan::{Export, MountOp, Plan};
use crate::run_directory::Exchange;

/// A launcher with what belongs to it.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) launcher: Launcher,
    enforcement: Arc<Enforcement>,
    /// The same with what the kernel said of its first run.
    attested: OnceLock<Arc<Enforcement>>,
    pub(crate) exchange: Option<Exchange>,
    /// Removed once the launcher and all its runs are gone.
    pub(crate) cgroup: Option<Tree>,
    /// Whose request is next: the socket holds few, and those who wait for room in it would take it
    /// from each other.
    turn: Ceiling,
    /// Shared with each of its runs, which are counted by it.
    load: Load,
}

/// One run of a launcher, until it is dropped.
pub(crate) type Load = Arc<()>;

impl Live {
    /// Starts a launcher; with it comes its owned workspace.
    pub(crate) fn start(
        plan: &Plan,
        host: &Host,
        options: Options,
        ids: Ids,
    ) -> Result<(Live, Option<OwnedFd>), Error> {
        let cgroup = plan.cgroup.as_ref().map(Tree::open).transpose()?;
        let mut launcher = Launcher::start(plan, host, options, ids)?;
        let digest =
            plan.seccomp.native_program().map_err(LaunchError::Filter)?.map(Program::digest);
        let enforcement = Arc::new(Enforcement::new(plan, &launcher, digest, cgroup.as_ref()));
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
                Export::Exchange => exchange = Some(Exchange::new(fd, kept(plan))?),
                Export::No => {}
            }
        }
        let (attested, turn, load) = (OnceLock::new(), Ceiling::new(1), Load::default());
        Ok((Live { launcher, enforcement, attested, exchange, cgroup, turn, load }, workspace))
    }

    /// The turn to send a request, which may have to be waited for until then.
    pub(crate) fn turn(&self, deadline: Instant) -> Result<Entry, Busy> {
        self.turn.enter(Some(deadline.saturating_duration_since(Instant::now())))
    }

    /// One more run, until the value is dropped.
    pub(crate) fn load(&self) -> Load {
        Arc::clone(&self.load)
    }

    /// How many runs it has, more or less.
    pub(crate) fn runs(&self) -> usize {
        Arc::strong_count(&self.load) - 1
    }

    /// All that is known so far.
    pub(crate) fn enforcement(&self) -> &Arc<Enforcement> {
        self.attested.get().unwrap_or(&self.enforcement)
    }

    /// Whether a run has been looked at.
    pub(crate) fn is_attested(&self) -> bool {
        self.attested.get().is_some()
    }

    /// Keeps what the kernel said; of two first runs the first one's.
    pub(crate) fn attest(&self, attestation: Attestation) {
        self.attested.get_or_init(|| self.enforcement.with_attestation(attestation));
    }
}

/// The entry of the exchange that every run keeps.
fn kept(plan: &Plan) -> Option<&CStr> {
    plan.run.iter().find_map(|operation| {
        let MountOp::RunDirectory { keep, .. } = operation else { return None };
        keep.as_deref()
    })
}
