//! The filter in the running kernel, installed on threads of this process.

use postern_seccomp::{Action, Arch, Call, Level, UserPolicy};

mod sys;

/// Whether the same call, unfiltered, must answer otherwise: not required of calls that the
/// filter of a surrounding container may refuse as ours does.
#[derive(Clone, Copy, PartialEq)]
enum Unfiltered {
    Differs,
    MayAgree,
}

use Unfiltered::{Differs, MayAgree};

/// A name, the call, its answer under the filter (0 for success).
type Row = (&'static str, i64, [u64; 3], i32, Unfiltered);

const HIGH: u64 = 1 << 32;
/// A descriptor and a request that do not exist.
const NONE: u64 = 0xffff_ffff;

const COMPAT: &[Row] = &[
    ("getppid", libc::SYS_getppid, [0; 3], 0, MayAgree),
    ("ptrace", libc::SYS_ptrace, [NONE, 0, 0], libc::EPERM, Differs),
    ("unshare", libc::SYS_unshare, [0; 3], libc::EPERM, MayAgree),
    ("setns", libc::SYS_setns, [NONE, 0, 0], libc::EPERM, MayAgree),
    ("mount", libc::SYS_mount, [0; 3], libc::EPERM, MayAgree),
    ("clone3", libc::SYS_clone3, [0; 3], libc::ENOSYS, MayAgree),
    // CLONE_THREAD alone is invalid, so that the unfiltered call makes no process.
    ("clone of a user namespace", libc::SYS_clone, [0x1001_0000, 0, 0], libc::EPERM, MayAgree),
    ("io_uring_setup", libc::SYS_io_uring_setup, [0; 3], libc::EPERM, MayAgree),
    ("fsopen", libc::SYS_fsopen, [0; 3], libc::ENOSYS, MayAgree),
    ("mount_setattr", libc::SYS_mount_setattr, [NONE, 0, 0], libc::ENOSYS, MayAgree),
    ("TIOCSTI", libc::SYS_ioctl, [NONE, 0x5412, 0], libc::EPERM, Differs),
    ("TIOCSTI, high bit", libc::SYS_ioctl, [NONE, HIGH | 0x5412, 0], libc::EPERM, Differs),
    ("TIOCLINUX", libc::SYS_ioctl, [NONE, 0x541c, 0], libc::EPERM, Differs),
    ("another ioctl", libc::SYS_ioctl, [NONE, 0x5413, 0], libc::EBADF, MayAgree),
    ("netlink audit", libc::SYS_socket, [16, 3, 9], libc::EAFNOSUPPORT, Differs),
    (
        "netlink, high bits",
        libc::SYS_socket,
        [HIGH | 16, 3, HIGH | 16],
        libc::EAFNOSUPPORT,
        Differs,
    ),
    ("netlink routing", libc::SYS_socket, [16, 3, 0], 0, MayAgree),
    ("unknown family", libc::SYS_socket, [16, 3, 99], libc::EAFNOSUPPORT, Differs),
    ("core limit, NULL", libc::SYS_setrlimit, [4, 0, 0], libc::EFAULT, MayAgree),
    ("core limit, page 0", libc::SYS_setrlimit, [4, 1, 0], 0, Differs),
    ("core limit, page 0, 64 bit", libc::SYS_prlimit64, [0, 4, 1], 0, Differs),
    ("number above the ceiling", 472, [0; 3], libc::ENOSYS, MayAgree),
];

/// What `default` answers otherwise than `compat`, or besides.
const DEFAULT: &[Row] = &[
    ("getppid", libc::SYS_getppid, [0; 3], 0, MayAgree),
    ("clone of a uts namespace", libc::SYS_clone, [0x0401_0000, 0, 0], libc::EPERM, MayAgree),
    ("clone3", libc::SYS_clone3, [0; 3], libc::ENOSYS, MayAgree),
    ("io_uring_setup", libc::SYS_io_uring_setup, [0; 3], libc::ENOSYS, MayAgree),
    ("io_setup", libc::SYS_io_setup, [1, 0, 0], libc::EPERM, Differs),
    ("splice", libc::SYS_splice, [NONE, 0, NONE], libc::EINVAL, MayAgree),
    ("process_vm_readv", libc::SYS_process_vm_readv, [NONE, 0, 0], libc::EPERM, MayAgree),
    ("kcmp", libc::SYS_kcmp, [NONE, 0, 0], libc::EPERM, MayAgree),
    ("openat2", libc::SYS_openat2, [NONE, 0, 0], libc::ENOSYS, MayAgree),
    ("chmod of set-id", libc::SYS_fchmod, [NONE, 0o4755, 0], libc::EPERM, Differs),
    ("chmod of set-id, high bit", libc::SYS_fchmod, [NONE, HIGH | 0o2755, 0], libc::EPERM, Differs),
    ("another chmod", libc::SYS_fchmod, [NONE, 0o755, 0], libc::EBADF, MayAgree),
    ("open, new, set-id", libc::SYS_open, [0, 0o100, 0o4755], libc::EPERM, Differs),
    ("open, set-id unread", libc::SYS_open, [0, 0, 0o4755], libc::EFAULT, MayAgree),
    ("mknod of 0:0", libc::SYS_mknod, [0, 0o020_644, 0], libc::EPERM, Differs),
    ("mknod of a pipe", libc::SYS_mknod, [0, 0o010_644, 0], libc::EFAULT, MayAgree),
    ("vsock", libc::SYS_socket, [40, 1, 0], libc::EAFNOSUPPORT, MayAgree),
    ("packet, high bit", libc::SYS_socket, [HIGH | 17, 3, 0], libc::EAFNOSUPPORT, MayAgree),
    ("raw", libc::SYS_socket, [2, 3, 1], libc::EAFNOSUPPORT, Differs),
    ("stream with flags", libc::SYS_socket, [2, 0x8_0801, 0], 0, MayAgree),
    ("mptcp", libc::SYS_socket, [2, 1, 262], libc::EPROTONOSUPPORT, MayAgree),
    ("netlink routing", libc::SYS_socket, [16, 3, 0], 0, MayAgree),
    ("SO_PEERPIDFD", libc::SYS_getsockopt, [NONE, 1, 77], libc::ENOPROTOOPT, Differs),
    ("TCP_ULP", libc::SYS_setsockopt, [NONE, 6, 31], libc::ENOPROTOOPT, Differs),
    ("MSG_OOB", libc::SYS_sendmsg, [NONE, 0, 1], libc::EOPNOTSUPP, Differs),
    ("TIOCSETD", libc::SYS_ioctl, [NONE, HIGH | 0x5423, 0], libc::EPERM, Differs),
    ("KDSKBENT", libc::SYS_ioctl, [NONE, 0x4b47, 0], libc::EPERM, Differs),
    ("FICLONE", libc::SYS_ioctl, [NONE, 0x4004_9409, NONE], libc::EOPNOTSUPP, Differs),
    ("F_SETLEASE", libc::SYS_fcntl, [NONE, 1024, 0], libc::EPERM, Differs),
    ("PR_SET_MM", libc::SYS_prctl, [35, 0, 0], libc::EPERM, MayAgree),
    ("personality, asked", libc::SYS_personality, [0xffff_ffff, 0, 0], 0, MayAgree),
    ("personality, set", libc::SYS_personality, [0x4_0000, 0, 0], libc::EPERM, Differs),
    ("listener", libc::SYS_seccomp, [1, 8, 0], libc::EPERM, Differs),
    ("shmget", libc::SYS_shmget, [0, 1, 0o600], 0, MayAgree),
    ("core limit, page 0", libc::SYS_setrlimit, [4, 1, 0], 0, Differs),
    ("number above the ceiling", 472, [0; 3], libc::ENOSYS, MayAgree),
];

const STRICT: &[Row] = &[
    ("netlink routing", libc::SYS_socket, [16, 3, 0], libc::EAFNOSUPPORT, Differs),
    ("shmget", libc::SYS_shmget, [1, 1, 0], libc::ENOSYS, Differs),
    ("mq_open", libc::SYS_mq_open, [0, 0, 0], libc::ENOSYS, Differs),
    ("sendfile", libc::SYS_sendfile, [NONE, NONE, 0], libc::EINVAL, Differs),
    ("stream", libc::SYS_socket, [2, 1, 0], 0, MayAgree),
    ("TIOCSETD", libc::SYS_ioctl, [NONE, 0x5423, 0], libc::EPERM, Differs),
];

fn answers(rows: &[Row]) -> Vec<i32> {
    rows.iter().map(|(_, number, arguments, ..)| sys::attempt(*number, *arguments)).collect()
}

#[test]
fn the_kernel_answers_as_the_table_says() {
    let levels = [(Level::Strict, STRICT), (Level::Default, DEFAULT), (Level::Compat, COMPAT)];
    for (level, rows) in levels {
        let filter = level.native_program().unwrap().unwrap();
        // Threads, since personality and filters are a thread's own.
        let before = std::thread::spawn(|| answers(rows)).join().unwrap();
        let after = std::thread::spawn(move || {
            sys::install(filter.as_bytes(), filter.len()).unwrap();
            answers(rows)
        });
        let after = after.join().unwrap();
        for (index, (name, _, _, expected, unfiltered)) in rows.iter().enumerate() {
            assert_eq!(after[index], *expected, "{level}: {name}, filtered");
            assert!(
                *unfiltered == MayAgree || before[index] != *expected,
                "{level}: {name} answers {expected} without a filter too"
            );
        }
    }
}

/// What `Action::and_then` says of two filters, from the kernel.
#[test]
fn the_stricter_of_two_filters_decides() {
    let own = |errno: u16| {
        let text = format!(
            r#"{{"own": {{"mismatch_action": "allow", "match_action": {{"errno": {errno}}}, "filter": [
                {{"syscall": "ptrace"}}, {{"syscall": "getppid"}}]}}}}"#
        );
        UserPolicy::from_json(&text, Arch::native().unwrap()).unwrap()
    };
    let calls = ["ptrace", "getppid", "setns"];
    let level = Level::Default.policy(Arch::native().unwrap()).unwrap();
    let filter = Level::Default.native_program().unwrap().unwrap();
    for errno in [9, 13] {
        let own = own(errno);
        let expected = calls.map(|name| {
            let number = Arch::X86_64.call_number(name).unwrap();
            let call = Call::native(Arch::X86_64, number, [NONE; 6]);
            level.evaluate(&call).and_then(own.evaluate(&call))
        });
        let answers = std::thread::spawn(move || {
            sys::install(filter.as_bytes(), filter.len()).unwrap();
            sys::install(own.program().as_bytes(), own.program().len()).unwrap();
            calls.map(|name| {
                let number = Arch::X86_64.call_number(name).unwrap();
                sys::attempt(number.into(), [NONE; 3])
            })
        });
        for ((name, expected), answer) in calls.iter().zip(expected).zip(answers.join().unwrap()) {
            let Action::Errno(expected) = expected else { panic!("{name}: {expected}") };
            let expected = i32::try_from(expected.number()).unwrap();
            assert_eq!(answer, expected, "{name}, {errno}");
        }
    }
}

#[test]
fn the_core_limit_stays() {
    let filter = Level::Compat.native_program().unwrap().unwrap();
    let [soft, hard] = sys::core_limit().unwrap();
    let after = std::thread::spawn(move || {
        sys::install(filter.as_bytes(), filter.len()).unwrap();
        sys::set_core_limit([u64::from(soft == 0), hard]).unwrap();
        sys::core_limit().unwrap()
    });
    assert_eq!(after.join().unwrap(), [soft, hard]);
}
