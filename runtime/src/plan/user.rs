//! The profile's own mounts: the list fields, parents first, then the ordered list as it stands.

use std::path::Path;

use super::tree::{Bounds, Tree};
use super::{Access, Export, rules};
use crate::error::Refusal;
use crate::host::{FileFact, Host};
use crate::profile::{
    BindAccess, Field, ListedBind, Missing, MountSpec, SandboxProfile, list_binds,
};

/// Where something of the profile's will be, leaving out what is passed over.
pub(super) fn targets<'a>(
    profile: &'a SandboxProfile,
    host: &Host,
) -> impl Iterator<Item = &'a Path> {
    let listed = list_binds(profile).filter(|bind| !is_passed_over(host, bind));
    listed.map(|bind| bind.target).chain(profile.mounts.iter().map(MountSpec::target))
}

/// Adds `venv` and the three lists. Their targets differ, so parents first is the one order in
/// which no bind hides another.
pub(super) fn list_fields(tree: &mut Tree<'_>, profile: &SandboxProfile) -> Result<(), Refusal> {
    let mut binds: Vec<_> = list_binds(profile).collect();
    binds.sort_by_key(|bind| bind.target);
    binds.iter().try_for_each(|listed| bind(tree, listed))
}

/// Adds the ordered list.
pub(super) fn ordered(tree: &mut Tree<'_>, profile: &SandboxProfile) -> Result<(), Refusal> {
    for (index, mount) in profile.mounts.iter().enumerate() {
        let field = Field::new("mounts").at(index);
        match mount {
            MountSpec::Bind { source, target, access, missing } => {
                let (access, missing) = (*access, *missing);
                bind(tree, &ListedBind { field, source, target, access, missing })?;
            }
            MountSpec::Tmpfs { target, size_bytes, inodes, mode } => {
                let bounds = Bounds {
                    size_bytes: *size_bytes,
                    inodes: *inodes,
                    mode: *mode,
                    access: Access::ReadWrite,
                };
                tree.tmpfs(field, target, bounds, Export::No)?;
            }
            MountSpec::Dir { target, mode } => tree.dir(field, target, *mode)?,
            MountSpec::Symlink { target, to } => tree.symlink(field, target, to)?,
            MountSpec::File { target, contents, mode } => {
                tree.file(field, target, *mode, contents.clone())?;
            }
        }
    }
    Ok(())
}

/// Whether a source may be missing and is.
fn is_passed_over(host: &Host, listed: &ListedBind<'_>) -> bool {
    let fact = host.file(listed.source);
    listed.missing == Missing::Skip
        && matches!(fact, Some(FileFact::Missing | FileFact::Dangling { .. }))
}

/// One bind. One that is passed over leaves no trace, not even a mount point.
fn bind(tree: &mut Tree<'_>, listed: &ListedBind<'_>) -> Result<(), Refusal> {
    let host = tree.host();
    if is_passed_over(host, listed) {
        return Ok(());
    }
    let source = rules::bindable(host, listed.field.part("source"), listed.source)?;
    let access = match listed.access {
        BindAccess::ReadOnly => Access::ReadOnly,
        BindAccess::ReadWrite => Access::ReadWrite,
    };
    tree.bind(listed.field.part("target"), source, listed.target, access)
}
