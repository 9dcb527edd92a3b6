//! x86_64: system-call numbers and entry, as in `syscall(2)` and the psABI's kernel appendix.
#![expect(unsafe_code, reason = "the system-call instruction has no safe form")]

use core::arch::{asm, naked_asm};

macro_rules! numbers {
    ($($name:ident = $nr:literal,)*) => {
        /// System-call numbers of this architecture.
        #[expect(missing_docs, reason = "each is the system call's own name")]
        pub mod nr { $(pub const $name: usize = $nr;)* }
    };
}

numbers! {
    READ = 0, WRITE = 1, CLOSE = 3, MMAP = 9, MUNMAP = 11, RT_SIGACTION = 13, RT_SIGPROCMASK = 14,
    IOCTL = 16, PREAD64 = 17, SOCKET = 41, SENDTO = 44, SENDMSG = 46, RECVMSG = 47, SOCKETPAIR = 53, CLONE = 56, EXECVE = 59, WAIT4 = 61,
    KILL = 62, FCNTL = 72, UMASK = 95, FCHDIR = 81, GETPID = 39, CHDIR = 80, GETCWD = 79, SETSID = 112, SETGROUPS = 116,
    SETRESUID = 117, GETRESUID = 118, SETRESGID = 119, GETRESGID = 120, CAPSET = 126,
    PRCTL = 157, PIVOT_ROOT = 155, CHROOT = 161, MOUNT = 165, UMOUNT2 = 166, SETHOSTNAME = 170,
    EXIT_GROUP = 231, SCHED_SETAFFINITY = 203, SCHED_GETAFFINITY = 204, WAITID = 247, KEYCTL = 250, OPENAT = 257, MKDIRAT = 258, SYMLINKAT = 266,
    FCHOWNAT = 260, FCHMODAT = 268, PPOLL = 271, UNSHARE = 272, SIGNALFD4 = 289, DUP3 = 292, SETNS = 308, GETCPU = 309,
    PRLIMIT64 = 302, SECCOMP = 317, EXECVEAT = 322, STATX = 332, OPEN_TREE = 428,
    MOVE_MOUNT = 429, FSOPEN = 430, FSCONFIG = 431, FSMOUNT = 432, CLONE3 = 435,
    CLOSE_RANGE = 436, OPENAT2 = 437, MOUNT_SETATTR = 442, MKNODAT = 259,
    UNLINKAT = 263, READLINKAT = 267, FACCESSAT = 269,
    LANDLOCK_CREATE_RULESET = 444, LANDLOCK_ADD_RULE = 445, LANDLOCK_RESTRICT_SELF = 446,
}

/// The kernel's view of a `struct sigaction` with the default disposition.
pub type KernelSigaction = [u64; 4];

/// Makes a system call with up to six arguments; returns the raw result (negative: an errno).
///
/// # Safety
/// The arguments must be what the kernel expects for `nr`: pointers valid for what it reads and
/// writes, and no effect that breaks memory this program still uses.
#[inline]
pub unsafe fn syscall(nr: usize, args: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = args;
    let result: isize;
    // SAFETY: the caller vouches for the arguments; the kernel clobbers rcx and r11 only.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") nr => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack, preserves_flags),
        );
    }
    result
}

/// Ends the process at once, for a place that a refused `exit_group` would otherwise leave.
pub fn trap() {
    // SAFETY: an undefined instruction touches no memory; the kernel answers with SIGILL.
    unsafe { asm!("ud2", options(nomem, nostack, noreturn)) }
}

/// `clone(2)` with its own stack: the child enters `entry(argument)` and never returns here.
///
/// Needed because a child that shares memory must not return through its parent's frames.
///
/// # Safety
/// `stack_top` must be the 16-byte aligned end of memory that nothing else uses until the child
/// has exec'ed or exited; `pidfd` must be writable or null as `flags` ask; `entry` may touch only
/// what stays valid in the child, and may not use thread-local storage with `CLONE_VM`.
#[unsafe(naked)]
pub unsafe extern "C" fn clone_on_stack(
    flags: usize,
    stack_top: *mut u8,
    pidfd: *mut i32,
    entry: unsafe extern "C" fn(*mut u8) -> !,
    argument: *mut u8,
) -> isize {
    naked_asm!(
        // entry and argument must survive the call in registers that the kernel keeps.
        "mov r9, rcx",
        "mov eax, {clone}",
        "xor r10d, r10d",
        // r8 (argument) is also the tls argument of clone: unused without CLONE_SETTLS.
        "syscall",
        "test rax, rax",
        "jz 2f",
        "ret",
        "2:",
        "xor ebp, ebp",
        "mov rdi, r8",
        "call r9",
        "ud2",
        clone = const nr::CLONE,
    )
}
