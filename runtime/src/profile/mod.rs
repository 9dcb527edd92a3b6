//! What a user asks for, in the user's words; it decides nothing and looks at no machine.
//!
//! [`plan::resolve`](crate::plan::resolve) turns a [`SandboxProfile`] into a plan.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use postern_seccomp::{Arch, Level, UserPolicy, UserPolicyError};
use serde::{Deserialize, Serialize};

mod bind;
mod bounds;
mod builder;
mod cgroup;
mod choices;
mod field;
mod file;
mod interest;
mod limits;
mod rules;
#[cfg(any(test, feature = "schema"))]
mod schema;

pub use bind::{Bind, BindAccess, BindSyntaxError, Missing, MountSpec};
pub use builder::SandboxProfileBuilder;
pub use cgroup::{Cgroup, CgroupNeed, CgroupService};
pub use choices::{
    Etc, Landlock, Loopback, Namespaces, ProcKind, Root, SharedGroups, SharedUid, Sharing,
    Workspace, WorkspaceAccess,
};
pub use field::Field;
pub use file::{PROFILE_BYTES_MAX, Place, Position, ProfileFileError};
pub use limits::Limits;
pub(crate) use rules::{ListedBind, check, list_binds};
#[cfg(any(test, feature = "schema"))]
pub use schema::schema;

use crate::error::Refusal;

/// The guide's examples in Rust are tried like those of these pages.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/profiles.md")]
struct Guide;

/// Where the guest's workspace is, except under [`Root::HostView`] on a host without such a
/// directory.
pub const WORKSPACE: &str = "/workspace";

/// Everything a user can say about a sandbox.
///
/// `SandboxProfile::default()` is a complete, closed world: no host file but the system
/// directories, no network but loopback, a bounded workspace, finite limits.
///
/// ```
/// use postern::profile::SandboxProfile;
///
/// let profile = SandboxProfile::builder().venv("/opt/analysis-env").env("TZ", "UTC").build()?;
/// assert!(profile.python_program().ends_with("bin/python"));
/// # Ok::<(), postern::error::Refusal>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SandboxProfile {
    /// The directory that the guest may write to; default owned, 256 MiB.
    pub workspace: Workspace,
    /// What `/` is made of; default curated.
    pub root: Root,
    /// A directory whose system directories stand in for the host's, such as an unpacked image;
    /// default none. Its symbolic links are resolved within it. Not with [`Root::HostView`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rootfs: Option<PathBuf>,
    /// The guest's Python interpreter: a name for its `PATH` or an absolute guest path; default
    /// `bin/python` of `venv`, else `python3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// A virtual environment, bound read-only at its own path; default none. Its `bin` leads
    /// `PATH` and `VIRTUAL_ENV` names it. The installation of its interpreter is bound read-only
    /// at its own path too, unless the guest sees it anyway; with `rootfs` it is that of the rootfs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub venv: Option<PathBuf>,
    /// Host paths bound read-only where they exist; default none.
    ///
    /// The binds of this list and the next two are made parents first, whatever their order.
    pub ro_binds: Vec<Bind>,
    /// Host paths bound read-only that must exist; default none.
    pub required_ro_binds: Vec<Bind>,
    /// Host paths bound read-write that must exist; default none.
    pub rw_binds: Vec<Bind>,
    /// Further mounts, made after the lists above and in this order; default none.
    pub mounts: Vec<MountSpec>,
    /// Importable modules, seen read-only at `/run/postern/stubs`, which leads `PYTHONPATH`;
    /// default none. One directory is seen as that directory; anything else by its file name in it.
    pub stubs: Vec<PathBuf>,
    /// Environment of the guest, over `PATH`, `HOME`, `TMPDIR` and `LANG`; nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// What `/etc` holds; default generated.
    pub etc: Etc,
    /// What `/proc` is; default read-only.
    pub proc: ProcKind,
    /// Whether `lo` is up; default up.
    pub loopback: Loopback,
    /// Which namespaces are the run's own; default all.
    pub namespaces: Namespaces,
    /// The level of the system-call filter; [`Level::Default`] unless another is named.
    #[serde(with = "level")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "schema::LevelName"))]
    pub seccomp: Level,
    /// A policy of your own over the filter, for the guest's program and what it starts; default
    /// none. It is the text of one filter in the JSON of the crate
    /// [`seccompiler`](https://docs.rs/seccompiler), and can only tighten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seccomp_policy: Option<String>,
    /// The kernel's Landlock; default as much as there is.
    pub landlock: Landlock,
    /// Bytes of `/tmp`; default 64 MiB. Each run has a `/tmp` of its own, unless a mount of the
    /// profile lies beneath it: then all runs of the sandbox share one, as they do the workspace.
    pub tmp_bytes: u64,
    /// Inodes of `/tmp`; default 16,384.
    pub tmp_inodes: u64,
    /// Bytes of each run's `/dev/shm`, and of its System V shared memory; default 64 MiB.
    pub shm_bytes: u64,
    /// Inodes of each run's `/dev/shm`; default 16,384.
    pub shm_inodes: u64,
    /// Pseudo-terminals that one run may open; default 16, 0 is none at all.
    pub pty_max: u32,
    /// Resource limits.
    pub limits: Limits,
    /// Limits of a run as a whole; default none.
    pub cgroup: Cgroup,
    /// The guest's uid as it sees it; default 65534. 0 is uid 0 inside, and `None` here.
    #[serde(with = "guest_id")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "u32"))]
    pub guest_uid: Option<u32>,
    /// The guest's gid as it sees it; default 65534. 0 is gid 0 inside, and `None` here.
    #[serde(with = "guest_id")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "u32"))]
    pub guest_gid: Option<u32>,
    /// The guest's uid as the host's kernel sees it; default one leased per sandbox, or the
    /// service's own where it has no right to another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_uid: Option<u32>,
    /// The guest's gid as the host's kernel sees it; default as for `host_uid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_gid: Option<u32>,
    /// The hostname inside, 1 to 64 bytes; default `sandbox`. Unused where `uts` is shared.
    /// See [sethostname(2)](https://man7.org/linux/man-pages/man2/sethostname.2.html).
    pub hostname: String,
    /// The guest's working directory; default its workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// What to do where the guest's kernel uid would be the service's own; default report. It is
    /// where the service has neither the right to change ids nor subordinate ids, and where the
    /// profile binds what the service's own ids alone may use.
    pub shared_uid: SharedUid,
    /// What to do about supplementary groups that this host cannot drop; default report.
    pub shared_groups: SharedGroups,
    /// `oom_score_adj` of every process of a run, 0 to 1000; default 500, so that the kernel
    /// takes a guest before the service.
    /// See [proc_pid_oom_score_adj(5)](https://man7.org/linux/man-pages/man5/proc_pid_oom_score_adj.5.html).
    pub oom_score_adj: i16,
}

impl Default for SandboxProfile {
    fn default() -> Self {
        Self {
            workspace: Workspace::default(),
            root: Root::Curated,
            rootfs: None,
            python: None,
            venv: None,
            ro_binds: Vec::new(),
            required_ro_binds: Vec::new(),
            rw_binds: Vec::new(),
            mounts: Vec::new(),
            stubs: Vec::new(),
            env: BTreeMap::new(),
            etc: Etc::Generated,
            proc: ProcKind::ReadOnly,
            loopback: Loopback::Up,
            namespaces: Namespaces::default(),
            seccomp: Level::Default,
            seccomp_policy: None,
            landlock: Landlock::Use,
            tmp_bytes: 64 << 20,
            tmp_inodes: 16_384,
            shm_bytes: 64 << 20,
            shm_inodes: 16_384,
            pty_max: 16,
            limits: Limits::default(),
            cgroup: Cgroup::default(),
            guest_uid: Some(65_534),
            guest_gid: Some(65_534),
            host_uid: None,
            host_gid: None,
            hostname: "sandbox".to_owned(),
            cwd: None,
            shared_uid: SharedUid::Report,
            shared_groups: SharedGroups::Report,
            oom_score_adj: 500,
        }
    }
}

impl SandboxProfile {
    /// Starts from the default profile.
    pub fn builder() -> SandboxProfileBuilder {
        SandboxProfileBuilder::default()
    }

    /// The default profile with a virtual environment.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] when `path` is not an absolute path without `.` and `..`. Whether the
    /// environment exists is looked at when the plan is made.
    pub fn with_venv(path: impl Into<PathBuf>) -> Result<Self, Refusal> {
        Self::builder().venv(path).build()
    }

    /// The Python interpreter that the guest runs: `python`, else the one of `venv`, else
    /// `python3`.
    pub fn python_program(&self) -> PathBuf {
        match (&self.python, &self.venv) {
            (Some(python), _) => PathBuf::from(python),
            (None, Some(venv)) => venv.join("bin/python"),
            (None, None) => PathBuf::from("python3"),
        }
    }

    /// The profile's own system-call policy, read and compiled.
    pub(crate) fn user_policy(&self) -> Result<Option<UserPolicy>, Refusal> {
        let Some(text) = &self.seccomp_policy else { return Ok(None) };
        let arch = Arch::native().map_err(UserPolicyError::Program);
        let policy = arch.and_then(|arch| UserPolicy::from_json(text, arch));
        let policy = policy.and_then(|policy| {
            policy.check_tightens(self.seccomp)?;
            Ok(policy)
        });
        policy.map(Some).map_err(|error| Refusal::SeccompPolicy { error })
    }

    /// The host directory that holds the system directories.
    pub(crate) fn system_base(&self) -> &Path {
        self.rootfs.as_deref().unwrap_or(Path::new("/"))
    }
}

/// A guest id, where 0 in a file is `None`, the root inside.
mod guest_id {
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "the shape that serde's `with` calls")]
    pub(super) fn serialize<S: Serializer>(
        id: &Option<u32>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(id.unwrap_or(0))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<u32>, D::Error> {
        Ok(Some(u32::deserialize(deserializer)?).filter(|id| *id != 0))
    }
}

/// A seccomp level by its name.
mod level {
    use postern_seccomp::Level;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    /// The names of all levels, as serde's errors want them.
    pub(super) const NAMES: &[&str] = &{
        let mut names = [""; Level::ALL.len()];
        let mut index = 0;
        while index < names.len() {
            names[index] = Level::ALL[index].name();
            index += 1;
        }
        names
    };

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde's `with` calls")]
    pub(super) fn serialize<S: Serializer>(
        level: &Level,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(level)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Level, D::Error> {
        let word = String::deserialize(deserializer)?;
        word.parse().map_err(|_unknown| D::Error::unknown_variant(&word, NAMES))
    }
}
