//! From a command to a run: everything but the waiting, which the blocking and the async way do each
//! for themselves.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use super::Sandbox;
use super::live::Live;
use crate::cgroup::{RunGroup, Tree};
use crate::command::{Checked, Command};
use crate::error::{CommandError, Error, HatchConflict, LaunchError, Phase};
use crate::hatches;
use crate::launch::{Request, Run as RunRequest, socket};
use crate::process::streams::{Ends, Streams};
use crate::process::{Parts, Run};
use crate::telemetry::{Chronicle, events};

/// Whether a run waits for the host's inspection before its guest is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attest {
    No,
    /// The first of its launcher: its program is started once it has been looked at.
    First,
    /// Only to be looked at.
    Only,
}

impl Attest {
    /// A launcher whose runs nobody has looked at has its next one looked at.
    pub(super) fn or_first(self, live: &Live) -> Attest {
        let is_first = self == Attest::No && !live.is_attested();
        if is_first { Attest::First } else { self }
    }
}

/// A run that is ready to be sent to the launcher.
#[derive(Debug)]
pub(super) struct Outgoing {
    request: Request,
    status: OwnedFd,
    ends: Ends,
    run: Run,
    /// When it must have started.
    pub(super) deadline: Instant,
}

/// Why a run was not started.
pub(super) enum Unstarted {
    /// The launcher was gone before the request reached it.
    NotSent,
    /// The run ended before its program was to start; the launcher has no part in it.
    Ended(Error),
    /// Something else.
    Failed(Error),
}

impl Unstarted {
    /// Of a run that began.
    pub(super) fn ended(error: LaunchError) -> Unstarted {
        Unstarted::Ended(error.into())
    }
}

impl<E: Into<Error>> From<E> for Unstarted {
    fn from(error: E) -> Unstarted {
        Unstarted::Failed(error.into())
    }
}

impl Sandbox {
    /// Everything that a run needs on this side.
    pub(super) fn outgoing(
        &self,
        live: &Live,
        command: &Command,
        checked: &Checked,
        attest: Attest,
        chronicle: &Chronicle,
    ) -> Result<Outgoing, Error> {
        let (started, id) = (Instant::now(), chronicle.run());
        events::run_sending(&chronicle.span);
        let listen =
            |directory: &OwnedFd| hatches::open(&checked.hatches, &checked.places, directory, id);
        let (name, directory) = match &live.exchange {
            Some(exchange) => {
                let made = exchange.directory(&checked.files, &checked.places, listen)?;
                (Some(made.0), made.1)
            }
            None if !checked.hatches.is_empty() => {
                return Err(HatchConflict::NoRunDirectories.into());
            }
            None if checked.files.is_empty() => (None, None),
            None => return Err(CommandError::NoRunDirectories.into()),
        };
        let (streams, ends) = Streams::new(command)?;
        let (ours, status) = socket::pair().map_err(|source| LaunchError::Prepare {
            what: "make the run's status line",
            object: PathBuf::new(),
            source,
        })?;
        let group = live.cgroup.as_ref().map(Tree::run).transpose()?;
        let request = Request::new(&RunRequest {
            arguments: &checked.arguments,
            environment: &checked.environment,
            cwd: checked.cwd.as_deref(),
            run_directory: name.as_deref(),
            attest: attest != Attest::No,
            limit_inside: checked.limit_inside,
            has_cgroup: group.is_some(),
            terminal: command.terminal,
        })?;
        let run = Run::new(Parts {
            id,
            plan: Arc::clone(&self.plan),
            enforcement: Arc::clone(live.enforcement()),
            status: ours,
            streams,
            directory,
            group,
            started,
            timeout: command.timeout,
        });
        let deadline = started + self.options.deadline;
        Ok(Outgoing { request, status, ends, run, deadline })
    }

    /// Whether it is worth trying again with a fresh launcher; `again` says whether that has been
    /// done before.
    pub(super) fn retry(
        &self,
        live: &Arc<Live>,
        why: Unstarted,
        again: &mut bool,
    ) -> Result<(), Error> {
        match why {
            // Nothing was sent: a fresh launcher may take the run.
            Unstarted::NotSent if *again => *again = false,
            Unstarted::NotSent => {
                return Err(LaunchError::LauncherLost { during: Phase::Run }.into());
            }
            Unstarted::Ended(error) => return Err(error),
            Unstarted::Failed(error) => {
                if error.is_launcher_gone() {
                    self.forget(live);
                }
                return Err(error);
            }
        }
        self.forget(live);
        Ok(())
    }
}

impl Outgoing {
    /// Sends it; false when the launcher has not yet taken what was sent before.
    pub(super) fn is_sent(&self, live: &Live) -> Result<bool, Unstarted> {
        let Ends { stdin, stdout, stderr } = &self.ends;
        let stderr = stderr.as_ref().unwrap_or(stdout);
        let stdio = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
        let group = self.run.group().map(RunGroup::fd);
        match live.launcher.try_send(&self.request, self.status.as_fd(), stdio, group) {
            Ok(sent) => Ok(sent),
            Err(LaunchError::LauncherLost { .. }) => Err(Unstarted::NotSent),
            Err(error) => Err(error.into()),
        }
    }

    /// The run, once it was sent. The guest's ends of its streams are the guest's alone from then on.
    pub(super) fn into_run(self) -> Run {
        self.run
    }
}
