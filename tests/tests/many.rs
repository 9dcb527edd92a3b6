//! Many runs at once: several launchers, hosts with too little of something, and what crashed ones
//! leave.
//!
//! Each row is a scenario of the host program in `src/bin/hostprog/many`, which asserts by itself
//! that nothing is left.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test's own helpers start programs and fail the test"
)]

#[path = "endings/figures.rs"]
mod figures;
#[path = "endings/host.rs"]
mod host;

use std::time::Duration;

use figures::{long_or, passes};

const LIMIT: Duration = Duration::from_secs(120);

#[test]
fn too_few_descriptors_give_typed_errors_and_leave_nothing() {
    passes("descriptor-sweep", &[], LIMIT);
}

#[test]
fn too_few_processes_give_typed_errors_and_leave_nothing() {
    passes("process-sweep", &[], LIMIT);
}

#[test]
fn a_lost_launcher_of_several_ends_its_own_runs_alone() {
    passes("launchers", &[], LIMIT);
}

#[test]
fn what_killed_hosts_leave_is_removed_by_the_next() {
    passes("leftovers", long_or(&["50"], &["5"]), LIMIT);
}
