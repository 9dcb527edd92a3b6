//! The system directories of a curated root: binds, or the symbolic links that the host or the
//! rootfs has in their place.

use std::path::{Path, PathBuf};

use super::Access;
use super::tree::Tree;
use crate::error::Refusal;
use crate::host::{FileFact, FileKind, FoundFile, Host};
use crate::profile::{Field, SandboxProfile};

/// What every dynamically linked program may need, below `/` or the rootfs.
pub(crate) const SYSTEM_DIRECTORIES: [&str; 7] =
    ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// The directory that becomes the guest's `/usr`.
pub(super) fn usr<'a>(profile: &SandboxProfile, host: &'a Host) -> Result<&'a FoundFile, Refusal> {
    let base = profile.system_base();
    match host.file(&base.join("usr")) {
        Some(FileFact::Found(found)) if found.kind == FileKind::Dir => Ok(found),
        Some(_) => Err(Refusal::UsrMissing { base: base.to_owned() }),
        None => Err(Refusal::NotProbed { path: base.join("usr") }),
    }
}

/// Adds every system directory that the base has.
///
/// A link into `usr` stays a link, so that `/bin/sh` and `/usr/bin/sh` are one file as on the
/// host; a link to anywhere else becomes a bind of what it leads to.
pub(super) fn add(tree: &mut Tree<'_>, profile: &SandboxProfile) -> Result<(), Refusal> {
    let field = Field::new("rootfs");
    let usr = usr(profile, tree.host())?;
    for name in SYSTEM_DIRECTORIES {
        let target = Path::new("/").join(name);
        let path = profile.system_base().join(name);
        let Some(FileFact::Found(found)) = tree.host().file(&path) else { continue };
        match found.canonical.strip_prefix(&usr.canonical) {
            Ok(inside) if found.link.is_some() && name != "usr" => {
                // By components, since joining nothing would add a slash.
                let to: PathBuf =
                    Path::new("usr").components().chain(inside.components()).collect();
                tree.symlink(field, &target, &to)?;
            }
            Ok(_) | Err(_) if found.kind == FileKind::Dir => {
                tree.bind(field, found, &target, Access::ReadOnly)?;
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}
