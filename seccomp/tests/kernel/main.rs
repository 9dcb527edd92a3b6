//! The filter in the running kernel, installed on threads of this process.

use postern_seccomp::{Arch, Level, program};

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

const ROWS: &[Row] = &[
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

fn answers() -> Vec<i32> {
    ROWS.iter().map(|(_, number, arguments, ..)| sys::attempt(*number, *arguments)).collect()
}

#[test]
fn the_kernel_answers_as_the_table_says() {
    let filter = program(Level::Compat, Arch::native().unwrap()).unwrap().unwrap();
    let before = answers();
    let after = std::thread::spawn(move || {
        sys::install(filter.as_bytes(), filter.len()).unwrap();
        answers()
    });
    let after = after.join().unwrap();
    for (index, (name, _, _, expected, unfiltered)) in ROWS.iter().enumerate() {
        assert_eq!(after[index], *expected, "{name}, filtered");
        assert!(
            *unfiltered == MayAgree || before[index] != *expected,
            "{name} answers {expected} without a filter too"
        );
    }
}

#[test]
fn the_core_limit_stays() {
    let filter = program(Level::Compat, Arch::native().unwrap()).unwrap().unwrap();
    let [soft, hard] = sys::core_limit().unwrap();
    let after = std::thread::spawn(move || {
        sys::install(filter.as_bytes(), filter.len()).unwrap();
        sys::set_core_limit([u64::from(soft == 0), hard]).unwrap();
        sys::core_limit().unwrap()
    });
    assert_eq!(after.join().unwrap(), [soft, hard]);
}
