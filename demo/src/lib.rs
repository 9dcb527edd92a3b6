//! The whole idea on real data: an untrusted pandas script gets rows of a database of the host
//! through one typed method, computes and draws, and then tries everything it should not.
//!
//! [`run`] is all of it; the program `postern-demo`, which `postern demo` starts, parses, calls it
//! and shows the [`Report`]. Policy is the library's: nothing here holds a guest.

mod cache;
mod census;
mod data;
mod error;
mod guest;
mod judge;
mod python;
mod report;
mod service;
mod show;
mod target;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use cache::default_cache;
pub use error::{DemoError, Step};
pub use report::{Answer, Attempt, Milliseconds, Report, Species, Verdict, Walls};
pub use service::PenguinTable;
pub use show::{Paint, show};

/// What a person may choose.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Where the guest's environment and the database are kept between uses; made if need be.
    pub cache: PathBuf,
    /// The interpreter that the guest's environment is made with, a name for `PATH` or a path;
    /// default `python3`. CPython 3.10 to 3.13.
    pub python: OsString,
    /// Where `plot.png` and `result.json` are put; made if need be; default `out` in the cache.
    pub out: PathBuf,
}

impl Options {
    /// The defaults, with this cache.
    #[must_use]
    pub fn new(cache: impl Into<PathBuf>) -> Options {
        let cache = cache.into();
        Options { out: cache.join("out"), python: "python3".into(), cache }
    }
}

/// Who is told how the first use gets on; a use that finds everything made tells nothing.
pub trait Progress {
    /// Something is being made in this directory.
    fn begin(&mut self, cache: &Path);
    /// So many parts are done of [`PARTS`], and this is next.
    fn part(&mut self, done: u64, next: &str);
    /// Nothing more comes, whether all is made or something failed.
    fn end(&mut self);
}

pub use cache::PARTS;

/// Makes what is missing in the cache, runs the script in a sandbox, and judges what became of
/// each thing that it tried by what the host saw.
///
/// # Errors
/// What kept the demo from being carried out. A wall that did not hold is no error: the report
/// says it, [`Report::held`].
pub fn run(options: &Options, progress: &mut dyn Progress) -> Result<Report, DemoError> {
    let start = Instant::now();
    let ready = cache::ready(&options.cache, &options.python, progress)?;
    let prepared = start.elapsed();
    let mut report = guest::run(&ready, &options.out)?;
    report.first_use = ready.is_first_use;
    report.ms.prepare = milliseconds(prepared);
    report.ms.total = milliseconds(start.elapsed());
    Ok(report)
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e4).round() / 10.0
}
