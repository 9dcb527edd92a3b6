//! What a bwrap command line asks for, in its order; whether it can be had is decided elsewhere.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::PathBuf;

/// One command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option that is there or not")]
pub(crate) struct Invocation {
    /// What is done to the mount tree, in order.
    pub(crate) setup: Vec<Setup>,
    pub(crate) namespaces: Namespaces,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) hostname: Option<OsString>,
    pub(crate) chdir: Option<PathBuf>,
    /// What happens to the environment, in order.
    pub(crate) environment: Vec<Environment>,
    /// What happens to the capabilities, in order.
    pub(crate) capabilities: Vec<CapabilityChange>,
    pub(crate) filters: Filters,
    /// Files to hold a shared lock on.
    pub(crate) locks: Vec<PathBuf>,
    /// Descriptors to keep open.
    pub(crate) sync_fds: Vec<RawFd>,
    pub(crate) block_fd: Option<RawFd>,
    pub(crate) userns_block_fd: Option<RawFd>,
    pub(crate) info_fd: Option<RawFd>,
    pub(crate) json_status_fd: Option<RawFd>,
    pub(crate) new_session: bool,
    pub(crate) die_with_parent: bool,
    pub(crate) as_pid_1: bool,
    pub(crate) level_prefix: bool,
    /// Some steps may fail without a word.
    pub(crate) not_a_security_boundary: bool,
    /// Our own walls as well.
    pub(crate) hardened: bool,
    pub(crate) argv0: Option<OsString>,
    /// The program and its arguments; never empty.
    pub(crate) command: Vec<OsString>,
    /// What to say before anything is done.
    pub(crate) warnings: Vec<String>,
}

/// Which namespaces the program gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option that is there or not")]
pub(crate) struct Namespaces {
    pub(crate) user: Wish,
    pub(crate) cgroup: Wish,
    pub(crate) ipc: bool,
    pub(crate) pid: bool,
    pub(crate) net: bool,
    pub(crate) uts: bool,
    /// Kept although all others are new.
    pub(crate) share_net: bool,
    /// Descriptors of namespaces to join.
    pub(crate) userns: Option<RawFd>,
    pub(crate) userns2: Option<RawFd>,
    pub(crate) pidns: Option<RawFd>,
    pub(crate) disable_userns: bool,
    pub(crate) assert_userns_disabled: bool,
}

/// How much a namespace is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wish {
    #[default]
    No,
    IfPossible,
    Yes,
}

/// One change of the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Environment {
    Clear,
    Set(OsString, OsString),
    Unset(OsString),
}

/// One change of the capabilities that the program keeps; none means all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CapabilityChange {
    Add(Option<u8>),
    Drop(Option<u8>),
}

/// Programs for seccomp(2), to be read from descriptors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Filters {
    #[default]
    None,
    /// Of `--seccomp`, the last one.
    One(RawFd),
    /// Of `--add-seccomp-fd`, in order.
    Stacked(Vec<RawFd>),
}

/// What is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Path(PathBuf),
    Fd(RawFd),
}

/// What may be done through a bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BindAccess {
    ReadWrite,
    ReadOnly,
    /// Device nodes work as well.
    Devices,
}

/// Where the writes to an overlay go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Upper {
    /// To a directory of the host.
    Directory { upper: PathBuf, work: PathBuf },
    /// To memory.
    Memory,
    /// There are none.
    ReadOnly,
}

/// One thing done to the mount tree. Modes are permission bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Setup {
    Bind {
        source: Source,
        target: PathBuf,
        access: BindAccess,
        may_miss: bool,
    },
    RemountReadOnly {
        target: PathBuf,
    },
    /// The lowest layer last.
    Overlay {
        layers: Vec<PathBuf>,
        upper: Upper,
        target: PathBuf,
    },
    Proc {
        target: PathBuf,
    },
    Dev {
        target: PathBuf,
    },
    Tmpfs {
        target: PathBuf,
        mode: Option<u32>,
        size_bytes: Option<u64>,
    },
    Mqueue {
        target: PathBuf,
    },
    Dir {
        target: PathBuf,
        mode: Option<u32>,
    },
    /// A file with the contents of a descriptor.
    File {
        fd: RawFd,
        target: PathBuf,
        mode: Option<u32>,
    },
    /// As a file, but mounted over what is there.
    BindData {
        fd: RawFd,
        target: PathBuf,
        mode: Option<u32>,
        read_only: bool,
    },
    Symlink {
        to: PathBuf,
        target: PathBuf,
    },
    Chmod {
        target: PathBuf,
        mode: u32,
    },
}
