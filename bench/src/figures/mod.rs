//! One function for each figure: what is compared with what, and what must come out.

pub(crate) mod bwrap;
pub(crate) mod hatch;
pub(crate) mod latency;
pub(crate) mod output;
pub(crate) mod probe;
pub(crate) mod python;
pub(crate) mod scale;
pub(crate) mod stages;
pub(crate) mod weight;

use std::path::PathBuf;

use crate::measure::Effort;
use crate::world::World;

/// What every figure is given.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) world: World,
    pub(crate) effort: Effort,
    /// The `postern` binary.
    pub(crate) cli: Option<PathBuf>,
    /// The bubblewrap binary.
    pub(crate) bwrap: PathBuf,
    /// Another one.
    pub(crate) newest: Option<PathBuf>,
    /// The directory that holds the Python package `postern`.
    pub(crate) peer: Option<PathBuf>,
    /// A virtual environment with grpcio.
    pub(crate) venv: Option<PathBuf>,
    /// How long one sustained measurement lasts, in seconds.
    pub(crate) seconds: f64,
}
