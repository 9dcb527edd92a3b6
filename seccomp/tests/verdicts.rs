//! What the levels answer: by the table, and by the program that is made from it.
#![expect(clippy::unwrap_used, reason = "a test's own helpers fail the test")]

use postern_seccomp::Action::{Allow, KillProcess, Succeed};
use postern_seccomp::{Action, Arch, Call, Errno, Level, Policy, Program, simulate};

const EPERM: Action = Action::Errno(Errno::EPERM);
const ENOSYS: Action = Action::Errno(Errno::ENOSYS);
const EINVAL: Action = Action::Errno(Errno::EINVAL);
const ENOPROTOOPT: Action = Action::Errno(Errno::ENOPROTOOPT);
const EPROTONOSUPPORT: Action = Action::Errno(Errno::EPROTONOSUPPORT);
const EOPNOTSUPP: Action = Action::Errno(Errno::EOPNOTSUPP);
const EAFNOSUPPORT: Action = Action::Errno(Errno::EAFNOSUPPORT);

const X32: u32 = 0x4000_0000;
const HIGH: u64 = 1 << 32;
const POINTER: u64 = 0x7ffc_0000_1000;
/// A pointer whose low half is all zero.
const ROUND_POINTER: u64 = 0x7ffc_0000_0000;

fn made(level: Level) -> (Policy, Program) {
    let policy = level.policy(Arch::X86_64).unwrap();
    (policy, policy.assemble().unwrap())
}

/// A call, its first four arguments, the answer.
type Row = (&'static str, [u64; 4], Action);

fn check(level: Level, rows: &[Row]) {
    let (policy, program) = made(level);
    for (name, [a, b, c, d], expected) in rows {
        let number = Arch::X86_64.call_number(name).unwrap();
        let call = Call::native(Arch::X86_64, number, [*a, *b, *c, *d, 0, 7]);
        assert_eq!(policy.evaluate(&call), *expected, "{level}, table, {name} {call:x?}");
        let answer = simulate(&program, &call);
        assert_eq!(answer, Ok(expected.word()), "{level}, program, {name} {call:x?}");
    }
}

const COMPAT: &[Row] = &[
    ("read", [0, 0, 0, 7], Allow),
    ("ptrace", [0, 0, 0, 7], EPERM),
    ("rseq_slice_yield", [0, 0, 0, 7], Allow),
    // clone: only a user namespace, wherever else the flags point.
    ("clone", [0x11, 0, 0, 7], Allow),
    ("clone", [0x1000_0011, 0, 0, 7], EPERM),
    ("clone", [0x7e02_0011, 0, 0, 7], EPERM),
    ("clone", [0x6e02_0011, 0, 0, 7], Allow),
    ("clone", [HIGH | 0x1000_0000, 0, 0, 7], EPERM),
    ("clone", [0x1000_0000 << 32, 0, 0, 7], Allow),
    ("clone", [0x11, 0x1000_0000, 0, 7], Allow),
    // ioctl: the request is an int.
    ("ioctl", [0, 0x5412, 0, 7], EPERM),
    ("ioctl", [0, HIGH | 0x5412, 0, 7], EPERM),
    ("ioctl", [0, 0xffff_ffff_0000_5412, 0, 7], EPERM),
    ("ioctl", [0, 0x541c, 0, 7], EPERM),
    ("ioctl", [0, HIGH | 0x541c, 0, 7], EPERM),
    ("ioctl", [0, 0x5413, 0, 7], Allow),
    ("ioctl", [0x5412, 0, 0x5412, 7], Allow),
    // Core limit: setting it is ignored, reading it is not.
    ("setrlimit", [4, POINTER, 0, 7], Succeed),
    ("setrlimit", [HIGH | 4, POINTER, 0, 7], Succeed),
    ("setrlimit", [4, ROUND_POINTER, 0, 7], Succeed),
    ("setrlimit", [4, 0, 0, 7], Allow),
    ("setrlimit", [7, POINTER, 0, 7], Allow),
    ("prlimit64", [0, 4, POINTER, 7], Succeed),
    ("prlimit64", [0, HIGH | 4, POINTER, 7], Succeed),
    ("prlimit64", [0, 4, ROUND_POINTER, 7], Succeed),
    ("prlimit64", [0, 4, 1, 7], Succeed),
    ("prlimit64", [0, 4, 0, 7], Allow),
    ("prlimit64", [0, 7, POINTER, 7], Allow),
    ("prlimit64", [4, 7, POINTER, 7], Allow),
    ("getrlimit", [4, POINTER, 0, 7], Allow),
    // Netlink: routing only.
    ("socket", [16, 3, 0, 7], Allow),
    ("socket", [16, 3, HIGH, 7], Allow),
    ("socket", [16, 3, 6, 7], EAFNOSUPPORT),
    ("socket", [16, 0x8_0003, 16, 7], EAFNOSUPPORT),
    ("socket", [HIGH | 16, 3, 12, 7], EAFNOSUPPORT),
    ("socket", [16, 3, HIGH | 12, 7], EAFNOSUPPORT),
    ("socket", [1, 1, 6, 7], Allow),
    ("socket", [2, 16, 6, 7], Allow),
];

#[test]
fn compat_by_arguments() {
    check(Level::Compat, COMPAT);
}

const DEFAULT: &[Row] = &[
    ("io_uring_setup", [0; 4], ENOSYS),
    ("io_setup", [0; 4], EPERM),
    ("splice", [0; 4], EINVAL),
    ("tee", [0; 4], EINVAL),
    ("vmsplice", [0; 4], EPERM),
    ("open_tree_attr", [0; 4], ENOSYS),
    ("listns", [0; 4], ENOSYS),
    ("openat2", [0; 4], ENOSYS),
    ("pidfd_open", [0; 4], Allow),
    ("pidfd_getfd", [0; 4], EPERM),
    ("shmget", [0; 4], Allow),
    ("mq_open", [0; 4], Allow),
    ("landlock_restrict_self", [0; 4], Allow),
    ("sendfile", [0; 4], Allow),
    // Every namespace by clone; the time namespace's bit is a signal there.
    ("clone", [0x11, 0, 0, 0], Allow),
    ("clone", [0x3d_0f00, 0, 0, 0], Allow),
    ("clone", [0x0002_0011, 0, 0, 0], EPERM),
    ("clone", [0x0200_0011, 0, 0, 0], EPERM),
    ("clone", [0x0400_0011, 0, 0, 0], EPERM),
    ("clone", [0x0800_0011, 0, 0, 0], EPERM),
    ("clone", [0x1000_0011, 0, 0, 0], EPERM),
    ("clone", [0x2000_0011, 0, 0, 0], EPERM),
    ("clone", [HIGH | 0x4000_0011, 0, 0, 0], EPERM),
    ("clone", [0x91, 0, 0, 0], Allow),
    // Modes: where the kernel reads one.
    ("chmod", [POINTER, 0o777, 0, 0], Allow),
    ("chmod", [POINTER, 0o4755, 0, 0], EPERM),
    ("chmod", [POINTER, 0o2755, 0, 0], EPERM),
    ("chmod", [POINTER, 0o1777, 0, 0], Allow),
    ("chmod", [POINTER, HIGH | 0o4755, 0, 0], EPERM),
    ("fchmod", [3, 0o6755, 0, 0], EPERM),
    ("fchmodat", [3, POINTER, 0o4755, 0], EPERM),
    ("fchmodat", [3, POINTER, 0o755, 0o4000], Allow),
    ("fchmodat2", [3, POINTER, 0o2000, 0], EPERM),
    ("open", [POINTER, 0o100, 0o4755, 0], EPERM),
    ("open", [POINTER, 0o2, 0o4755, 0], Allow),
    ("open", [POINTER, 0o20_200_000, 0o4755, 0], EPERM),
    ("open", [POINTER, 0o200_000, 0o4755, 0], Allow),
    ("openat", [3, POINTER, 0o101, 0o2644], EPERM),
    ("openat", [3, POINTER, HIGH | 0o101, HIGH | 0o2644], EPERM),
    ("openat", [3, POINTER, 0o101, 0o644], Allow),
    ("openat", [3, POINTER, 0, 0o2644], Allow),
    ("creat", [POINTER, 0o4755, 0, 0], EPERM),
    ("mkdir", [POINTER, 0o2755, 0, 0], EPERM),
    ("mkdirat", [3, POINTER, 0o2755, 0], EPERM),
    // Nodes: a device, of whatever number; not a pipe, a socket or a file.
    ("mknod", [POINTER, 0o020_644, 0, 0], EPERM),
    ("mknod", [POINTER, 0o060_644, 0, 0], EPERM),
    ("mknod", [POINTER, 0o010_644, 0, 0], Allow),
    ("mknod", [POINTER, 0o140_644, 0, 0], Allow),
    ("mknod", [POINTER, 0o104_644, 0, 0], EPERM),
    ("mknodat", [3, POINTER, 0o020_000, 0], EPERM),
    ("mknodat", [3, POINTER, HIGH | 0o060_000, 0], EPERM),
    ("mknodat", [3, POINTER, 0o644, 0], Allow),
    // Sockets.
    ("socket", [1, 5, 0, 0], Allow),
    ("socket", [2, 1, 0, 0], Allow),
    ("socket", [2, 0x8_0801, 6, 0], Allow),
    ("socket", [10, 2, 17, 0], Allow),
    ("socket", [2, 3, 0, 0], EAFNOSUPPORT),
    ("socket", [10, 0x8_0003, 58, 0], EAFNOSUPPORT),
    ("socket", [2, 5, 132, 0], EAFNOSUPPORT),
    ("socket", [2, 1, 132, 0], EPROTONOSUPPORT),
    ("socket", [2, 1, 256, 0], EPROTONOSUPPORT),
    ("socket", [10, 1, 262, 0], EPROTONOSUPPORT),
    ("socket", [2, 2, HIGH | 115, 0], EPROTONOSUPPORT),
    ("socket", [16, 3, 0, 0], Allow),
    ("socket", [16, 3, 6, 0], EAFNOSUPPORT),
    ("socket", [40, 1, 0, 0], EAFNOSUPPORT),
    ("socket", [HIGH | 40, 1, 0, 0], EAFNOSUPPORT),
    ("socket", [38, 5, 0, 0], EAFNOSUPPORT),
    ("socket", [17, 3, 0, 0], EAFNOSUPPORT),
    ("socket", [0, 1, 0, 0], EAFNOSUPPORT),
    ("socketpair", [1, 1, 0, 0], Allow),
    ("socketpair", [30, 1, 0, 0], EAFNOSUPPORT),
    ("getsockopt", [3, 1, 77, 0], ENOPROTOOPT),
    ("getsockopt", [3, HIGH | 1, HIGH | 77, 0], ENOPROTOOPT),
    ("getsockopt", [3, 1, 17, 0], Allow),
    ("setsockopt", [3, 1, 76, 0], ENOPROTOOPT),
    ("setsockopt", [3, 6, 31, 0], ENOPROTOOPT),
    ("setsockopt", [3, 17, 100, 0], ENOPROTOOPT),
    ("setsockopt", [3, 279, 1, 0], ENOPROTOOPT),
    ("setsockopt", [3, 282, 1, 0], ENOPROTOOPT),
    ("setsockopt", [3, 6, 1, 0], Allow),
    ("setsockopt", [3, 1, 26, 0], Allow),
    ("sendto", [3, POINTER, 1, 1], EOPNOTSUPP),
    ("sendto", [3, POINTER, 1, 0x4000], Allow),
    ("recvmsg", [3, POINTER, 0x41, 0], EOPNOTSUPP),
    ("recvmmsg", [3, POINTER, 1, HIGH | 1], EOPNOTSUPP),
    ("sendmmsg", [3, POINTER, 1, 0], Allow),
    // Requests and commands are ints.
    ("ioctl", [0, HIGH | 0x5423, 0, 0], EPERM),
    ("ioctl", [0, 0x4b3a, 0, 0], EPERM),
    ("ioctl", [0, HIGH | 0x5601, 0, 0], EPERM),
    ("ioctl", [0, 0x5401, 0, 0], Allow),
    ("ioctl", [0, 0x1_4b00, 0, 0], Allow),
    ("ioctl", [0, 0x4008_6602, 0, 0], EPERM),
    ("ioctl", [0, 0x4004_9409, 0, 0], EOPNOTSUPP),
    ("fcntl", [3, 1024, 1, 0], EPERM),
    ("fcntl", [3, 1040, 1, 0], EINVAL),
    ("fcntl", [3, HIGH | 1026, 1, 0], EPERM),
    ("fcntl", [3, 1030, 1, 0], Allow),
    ("prctl", [35, 0, 0, 0], EPERM),
    ("prctl", [HIGH | 62, 0, 0, 0], EINVAL),
    ("prctl", [22, 2, POINTER, 0], Allow),
    ("prctl", [15, POINTER, 0, 0], Allow),
    ("personality", [0, 0, 0, 0], Allow),
    ("personality", [0xffff_ffff, 0, 0, 0], Allow),
    ("personality", [HIGH, 0, 0, 0], Allow),
    ("personality", [0x4_0000, 0, 0, 0], EPERM),
    ("personality", [8, 0, 0, 0], EPERM),
    ("seccomp", [1, 0, POINTER, 0], Allow),
    ("seccomp", [1, 8, POINTER, 0], EPERM),
    ("seccomp", [1, HIGH | 9, POINTER, 0], EPERM),
    ("seccomp", [2, 8, POINTER, 0], Allow),
    ("get_mempolicy", [POINTER, 0, 0, 0], Allow),
    ("prlimit64", [0, 4, POINTER, 0], Succeed),
];

#[test]
fn default_by_arguments() {
    check(Level::Default, DEFAULT);
}

const STRICT: &[Row] = &[
    ("socket", [16, 3, 0, 0], EAFNOSUPPORT),
    ("socket", [HIGH | 16, 3, 0, 0], EAFNOSUPPORT),
    ("socket", [2, 1, 0, 0], Allow),
    ("socket", [1, 1, 0, 0], Allow),
    ("shmget", [0; 4], ENOSYS),
    ("semop", [0; 4], ENOSYS),
    ("msgrcv", [0; 4], ENOSYS),
    ("mq_open", [0; 4], ENOSYS),
    ("setsockopt", [3, 1, 26, 0], EPERM),
    ("setsockopt", [3, 1, 2, 0], Allow),
    ("sched_setscheduler", [0; 4], EPERM),
    ("sched_getaffinity", [0; 4], Allow),
    ("sendfile", [0; 4], EINVAL),
    ("sync", [0; 4], EPERM),
    ("fsync", [0; 4], Allow),
    ("get_mempolicy", [0; 4], EPERM),
    // As in `default`.
    ("ptrace", [0; 4], EPERM),
    ("chmod", [POINTER, 0o4755, 0, 0], EPERM),
    ("socket", [40, 1, 0, 0], EAFNOSUPPORT),
];

#[test]
fn strict_by_arguments() {
    check(Level::Strict, STRICT);
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
    for level in [Level::Strict, Level::Default, Level::Compat] {
        let (policy, program) = made(level);
        for (name, arch, number, expected) in table {
            let call = Call { number, arch, instruction_pointer: 0, arguments: [0; 6] };
            assert_eq!(policy.evaluate(&call), expected, "{level}, table, {name}");
            assert_eq!(simulate(&program, &call), Ok(expected.word()), "{level}, program, {name}");
        }
    }
}
