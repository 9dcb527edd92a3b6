//! Each quota from inside: how much there is until the kernel refuses. Without the filter, which
//! refuses some of it at once.

use postern::host::Host;
use postern::plan::Tier;
use postern::profile::{Landlock, Limits};
use postern::{Quota, Sandbox, SandboxProfile};
use postern_seccomp::Level;
use postern_tests::{Watch, ask};
use serde_json::json;

use crate::sandbox;

fn small() -> Sandbox {
    let limits = Limits {
        nproc: Some(20),
        nofile: 200,
        fsize_bytes: 48 << 20,
        memlock_bytes: 32 << 10,
        sigpending: 50,
        msgqueue_bytes: 256 << 10,
        ..Limits::default()
    };
    let profile = SandboxProfile::builder().limits(limits).pty_max(3).seccomp(Level::Off);
    // In a Landlock domain there are no POSIX message queues at all.
    sandbox(profile.landlock(Landlock::Off).build().unwrap())
}

/// What there is, how much of it, and the answer to one more; the quota's name.
type Row = (&'static str, u64, i32, &'static str);

/// Counted from what the probe itself has: three descriptors, itself and PID 1, no timer.
const ROWS: [Row; 11] = [
    ("descriptors", 197, libc::EMFILE, "nofile"),
    ("processes", 18, libc::EAGAIN, "nproc"),
    ("file-bytes", 3, libc::EFBIG, "fsize"),
    ("locked-pages", 8, libc::ENOMEM, "memlock"),
    ("timers", 50, libc::EAGAIN, "sigpending"),
    ("terminals", 3, libc::ENOSPC, "/dev/pts terminals"),
    ("segments", 128, libc::ENOSPC, "shared memory segments"),
    ("segment-megabytes", 64, libc::ENOSPC, "shared memory pages"),
    ("queues", 32, libc::ENOSPC, "System V message queues"),
    ("posix-queues", 32, libc::ENOSPC, "POSIX message queues"),
    ("posix-queue-bytes", 3, libc::EMFILE, "msgqueue"),
];

#[test]
fn the_kernel_refuses_what_is_over_each_quota() {
    let _watch = Watch::begin();
    let sandbox = small();
    let quotas = sandbox.enforcement().unwrap().quotas.clone();
    let mut wrong = Vec::new();
    for (what, made, errno, name) in ROWS {
        let answer = ask(&sandbox, &["use-up", what]);
        if answer != json!({ "made": made, "errno": errno }) {
            wrong.push(format!("{what}: {answer}, not {made} and {errno}"));
        }
        let quota = quotas.iter().find(|quota| quota.name == name).unwrap();
        assert!(quota.is_enforced(), "{quota}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn watches_are_limited_for_the_sandbox_and_not_for_the_host() {
    let _watch = Watch::begin();
    let sandbox = small();
    let tier = Host::probe(&SandboxProfile::default()).map(|_| sandbox.plan().identity.tier);
    let enforcement = sandbox.enforcement().unwrap();
    let limit = |name: &str| {
        let quota = enforcement.quotas.iter().find(|quota| quota.name == name);
        quota.filter(|quota: &&Quota| quota.is_enforced()).and_then(|quota| quota.limit).unwrap()
    };
    let groups = match tier.unwrap() {
        // The host's own, for a uid that only this sandbox has.
        Tier::Privileged => limit("fanotify groups"),
        Tier::MapWriter | Tier::Subordinate | Tier::Unprivileged => 0,
    };
    let rows = [("inotify", limit("inotify instances")), ("fanotify", groups)];
    for (what, most) in rows {
        let answer = ask(&sandbox, &["use-up", what]);
        // The smaller of two limits is met first: descriptors are few too.
        let expected = most.min(197);
        assert_eq!(answer, json!({ "made": expected, "errno": libc::EMFILE }), "{what}");
        // A run that is over holds nothing, and the host never lacked any.
        assert!(rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::CLOEXEC).is_ok());
    }
}

#[test]
fn every_namespace_stays_out_of_reach_by_one_limit() {
    let _watch = Watch::begin();
    let sandbox = small();
    // CLONE_NEW*: user is refused by its limit, every other for want of a capability over one.
    let flags = [
        (0x1000_0000, libc::ENOSPC),
        (0x0002_0000, libc::EPERM),
        (0x2000_0000, libc::EPERM),
        (0x4000_0000, libc::EPERM),
        (0x0800_0000, libc::EPERM),
        (0x0400_0000, libc::EPERM),
        (0x0200_0000, libc::EPERM),
        (0x0000_0080, libc::EPERM),
    ];
    for (flag, errno) in flags {
        let answer = ask(&sandbox, &["syscall", "272", &format!("{flag:#x}")]);
        assert_eq!(answer, json!({ "errno": errno }), "{flag:#x}");
        let both: i64 = flag | 0x1000_0000;
        let answer = ask(&sandbox, &["syscall", "272", &format!("{both:#x}")]);
        assert_eq!(answer, json!({ "errno": libc::ENOSPC }), "{both:#x} with a user namespace");
    }
}
