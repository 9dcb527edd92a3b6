//! Why a profile is refused before anything is started: one variant a rule; the words are in
//! `words`, the rules themselves in `profile::rules` and `plan::rules`.

use std::path::PathBuf;

use postern_seccomp::UserPolicyError;

use crate::cgroup::CgroupGap;
use crate::host::{Capability, LandlockSupport};
use crate::plan::{CgroupResource, WhyShared};
use crate::profile::{Bind, Field};

mod venv;
mod words;

pub use venv::PythonHidden;

/// A rule that the profile breaks, by itself or on this host.
///
/// `Display` says what is wrong and what to do; [`Refusal::rule`] names the rule and
/// [`Refusal::field`] the field. Nothing has been started when one is returned.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields of a variant are what its sentence names")]
pub enum Refusal {
    /// A path or name is empty.
    Empty { field: Field },
    /// A text holds a NUL byte, which no system call can take.
    Nul { field: Field },
    /// A path does not begin with `/`.
    Relative { field: Field, path: PathBuf },
    /// A path has a `.` or `..` component.
    Dots { field: Field, path: PathBuf },
    /// A path is longer than 4095 bytes, or one of its names longer than 255.
    TooLong { field: Field },
    /// A mount would cover, or lie within, a place that the sandbox keeps for itself.
    TargetReserved { field: Field, target: PathBuf, reserved: &'static str },
    /// Two entries of the list fields have one target.
    TargetDuplicate { field: Field, other: Field, target: PathBuf },
    /// A target of a list field lies beneath a later mount that would hide it.
    TargetHidden { field: Field, target: PathBuf, mount: PathBuf },
    /// A target lies within a bind that has no such path to mount on.
    TargetMissing { field: Field, target: PathBuf, source: PathBuf },
    /// A directory would be mounted on a file, or a file on a directory.
    TargetKind { field: Field, target: PathBuf },
    /// A target lies within a bind, behind a symbolic link that leaves the bind.
    TargetBehindLink { field: Field, target: PathBuf },
    /// Something else has already been put at the place of a listed link or file.
    TargetTaken { field: Field, target: PathBuf },
    /// A directory, link or file would have to be made on a host file system.
    TargetNotOurs { field: Field, target: PathBuf, source: PathBuf },
    /// A host path that must exist does not.
    SourceMissing { field: Field, path: PathBuf },
    /// The service itself cannot look at a host path.
    SourceUnreachable { field: Field, path: PathBuf, errno: i32 },
    /// A source lies behind a symbolic link in a directory that guests may write to.
    SourceBehindLink { field: Field, path: PathBuf, writable: PathBuf },
    /// The host's `/` would be bound.
    SourceRoot { field: Field },
    /// The host's `/proc` would be bound.
    SourceProc { field: Field, path: PathBuf },
    /// Two stubs have one file name, or one has none.
    StubName { field: Field, name: String },
    /// The virtual environment has no `bin/python`.
    VenvWithoutPython { path: PathBuf },
    /// The virtual environment's `bin/python` leads to nothing.
    VenvPythonDangling { venv: PathBuf, missing: PathBuf, rootfs: Option<PathBuf> },
    /// The interpreter behind the virtual environment is not shown to the guest unasked; `binds`
    /// for `required_ro_binds` ask for it.
    VenvPythonHidden { venv: PathBuf, interpreter: PathBuf, why: PythonHidden, binds: Vec<Bind> },
    /// The guest's kernel uid, where it is known before the launch, or any leased one may not use
    /// this file or directory, which its Python interpreter needs.
    VenvPythonForbidden { venv: PathBuf, path: PathBuf, owner: u32, mode: u32, id: Option<u32> },
    /// A directory was asked for and something else is there.
    NotDirectory { field: Field, path: PathBuf },
    /// A rootfs and the host's own root exclude one another.
    RootfsWithHostView,
    /// The system base has no `usr` directory.
    UsrMissing { base: PathBuf },
    /// A device node that every program expects is missing or is another device.
    Device { path: PathBuf },
    /// The guest's kernel uid, where it is known before the launch, or any leased one could not
    /// write to the caller's workspace.
    WorkspaceNotWritable { path: PathBuf, owner: u32, mode: u32, id: Option<u32> },
    /// The service may not change the mode of the caller's workspace.
    WorkspaceNotOwned { path: PathBuf, owner: u32 },
    /// Set-id files that a guest makes in a caller's workspace of root's would be root's.
    WorkspaceOfRoot { path: PathBuf, owner: u32, group: u32 },
    /// Only a service that may mount, or owns the directory, can have the guest's files be the
    /// owner's.
    WorkspaceNotMappable { path: PathBuf, owner: u32 },
    /// The id `(uid_t) -1`, which system calls take for "no change".
    IdImpossible { field: Field },
    /// The guest would be root on the host.
    HostIdZero { field: Field },
    /// The id is not in the service's own user namespace.
    HostIdUnmapped { field: Field, id: u32 },
    /// A service without capabilities has no id but its own.
    HostIdNotOwn { field: Field, id: u32, own: u32 },
    /// No range of ids for sandboxes lies within the service's user namespace.
    NoIdRange { field: Field },
    /// Uid 0 without the capabilities that give the guest another id.
    MissingCapabilities { missing: Vec<Capability> },
    /// The guest's kernel uid would be the service's own and the profile refuses that.
    SharedUid { why: WhyShared },
    /// Supplementary groups would stay with the guest and the profile refuses that.
    SharedGroups { groups: Vec<u32> },
    /// The kernel offers less Landlock than the profile requires.
    LandlockTooOld { required: u32, found: LandlockSupport },
    /// A limit of the run as a whole cannot be held here and the profile requires it.
    CgroupUnavailable { limit: CgroupResource, gap: CgroupGap },
    /// A number is smaller than can work.
    TooSmall { field: Field, value: i64, least: i64 },
    /// A number is larger than the kernel takes or sense allows.
    TooLarge { field: Field, value: u64, most: u64 },
    /// Bits outside 0o7777.
    Mode { field: Field, mode: u32 },
    /// The name of a variable is empty or holds `=`.
    EnvName { name: String },
    /// A variable's value holds a NUL byte.
    EnvNul { name: String },
    /// The hostname has no byte or more than 64.
    HostnameLength { bytes: usize },
    /// The hostname holds a control character or a space.
    HostnameCharacter { character: char },
    /// The working directory does not exist in the guest.
    CwdMissing { path: PathBuf },
    /// The profile's own system-call policy breaks one of the rules of policies.
    SeccompPolicy { error: UserPolicyError },
    /// The host facts were gathered for another profile.
    NotProbed { path: PathBuf },
}
