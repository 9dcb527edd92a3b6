//! A profile as the text of a file, every field that has a value in it; writes no file.

use std::path::Path;

use super::error::{Place, ProfileFileError};
use super::refused;
use crate::profile::{Field, MountSpec, SandboxProfile, Workspace, check, list_binds};

impl SandboxProfile {
    /// The whole profile as TOML, defaults included; [`from_toml_str`](Self::from_toml_str) reads
    /// an equal one back. An optional field that is not set has no line.
    ///
    /// # Errors
    ///
    /// [`ProfileFileError::NotText`] for a path or content that is not UTF-8,
    /// [`ProfileFileError::Refused`] for a profile that would not be read back.
    pub fn to_toml_string(&self) -> Result<String, ProfileFileError> {
        sayable(self)?;
        toml::to_string_pretty(self).map_err(|source| ProfileFileError::Write { source })
    }

    /// The whole profile as JSON, otherwise as [`to_toml_string`](Self::to_toml_string).
    ///
    /// # Errors
    ///
    /// As for TOML.
    pub fn to_json_string(&self) -> Result<String, ProfileFileError> {
        sayable(self)?;
        Ok(json(self)? + "\n")
    }
}

/// A profile as JSON, though a rule may refuse it.
pub(super) fn json(profile: &SandboxProfile) -> Result<String, ProfileFileError> {
    if let Some(field) = not_text(profile) {
        return Err(ProfileFileError::NotText { field });
    }
    serde_json::to_string_pretty(profile)
        .map_err(|source| ProfileFileError::Json { place: Place::default(), source })
}

/// Refuses what a file cannot say, or says in vain.
fn sayable(profile: &SandboxProfile) -> Result<(), ProfileFileError> {
    match not_text(profile) {
        Some(field) => Err(ProfileFileError::NotText { field }),
        None => check(profile).map_err(|refusal| refused(refusal, None, "")),
    }
}

/// The first field that is not UTF-8.
fn not_text(profile: &SandboxProfile) -> Option<Field> {
    let is_not = |path: &Path| path.to_str().is_none();
    let directory = match &profile.workspace {
        Workspace::Directory { path, .. } => Some(path.as_path()),
        Workspace::Owned { .. } => None,
    };
    let single = [
        (Field::new("workspace"), directory),
        (Field::new("rootfs"), profile.rootfs.as_deref()),
        (Field::new("venv"), profile.venv.as_deref()),
        (Field::new("cwd"), profile.cwd.as_deref()),
        (Field::new("cgroup").part("parent"), profile.cgroup.parent.as_deref()),
    ];
    let single = single.into_iter().filter(|(_, path)| path.is_some_and(is_not));
    let stubs = profile.stubs.iter().enumerate().filter(|(_, stub)| is_not(stub));
    let binds = list_binds(profile).filter(|bind| is_not(bind.source) || is_not(bind.target));
    let mounts = profile.mounts.iter().enumerate().filter(|(_, mount)| match mount {
        MountSpec::Bind { source, target, .. } => is_not(source) || is_not(target),
        MountSpec::Symlink { target, to } => is_not(target) || is_not(to),
        MountSpec::File { target, contents, .. } => {
            is_not(target) || core::str::from_utf8(contents).is_err()
        }
        MountSpec::Tmpfs { target, .. } | MountSpec::Dir { target, .. } => is_not(target),
    });
    single
        .map(|(field, _)| field)
        .chain(binds.map(|bind| bind.field))
        .chain(mounts.map(|(index, _)| Field::new("mounts").at(index)))
        .chain(stubs.map(|(index, _)| Field::new("stubs").at(index)))
        .next()
}
