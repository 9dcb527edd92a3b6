//! User policies against the reader and compiler of the crate whose JSON they are in.

use postern_seccomp::{Action, Arch, Call, Condition, UserPolicy, simulate};

use super::seccompiler::program;
use super::{Tally, samples};

/// Theirs knows no unreviewed number and has no guard for x32.
const NO_GUARDS: &str = "x32 calls and unreviewed numbers in a list of refused calls";
/// Ours lets number -1 through, which a tracer sets to skip a call.
const SKIPPED: &str = "number -1 in a list of allowed calls";

const POLICIES: [(&str, &str); 5] = [
    (
        "refused calls, every operator",
        r#"{"own": {"mismatch_action": "allow", "match_action": {"errno": 13}, "filter": [
            {"syscall": "kill"},
            {"syscall": "ioctl", "args": [{"index": 1, "type": "dword", "op": "eq", "val": 21505}]},
            {"syscall": "ioctl", "args": [{"index": 1, "type": "qword", "op": "eq", "val": 4294988801}]},
            {"syscall": "lseek", "args": [{"index": 1, "type": "qword", "op": "gt", "val": 4294967301}]},
            {"syscall": "read", "args": [{"index": 2, "type": "qword", "op": "ge", "val": 4294967301}]},
            {"syscall": "write", "args": [{"index": 2, "type": "qword", "op": "lt", "val": 4294967301}]},
            {"syscall": "pread64", "args": [{"index": 2, "type": "qword", "op": "le", "val": 4294967301}]},
            {"syscall": "pwrite64", "args": [{"index": 2, "type": "qword", "op": "ne", "val": 4294967301}]},
            {"syscall": "mmap", "args": [{"index": 1, "type": "qword",
                                          "op": {"masked_eq": 1152921504606850816}, "val": 4096}]},
            {"syscall": "socket", "args": [{"index": 0, "type": "dword", "op": "gt", "val": 2}]},
            {"syscall": "poll", "args": [{"index": 1, "type": "dword", "op": "ge", "val": 9}]},
            {"syscall": "dup2", "args": [{"index": 1, "type": "dword", "op": "lt", "val": 9}]},
            {"syscall": "dup", "args": [{"index": 0, "type": "dword", "op": "le", "val": 9}]},
            {"syscall": "fcntl", "args": [{"index": 1, "type": "dword", "op": "ne", "val": 9}]},
            {"syscall": "open", "args": [{"index": 1, "type": "dword",
                                          "op": {"masked_eq": 3}, "val": 65537}]}]}}"#,
    ),
    (
        "several conditions and several rules",
        r#"{"own": {"mismatch_action": "allow", "match_action": "trap", "filter": [
            {"syscall": "socket", "comment": "inet, not stream", "args": [
                {"index": 0, "type": "dword", "op": "eq", "val": 2, "comment": "AF_INET"},
                {"index": 1, "type": "dword", "op": {"masked_eq": 15}, "val": 2}]},
            {"syscall": "socket", "args": [
                {"index": 0, "type": "dword", "op": "eq", "val": 10},
                {"index": 0, "type": "dword", "op": "ne", "val": 9},
                {"index": 2, "type": "qword", "op": "le", "val": 17}]}]}}"#,
    ),
    (
        "allowed calls",
        r#"{"own": {"mismatch_action": "kill_process", "match_action": "allow", "filter": [
            {"syscall": "execve"}, {"syscall": "read"}, {"syscall": "exit_group"},
            {"syscall": "write", "args": [{"index": 0, "type": "dword", "op": "le", "val": 2}]}]}}"#,
    ),
    (
        "the older names of the keys",
        r#"{"own": {"default_action": {"errno": 0}, "filter_action": "allow", "filter": [
            {"syscall": "execve"}, {"syscall": "clone3"}]}}"#,
    ),
    (
        "a thread is ended",
        r#"{"own": {"mismatch_action": "allow", "match_action": "kill_thread", "filter": [
            {"syscall": "getpid"}]}}"#,
    ),
];

fn conditions(policy: &UserPolicy, number: u32) -> Vec<Condition> {
    let name = Arch::X86_64.call_name(number);
    let rules = policy.rules().iter().filter(|rule| Some(rule.call) == name);
    rules.flat_map(|rule| rule.conditions.iter().copied()).collect()
}

/// Whether the difference is one of those that are explained.
fn explained(policy: &UserPolicy, call: &Call, theirs: u32) -> Option<&'static str> {
    let is_native = call.arch == Arch::X86_64.audit();
    let is_unreviewed = is_native && Arch::X86_64.call_name(call.number).is_none();
    match (call.number, policy.mismatched()) {
        (u32::MAX, mismatched) if is_native && mismatched != Action::Allow => Some(SKIPPED),
        (_, Action::Allow) if is_unreviewed && theirs == Action::Allow.word() => Some(NO_GUARDS),
        _ => None,
    }
}

#[test]
fn user_policies_agree_with_their_own_crate() {
    let mut tally = Tally::default();
    for (name, text) in POLICIES {
        let ours = UserPolicy::from_json(text, Arch::X86_64).unwrap();
        let arch = seccompiler::TargetArch::x86_64;
        let theirs = seccompiler::compile_from_json(text.as_bytes(), arch).unwrap();
        let theirs = program(&theirs["own"]);
        for call in samples::native(|number| conditions(&ours, number)).chain(samples::foreign()) {
            let table = ours.evaluate(&call).word();
            assert_eq!(simulate(ours.program(), &call), Ok(table), "{name}: {call:x?}");
            let theirs = simulate(&theirs, &call).unwrap();
            match (theirs == table, explained(&ours, &call, theirs)) {
                (true, _) => tally.equal(),
                (false, Some(row)) => tally.explained(row),
                (false, None) => panic!("{name}: ours {table:#x}, theirs {theirs:#x}: {call:x?}"),
            }
        }
    }
    tally.finish("user policies against seccompiler", &[NO_GUARDS, SKIPPED]);
}
