//! The system-call filter where it counts: the levels in a run, and a policy of the profile's own.

use postern::seccomp::{Arch, Level, UserPolicy};
use postern::{Command, Ending, SandboxProfile};
use postern_tests::{Row, Watch, ask, check};
use serde_json::json;

use crate::sandbox;

const EPERM: i32 = libc::EPERM;
const ENOSYS: i32 = libc::ENOSYS;
const EINVAL: i32 = libc::EINVAL;
const EAFNOSUPPORT: i32 = libc::EAFNOSUPPORT;

fn at(level: Level) -> SandboxProfile {
    SandboxProfile::builder().seccomp(level).build().unwrap()
}

/// The same question at each level: `None` where the call gets as far as the kernel's own answer.
#[test]
fn the_levels_differ_where_they_say_so() {
    let _watch = Watch::begin();
    type Asked<'a> = (&'a str, &'a [&'a str], [Option<i32>; 3]);
    let rows: [Asked<'_>; 12] = [
        ("netlink", &["41", "16", "3", "0"], [Some(EAFNOSUPPORT), None, None]),
        ("vsock", &["41", "40", "1", "0"], [Some(EAFNOSUPPORT), Some(EAFNOSUPPORT), None]),
        ("shmget", &["29", "0", "1", "0x180"], [Some(ENOSYS), None, None]),
        ("io_uring", &["425", "0", "0"], [Some(ENOSYS), Some(ENOSYS), Some(EPERM)]),
        ("splice", &["275", "0xffffffff", "0", "0xffffffff"], [Some(EINVAL), Some(EINVAL), None]),
        ("set-id", &["91", "0xffffffff", "0x9ed"], [Some(EPERM), Some(EPERM), None]),
        ("set-id, high", &["91", "0xffffffff", "0x1000009ed"], [Some(EPERM), Some(EPERM), None]),
        ("lease", &["72", "0xffffffff", "1024", "0"], [Some(EPERM), Some(EPERM), None]),
        ("TIOCSETD", &["16", "0xffffffff", "0x100005423"], [Some(EPERM), Some(EPERM), None]),
        ("personality", &["135", "0x40000"], [Some(EPERM), Some(EPERM), None]),
        ("ptrace", &["101", "0xffffffff"], [Some(EPERM), Some(EPERM), Some(EPERM)]),
        ("unreviewed", &["500"], [Some(ENOSYS), Some(ENOSYS), Some(ENOSYS)]),
    ];
    let levels = [Level::Strict, Level::Default, Level::Compat].map(|level| sandbox(at(level)));
    let open = sandbox(at(Level::Off));
    for (name, call, expected) in rows {
        let question: Vec<_> = ["syscall"].iter().chain(call).copied().collect();
        let kernel = ask(&open, &question);
        for (sandbox, expected) in levels.iter().zip(expected) {
            let expected = expected.map(|errno| json!({ "errno": errno }));
            let found = ask(sandbox, &question);
            // What makes something new, such as a shared memory segment, has another number.
            let is_made = expected.is_none() && kernel.is_i64() && found.is_i64();
            assert!(
                is_made || found == *expected.as_ref().unwrap_or(&kernel),
                "{name}: {found}, {expected:?}, unfiltered {kernel}"
            );
        }
    }
}

fn with_policy(text: &str) -> SandboxProfile {
    SandboxProfile::builder().seccomp_policy(text).build().unwrap()
}

const NO_NEW_DIRECTORIES: &str = r#"{"own": {"mismatch_action": "allow", "match_action": {"errno": 28},
    "filter": [{"syscall": "mkdir"}, {"syscall": "mkdirat"}, {"syscall": "clone3"},
               {"syscall": "kill", "args": [{"index": 1, "type": "dword", "op": "eq", "val": 10}]}]}}"#;

#[test]
fn a_policy_of_ones_own_only_tightens() {
    let _watch = Watch::begin();
    let refused = |errno: i32| json!({ "errno": errno });
    let rows: [Row<'_>; 5] = [
        ("refused by it", &["syscall", "83", "0", "0"], "", refused(28)),
        ("refused for its argument", &["syscall", "62", "0", "10"], "", refused(28)),
        ("let through for another", &["syscall", "62", "0", "0"], "", json!(0)),
        ("of two errors the later filter's", &["syscall", "435", "0", "0"], "", refused(28)),
        ("still refused by the level", &["syscall", "101", "0", "0"], "", refused(EPERM)),
    ];
    check(&sandbox(with_policy(NO_NEW_DIRECTORIES)), &rows);
}

/// PID 1 is under the level's filter alone, so that a policy need not know what PID 1 does: with
/// this one it could not wait for anything.
#[test]
fn a_list_of_allowed_calls_need_not_know_the_launch() {
    let _watch = Watch::begin();
    let text = r#"{"own": {"mismatch_action": "kill_process", "match_action": "allow", "filter": [
        {"syscall": "execve"}, {"syscall": "brk"}, {"syscall": "arch_prctl"}, {"syscall": "mmap"},
        {"syscall": "mprotect"}, {"syscall": "munmap"}, {"syscall": "openat"}, {"syscall": "read"},
        {"syscall": "pread64"}, {"syscall": "close"}, {"syscall": "newfstatat"}, {"syscall": "fstat"},
        {"syscall": "access"}, {"syscall": "set_tid_address"}, {"syscall": "set_robust_list"},
        {"syscall": "rseq"}, {"syscall": "prlimit64"}, {"syscall": "getrandom"},
        {"syscall": "ioctl"}, {"syscall": "write"}, {"syscall": "exit_group"},
        {"syscall": "futex"}, {"syscall": "lseek"}, {"syscall": "fadvise64"}]}}"#;
    let own = sandbox(with_policy(text));
    let said = own.run(Command::new("echo").arg("said")).unwrap();
    assert_eq!((said.ending, said.stdout_text().as_ref()), (Ending::Exited(0), "said\n"));
    let killed = own.run(Command::new("mkdir").arg("made")).unwrap();
    assert_eq!(killed.ending, Ending::Signaled(libc::SIGSYS), "{}", killed.stderr_text());
}

/// What is reported is what was installed.
#[test]
fn each_program_is_reported_by_its_digest() {
    let _watch = Watch::begin();
    let arch = Arch::native().unwrap();
    let own = UserPolicy::from_json(NO_NEW_DIRECTORIES, arch).unwrap().program().digest();
    let rows = [
        (at(Level::Strict), Level::Strict, None),
        (at(Level::Default), Level::Default, None),
        (at(Level::Off), Level::Off, None),
        (with_policy(NO_NEW_DIRECTORIES), Level::Default, Some(own)),
    ];
    for (profile, level, policy) in rows {
        let result = sandbox(profile).run(Command::new("true")).unwrap();
        let expected = level.native_program().unwrap().map(|program| program.digest());
        assert_eq!(result.enforcement.seccomp_digest, expected, "{level}");
        assert_eq!(result.enforcement.seccomp_policy_digest, policy, "{level}");
    }
}
