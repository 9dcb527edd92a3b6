//! The rules that a profile can break by itself: one rule, one function, one [`Refusal`] variant.
//! What depends on the host is in `plan`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{
    Bind, BindAccess, Field, Missing, MountSpec, Root, SandboxProfile, WORKSPACE, Workspace,
};
use crate::error::Refusal;

/// Places that the sandbox makes itself: no mount of the profile covers them or lies in them.
const RESERVED_TARGETS: [&str; 3] = ["/proc", "/dev", "/run/postern"];

/// Longest path that a system call takes, without its NUL.
const PATH_BYTES_MAX: usize = 4095;

/// Longest name of a directory entry.
const NAME_BYTES_MAX: usize = 255;

/// One bind of any field, in one shape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListedBind<'a> {
    /// Where it was written.
    pub(crate) field: Field,
    /// On the host.
    pub(crate) source: &'a Path,
    /// In the guest.
    pub(crate) target: &'a Path,
    /// Read-only or not.
    pub(crate) access: BindAccess,
    /// What a missing source means.
    pub(crate) missing: Missing,
}

/// The entries of one list field.
fn listed<'a>(
    name: &'static str,
    binds: &'a [Bind],
    access: BindAccess,
    missing: Missing,
) -> impl Iterator<Item = ListedBind<'a>> {
    binds.iter().enumerate().map(move |(index, bind)| ListedBind {
        field: Field::new(name).at(index),
        source: &bind.source,
        target: &bind.target,
        access,
        missing,
    })
}

/// The binds of the unordered fields: `venv`, then the three lists.
pub(crate) fn list_binds(profile: &SandboxProfile) -> impl Iterator<Item = ListedBind<'_>> {
    let (read_only, read_write) = (BindAccess::ReadOnly, BindAccess::ReadWrite);
    let required = &profile.required_ro_binds;
    let venv = profile.venv.iter().map(|path| ListedBind {
        field: Field::new("venv"),
        source: path,
        target: path,
        access: BindAccess::ReadOnly,
        missing: Missing::Refuse,
    });
    venv.chain(listed("ro_binds", &profile.ro_binds, read_only, Missing::Skip))
        .chain(listed("required_ro_binds", required, read_only, Missing::Refuse))
        .chain(listed("rw_binds", &profile.rw_binds, read_write, Missing::Refuse))
}

/// Refuses what is wrong on every host.
pub(crate) fn check(profile: &SandboxProfile) -> Result<(), Refusal> {
    host_paths(profile)?;
    list_targets(profile)?;
    listed_mounts(profile)?;
    target_unique(profile)?;
    stub_names(profile)?;
    root_choice(profile)?;
    python(profile)?;
    ids(profile)?;
    super::bounds::check(profile)?;
    profile.user_policy()?;
    profile.env.iter().try_for_each(|(name, value)| env_variable(name, value))?;
    hostname(&profile.hostname)?;
    profile.cwd.as_deref().map_or(Ok(()), |cwd| guest_path(Field::new("cwd"), cwd))
}

/// Paths that exist on the host only.
fn host_paths(profile: &SandboxProfile) -> Result<(), Refusal> {
    if let Some(rootfs) = &profile.rootfs {
        host_path(Field::new("rootfs"), rootfs)?;
    }
    if let Some(parent) = &profile.cgroup.parent {
        host_path(Field::new("cgroup").part("parent"), parent)?;
    }
    if let Workspace::Directory { path, .. } = &profile.workspace {
        host_path(Field::new("workspace"), path)?;
    }
    for (index, stub) in profile.stubs.iter().enumerate() {
        host_path(Field::new("stubs").at(index), stub)?;
    }
    list_binds(profile).try_for_each(|bind| host_path(bind.field.part("source"), bind.source))
}

/// Targets of the unordered fields.
fn list_targets(profile: &SandboxProfile) -> Result<(), Refusal> {
    list_binds(profile).try_for_each(|bind| target(bind.field.part("target"), bind.target))
}

/// Entries of the ordered list.
fn listed_mounts(profile: &SandboxProfile) -> Result<(), Refusal> {
    for (index, mount) in profile.mounts.iter().enumerate() {
        let field = Field::new("mounts").at(index);
        target(field.part("target"), mount.target())?;
        match mount {
            MountSpec::Bind { source, .. } => host_path(field.part("source"), source)?,
            MountSpec::Symlink { to, .. } => text(field.part("to"), to.as_os_str())?,
            MountSpec::Tmpfs { mode, .. }
            | MountSpec::Dir { mode, .. }
            | MountSpec::File { mode, .. } => mode_bits(field.part("mode"), *mode)?,
        }
    }
    Ok(())
}

/// A text that becomes a path or name: not empty, no NUL, not too long.
fn text(field: Field, text: &OsStr) -> Result<(), Refusal> {
    let bytes = text.as_bytes();
    let mut names = bytes.split(|byte| *byte == b'/');
    if bytes.is_empty() {
        Err(Refusal::Empty { field })
    } else if bytes.contains(&0) {
        Err(Refusal::Nul { field })
    } else if bytes.len() > PATH_BYTES_MAX || names.any(|name| name.len() > NAME_BYTES_MAX) {
        Err(Refusal::TooLong { field })
    } else {
        Ok(())
    }
}

/// A path on the host; `.` and `..` are resolved when the host is probed.
fn host_path(field: Field, path: &Path) -> Result<(), Refusal> {
    text(field, path.as_os_str())?;
    if path.is_absolute() {
        Ok(())
    } else {
        Err(Refusal::Relative { field, path: path.to_owned() })
    }
}

/// A path in the guest: absolute, and what it says.
fn guest_path(field: Field, path: &Path) -> Result<(), Refusal> {
    host_path(field, path)?;
    let dots = |name: &[u8]| matches!(name, b"." | b"..");
    if path.as_os_str().as_bytes().split(|byte| *byte == b'/').any(dots) {
        return Err(Refusal::Dots { field, path: path.to_owned() });
    }
    Ok(())
}

/// A path where something of the profile's is put.
fn target(field: Field, path: &Path) -> Result<(), Refusal> {
    guest_path(field, path)?;
    let clash = RESERVED_TARGETS
        .into_iter()
        .find(|reserved| path.starts_with(reserved) || Path::new(reserved).starts_with(path))
        .or_else(|| (path == Path::new(WORKSPACE)).then_some(WORKSPACE));
    match clash {
        Some(reserved) => Err(Refusal::TargetReserved { field, target: path.to_owned(), reserved }),
        None => Ok(()),
    }
}

/// The unordered fields have no order to say which of two binds is on top.
fn target_unique(profile: &SandboxProfile) -> Result<(), Refusal> {
    let mut seen = BTreeMap::new();
    for bind in list_binds(profile) {
        if let Some(other) = seen.insert(bind.target, bind.field) {
            let target = bind.target.to_owned();
            return Err(Refusal::TargetDuplicate { field: bind.field, other, target });
        }
    }
    Ok(())
}

/// Several stubs are told apart by file name.
fn stub_names(profile: &SandboxProfile) -> Result<(), Refusal> {
    let mut seen = BTreeMap::new();
    for (index, stub) in profile.stubs.iter().enumerate() {
        let name = stub.file_name();
        if name.is_none() || seen.insert(name, index).is_some() {
            let name = name.unwrap_or_default().to_string_lossy().into_owned();
            return Err(Refusal::StubName { field: Field::new("stubs").at(index), name });
        }
    }
    Ok(())
}

/// A rootfs replaces system directories that a host view does not make.
fn root_choice(profile: &SandboxProfile) -> Result<(), Refusal> {
    match (profile.root, &profile.rootfs) {
        (Root::HostView, Some(_)) => Err(Refusal::RootfsWithHostView),
        (Root::Curated | Root::HostView, _) => Ok(()),
    }
}

/// A name for `PATH`, or an absolute path.
fn python(profile: &SandboxProfile) -> Result<(), Refusal> {
    let field = Field::new("python");
    match &profile.python {
        Some(python) if python.contains('/') => guest_path(field, Path::new(python)),
        Some(python) => text(field, OsStr::new(python)),
        None => Ok(()),
    }
}

/// Ids that system calls take for "no change", and the host's root.
fn ids(profile: &SandboxProfile) -> Result<(), Refusal> {
    let rows = [
        ("guest_uid", profile.guest_uid),
        ("guest_gid", profile.guest_gid),
        ("host_uid", profile.host_uid),
        ("host_gid", profile.host_gid),
    ];
    for (name, id) in rows {
        let field = Field::new(name);
        match (name, id) {
            (_, Some(u32::MAX)) => return Err(Refusal::IdImpossible { field }),
            ("host_uid" | "host_gid", Some(0)) => return Err(Refusal::HostIdZero { field }),
            (_, Some(_) | None) => {}
        }
    }
    Ok(())
}

/// Permission bits.
fn mode_bits(field: Field, mode: u32) -> Result<(), Refusal> {
    if mode & !0o7777 == 0 { Ok(()) } else { Err(Refusal::Mode { field, mode }) }
}

/// `NAME=value`.
fn env_variable(name: &str, value: &str) -> Result<(), Refusal> {
    if name.is_empty() || name.contains(['=', '\0']) {
        Err(Refusal::EnvName { name: name.to_owned() })
    } else if value.contains('\0') {
        Err(Refusal::EnvNul { name: name.to_owned() })
    } else {
        Ok(())
    }
}

/// What sethostname(2) takes and programs can print.
fn hostname(hostname: &str) -> Result<(), Refusal> {
    if hostname.is_empty() || hostname.len() > 64 {
        return Err(Refusal::HostnameLength { bytes: hostname.len() });
    }
    match hostname.chars().find(|character| character.is_control() || character.is_whitespace()) {
        Some(character) => Err(Refusal::HostnameCharacter { character }),
        None => Ok(()),
    }
}
