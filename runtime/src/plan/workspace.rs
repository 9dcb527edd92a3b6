//! Where the guest's workspace is and whether the guest can write to it; changes no mode.

use std::path::{Path, PathBuf};

use super::tree::{Bounds, Tree};
use super::{Access, Export, Identity, Owner, Tier, identity, rules, set_id};
use crate::error::Refusal;
use crate::host::{Capability, FileFact, FileKind, FoundFile, Host};
use crate::profile::{Field, Root, SandboxProfile, WORKSPACE, Workspace, WorkspaceAccess};

/// The workspace of a host view on a host that has no `/workspace` to mount on.
const HOST_VIEW_WORKSPACE: &str = "/run/workspace";

/// Places that a host view makes anew and that take no mount of the profile's.
const COVERED: [&str; 3] = ["/proc", "/dev", "/run"];

/// The host directory that is the workspace, if it is the caller's.
pub(super) fn directory<'a>(
    profile: &SandboxProfile,
    host: &'a Host,
) -> Result<Option<&'a FoundFile>, Refusal> {
    match &profile.workspace {
        Workspace::Owned { .. } => Ok(None),
        Workspace::Directory { path, .. } => {
            let field = Field::new("workspace");
            let found = rules::bindable(host, field, path)?;
            rules::directory(field, path, found)?;
            Ok(Some(found))
        }
    }
}

/// The workspace's path in the guest.
///
/// `/workspace`, wherever a mount point can be had. A host view makes none, so there it is the
/// caller's directory at its own path, or `/run/workspace`.
pub(super) fn target(profile: &SandboxProfile, host: &Host) -> Result<PathBuf, Refusal> {
    let usual = Path::new(WORKSPACE);
    let is_there = |fact: &FileFact| match fact {
        FileFact::Found(found) => found.kind == FileKind::Dir && found.canonical == usual,
        FileFact::Missing | FileFact::Dangling { .. } | FileFact::Unreachable { .. } => false,
    };
    match profile.root {
        Root::Curated => return Ok(usual.to_owned()),
        Root::HostView if host.file(usual).is_some_and(is_there) => return Ok(usual.to_owned()),
        Root::HostView => {}
    }
    let is_covered = |path: &&PathBuf| COVERED.iter().any(|place| path.starts_with(place));
    let own = directory(profile, host)?.map(|found| &found.canonical);
    Ok(own
        .filter(|path| !is_covered(path))
        .map_or_else(|| HOST_VIEW_WORKSPACE.into(), Clone::clone))
}

/// Adds the workspace at `target`.
pub(super) fn add(
    tree: &mut Tree<'_>,
    profile: &SandboxProfile,
    identity: &Identity,
    target: &Path,
) -> Result<(), Refusal> {
    let field = Field::new("workspace");
    match (&profile.workspace, directory(profile, tree.host())?) {
        (Workspace::Directory { .. }, Some(found)) => match owner(profile, identity, found) {
            Some(owner) => tree.bind_as(field, found, target, owner),
            None => tree.bind(field, found, target, Access::ReadWrite),
        },
        (Workspace::Owned { size_bytes, inodes }, _) => {
            let bounds = Bounds {
                size_bytes: *size_bytes,
                inodes: *inodes,
                mode: 0o700,
                access: Access::ReadWrite,
            };
            tree.tmpfs(field, target, bounds, Export::Workspace)
        }
        (Workspace::Directory { .. }, None) => Ok(()),
    }
}

/// A caller's directory that the guest could not write to is refused now, not at the first
/// `open` of the guest.
pub(super) fn check(
    profile: &SandboxProfile,
    host: &Host,
    identity: &Identity,
) -> Result<(), Refusal> {
    let Workspace::Directory { path, access } = &profile.workspace else { return Ok(()) };
    let Some(found) = directory(profile, host)? else { return Ok(()) };
    match access {
        WorkspaceAccess::AsIs if identity::permits(identity, host, found, 0o3) => Ok(()),
        WorkspaceAccess::AsIs => Err(Refusal::WorkspaceNotWritable {
            path: path.clone(),
            owner: found.uid,
            mode: found.mode,
            id: identity::known_uid(identity),
        }),
        WorkspaceAccess::Mapped => mappable(profile, identity, found, path),
        WorkspaceAccess::Shared if is_shareable(found, host) => Ok(()),
        WorkspaceAccess::Shared => {
            Err(Refusal::WorkspaceNotOwned { path: path.clone(), owner: found.uid })
        }
    }
}

/// The owner for whom the guest stands in a mapped workspace; `None` where its ids are the owner's
/// already, or the workspace is not mapped.
fn owner(profile: &SandboxProfile, identity: &Identity, found: &FoundFile) -> Option<Owner> {
    let Workspace::Directory { access: WorkspaceAccess::Mapped, .. } = &profile.workspace else {
        return None;
    };
    let is_owners = identity::known_uid(identity) == Some(found.uid);
    (!is_owners).then_some(Owner { uid: found.uid, gid: found.gid })
}

/// Whether a guest that stands for a directory's owner can be had, and does no harm.
fn mappable(
    profile: &SandboxProfile,
    identity: &Identity,
    found: &FoundFile,
    path: &Path,
) -> Result<(), Refusal> {
    const OWNER_WRITES: u32 = 0o300;
    let (path, owner, group, mode) = (path.to_owned(), found.uid, found.gid, found.mode);
    let Some(Owner { uid, gid }) = self::owner(profile, identity, found) else { return Ok(()) };
    if identity.tier != Tier::Privileged {
        return Err(Refusal::WorkspaceNotMappable { path, owner });
    }
    if (uid == 0 || gid == 0) && !set_id::are_kept_away(profile.seccomp) {
        return Err(Refusal::WorkspaceOfRoot { path, owner, group });
    }
    match mode & OWNER_WRITES {
        OWNER_WRITES => Ok(()),
        _ => Err(Refusal::WorkspaceNotWritable { path, owner, mode, id: Some(uid) }),
    }
}

/// Whether the service can chmod a directory to 1777, or need not.
fn is_shareable(found: &FoundFile, host: &Host) -> bool {
    found.mode == 0o1777 || found.uid == host.uid || host.capabilities.has(Capability::Fowner)
}
