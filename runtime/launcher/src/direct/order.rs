//! What a direct launch does, as data made before the fork; does nothing.

use core::ffi::CStr;

use postern_init::sys::Fd;

/// Everything that the child needs. Targets are relative to the new root, without slashes around
/// them, `.` for the root itself; sources are absolute paths of the host.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a step that is taken or not")]
pub struct Order<'a> {
    /// `CLONE_NEW*` of the clone.
    pub namespaces: u64,
    /// The parent's end of the line, which the child must not keep open: its end tells of the
    /// parent's.
    pub parents_end: Fd,
    /// A new pid namespace within one that was joined.
    pub is_nested_in_joined_pids: bool,
    /// The parent's word is waited for, on the line.
    pub is_gated: bool,
    /// What the child writes to its own maps; none where it has no user namespace of its own, or
    /// somebody else writes them.
    pub maps: Option<Maps<'a>>,
    /// Ids to take, in a user namespace that was joined.
    pub uid: Option<u32>,
    /// Likewise.
    pub gid: Option<u32>,
    /// The bounding set is reduced to what is kept: a user namespace has given all of it back.
    pub has_new_bounding_set: bool,
    /// Bring `lo` up.
    pub loopback: bool,
    /// What is done to the mount tree.
    pub operations: &'a [Operation<'a>],
    /// The pid namespace is not the host's: a procfs can be a new one.
    pub has_own_pids: bool,
    /// A mount below a bind may keep its flags if the kernel insists.
    pub is_fail_open: bool,
    /// The terminal that becomes `/dev/console`.
    pub console: Option<&'a CStr>,
    /// A user namespace joined once the root stands.
    pub second_user: Option<Fd>,
    /// A second user namespace within the first.
    pub inner: Option<Maps<'a>>,
    /// The inner one is the last.
    pub limit_user_namespaces: bool,
    /// Fail if another user namespace can be made.
    pub assert_no_user_namespaces: bool,
    /// Capabilities that the program keeps, a bit each.
    pub capabilities: u64,
    /// The sets are left as they are.
    pub leave_capabilities: bool,
    /// Read a byte from it before the program starts.
    pub block: Option<Fd>,
    /// Working directories, the first that can be entered counts.
    pub directories: &'a [Directory<'a>],
    /// Start a session.
    pub new_session: bool,
    /// Be killed when the parent dies.
    pub die_with_parent: bool,
    /// A process of ours stays between the parent and the program: as PID 1, or to hold locks.
    pub has_init: bool,
    /// Files that it locks, as paths of the new root.
    pub locks: &'a [&'a CStr],
    /// Descriptors that it keeps and the program does not get.
    pub kept: &'a [Fd],
    /// All that it keeps, the line included, in order.
    pub watch_keeps: &'a [Fd],
    /// Descriptors that are for the launch only.
    pub closed: &'a [Fd],
    /// Filters, eight bytes an instruction.
    pub filters: &'a [&'a [u8]],
    /// The walls of ours around it.
    pub hardening: Option<Hardening<'a>>,
    /// The program: with a slash a path, else looked for.
    pub program: &'a CStr,
    /// Directories to look in, separated by colons.
    pub search: &'a CStr,
    /// Its arguments, the name it is called by first.
    pub arguments: &'a [&'a CStr],
    /// Its environment, without the working directory.
    pub environment: &'a [&'a CStr],
}

/// Lines of the id maps of a user namespace.
#[derive(Debug, Clone, Copy)]
pub struct Maps<'a> {
    /// For `uid_map`.
    pub uid: &'a CStr,
    /// For `gid_map`.
    pub gid: &'a CStr,
}

/// A working directory.
#[derive(Debug, Clone, Copy)]
pub struct Directory<'a> {
    /// Where it is.
    pub path: &'a CStr,
    /// The variable that tells the program.
    pub variable: &'a CStr,
    /// It was asked for: that it cannot be entered is a failure.
    pub is_asked: bool,
}

/// Walls beyond what was asked for.
#[derive(Debug, Clone, Copy)]
pub struct Hardening<'a> {
    /// The program's filter, before those asked for.
    pub filter: &'a [u8],
    /// Resource and limit, soft and hard.
    pub limits: &'a [(u32, u64)],
    /// What is covered in `/proc`, by its path there.
    pub masks: &'a [(&'a CStr, Masked)],
}

/// What a masked part of `/proc` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Masked {
    /// A file.
    File,
    /// A directory.
    Directory,
}

/// What a bind takes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Device nodes do not work.
    ReadWrite,
    /// Nor can anything be written.
    ReadOnly,
    /// Only set-user-id bits have no effect.
    Devices,
}

/// Where the writes to an overlay go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upper<'a> {
    /// To a directory of the host.
    Directory {
        /// The directory.
        upper: &'a CStr,
        /// An empty one on the same file system.
        work: &'a CStr,
    },
    /// To memory.
    Memory,
    /// There are none.
    ReadOnly,
}

/// One thing done to the mount tree. Modes are permission bits.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the fields are what the variant says")]
pub enum Operation<'a> {
    /// Binds a tree; `seen` is the device and inode that it must be.
    Bind {
        source: &'a CStr,
        target: &'a CStr,
        access: Access,
        may_miss: bool,
        seen: Option<(u64, u64)>,
    },
    /// Makes one mount read-only.
    RemountReadOnly { target: &'a CStr },
    /// Mounts an overlay, the uppermost layer first.
    Overlay { layers: &'a [&'a CStr], upper: Upper<'a>, target: &'a CStr },
    /// Mounts a procfs, or binds the host's.
    Proc { target: &'a CStr },
    /// Mounts a minimal `/dev`.
    Dev { target: &'a CStr },
    /// Mounts a tmpfs; the size in bytes, as text.
    Tmpfs { target: &'a CStr, mode: u32, size: Option<&'a CStr> },
    /// Mounts an mqueue.
    Mqueue { target: &'a CStr },
    /// Makes a directory.
    Dir { target: &'a CStr, mode: u32 },
    /// Writes a file.
    File { fd: Fd, target: &'a CStr, mode: u32 },
    /// Mounts a file that has no name over what is there.
    BindData { fd: Fd, target: &'a CStr, mode: u32, access: Access },
    /// Makes a link, unless it is there.
    Symlink { to: &'a CStr, target: &'a CStr },
    /// Changes a mode.
    Chmod { target: &'a CStr, mode: u32 },
    /// Sets the hostname.
    Hostname { name: &'a CStr },
}
