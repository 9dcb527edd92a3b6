//! Names of the system calls that a launch makes; judges none of them.

use std::fmt;

/// A system call by its number, and by its first argument where that makes it another call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Call {
    pub(super) number: i64,
    pub(super) option: u64,
}

impl Call {
    pub(super) fn new(number: i64, first_argument: u64) -> Call {
        let split = matches!(number, libc::SYS_prctl | libc::SYS_keyctl);
        Call { number, option: if split { first_argument } else { 0 } }
    }
}

const NAMES: [(i64, &str); 63] = [
    (libc::SYS_clone3, "clone3"),
    (libc::SYS_clone, "clone"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_openat2, "openat2"),
    (libc::SYS_close, "close"),
    (libc::SYS_close_range, "close_range"),
    (libc::SYS_read, "read"),
    (libc::SYS_write, "write"),
    (libc::SYS_dup3, "dup3"),
    (libc::SYS_fcntl, "fcntl"),
    (libc::SYS_mmap, "mmap"),
    (libc::SYS_munmap, "munmap"),
    (libc::SYS_execve, "execve"),
    (libc::SYS_execveat, "execveat"),
    (libc::SYS_exit_group, "exit_group"),
    (libc::SYS_rt_sigprocmask, "rt_sigprocmask"),
    (libc::SYS_rt_sigaction, "rt_sigaction"),
    (libc::SYS_signalfd4, "signalfd4"),
    (libc::SYS_prlimit64, "prlimit64"),
    (libc::SYS_setsid, "setsid"),
    (libc::SYS_recvmsg, "recvmsg"),
    (libc::SYS_sendmsg, "sendmsg"),
    (libc::SYS_sendto, "sendto"),
    (libc::SYS_ppoll, "ppoll"),
    (libc::SYS_wait4, "wait4"),
    (libc::SYS_kill, "kill"),
    (libc::SYS_mount, "mount"),
    (libc::SYS_umount2, "umount2"),
    (libc::SYS_umask, "umask"),
    (libc::SYS_fsopen, "fsopen"),
    (libc::SYS_fsconfig, "fsconfig"),
    (libc::SYS_fsmount, "fsmount"),
    (libc::SYS_move_mount, "move_mount"),
    (libc::SYS_open_tree, "open_tree"),
    (libc::SYS_mount_setattr, "mount_setattr"),
    (libc::SYS_mkdirat, "mkdirat"),
    (libc::SYS_fchmodat, "fchmodat"),
    (libc::SYS_symlinkat, "symlinkat"),
    (libc::SYS_statx, "statx"),
    (libc::SYS_fstat, "fstat"),
    (libc::SYS_newfstatat, "newfstatat"),
    (libc::SYS_pivot_root, "pivot_root"),
    (libc::SYS_chroot, "chroot"),
    (libc::SYS_chdir, "chdir"),
    (libc::SYS_fchdir, "fchdir"),
    (libc::SYS_getcwd, "getcwd"),
    (libc::SYS_setgroups, "setgroups"),
    (libc::SYS_setresuid, "setresuid"),
    (libc::SYS_setresgid, "setresgid"),
    (libc::SYS_capset, "capset"),
    (libc::SYS_prctl, "prctl"),
    (libc::SYS_landlock_create_ruleset, "landlock_create_ruleset"),
    (libc::SYS_landlock_add_rule, "landlock_add_rule"),
    (libc::SYS_landlock_restrict_self, "landlock_restrict_self"),
    (libc::SYS_mknodat, "mknodat"),
    (libc::SYS_unlinkat, "unlinkat"),
    (libc::SYS_seccomp, "seccomp"),
    (libc::SYS_keyctl, "keyctl"),
    (libc::SYS_unshare, "unshare"),
    (libc::SYS_sethostname, "sethostname"),
    (libc::SYS_socket, "socket"),
    (libc::SYS_ioctl, "ioctl"),
    (libc::SYS_getpid, "getpid"),
];

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|row| row.0 == self.number).map_or("call", |row| row.1);
        match (name, self.option) {
            ("call", _) => write!(f, "call {}", self.number),
            (name, 0) => f.write_str(name),
            (name, option) => write!(f, "{name}({option})"),
        }
    }
}
