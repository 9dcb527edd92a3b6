//! Builds a profile field by field; checks it once, at the end.

use std::path::PathBuf;

use postern_seccomp::Level;

use super::{
    Bind, Cgroup, Etc, Landlock, Limits, Loopback, MountSpec, Namespaces, ProcKind, Root,
    SandboxProfile, SharedGroups, SharedUid, Workspace, WorkspaceAccess, check,
};
use crate::error::Refusal;

/// Builds a [`SandboxProfile`], starting from the default one.
///
/// List methods add to the list; every other method replaces the value.
#[derive(Debug, Clone, Default)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct SandboxProfileBuilder {
    profile: SandboxProfile,
}

/// One method per field: `set` replaces a value, `some` an optional one, `add` extends a list.
macro_rules! fields {
    ($($kind:ident $field:ident: $type:ty),* $(,)?) => {$(
        #[doc = concat!("See [`SandboxProfile::", stringify!($field), "`].")]
        pub fn $field(mut self, value: fields!(@argument $kind $type)) -> Self {
            fields!(@act $kind self.profile.$field, value);
            self
        }
    )*};
    (@argument set $type:ty) => { $type };
    (@argument some $type:ty) => { impl Into<$type> };
    (@argument add $type:ty) => { impl IntoIterator<Item = impl Into<$type>> };
    (@act set $place:expr, $value:ident) => { $place = $value };
    (@act some $place:expr, $value:ident) => { $place = Some($value.into()) };
    (@act add $place:expr, $value:ident) => { $place.extend($value.into_iter().map(Into::into)) };
}

impl SandboxProfileBuilder {
    fields! {
        set workspace: Workspace,
        set root: Root,
        some rootfs: PathBuf,
        some python: String,
        some venv: PathBuf,
        add ro_binds: Bind,
        add required_ro_binds: Bind,
        add rw_binds: Bind,
        add mounts: MountSpec,
        add stubs: PathBuf,
        set etc: Etc,
        set proc: ProcKind,
        set loopback: Loopback,
        set namespaces: Namespaces,
        set seccomp: Level,
        some seccomp_policy: String,
        set landlock: Landlock,
        set tmp_bytes: u64,
        set tmp_inodes: u64,
        set shm_bytes: u64,
        set shm_inodes: u64,
        set pty_max: u32,
        set limits: Limits,
        set cgroup: Cgroup,
        some host_uid: u32,
        some host_gid: u32,
        some cwd: PathBuf,
        set shared_uid: SharedUid,
        set shared_groups: SharedGroups,
        set oom_score_adj: i16,
    }

    /// Adds one variable. See [`SandboxProfile::env`].
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.profile.env.insert(name.into(), value.into());
        self
    }

    /// See [`SandboxProfile::guest_uid`]; 0 and `None` both mean uid 0 inside.
    pub fn guest_uid(mut self, uid: impl Into<Option<u32>>) -> Self {
        self.profile.guest_uid = uid.into().filter(|uid| *uid != 0);
        self
    }

    /// See [`SandboxProfile::guest_gid`]; 0 and `None` both mean gid 0 inside.
    pub fn guest_gid(mut self, gid: impl Into<Option<u32>>) -> Self {
        self.profile.guest_gid = gid.into().filter(|gid| *gid != 0);
        self
    }

    /// See [`SandboxProfile::hostname`].
    pub fn hostname(mut self, hostname: impl Into<String>) -> Self {
        self.profile.hostname = hostname.into();
        self
    }

    /// A directory of the caller's as the workspace, left as it is.
    pub fn workspace_directory(self, path: impl Into<PathBuf>) -> Self {
        self.workspace(Workspace::Directory { path: path.into(), access: WorkspaceAccess::AsIs })
    }

    /// Checks what can be checked without looking at a machine.
    ///
    /// # Errors
    ///
    /// The first rule that the profile breaks, as a [`Refusal`] that names the field.
    pub fn build(self) -> Result<SandboxProfile, Refusal> {
        check(&self.profile)?;
        Ok(self.profile)
    }
}
