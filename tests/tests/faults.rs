//! Every system call of the launcher, and of PID 1 before the guest's exec, made to fail once.
//!
//! A supervisor of the host's system calls has the n-th fail with EPERM, ENOSYS or ENOMEM; what may
//! come of it stands in `src/bin/hostprog/faults/judge.rs`. `POSTERN_LONG=1` takes every call and
//! every errno, else the first and the last of each kind get EPERM.

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

#[test]
fn every_failed_call_is_named_or_reported() {
    let mode = figures::long_or(&["all"], &["sample"]);
    figures::passes("faults", mode, Duration::from_secs(1200));
}
