//! Why the demo could not be carried out: the step, the object, the likely cause and the fix. That
//! a wall did not hold is no error and not here.

use core::fmt;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use postern::hatch::GrpcHatchError;

/// A command of the first use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// `python -m venv`.
    Environment,
    /// pip, for what the guest imports.
    Packages,
    /// pip, for the data set.
    Data,
}

impl Step {
    /// What it does, after "cannot".
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Step::Environment => "make the guest's Python environment",
            Step::Packages => "install the guest's packages",
            Step::Data => "get the data set",
        }
    }

    fn needs_network(self) -> bool {
        match self {
            Step::Environment => false,
            Step::Packages | Step::Data => true,
        }
    }
}

/// Less than this is a full disk to pip.
const FULL_BYTES: u64 = 64 << 20;
/// What a first use takes at its peak.
const NEEDED_MIB: u64 = 600;

/// What kept the demo from being carried out.
#[derive(Debug)]
#[non_exhaustive]
pub enum DemoError {
    /// Neither `XDG_CACHE_HOME` nor `HOME` is an absolute path, and no cache was named.
    NoCache,
    /// A file or directory of the host.
    File {
        /// What cannot be done with it.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The interpreter could not be started, or did not answer.
    Python {
        /// Its name or path.
        program: OsString,
        /// Why.
        source: io::Error,
    },
    /// The pinned packages have no builds for this interpreter.
    PythonVersion {
        /// Its name or path.
        program: OsString,
        /// What it is.
        version: String,
    },
    /// The interpreter cannot make environments with pip in them: it has no module `ensurepip`.
    NoEnsurepip {
        /// Its name or path.
        program: OsString,
        /// What it is, as `3.11`.
        version: String,
    },
    /// A command of the first use ended badly.
    Step {
        /// Which.
        step: Step,
        /// The command, to be tried by hand.
        command: String,
        /// How it ended.
        ending: ExitStatus,
        /// The last lines that it wrote.
        lines: Vec<String>,
        /// What was free on the file system of the cache afterwards.
        free_bytes: Option<u64>,
    },
    /// The data set is not the table that was expected.
    Table {
        /// The file.
        path: PathBuf,
        /// The line, counted from one.
        line: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The data set is no CSV.
    Csv(csv::Error),
    /// The database.
    Database {
        /// What cannot be done with it.
        what: &'static str,
        /// Why.
        source: rusqlite::Error,
    },
    /// The hatch.
    Hatch(GrpcHatchError),
    /// The sandbox was refused or failed.
    Sandbox(postern::Error),
    /// The script ended badly before it had tried everything.
    Guest {
        /// Its exit status, as a shell has it.
        returncode: i32,
        /// The last lines that it wrote to stderr.
        lines: Vec<String>,
    },
    /// What the script wrote is not what it was to write.
    Answer {
        /// The file in its workspace.
        file: &'static str,
        /// What is wrong with it.
        what: String,
    },
}

impl DemoError {
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DemoError {
        let path = path.to_owned();
        move |source| DemoError::File { what, path, source }
    }

    pub(crate) fn database(what: &'static str) -> impl FnOnce(rusqlite::Error) -> DemoError {
        move |source| DemoError::Database { what, source }
    }

    /// One word for programs.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            DemoError::NoCache => "cache",
            DemoError::File { .. } => "file",
            DemoError::Python { .. }
            | DemoError::PythonVersion { .. }
            | DemoError::NoEnsurepip { .. } => "python",
            DemoError::Step { .. } => "step",
            DemoError::Table { .. } | DemoError::Csv(_) => "data",
            DemoError::Database { .. } => "database",
            DemoError::Hatch(_) => "hatch",
            DemoError::Sandbox(_) => "sandbox",
            DemoError::Guest { .. } | DemoError::Answer { .. } => "guest",
        }
    }

    /// The last lines of the program that failed, if one did.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        match self {
            DemoError::Step { lines, .. } | DemoError::Guest { lines, .. } => lines,
            DemoError::NoCache
            | DemoError::File { .. }
            | DemoError::Python { .. }
            | DemoError::PythonVersion { .. }
            | DemoError::NoEnsurepip { .. }
            | DemoError::Table { .. }
            | DemoError::Csv(_)
            | DemoError::Database { .. }
            | DemoError::Hatch(_)
            | DemoError::Sandbox(_)
            | DemoError::Answer { .. } => &[],
        }
    }

    /// What to do about it, where something is known.
    #[must_use]
    pub fn fix(&self) -> Option<String> {
        const OTHER: &str = "name another interpreter, CPython 3.10 to 3.13: --python PROGRAM";
        match self {
            DemoError::NoCache => Some("set HOME, or name a directory: --cache DIR".to_owned()),
            DemoError::File { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some(room())
            }
            DemoError::File { .. } => {
                Some("name directories that you may write to: --cache DIR, --out DIR".to_owned())
            }
            DemoError::Python { .. } | DemoError::PythonVersion { .. } => Some(OTHER.to_owned()),
            DemoError::NoEnsurepip { version, .. } => Some(format!(
                "install it (Debian, Ubuntu: apt-get install python3-venv, or python{version}-venv), \
                 or {OTHER}"
            )),
            DemoError::Step { free_bytes: Some(free), .. } if *free < FULL_BYTES => {
                Some(format!("{} MiB are free there: {}", free >> 20, room()))
            }
            DemoError::Step { step, command, .. } if step.needs_network() => Some(format!(
                "pip must reach a package index, by your own pip configuration (`pip config list`, \
                 PIP_INDEX_URL, a proxy); this is what was run: {command}"
            )),
            DemoError::Step { command, .. } => {
                Some(format!("see what it says by itself: {command}"))
            }
            DemoError::Table { .. } | DemoError::Csv(_) => {
                Some("see which index pip asks (`pip config list`): the package is another".into())
            }
            // Theirs say it themselves.
            DemoError::Sandbox(_) | DemoError::Hatch(_) => None,
            DemoError::Database { .. } | DemoError::Guest { .. } | DemoError::Answer { .. } => {
                Some("remove the cache and try again: it is made anew".to_owned())
            }
        }
    }
}

fn room() -> String {
    format!("make room for {NEEDED_MIB} MiB, or name another place: --cache DIR")
}

impl fmt::Display for DemoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DemoError::NoCache => f.write_str("no place for a cache: HOME is not set"),
            DemoError::File { what, path, source } => {
                write!(f, "cannot {what} {}: {source}", path.display())
            }
            DemoError::Python { program, source } => {
                write!(f, "cannot ask {} what it is: {source}", program.display())
            }
            DemoError::PythonVersion { program, version } => write!(
                f,
                "{} is {version}, and the guest's packages are pinned for CPython 3.10 to 3.13",
                program.display()
            ),
            DemoError::NoEnsurepip { program, version } => write!(
                f,
                "{} (Python {version}) cannot make environments: it has no module ensurepip",
                program.display()
            ),
            DemoError::Step { step, ending, .. } => {
                write!(f, "cannot {}: the command ended with {ending}", step.what())
            }
            DemoError::Table { path, line, what } => {
                write!(f, "the data set {} is not as expected: line {line}: {what}", path.display())
            }
            DemoError::Csv(source) => write!(f, "cannot read the data set: {source}"),
            DemoError::Database { what, source } => write!(f, "cannot {what}: {source}"),
            DemoError::Hatch(source) => write!(f, "{source}"),
            DemoError::Sandbox(source) => write!(f, "{source}"),
            DemoError::Guest { returncode, .. } => {
                write!(f, "the guest's script ended with {returncode} before its work was done")
            }
            DemoError::Answer { file, what } => {
                write!(f, "what the guest left as {file} cannot be taken: {what}")
            }
        }
    }
}

impl core::error::Error for DemoError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            DemoError::File { source, .. } | DemoError::Python { source, .. } => Some(source),
            DemoError::Csv(source) => Some(source),
            DemoError::Database { source, .. } => Some(source),
            DemoError::Hatch(source) => Some(source),
            DemoError::Sandbox(source) => Some(source),
            DemoError::NoCache
            | DemoError::PythonVersion { .. }
            | DemoError::NoEnsurepip { .. }
            | DemoError::Step { .. }
            | DemoError::Table { .. }
            | DemoError::Guest { .. }
            | DemoError::Answer { .. } => None,
        }
    }
}

impl From<GrpcHatchError> for DemoError {
    fn from(source: GrpcHatchError) -> DemoError {
        DemoError::Hatch(source)
    }
}

impl From<postern::Error> for DemoError {
    fn from(source: postern::Error) -> DemoError {
        DemoError::Sandbox(source)
    }
}

impl From<postern::error::Refusal> for DemoError {
    fn from(source: postern::error::Refusal) -> DemoError {
        DemoError::Sandbox(source.into())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn step(step: Step, free: u64) -> DemoError {
        let (command, lines) = ("python -m x".to_owned(), vec!["no".to_owned()]);
        let ending = ExitStatus::from_raw(256);
        DemoError::Step { step, command, ending, lines, free_bytes: Some(free) }
    }

    #[test]
    fn a_failed_step_has_the_fix_that_fits() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let rows = [
            (step(Step::Packages, 1 << 40), "pip must reach a package index"),
            (step(Step::Data, 1 << 40), "pip must reach a package index"),
            (step(Step::Environment, 1 << 40), "see what it says by itself: python -m x"),
            (step(Step::Packages, 1 << 20), "1 MiB are free there: make room for 600 MiB"),
            (DemoError::file("write", "/x".as_ref())(full), "make room for 600 MiB"),
            (DemoError::file("write", "/x".as_ref())(denied), "name directories that you may"),
        ];
        for (error, words) in rows {
            let fix = error.fix().unwrap();
            assert!(fix.starts_with(words), "{error}: {fix}");
        }
    }
}
