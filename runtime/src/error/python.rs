//! Why Python code is not run although the profile is a good one; found before anything is
//! started, and running no interpreter.

use core::fmt;
use std::path::PathBuf;

use crate::error::Shown as _;

/// What is wrong with the guest's Python interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PythonError {
    /// The guest has none.
    Missing {
        /// What was looked for: a name, or an absolute path in the guest.
        program: PathBuf,
        /// The guest's directories that do not have it, in the order of its `PATH`.
        searched: Vec<PathBuf>,
    },
    /// It is older than what the code is run with.
    TooOld {
        /// Its path in the guest.
        program: PathBuf,
        /// Its version.
        version: (u8, u8),
        /// The oldest version that will do.
        least: (u8, u8),
    },
}

impl fmt::Display for PythonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { program, searched } => {
                write!(f, "python: the guest has no {}", program.shown())?;
                let mut directories = searched.iter();
                if let Some(first) = directories.next() {
                    write!(f, " in {}", first.shown())?;
                    directories.try_for_each(|other| write!(f, ", {}", other.shown()))?;
                }
                f.write_str("; install it there, or set `python` or `venv`")
            }
            Self::TooOld { program, version, least } => write!(
                f,
                "python: {} is Python {}.{}; {}.{} is the oldest that will do; set `python` or \
                 `venv` to a newer one",
                program.shown(),
                version.0,
                version.1,
                least.0,
                least.1,
            ),
        }
    }
}

impl core::error::Error for PythonError {}

#[cfg(test)]
mod tests {
    use super::PythonError;

    #[test]
    fn the_sentence_says_what_to_do() {
        let rows = [
            (
                PythonError::Missing {
                    program: "python3".into(),
                    searched: vec!["/usr/bin".into(), "/bin".into()],
                },
                "python: the guest has no python3 in /usr/bin, /bin; install it there, or set \
                 `python` or `venv`",
            ),
            (
                PythonError::TooOld {
                    program: "/usr/bin/python3".into(),
                    version: (3, 6),
                    least: (3, 8),
                },
                "python: /usr/bin/python3 is Python 3.6; 3.8 is the oldest that will do; set \
                 `python` or `venv` to a newer one",
            ),
        ];
        for (error, sentence) in rows {
            assert_eq!(error.to_string(), sentence);
        }
    }
}
