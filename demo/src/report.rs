//! What a demo comes to, as data and, through serde, as the object of `--json`; `docs/demo.md` lists
//! the keys. It decides nothing.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Whether every attempt was made, and every wall held.
    pub held: bool,
    /// What the script computed.
    pub answer: Answer,
    /// Where its plot is.
    pub plot: PathBuf,
    /// Where the answer is as a file.
    pub result: PathBuf,
    /// What it tried, and what became of it.
    pub attempts: Vec<Attempt>,
    /// What held it.
    pub sandbox: Walls,
    /// Whether the environment and the database were made for this use.
    pub first_use: bool,
    /// How long it took.
    pub ms: Milliseconds,
}

/// What the script computed of the rows that it got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// How many rows it got.
    pub rows: u64,
    /// One record a species, by name.
    pub species: Vec<Species>,
}

/// The penguins of one species.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Species {
    /// Its name.
    pub species: String,
    /// How many there are.
    pub count: u64,
    /// The mean of their mass, in grams.
    pub mean_body_mass_g: f64,
    /// The standard deviation of their mass, in grams.
    pub stdev_body_mass_g: f64,
    /// How much heavier one is that has a flipper longer by a millimetre, in grams.
    pub grams_per_flipper_mm: f64,
}

/// One thing that the script tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Attempt {
    /// What it tried.
    pub name: String,
    /// What it says became of it: the guest's word, with everything that a terminal would act on
    /// escaped, and cut to 200 characters.
    pub guest: String,
    /// What the host saw of it.
    pub host: String,
    /// What the host makes of the two.
    pub verdict: Verdict,
}

/// Whether a wall held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was tried, the guest says that it was refused, and the host saw nothing happen.
    Held,
    /// The guest got through, or the host saw that it did.
    NotHeld,
    /// The script never tried, so that nothing is known.
    NotTried,
}

/// What held the guest, read back from the kernel before it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Walls {
    /// The guest's uid as the host's kernel sees it.
    pub kernel_uid: u32,
    /// Whether that is the caller's own: an unprivileged host has no other.
    pub shared_uid: bool,
    /// Supplementary groups that an unprivileged host cannot drop.
    pub shared_groups: Vec<u32>,
    /// The level of the system-call filter.
    pub seccomp: String,
}

/// Times, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Milliseconds {
    /// Until the environment and the database were there.
    pub prepare: f64,
    /// Until the sandbox stood and was verified.
    pub sandbox: f64,
    /// The guest's run, from the request until everything in it was gone.
    pub guest: f64,
    /// All of it.
    pub total: f64,
}
