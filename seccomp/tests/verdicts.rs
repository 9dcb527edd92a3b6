//! What level `compat` answers: by the table, and by the program that is made from it.

use postern_seccomp::Action::{Allow, KillProcess, Succeed};
use postern_seccomp::{Action, Arch, Call, Errno, Level, Policy, Program, simulate};

mod samples;

const EPERM: Action = Action::Errno(Errno::Eperm);
const ENOSYS: Action = Action::Errno(Errno::Enosys);
const EAFNOSUPPORT: Action = Action::Errno(Errno::Eafnosupport);

const X32: u32 = 0x4000_0000;
const HIGH: u64 = 1 << 32;
const POINTER: u64 = 0x7ffc_0000_1000;
/// A pointer whose low half is all zero.
const ROUND_POINTER: u64 = 0x7ffc_0000_0000;

fn compat() -> Option<(Policy, Program)> {
    let policy = Level::Compat.policy(Arch::X86_64)?;
    Some((policy, policy.assemble().ok()?))
}

#[test]
fn program_agrees_with_table() {
    let (policy, program) = compat().unwrap();
    let depends = |number| {
        let name = Arch::X86_64.call_name(number);
        policy.rules().any(|rule| Some(rule.call) == name && !rule.conditions.is_empty())
    };
    for call in samples::native_calls(depends).chain(samples::foreign_calls()) {
        assert_eq!(simulate(&program, &call), Ok(policy.evaluate(&call).word()), "{call:x?}");
    }
}

#[test]
fn verdicts_by_arguments() {
    let table: &[(&str, [u64; 3], Action)] = &[
        ("read", [0, 0, 0], Allow),
        ("ptrace", [0, 0, 0], EPERM),
        ("rseq_slice_yield", [0, 0, 0], Allow),
        // clone: only a user namespace, wherever else the flags point.
        ("clone", [0x11, 0, 0], Allow),
        ("clone", [0x1000_0011, 0, 0], EPERM),
        ("clone", [0x7e02_0011, 0, 0], EPERM),
        ("clone", [0x6e02_0011, 0, 0], Allow),
        ("clone", [HIGH | 0x1000_0000, 0, 0], EPERM),
        ("clone", [0x1000_0000 << 32, 0, 0], Allow),
        ("clone", [0x11, 0x1000_0000, 0], Allow),
        // ioctl: the request is an int.
        ("ioctl", [0, 0x5412, 0], EPERM),
        ("ioctl", [0, HIGH | 0x5412, 0], EPERM),
        ("ioctl", [0, 0xffff_ffff_0000_5412, 0], EPERM),
        ("ioctl", [0, 0x541c, 0], EPERM),
        ("ioctl", [0, HIGH | 0x541c, 0], EPERM),
        ("ioctl", [0, 0x5413, 0], Allow),
        ("ioctl", [0x5412, 0, 0x5412], Allow),
        // Core limit: setting it is ignored, reading it is not.
        ("setrlimit", [4, POINTER, 0], Succeed),
        ("setrlimit", [HIGH | 4, POINTER, 0], Succeed),
        ("setrlimit", [4, ROUND_POINTER, 0], Succeed),
        ("setrlimit", [4, 0, 0], Allow),
        ("setrlimit", [7, POINTER, 0], Allow),
        ("prlimit64", [0, 4, POINTER], Succeed),
        ("prlimit64", [0, HIGH | 4, POINTER], Succeed),
        ("prlimit64", [0, 4, ROUND_POINTER], Succeed),
        ("prlimit64", [0, 4, 1], Succeed),
        ("prlimit64", [0, 4, 0], Allow),
        ("prlimit64", [0, 7, POINTER], Allow),
        ("prlimit64", [4, 7, POINTER], Allow),
        ("getrlimit", [4, POINTER, 0], Allow),
        // Netlink: routing only.
        ("socket", [16, 3, 0], Allow),
        ("socket", [16, 3, HIGH], Allow),
        ("socket", [16, 3, 6], EAFNOSUPPORT),
        ("socket", [16, 0x8_0003, 16], EAFNOSUPPORT),
        ("socket", [HIGH | 16, 3, 12], EAFNOSUPPORT),
        ("socket", [16, 3, HIGH | 12], EAFNOSUPPORT),
        ("socket", [1, 1, 6], Allow),
        ("socket", [2, 16, 6], Allow),
    ];
    let (policy, program) = compat().unwrap();
    for (name, [a, b, c], expected) in table {
        let number = Arch::X86_64.call_number(name).unwrap();
        let call = Call::native(Arch::X86_64, number, [*a, *b, *c, 7, 7, 7]);
        assert_eq!(policy.evaluate(&call), *expected, "table, {name} {call:x?}");
        assert_eq!(simulate(&program, &call), Ok(expected.word()), "program, {name} {call:x?}");
    }
}

#[test]
fn verdicts_by_number_and_abi() {
    let native = Arch::X86_64.audit();
    let table = [
        ("read", native, 0, Allow),
        ("uretprobe", native, 335, Allow),
        ("last before the hole", native, 336, Allow),
        ("first of the hole", native, 337, ENOSYS),
        ("last of the hole", native, 423, ENOSYS),
        ("first after the hole", native, 424, Allow),
        ("last reviewed", native, 471, Allow),
        ("fchroot of 7.3", native, 472, ENOSYS),
        ("x32 table without the bit", native, 521, ENOSYS),
        ("last before x32", native, X32 - 1, ENOSYS),
        ("x32 read", native, X32, ENOSYS),
        ("x32 ptrace", native, X32 | 521, ENOSYS),
        ("x32 bit and sign", native, 0xc000_0000, ENOSYS),
        ("sign bit", native, 0x8000_0000, ENOSYS),
        ("-2", native, 0xffff_fffe, ENOSYS),
        ("-1, a skipped call", native, 0xffff_ffff, Allow),
        ("i386 getpid", 0x4000_0003, 20, KillProcess),
        ("i386 -1", 0x4000_0003, 0xffff_ffff, KillProcess),
        ("aarch64", 0xc000_00b7, 0, KillProcess),
        ("no ABI", 0, 0, KillProcess),
    ];
    let (policy, program) = compat().unwrap();
    for (name, arch, number, expected) in table {
        let call = Call { number, arch, instruction_pointer: 0, arguments: [0; 6] };
        assert_eq!(policy.evaluate(&call), expected, "table, {name}");
        assert_eq!(simulate(&program, &call), Ok(expected.word()), "program, {name}");
    }
}
