//! Why hatches cannot stand side by side; found before anything is started.

use core::fmt;

use postern_hatch::HatchName;

/// What is wrong with the hatches of a sandbox or of a run, taken together.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HatchConflict {
    /// More than one has no name.
    TwoUnnamed,
    /// The names of two differ in case alone, or not at all, so that they share a variable.
    SameVariable {
        /// The one that was there.
        first: HatchName,
        /// The one that came later.
        second: HatchName,
    },
    /// Hatches need [`SandboxBuilder::run_directories`](crate::SandboxBuilder::run_directories).
    NoRunDirectories,
}

impl fmt::Display for HatchConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoUnnamed => f.write_str("hatches: two have no name; name all of them but one"),
            Self::SameVariable { first, second } => write!(
                f,
                "hatches: `{first}` and `{second}` would both be ${}; name one of them otherwise",
                second.variable()
            ),
            Self::NoRunDirectories => {
                f.write_str("hatches: the sandbox was built without run directories")
            }
        }
    }
}

impl core::error::Error for HatchConflict {}
