//! The two lists of mount operations, put together in their one right order.

use std::path::{Path, PathBuf};

use super::resolve::Wants;
use super::text::c_string;
use super::tree::{Bounds, Tree, source_kind};
use super::{Access, Export, Identity, MountOp, Python, SourceKind};
use super::{dev, etc, proc, python, rules, system, user, workspace};
use crate::error::Refusal;
use crate::host::{FileFact, Host};
use crate::profile::{Field, Root, SandboxProfile, Sharing};

/// Where the sandbox keeps what it hands to the guest.
pub(crate) const EXCHANGE: &str = "/run/postern";

/// Where stubs are seen.
pub(super) const STUBS: &str = "/run/postern/stubs";

/// Every mount operation, and where the workspace came to be.
pub(super) struct Mounts {
    /// Done once.
    pub(super) template: Vec<MountOp>,
    /// Done by each run.
    pub(super) run: Vec<MountOp>,
    /// The workspace's path in the guest.
    pub(super) workspace: PathBuf,
    /// The working directory.
    pub(super) cwd: PathBuf,
    /// What the guest's Python is.
    pub(super) python: Python,
}

/// Builds both lists.
pub(super) fn mounts(
    profile: &SandboxProfile,
    host: &Host,
    identity: &Identity,
    wants: Wants,
) -> Result<Mounts, Refusal> {
    rules::rootfs(profile, host)?;
    rules::venv(profile, host)?;
    rules::sources_unplanted(profile, host)?;
    workspace::check(profile, host, identity)?;
    let workspace = workspace::target(profile, host)?;
    let mut tree = match profile.root {
        Root::Curated => Tree::on_tmpfs(host),
        Root::HostView => Tree::on_host(host),
    };
    if profile.root == Root::Curated {
        system::add(&mut tree, profile)?;
        etc::add(&mut tree, profile, identity, &workspace)?;
    }
    proc::add(&mut tree, profile)?;
    dev::add(&mut tree, profile)?;
    temporary(&mut tree, profile, &workspace)?;
    exchange(&mut tree, profile, wants)?;
    resolver_in_run(&mut tree, profile)?;
    if profile.root == Root::Curated {
        tree.dir(Field::new("workspace"), &workspace, 0o755)?;
    }
    workspace::add(&mut tree, profile, identity, &workspace)?;
    user::list_fields(&mut tree, profile)?;
    user::ordered(&mut tree, profile)?;
    python::add(&mut tree, profile, identity)?;
    let python = python::find(&tree, profile);
    let cwd = profile.cwd.clone().unwrap_or_else(|| workspace.clone());
    rules::cwd(&tree, &cwd)?;
    seal(&mut tree, profile)?;
    let run = run(profile, &tree, wants)?;
    Ok(Mounts { template: tree.into_ops(), run, workspace, cwd, python })
}

/// `/tmp` is each run's own, unless the profile puts something in it: then it is made once per
/// sandbox, since a run cannot reach the host to bind anything.
fn temporary(
    tree: &mut Tree<'_>,
    profile: &SandboxProfile,
    workspace: &Path,
) -> Result<(), Refusal> {
    let (field, tmp) = (Field::new("root"), Path::new("/tmp"));
    if profile.root == Root::Curated {
        tree.dir(field, tmp, 0o755)?;
    }
    let (mut is_covered, mut is_filled) = (false, workspace.starts_with(tmp));
    for target in user::targets(profile, tree.host()) {
        is_covered |= target == tmp;
        is_filled |= target != tmp && target.starts_with(tmp);
    }
    if is_filled && !is_covered {
        let bounds = Bounds {
            size_bytes: profile.tmp_bytes,
            inodes: profile.tmp_inodes,
            mode: 0o1777,
            access: Access::ReadWrite,
        };
        tree.tmpfs(field, tmp, bounds, Export::No)
    } else {
        tree.fresh(field, tmp)
    }
}

/// `/run` and what the sandbox hands to the guest in it.
fn exchange(tree: &mut Tree<'_>, profile: &SandboxProfile, wants: Wants) -> Result<(), Refusal> {
    let field = Field::new("stubs");
    let writable =
        |size_bytes, inodes| Bounds { size_bytes, inodes, mode: 0o755, access: Access::ReadWrite };
    match profile.root {
        Root::Curated => tree.dir(field, Path::new("/run"), 0o755)?,
        Root::HostView => {
            tree.tmpfs(field, Path::new("/run"), writable(1 << 20, 1024), Export::No)?;
        }
    }
    tree.dir(field, Path::new(EXCHANGE), 0o755)?;
    if has_exchange(profile, wants) {
        tree.tmpfs(field, Path::new(EXCHANGE), writable(1 << 30, 1 << 16), Export::Exchange)?;
    }
    stubs(tree, profile, writable(1 << 16, 4096))
}

/// Whether anything is handed to the guest in `/run/postern`.
const fn has_exchange(profile: &SandboxProfile, wants: Wants) -> bool {
    wants.run_directory || !profile.stubs.is_empty()
}

/// One directory is seen as `stubs` itself; anything else by its name in a directory of that name.
fn stubs(tree: &mut Tree<'_>, profile: &SandboxProfile, bounds: Bounds) -> Result<(), Refusal> {
    let place = Path::new(STUBS);
    let field = Field::new("stubs");
    let found = profile
        .stubs
        .iter()
        .enumerate()
        .map(|(index, path)| Ok((path, rules::bindable(tree.host(), field.at(index), path)?)))
        .collect::<Result<Vec<_>, Refusal>>()?;
    match found.as_slice() {
        [] => Ok(()),
        [(_, only)] if source_kind(only) == SourceKind::Dir => {
            tree.bind(field.at(0), only, place, Access::ReadOnly)
        }
        several => {
            tree.dir(field, place, 0o755)?;
            tree.tmpfs(field, place, bounds, Export::No)?;
            for (index, (path, stub)) in several.iter().enumerate() {
                let target = place.join(path.file_name().unwrap_or_default());
                tree.bind(field.at(index), stub, &target, Access::ReadOnly)?;
            }
            tree.read_only(field, place)
        }
    }
}

/// A host view hides the host's `/run`, where the resolver's file often is.
fn resolver_in_run(tree: &mut Tree<'_>, profile: &SandboxProfile) -> Result<(), Refusal> {
    let (Root::HostView, Sharing::Shared) = (profile.root, profile.namespaces.net) else {
        return Ok(());
    };
    match tree.host().file(Path::new("/etc/resolv.conf")) {
        Some(FileFact::Found(found))
            if found.canonical.starts_with("/run") && etc::is_world_readable(found) =>
        {
            tree.bind(Field::new("namespaces"), found, &found.canonical, Access::ReadOnly)
        }
        Some(_) | None => Ok(()),
    }
}

/// Makes read-only what all runs of the sandbox share.
fn seal(tree: &mut Tree<'_>, profile: &SandboxProfile) -> Result<(), Refusal> {
    let field = Field::new("root");
    match profile.root {
        Root::Curated => tree.read_only(field, Path::new("/")),
        Root::HostView => {
            tree.read_only(field, Path::new("/dev"))?;
            tree.read_only(field, Path::new("/run"))
        }
    }
}

/// What each run mounts in its own copy of the template.
fn run(profile: &SandboxProfile, tree: &Tree<'_>, wants: Wants) -> Result<Vec<MountOp>, Refusal> {
    let field = Field::new("tmp_bytes");
    let mut ops = Vec::new();
    if has_exchange(profile, wants) {
        let keep = (!profile.stubs.is_empty()).then(|| c"stubs".to_owned());
        ops.push(MountOp::RunDirectory { target: c_string(field, EXCHANGE)?, keep });
    }
    ops.extend(proc::run(profile, tree.host())?);
    ops.extend(dev::terminals(profile)?);
    if tree.is_fresh(Path::new("/tmp")) {
        ops.push(MountOp::Tmpfs {
            target: c_string(field, "/tmp")?,
            size_bytes: profile.tmp_bytes,
            inodes: profile.tmp_inodes,
            mode: 0o1777,
            access: Access::ReadWrite,
            export: Export::No,
        });
    }
    ops.push(dev::shared_memory(profile)?);
    Ok(ops)
}
