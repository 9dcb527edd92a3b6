//! Why a task did not succeed: facts, put into words once, here.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::{fmt, io};

/// With this variable set a skip is a failure: for machines that promise everything.
pub(crate) const NO_SKIPS: &str = "POSTERN_NO_SKIPS";

/// Every way in which a task fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line is wrong.
    Usage { argument: OsString, wanted: &'static str },
    /// A program could not be started.
    Start { program: OsString, source: io::Error },
    /// A program said no.
    Ended { command: String, status: ExitStatus },
    /// A file of ours could not be read or written.
    File { act: &'static str, path: PathBuf, source: io::Error },
    /// Cargo printed something other than its messages.
    Message { source: serde_json::Error },
    /// The archive of packages, or what is installed of it, lacks what a machine is made of.
    Archive { fact: String },
    /// A list of the repository's cannot be read.
    Known { source: serde_json::Error },
    /// Cargo built something other than what the task needs.
    NotBuilt { what: String },
    /// Two executables would have the same name in the private directory.
    SameName { name: String },
    /// The static image is not what it must be.
    Image { fact: String },
    /// A generated file is not what its sources make.
    Generated { path: PathBuf },
    /// A skip, on a machine that promises everything.
    SkipRefused { count: u64 },
    /// At least one check or test failed; the lines above say which.
    Failed { count: u64 },
}

impl fmt::Display for Failure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage { argument, wanted } => {
                write!(to, "{}: {wanted}; see cargo xtask help", argument.display())
            }
            Self::Start { program, source } => write!(to, "{}: {source}", program.display()),
            Self::Ended { command, status } => write!(to, "{command}: {status}"),
            Self::File { act, path, source } => {
                write!(to, "cannot {act} {}: {source}", path.display())
            }
            Self::Message { source } => write!(to, "cargo's messages: {source}"),
            Self::Archive { fact } => write!(to, "packages: {fact}"),
            Self::Known { source } => write!(to, "a list of the tests': {source}"),
            Self::NotBuilt { what } => write!(to, "cargo built no {what}"),
            Self::SameName { name } => write!(to, "two executables are named {name}"),
            Self::Image { fact } => write!(to, "the static image: {fact}"),
            Self::Generated { path } => {
                write!(
                    to,
                    "{} is not what its sources make; run cargo xtask codegen",
                    path.display()
                )
            }
            Self::SkipRefused { count } => {
                write!(to, "{count} skipped, and {NO_SKIPS} is set")
            }
            Self::Failed { count } => write!(to, "{count} failed"),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Start { source, .. } | Self::File { source, .. } => Some(source),
            Self::Message { source } | Self::Known { source } => Some(source),
            Self::Usage { .. }
            | Self::Ended { .. }
            | Self::Archive { .. }
            | Self::NotBuilt { .. }
            | Self::SameName { .. }
            | Self::Image { .. }
            | Self::Generated { .. }
            | Self::SkipRefused { .. }
            | Self::Failed { .. } => None,
        }
    }
}
