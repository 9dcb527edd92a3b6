//! The rules of the house that the compiler does not know, as tests over the source tree. It runs
//! once, where the tree is; what programs do is not its business.

#![expect(clippy::unwrap_used, reason = "a test's own helpers fail the test")]

#[path = "tidy/packages.rs"]
mod packages;
#[path = "tidy/pages.rs"]
mod pages;
#[path = "tidy/sources.rs"]
mod sources;
#[path = "tidy/telemetry.rs"]
mod telemetry;
#[path = "tidy/tree.rs"]
mod tree;

/// Shows every fault at once, one a line.
#[track_caller]
fn none(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}\n", faults.len(), faults.join("\n"));
}
