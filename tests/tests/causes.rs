//! Every row of the library's table of causes, met on a host that was made to forbid something.
//!
//! Each row is a scenario of the host program in `src/bin/hostprog/causes`: it makes the host,
//! launches, asserts that nothing is left and that the error's text names step, call, errno, cause
//! and fix, and prints the facts that are compared here.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test's own helpers start programs, show what they print and fail the test"
)]

#[path = "endings/host.rs"]
mod host;

use std::collections::BTreeSet;
use std::time::Duration;

/// Who can make such a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maker {
    Anybody,
    /// Its setting, or its id maps, can be written by root alone.
    Root,
}

use Maker::{Anybody, Root};

/// A scenario with its arguments, who can make its host, and what is met there.
type Row = (&'static [&'static str], Maker, &'static str);

const ROWS: [Row; 30] = [
    (&["no-user-namespaces"], Anybody, "step CloneLauncher errno 28 cause user-namespaces-limited"),
    (&["no-more-processes"], Anybody, "step CloneLauncher errno 11 cause process-limit"),
    (&["chroot"], Anybody, "step CloneLauncher errno 1 cause chroot"),
    (&["chroot-at-a-mount"], Anybody, "step CloneLauncher errno 1 cause namespaces-refused"),
    (
        &["clone-switched-off"],
        Anybody,
        "step CloneLauncher errno 1 cause unprivileged-userns-clone",
    ),
    (&["apparmor"], Anybody, "step AttachMount errno 13 cause apparmor-userns"),
    (&["container-filter"], Anybody, "step CloneLauncher errno 1 cause outer-seccomp"),
    (&["no-clone3"], Anybody, r#"works Exited(0) memfd ["clone3 refused, clone used"]"#),
    (&["proc-masked"], Anybody, "step MakeProc errno 1 cause proc-masked"),
    (
        &["proc-masked-and-none"],
        Anybody,
        r#"works Exited(0) memfd ["id maps written through the outer /proc, no fresh one here"]"#,
    ),
    (&["proc-read-only"], Anybody, "step DenySetgroups errno 30 cause proc-read-only"),
    (&["installed", "755"], Root, "works Exited(0) installed []"),
    (
        &["installed", "777"],
        Root,
        r#"works Exited(0) memfd ["the installed launcher could not be used"]"#,
    ),
    (&["memfd-noexec"], Root, r#"works Exited(0) private-file ["a memfd could not be executed"]"#),
    (
        &["memfd-noexec-everywhere"],
        Root,
        "image memfd errno 13 private-file errno 13 cause memfd-noexec",
    ),
    (&["exec-refused"], Anybody, "image memfd errno 13 private-file errno 13 cause exec-forbidden"),
    (
        &["source", "vanishes", "cause source-missing"],
        Anybody,
        "step OpenSource errno 2 cause source-missing",
    ),
    (
        &["source", "becomes-a-link", "step OpenSource errno 40"],
        Anybody,
        "step OpenSource errno 40 cause source-swapped",
    ),
    (
        &["source", "becomes-another", "step SourceChanged"],
        Anybody,
        "step SourceChanged errno 116 cause source-swapped",
    ),
    (&["workspace-on-overlay"], Root, "step MapOwner errno 22 cause workspace-file-system"),
    (&["old-kernel"], Anybody, "step MountFlags errno 38 cause old-kernel"),
    (&["mount-forbidden"], Anybody, "step AttachMount errno 13 cause mount-forbidden"),
    (&["keys-used-up"], Anybody, "step Keyring errno 122 cause keyring-quota"),
    (&["landlock-layers"], Anybody, "step LandlockDomain errno 7 cause landlock-layers"),
    (&["too-many-runs"], Anybody, "step TooManyRuns errno 11 cause too-many-runs"),
    (&["no-more-descriptors"], Anybody, "prepare errno 24 cause descriptor-limit"),
    (&["refuse", "unshare", "12"], Anybody, "step AheadNamespaces errno 12 cause memory"),
    // Refused before anything is started, or for want of an id.
    (&["workspace-file"], Anybody, "refused not-directory"),
    (&["small-range"], Anybody, "refused no-id-range"),
    (&["ids-all-leased"], Root, "no-free-id"),
];

/// Causes that take a delegated control group, which the tests of `cgroup` have.
const ELSEWHERE: [&str; 1] = ["cgroup-apart"];

const LIMIT: Duration = Duration::from_secs(60);

fn is_root() -> bool {
    std::fs::metadata("/proc/self").map(|own| std::os::unix::fs::MetadataExt::uid(&own)).unwrap()
        == 0
}

#[test]
fn every_cause_is_met_and_named() {
    let mut wrong = Vec::new();
    for (line, maker, expected) in ROWS {
        if maker == Root && !is_root() {
            println!("{line:?}: only root can make this host");
            continue;
        }
        let met = host::outcome(line[0], &line[1..], LIMIT);
        println!("{line:?}: {met:?}");
        let facts = met.as_ref().map(|met| met.split(" | ").next().unwrap_or_default());
        if facts != Ok(expected) {
            wrong.push(format!("{line:?}: {met:?} is not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} rows: {wrong:#?}", wrong.len());
}

#[test]
fn every_cause_has_a_row() {
    let named = |row: &Row| row.2.split_once("cause ").map(|(_, name)| name);
    let rows: BTreeSet<_> = ROWS.iter().filter_map(named).chain(ELSEWHERE).collect();
    let table: BTreeSet<_> = postern::error::causes().map(|cause| cause.name).collect();
    assert_eq!(rows, table);
}
