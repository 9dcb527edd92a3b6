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
    /// The call does nothing and the thread gets `SIGSYS`, which it may handle.
    Trap,
    /// The kernel ends the thread with `SIGSYS`.
    KillThread,
    /// The kernel ends the whole process with `SIGSYS`.
    KillProcess,
}

impl Action {
    /// The `SECCOMP_RET_*` word of this answer.
    #[must_use]
    pub const fn word(self) -> u32 {
        const SECCOMP_RET_KILL_PROCESS: u32 = 0x8000_0000;
        const SECCOMP_RET_KILL_THREAD: u32 = 0;
        const SECCOMP_RET_TRAP: u32 = 0x0003_0000;
        const SECCOMP_RET_ERRNO: u32 = 0x0005_0000;
        const SECCOMP_RET_ALLOW: u32 = 0x7fff_0000;
        match self {
            Self::Allow => SECCOMP_RET_ALLOW,
            Self::Errno(errno) => SECCOMP_RET_ERRNO | errno.number(),
            // An error of 0 is returned as 0, which every caller takes for success.
            Self::Succeed => SECCOMP_RET_ERRNO,
            Self::Trap => SECCOMP_RET_TRAP,
            Self::KillThread => SECCOMP_RET_KILL_THREAD,
            Self::KillProcess => SECCOMP_RET_KILL_PROCESS,
        }
    }

    /// What the kernel does where this filter was installed first and one that answers `later`
    /// after it: the stricter of the two, and of two errors that of the later one.
    #[must_use]
    pub const fn and_then(self, later: Self) -> Self {
        if later.strictness() >= self.strictness() { later } else { self }
    }

    const fn strictness(self) -> u8 {
        match self {
            Self::Allow => 0,
            Self::Errno(_) | Self::Succeed => 1,
            Self::Trap => 2,
            Self::KillThread => 3,
            Self::KillProcess => 4,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow => f.write_str("allow"),
            Self::Errno(errno) => errno.fmt(f),
            Self::Succeed => f.write_str("succeed"),
            Self::Trap => f.write_str("trap"),
            Self::KillThread => f.write_str("kill-thread"),
            Self::KillProcess => f.write_str("kill"),
        }
    }
}

/// An error that a call fails with, the same number on every [`Arch`](crate::Arch) here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(u16);

/// The errors that the levels answer with, by number.
const NAMES: [(Errno, &str); 7] = [
    (Errno::EPERM, "EPERM"),
    (Errno::ENOSYS, "ENOSYS"),
    (Errno::EINVAL, "EINVAL"),
    (Errno::ENOPROTOOPT, "ENOPROTOOPT"),
    (Errno::EPROTONOSUPPORT, "EPROTONOSUPPORT"),
    (Errno::EOPNOTSUPP, "EOPNOTSUPP"),
    (Errno::EAFNOSUPPORT, "EAFNOSUPPORT"),
];

impl Errno {
    /// The call exists and is refused.
    pub const EPERM: Self = Self(1);
    /// The arguments make no sense, as on a kernel that does not know them.
    pub const EINVAL: Self = Self(22);
    /// As on a kernel without the call, so that callers fall back to an older one.
    pub const ENOSYS: Self = Self(38);
    /// As on a kernel without the socket option.
    pub const ENOPROTOOPT: Self = Self(92);
    /// As on a kernel without the protocol.
    pub const EPROTONOSUPPORT: Self = Self(93);
    /// As on a kernel, or a file system, without the operation.
    pub const EOPNOTSUPP: Self = Self(95);
    /// As on a kernel without the socket family.
    pub const EAFNOSUPPORT: Self = Self(97);

    /// The largest number that the kernel returns as an error.
    pub const MAX: u16 = 4095;

    /// The error with this number, 1 to [`Errno::MAX`].
    #[must_use]
    pub const fn new(number: u16) -> Option<Self> {
        if number == 0 || number > Self::MAX { None } else { Some(Self(number)) }
    }

    /// The error number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(errno, _)| errno == self) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}
