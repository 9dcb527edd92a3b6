//! Why a sandbox could not be built or a run not started: which step, on what, what the kernel said,
//! what on this host is the likely cause, and what to do about it.

use core::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use postern_init::step::Step;

use super::cause::{Cause, scarce};
use crate::error::Shown as _;
use crate::launch::ImageSource;

/// Where a failed step ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Between the clone of the launcher and its exec.
    Spawn,
    /// In the launcher, while it built the template.
    Template,
    /// In the launcher or in a run's PID 1, before the guest's exec.
    Run,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spawn => "starting the launcher",
            Self::Template => "building the sandbox",
            Self::Run => "starting a run",
        })
    }
}

/// One step that failed.
#[derive(Debug)]
pub struct StepFailure {
    /// Where it ran.
    pub phase: Phase,
    /// Which it was.
    pub step: Step,
    /// What it was about: a path, a limit; empty where the step says it all.
    pub object: String,
    /// What the kernel said.
    pub source: io::Error,
    /// What on this host is the likely cause, where one is known.
    pub cause: Option<Cause>,
}

impl StepFailure {
    /// The error number.
    #[must_use]
    pub fn errno(&self) -> i32 {
        self.source.raw_os_error().unwrap_or_default()
    }
}

impl fmt::Display for StepFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (phase, what, call) = (self.phase, self.step.what(), self.step.call());
        write!(f, "{phase}: cannot {what}")?;
        if !self.object.is_empty() {
            write!(f, " ({})", self.object)?;
        }
        write!(f, ": {call}: {}", self.source)?;
        match &self.cause {
            Some(cause) => write!(f, "; {cause}"),
            None => Ok(()),
        }
    }
}

/// Why a sandbox could not be built, or a run not started or finished.
#[derive(Debug)]
#[non_exhaustive]
pub enum LaunchError {
    /// A step failed.
    Step(Box<StepFailure>),
    /// The library could not get something ready.
    Prepare {
        /// What it was doing.
        what: &'static str,
        /// On what; empty where `what` says it all.
        object: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The launcher could be started in no way.
    Image {
        /// Each way and what became of it.
        attempts: Vec<(ImageSource, io::Error)>,
        /// What on this host is the likely cause, where one is known.
        cause: Option<Cause>,
    },
    /// newuidmap(1) or newgidmap(1) did not write the launcher's map.
    MapTool {
        /// Which of them.
        program: PathBuf,
        /// What it said, or what became of it; other programs' words, escaped.
        said: String,
    },
    /// Every kernel uid of the range is leased or has processes.
    NoFreeId {
        /// First id of the range.
        first: u32,
        /// Last id of the range.
        last: u32,
    },
    /// No filter exists for this processor.
    Filter(postern_seccomp::Error),
    /// The launcher did not answer in time and was killed.
    Deadline {
        /// What was waited for.
        waiting_for: &'static str,
        /// How long.
        after: Duration,
    },
    /// The launcher ended without a word: killed from outside, or unable to report.
    LauncherLost {
        /// What was going on.
        during: Phase,
    },
    /// The sandbox was built by another process, of which this one is a forked copy.
    Forked,
    /// The launcher ended earlier, and the owned workspace with it; build a new sandbox.
    WorkspaceLost,
}

impl LaunchError {
    /// What on this host is the likely cause, where one is known.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Step(failure) => failure.cause,
            Self::Image { cause, .. } => *cause,
            Self::Prepare { source, .. } => source.raw_os_error().and_then(scarce),
            Self::MapTool { .. }
            | Self::NoFreeId { .. }
            | Self::Filter(_)
            | Self::Deadline { .. }
            | Self::LauncherLost { .. }
            | Self::Forked
            | Self::WorkspaceLost => None,
        }
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(failure) => failure.fmt(f),
            Self::Prepare { what, object, source } => {
                write!(f, "cannot {what}")?;
                if !object.as_os_str().is_empty() {
                    write!(f, " ({})", object.shown())?;
                }
                write!(f, ": {source}")?;
                self.cause().map_or(Ok(()), |cause| write!(f, "; {cause}"))
            }
            Self::Image { attempts, cause } => {
                f.write_str("cannot start the launcher in any way")?;
                for (source, error) in attempts {
                    write!(f, "; {}: {error}", source.name())?;
                }
                cause.as_ref().map_or(Ok(()), |cause| write!(f, "; {cause}"))
            }
            Self::MapTool { program, said } => write!(
                f,
                "starting the launcher: {} wrote no id map: {said}; fix: make it work for this \
                 user (see newuidmap(1)), or name the service's own ids as `host_uid` and \
                 `host_gid`, which the guest then shares",
                program.shown()
            ),
            Self::NoFreeId { first, last } => write!(
                f,
                "no free kernel uid in {first}..={last}: every one is leased or has processes; \
                 end sandboxes that are no longer needed"
            ),
            Self::Filter(error) => write!(f, "no system-call filter: {error}"),
            Self::Deadline { waiting_for, after } => write!(
                f,
                "the launcher was killed, since {waiting_for} took longer than {after:?}; a mount \
                 that does not answer is the usual cause"
            ),
            Self::LauncherLost { during } => {
                write!(f, "launcher_lost: the launcher ended without a word while {during}")
            }
            Self::Forked => f.write_str(
                "this sandbox belongs to the parent of this process; build one after fork",
            ),
            Self::WorkspaceLost => f.write_str(
                "the launcher was lost, and the owned workspace with it; build a new sandbox",
            ),
        }
    }
}

impl std::error::Error for LaunchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Step(failure) => Some(&failure.source),
            Self::Prepare { source, .. } => Some(source),
            Self::Filter(error) => Some(error),
            Self::Image { .. }
            | Self::MapTool { .. }
            | Self::NoFreeId { .. }
            | Self::Deadline { .. }
            | Self::LauncherLost { .. }
            | Self::Forked
            | Self::WorkspaceLost => None,
        }
    }
}
