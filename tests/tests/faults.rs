//! Every system call of the launcher, and of PID 1 before the guest's exec, made to fail once.
//!
//! A supervisor of the host's system calls has the n-th fail with EPERM, ENOSYS or ENOMEM; what may
//! come of it stands in `src/bin/hostprog/faults/judge.rs`. `POSTERN_LONG=1` takes every call and
//! every errno, else the first and the last of each kind get EPERM.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stdout,
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

/// A wall that was not built, and what must be said of it: by a run, before its program, and by
/// `verify`.
const LIES: [(&str, &str); 11] = [
    ("landlock", "whether a Landlock domain holds"),
    ("securebits", "the securebits"),
    ("bounding-set", "the bounding set"),
    (ORDINARY_LIE, "the permitted set, the effective set"),
    ("dumpable", "whether PID 1 can be looked into"),
    ("keyring", "whether the session keyring is closed"),
    ("filter", "the number of seccomp filters"),
    ("limits", "a resource limit"),
    ("mount-flags", "a mount"),
    ("masks", "a mount"),
    ("descriptors", "the list of descriptors"),
];

/// Only an ordinary user can be lied to so: the launcher of a root host drops to another uid, and
/// without the call it fails, by name, to do what it needs capabilities for.
const ORDINARY_LIE: &str = "capabilities";

fn is_root() -> bool {
    let own = std::fs::metadata("/proc/self").unwrap();
    std::os::unix::fs::MetadataExt::uid(&own) == 0
}

#[test]
fn a_wall_that_was_not_built_is_found_before_the_first_program() {
    let mut wrong = Vec::new();
    for (lie, expected) in LIES {
        if lie == ORDINARY_LIE && is_root() {
            println!("{lie}: only an ordinary user can be lied to so");
            continue;
        }
        let met = host::outcome("lie", &[lie], Duration::from_secs(60));
        println!("{lie}: {met:?}");
        if met.as_deref() != Ok(expected) {
            wrong.push(format!("{lie}: {met:?} is not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} rows: {wrong:#?}", wrong.len());
}
