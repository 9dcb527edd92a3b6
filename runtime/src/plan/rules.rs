//! The rules that a profile can break on this host: one rule, one function, one [`Refusal`]
//! variant. What is wrong on every host is in `profile`; ids and places have rules of their own.

use std::path::Path;

use super::tree::{Place, Tree};
use crate::error::Refusal;
use crate::host::{FileFact, FileKind, FoundFile, Host};
use crate::profile::{BindAccess, Field, MountSpec, SandboxProfile, Workspace, list_binds};

/// The file at a source, or why there is none.
pub(super) fn required<'a>(
    host: &'a Host,
    field: Field,
    path: &Path,
) -> Result<&'a FoundFile, Refusal> {
    match host.file(path) {
        Some(FileFact::Found(found)) => Ok(found),
        Some(FileFact::Missing | FileFact::Dangling { .. }) => {
            Err(Refusal::SourceMissing { field, path: path.to_owned() })
        }
        Some(FileFact::Unreachable { errno }) => {
            Err(Refusal::SourceUnreachable { field, path: path.to_owned(), errno: *errno })
        }
        None => Err(Refusal::NotProbed { path: path.to_owned() }),
    }
}

/// A source that may be bound: not the host's `/`, and nothing of its `/proc`.
pub(super) fn bindable<'a>(
    host: &'a Host,
    field: Field,
    path: &Path,
) -> Result<&'a FoundFile, Refusal> {
    let found = required(host, field, path)?;
    if found.canonical == Path::new("/") {
        return Err(Refusal::SourceRoot { field });
    }
    if found.canonical.starts_with("/proc") {
        return Err(Refusal::SourceProc { field, path: path.to_owned() });
    }
    Ok(found)
}

/// No source lies behind a symbolic link in a directory that guests may write to: an earlier guest
/// may have made it, and it leads wherever that guest wanted.
pub(super) fn sources_unplanted(profile: &SandboxProfile, host: &Host) -> Result<(), Refusal> {
    let binds = list_binds(profile).map(|bind| (bind.field, bind.source, bind.access));
    let mounts = profile.mounts.iter().enumerate().filter_map(|(index, mount)| match mount {
        MountSpec::Bind { source, access, .. } => {
            Some((Field::new("mounts").at(index), source.as_path(), *access))
        }
        MountSpec::Tmpfs { .. }
        | MountSpec::Dir { .. }
        | MountSpec::Symlink { .. }
        | MountSpec::File { .. } => None,
    });
    let sources: Vec<_> = binds.chain(mounts).collect();
    let workspace = match &profile.workspace {
        Workspace::Directory { path, .. } => Some(path.as_path()),
        Workspace::Owned { .. } => None,
    };
    let written = sources.iter().filter(|(.., access)| *access == BindAccess::ReadWrite);
    let written = written.map(|(_, source, _)| *source).chain(workspace);
    let found = |path| match host.file(path) {
        Some(FileFact::Found(found)) => Some(&found.canonical),
        Some(FileFact::Missing | FileFact::Dangling { .. } | FileFact::Unreachable { .. })
        | None => None,
    };
    for writable in written {
        let Some(base) = found(writable) else { continue };
        for (field, path, _) in &sources {
            let inside = path.strip_prefix(writable).or_else(|_| path.strip_prefix(base));
            let (Ok(rest), Some(canonical)) = (inside, found(path)) else { continue };
            if *canonical != base.join(rest) && *path != writable {
                let (field, path) = (field.part("source"), (*path).to_owned());
                return Err(Refusal::SourceBehindLink {
                    field,
                    path,
                    writable: writable.to_owned(),
                });
            }
        }
    }
    Ok(())
}

/// A directory where one is needed.
pub(super) fn directory(field: Field, path: &Path, found: &FoundFile) -> Result<(), Refusal> {
    if found.kind == FileKind::Dir {
        Ok(())
    } else {
        Err(Refusal::NotDirectory { field, path: path.to_owned() })
    }
}

/// The rootfs is a directory.
pub(super) fn rootfs(profile: &SandboxProfile, host: &Host) -> Result<(), Refusal> {
    let field = Field::new("rootfs");
    let Some(path) = &profile.rootfs else { return Ok(()) };
    directory(field, path, bindable(host, field, path)?)
}

/// The virtual environment is a directory; its interpreter is for `python`.
pub(super) fn venv(profile: &SandboxProfile, host: &Host) -> Result<(), Refusal> {
    let field = Field::new("venv");
    let Some(venv) = &profile.venv else { return Ok(()) };
    directory(field, venv, bindable(host, field, venv)?)
}

/// The working directory exists, as far as can be known.
pub(super) fn cwd(tree: &Tree<'_>, cwd: &Path) -> Result<(), Refusal> {
    let field = Field::new("cwd");
    let missing = || Err(Refusal::CwdMissing { path: cwd.to_owned() });
    match tree.place(field, cwd)? {
        (_, Place::Dir) => Ok(()),
        (_, Place::Free | Place::Hidden(_)) => missing(),
        (_, Place::File | Place::Blocked) => {
            Err(Refusal::NotDirectory { field, path: cwd.to_owned() })
        }
        (_, Place::Inside(behind)) => match tree.host().file(&behind) {
            Some(FileFact::Found(found)) => directory(field, cwd, found),
            Some(FileFact::Missing | FileFact::Dangling { .. }) => missing(),
            Some(FileFact::Unreachable { errno: libc::ELOOP }) => missing(),
            Some(FileFact::Unreachable { .. }) | None => Ok(()),
        },
    }
}
