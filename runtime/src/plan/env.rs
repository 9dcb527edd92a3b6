//! The guest's environment: defaults, the virtual environment, stubs, and the profile's own words.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::path::Path;

use super::{mounts::STUBS, text::c_string};
use crate::error::Refusal;
use crate::profile::{Field, SandboxProfile};

/// Where programs are looked for.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The guest's `PATH`: the profile's own word, else the virtual environment's `bin` and the usual.
pub(crate) fn search_path(profile: &SandboxProfile) -> OsString {
    match (profile.env.get("PATH"), &profile.venv) {
        (Some(own), _) => own.into(),
        (None, Some(venv)) => joined(venv.join("bin").into(), PATH),
        (None, None) => PATH.into(),
    }
}

/// `NAME=value`, sorted by name. Nothing comes from the service's own environment.
pub(super) fn environment(
    profile: &SandboxProfile,
    workspace: &Path,
) -> Result<Vec<CString>, Refusal> {
    let mut env: BTreeMap<&str, OsString> = BTreeMap::from([
        ("PATH", search_path(profile)),
        ("HOME", workspace.into()),
        ("TMPDIR", "/tmp".into()),
        ("LANG", "C.UTF-8".into()),
    ]);
    if let Some(venv) = &profile.venv {
        env.insert("VIRTUAL_ENV", venv.into());
    }
    env.extend(profile.env.iter().map(|(name, value)| (name.as_str(), value.into())));
    if !profile.stubs.is_empty() {
        let path = match env.get("PYTHONPATH") {
            Some(own) if !own.is_empty() => joined(STUBS.into(), own),
            Some(_) | None => STUBS.into(),
        };
        env.insert("PYTHONPATH", path);
    }
    let field = Field::new("env");
    env.into_iter().map(|(name, value)| c_string(field, assignment(name, &value))).collect()
}

/// `first:rest`.
fn joined(mut first: OsString, rest: impl AsRef<std::ffi::OsStr>) -> OsString {
    first.push(":");
    first.push(rest);
    first
}

/// `name=value`.
fn assignment(name: &str, value: &OsString) -> OsString {
    let mut text = OsString::from(name);
    text.push("=");
    text.push(value);
    text
}
