//! Why a run was not given a place under its ceiling; nothing was made for it.

use core::fmt;
use std::time::Duration;

/// Every place of a [`Ceiling`](crate::Ceiling) was taken. Trying again later is all there is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Busy {
    /// The run was not to wait.
    NoPlace {
        /// How many runs there may be at once.
        runs_max: u32,
    },
    /// As many wait as may.
    QueueFull {
        /// How many runs there may be at once.
        runs_max: u32,
        /// How many may wait.
        waiting_max: u32,
    },
    /// It has waited as long as it was to.
    QueueTimeout {
        /// How many runs there may be at once.
        runs_max: u32,
        /// How long it was to wait.
        after: Duration,
    },
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (runs_max, why) = match self {
            Self::NoPlace { runs_max } => (runs_max, "the run was not to wait for one".to_owned()),
            Self::QueueFull { runs_max, waiting_max } => {
                (runs_max, format!("{waiting_max} wait for one, which is as many as may"))
            }
            Self::QueueTimeout { runs_max, after } => {
                (runs_max, format!("none became free within {after:?}"))
            }
        };
        write!(
            f,
            "busy: all places of the ceiling ({runs_max}) are taken, and {why}; fix: try again \
             later, or raise the ceiling where the machine bears more"
        )
    }
}

impl std::error::Error for Busy {}
