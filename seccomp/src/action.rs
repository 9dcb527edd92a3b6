//! What a filter answers to a call, and the word the kernel reads for it.

use core::fmt;

/// The answer to one system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// The kernel carries the call out.
    Allow,
    /// The call fails with this error and does nothing.
    Errno(Errno),
    /// The call returns 0 and does nothing.
    Succeed,
    /// The kernel ends the whole process with `SIGSYS`.
    KillProcess,
}

impl Action {
    /// The `SECCOMP_RET_*` word of this answer.
    #[must_use]
    pub const fn word(self) -> u32 {
        const SECCOMP_RET_KILL_PROCESS: u32 = 0x8000_0000;
        const SECCOMP_RET_ERRNO: u32 = 0x0005_0000;
        const SECCOMP_RET_ALLOW: u32 = 0x7fff_0000;
        match self {
            Self::Allow => SECCOMP_RET_ALLOW,
            Self::Errno(errno) => SECCOMP_RET_ERRNO | errno.number(),
            // An error of 0 is returned as 0, which every caller takes for success.
            Self::Succeed => SECCOMP_RET_ERRNO,
            Self::KillProcess => SECCOMP_RET_KILL_PROCESS,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow => f.write_str("allow"),
            Self::Errno(errno) => errno.fmt(f),
            Self::Succeed => f.write_str("succeed"),
            Self::KillProcess => f.write_str("kill"),
        }
    }
}

/// The errors that policies answer with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Errno {
    /// `EPERM`: the call exists and is refused.
    Eperm,
    /// `ENOSYS`: as on a kernel without the call, so that callers fall back to an older one.
    Enosys,
    /// `EAFNOSUPPORT`: as on a kernel without the socket family.
    Eafnosupport,
}

impl Errno {
    /// The error number, the same on every [`Arch`](crate::Arch) here.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Eperm => 1,
            Self::Enosys => 38,
            Self::Eafnosupport => 97,
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Eperm => "EPERM",
            Self::Enosys => "ENOSYS",
            Self::Eafnosupport => "EAFNOSUPPORT",
        })
    }
}
