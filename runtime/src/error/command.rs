//! Why a command is refused before anything is started.

use core::fmt;
use std::ffi::OsString;

use super::python::PythonError;

/// A rule that a command breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandError {
    /// There is no program.
    NoProgram,
    /// The program's name is empty.
    EmptyProgram,
    /// An argument holds a NUL byte, which no system call can take.
    NulInArgument(OsString),
    /// Source code holds a NUL byte, which no interpreter takes.
    NulInScript {
        /// Its line, counted from 1.
        line: usize,
    },
    /// The guest has no interpreter for Python code, or too old a one.
    Python(PythonError),
    /// A name or value of the environment holds a NUL byte.
    NulInEnvironment(OsString),
    /// A name in the environment is empty or holds `=`.
    EnvironmentName(OsString),
    /// The working directory is relative, holds a NUL byte, or a `.` or `..`.
    WorkingDirectory(OsString),
    /// The name of a private file or script is not one path component, or is taken: by another
    /// private file, the script, or the stubs.
    PrivateFileName(OsString),
    /// Private files and scripts need
    /// [`SandboxBuilder::run_directories`](crate::SandboxBuilder::run_directories).
    NoRunDirectories,
    /// A terminal is made in the guest's `/dev/pts`, and the profile has none.
    NoTerminals,
    /// A time limit of zero would end the run before it begins.
    ZeroTimeout,
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProgram => f.write_str("argv: empty; the first word is the program"),
            Self::EmptyProgram => f.write_str("argv: the program's name is empty"),
            Self::NulInArgument(text) => write!(f, "argv: {text:?} holds a NUL byte"),
            Self::NulInScript { line } => {
                write!(f, "code: line {line} holds a NUL byte; source code is text without one")
            }
            Self::Python(error) => error.fmt(f),
            Self::NulInEnvironment(text) => write!(f, "env: {text:?} holds a NUL byte"),
            Self::EnvironmentName(name) => {
                write!(f, "env: {name:?} is no name; one is not empty and holds no '='")
            }
            Self::WorkingDirectory(path) => {
                write!(f, "cwd: {path:?} is not an absolute path without '.', '..' and NUL")
            }
            Self::PrivateFileName(name) => {
                write!(f, "private file: {name:?} is not one free name in /run/postern")
            }
            Self::NoRunDirectories => f.write_str(
                "code, script or private file: the sandbox was built without run directories",
            ),
            Self::NoTerminals => f.write_str(
                "terminal: the guest has no /dev/pts to make one in; the profile's pty_max must not be 0",
            ),
            Self::ZeroTimeout => f.write_str("timeout: zero"),
        }
    }
}

impl std::error::Error for CommandError {}
