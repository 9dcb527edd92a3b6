//! Every way a sandbox can fail, as facts: operation, object, errno, likely cause, fix.

mod busy;
mod cause;
mod command;
mod fixes;
mod hatch;
mod launch;
mod python;
mod refusal;
mod shown;

use core::fmt;

pub use busy::Busy;
pub use cause::{Cause, causes};
pub(crate) use cause::{Symptom, likely};
pub use command::CommandError;
pub use fixes::{Fix, Place};
pub use hatch::HatchConflict;
pub use launch::{LaunchError, Phase, StepFailure};
pub use postern_init::step::Step;
pub use python::PythonError;
pub use refusal::{PythonHidden, Refusal};
pub(crate) use shown::Shown;

use crate::host::ProbeError;

/// Why a sandbox was not built or a run did not happen. A guest that ends badly is not an error.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The profile breaks a rule; nothing was started.
    Refused(Refusal),
    /// The machine could not be looked at; nothing was started.
    Probe(ProbeError),
    /// The command breaks a rule; nothing was started.
    Command(CommandError),
    /// The hatches cannot stand side by side; nothing was started.
    Hatches(HatchConflict),
    /// Every place under the ceiling was taken; nothing was started.
    Busy(Busy),
    /// A launch failed; nothing of it is left.
    Launch(LaunchError),
    /// What the kernel enforces is not what was planned.
    Unconfined(Vec<Violation>),
}

impl Error {
    /// The launcher did not survive this, or must not.
    pub(crate) fn is_launcher_gone(&self) -> bool {
        matches!(
            self,
            Self::Launch(LaunchError::Deadline { .. } | LaunchError::LauncherLost { .. })
        )
    }
}

/// One thing that [`Sandbox::verify`](crate::Sandbox::verify) found otherwise than planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What was looked at.
    pub what: &'static str,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, not {}", self.what, self.found, self.expected)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Probe(error) => error.fmt(f),
            Self::Command(error) => error.fmt(f),
            Self::Hatches(conflict) => conflict.fmt(f),
            Self::Busy(busy) => busy.fmt(f),
            Self::Launch(error) => error.fmt(f),
            Self::Unconfined(violations) => {
                f.write_str("the sandbox is not what was planned")?;
                violations.iter().try_for_each(|violation| write!(f, "; {violation}"))
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused(_) | Self::Hatches(_) | Self::Busy(_) | Self::Unconfined(_) => None,
            Self::Probe(error) => error.source(),
            Self::Command(error) => error.source(),
            Self::Launch(error) => error.source(),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        Error::Refused(refusal)
    }
}

impl From<ProbeError> for Error {
    fn from(error: ProbeError) -> Error {
        Error::Probe(error)
    }
}

impl From<CommandError> for Error {
    fn from(error: CommandError) -> Error {
        Error::Command(error)
    }
}

impl From<HatchConflict> for Error {
    fn from(conflict: HatchConflict) -> Error {
        Error::Hatches(conflict)
    }
}

impl From<Busy> for Error {
    fn from(busy: Busy) -> Error {
        Error::Busy(busy)
    }
}

impl From<LaunchError> for Error {
    fn from(error: LaunchError) -> Error {
        Error::Launch(error)
    }
}
