//! Options to a profile, and profiles as text; judges nothing, which the library does.

use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use postern::SandboxProfile;
use postern::profile::{Bind, Workspace};
use postern::seccomp::UserPolicy;

use crate::arguments::{ProfileVerb, WorldOptions};
use crate::failure::Failure;
use crate::streams::{own, write_all};

/// The profile file, or the default, then each `--set`, then the named options.
pub(crate) fn profile(options: &WorldOptions) -> Result<SandboxProfile, Failure> {
    let mut profile = match &options.profile {
        Some(path) => SandboxProfile::from_file(path)?,
        None => SandboxProfile::default(),
    };
    for (key, value) in &options.set {
        profile.set(key, value).map_err(|source| Failure::Setting {
            key: format!("{key}={value}"),
            source: Box::new(source),
        })?;
    }
    if let Some(path) = &options.workspace {
        let access = options.workspace_access;
        profile.workspace = Workspace::Directory { path: absolute(path)?, access };
    }
    name_places(&mut profile, options)?;
    if let Some(python) = &options.python {
        profile.python = Some(python.clone());
    }
    if let Some(cwd) = &options.cwd {
        profile.cwd = Some(cwd.clone());
    }
    if let Some(hostname) = &options.hostname {
        profile.hostname.clone_from(hostname);
    }
    if let Some(path) = &options.seccomp_policy {
        profile.seccomp_policy = Some(policy_text(path)?);
    }
    let cgroup = &mut profile.cgroup;
    cgroup.memory_bytes = options.memory.or(cgroup.memory_bytes);
    cgroup.cpu_millis = options.cpus.or(cgroup.cpu_millis);
    cgroup.pids = options.pids.or(cgroup.pids);
    profile.proc = options.proc.unwrap_or(profile.proc);
    profile.etc = options.etc.unwrap_or(profile.etc);
    // The command has all of them, which need not be text; a profile holds text alone.
    for (name, value) in &options.env {
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str()) {
            profile.env.insert(name.to_owned(), value.to_owned());
        }
    }
    Ok(profile)
}

/// The text of a policy; the library says what is wrong with one that is too long.
pub(crate) fn policy_text(path: &Path) -> Result<String, Failure> {
    let failed = |source| Failure::File { what: "read the policy", path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(failed)?;
    let most = UserPolicy::BYTES_MAX as u64 + 1;
    let mut text = String::new();
    file.take(most).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

/// Paths of the host, which may be written from where the user is.
fn name_places(profile: &mut SandboxProfile, options: &WorldOptions) -> Result<(), Failure> {
    if let Some(venv) = &options.venv {
        profile.venv = Some(absolute(venv)?);
    }
    if let Some(rootfs) = &options.rootfs {
        profile.rootfs = Some(absolute(rootfs)?);
    }
    for stub in &options.stubs {
        profile.stubs.push(absolute(stub)?);
    }
    for bind in &options.ro_bind {
        profile.required_ro_binds.push(placed(bind)?);
    }
    for bind in &options.rw_bind {
        profile.rw_binds.push(placed(bind)?);
    }
    Ok(())
}

/// The bind with its source made absolute, and its target with it where they are one.
fn placed(bind: &Bind) -> Result<Bind, Failure> {
    let source = absolute(&bind.source)?;
    Ok(match bind.target == bind.source {
        true => Bind::same(source),
        false => Bind::new(source, bind.target.clone()),
    })
}

/// A path as the library takes it. What goes up (`..`) is resolved by the file system, since a
/// symbolic link may lead elsewhere; where that fails the library says what is wrong.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    let failed = |source| Failure::File {
        what: "tell the current directory, which is needed for",
        path: path.to_owned(),
        source,
    };
    let absolute = std::path::absolute(path).map_err(failed)?;
    match absolute.components().any(|part| part == Component::ParentDir) {
        true => Ok(std::fs::canonicalize(&absolute).unwrap_or(absolute)),
        false => Ok(absolute),
    }
}

/// Prints a profile, or the schema of all.
pub(crate) fn print(verb: &ProfileVerb) -> Result<u8, Failure> {
    let text = match verb {
        ProfileVerb::Show(show) => {
            let profile = profile(&show.world)?;
            match show.json {
                true => profile.to_json_string()?,
                false => profile.to_toml_string()?,
            }
        }
        ProfileVerb::Schema => format!("{:#}\n", postern::profile::schema()),
    };
    write_out(text.as_bytes())?;
    Ok(0)
}

/// Writes to stdout.
pub(crate) fn write_out(bytes: &[u8]) -> Result<(), Failure> {
    let written = own(std::io::stdout()).and_then(|mut stdout| write_all(&mut stdout, bytes));
    written.map_err(|source| Failure::Stream { what: "write to stdout", source })
}
