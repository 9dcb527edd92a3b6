//! Namespaces, other processes, and what a process says about itself; not its memory or files.

use crate::action::Action;
use crate::condition::Argument::{A0, A1, A2};
use crate::condition::Test::{HasAny, Is, IsNot, NotNull};
use crate::policies::{EINVAL, ENOSYS, EPERM, RLIMIT_CORE, always, arg, when};
use crate::policy::Rule;

/// `CLONE_NEW*` for mount, cgroup, uts, ipc, user, pid and net. `CLONE_NEWTIME` is none of them:
/// `clone` takes that bit for a part of the signal.
const CLONE_NEW_ANY: u32 = 0x7e02_0000;
const SECCOMP_SET_MODE_FILTER: u32 = 1;
const SECCOMP_FILTER_FLAG_NEW_LISTENER: u32 = 1 << 3;
const PR_SET_MM: u32 = 35;
const PR_SET_SYSCALL_USER_DISPATCH: u32 = 59;
const PR_SCHED_CORE: u32 = 62;
/// `Yama`, in letters.
const PR_SET_PTRACER: u32 = 0x5961_6d61;
const PER_LINUX: u32 = 0;
const PER_QUERY: u32 = u32::MAX;

pub(super) const RULES: &[Rule] = &[
    // Namespaces.
    always("unshare", EPERM, "a user namespace of its own gives the guest every capability in it"),
    always("setns", EPERM, "a namespace descriptor would lead out of the sandbox's namespaces"),
    when(
        "clone",
        &[arg(A0, HasAny(CLONE_NEW_ANY))],
        EPERM,
        "the other way to new namespaces, each of which opens kernel code for the guest",
    ),
    always("clone3", ENOSYS, "its flags are in memory, out of sight; libc falls back to clone"),
    // Other processes.
    always("ptrace", EPERM, "takes over another process, and could change calls in flight"),
    always("process_vm_readv", EPERM, "reads another process's memory"),
    always("process_vm_writev", EPERM, "writes another process's memory"),
    always("pidfd_getfd", EPERM, "takes a descriptor out of another process"),
    always("kcmp", EPERM, "tells the order of kernel addresses"),
    always("process_madvise", ENOSYS, "reclaims another process's memory; newer than callers need"),
    always("process_mrelease", ENOSYS, "reaps another process's memory; newer than callers need"),
    // What a process says about itself.
    when(
        "setrlimit",
        &[arg(A0, Is(RLIMIT_CORE)), arg(A1, NotNull)],
        Action::Succeed,
        "core dumps stay off; programs that turn them off themselves exit on an error",
    ),
    when(
        "prlimit64",
        &[arg(A1, Is(RLIMIT_CORE)), arg(A2, NotNull)],
        Action::Succeed,
        "as setrlimit; libc uses this one. An old limit asked for with it is not written",
    ),
    when(
        "personality",
        &[arg(A0, IsNot(PER_LINUX)), arg(A0, IsNot(PER_QUERY))],
        EPERM,
        "turns off address randomisation or makes memory executable; asking stays allowed",
    ),
    when("prctl", &[arg(A0, Is(PR_SET_MM))], EPERM, "forges what the kernel tells of the process"),
    when(
        "prctl",
        &[arg(A0, Is(PR_SET_SYSCALL_USER_DISPATCH))],
        EINVAL,
        "hands calls to a handler; a rare way through the kernel's entry, for emulators",
    ),
    when(
        "prctl",
        &[arg(A0, Is(PR_SCHED_CORE))],
        EINVAL,
        "chooses who shares a core with the guest, which the host should",
    ),
    when("prctl", &[arg(A0, Is(PR_SET_PTRACER))], EINVAL, "lets another process trace this one"),
    when(
        "seccomp",
        &[arg(A0, Is(SECCOMP_SET_MODE_FILTER)), arg(A1, HasAny(SECCOMP_FILTER_FLAG_NEW_LISTENER))],
        EPERM,
        "a supervisor of calls is a large interface; filters without one stay allowed",
    ),
    always("modify_ldt", EPERM, "16-bit segments, an old source of kernel bugs"),
    always("iopl", EPERM, "access to the machine's ports"),
    always("ioperm", EPERM, "access to the machine's ports"),
];
