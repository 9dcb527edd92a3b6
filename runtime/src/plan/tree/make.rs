//! Adds operations to the tree: mount points are made on file systems of ours, never on the host.

use std::path::{Path, PathBuf};

use super::{Last, Node, Place, Tree, prefixes, source_kind};
use crate::error::Refusal;
use crate::host::{FileFact, FileKind, FoundFile};
use crate::plan::text::c_string;
use crate::plan::{Access, Export, MountOp, Owner, Source, SourceKind};
use crate::profile::Field;

/// What is out of the ordinary about a bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    /// Device nodes work through it.
    Devices,
    /// The guest stands for this owner.
    As(Owner),
}

/// What a tmpfs may hold.
#[derive(Debug, Clone, Copy)]
pub(in crate::plan) struct Bounds {
    /// In bytes.
    pub(in crate::plan) size_bytes: u64,
    /// In inodes.
    pub(in crate::plan) inodes: u64,
    /// Permission bits of its root.
    pub(in crate::plan) mode: u32,
    /// Read-only from the start?
    pub(in crate::plan) access: Access,
}

impl Tree<'_> {
    /// Finds or makes a mount point of this kind; the path may differ by symbolic links.
    fn mount_point(
        &mut self,
        field: Field,
        target: &Path,
        kind: SourceKind,
    ) -> Result<PathBuf, Refusal> {
        let (path, place) = self.place(field, target)?;
        match (place, kind) {
            (Place::Dir, SourceKind::Dir) | (Place::File, SourceKind::File) => {}
            (Place::Dir | Place::File | Place::Blocked, _) => {
                return Err(Refusal::TargetKind { field, target: path });
            }
            (Place::Free, SourceKind::Dir) => self.make_dir(field, &path, 0o755)?,
            (Place::Free, SourceKind::File) => self.make_file(field, &path, 0o444, Vec::new())?,
            (Place::Hidden(mount), _) => {
                return Err(Refusal::TargetHidden { field, target: path, mount });
            }
            (Place::Inside(behind), _) => self.behind(field, &path, behind, kind)?,
        }
        Ok(path)
    }

    /// Nothing is made on the host, so what is mounted on must be there already. A path that was
    /// not looked at is left to the launcher, which reports `ENOENT` with the step.
    fn behind(
        &self,
        field: Field,
        path: &Path,
        behind: PathBuf,
        kind: SourceKind,
    ) -> Result<(), Refusal> {
        let target = path.to_owned();
        match self.host.file(&behind) {
            Some(FileFact::Missing | FileFact::Dangling { .. }) => {
                Err(Refusal::TargetMissing { field, target, source: behind })
            }
            Some(FileFact::Found(found)) if source_kind(found) != kind => {
                Err(Refusal::TargetKind { field, target })
            }
            Some(FileFact::Found(_) | FileFact::Unreachable { .. }) | None => Ok(()),
        }
    }

    /// The missing directories above `path`.
    fn make_parents(&mut self, field: Field, path: &Path) -> Result<(), Refusal> {
        let is_missing = |above: &&Path| self.nodes.get(above).is_none();
        let missing: Vec<&Path> = prefixes(path).skip(1).take_while(is_missing).collect();
        for above in missing.into_iter().rev() {
            self.ops.push(MountOp::Dir { target: c_string(field, above)?, mode: 0o755 });
            self.nodes.insert(above, Node::Dir);
        }
        Ok(())
    }

    fn make_dir(&mut self, field: Field, path: &Path, mode: u32) -> Result<(), Refusal> {
        self.make_parents(field, path)?;
        self.ops.push(MountOp::Dir { target: c_string(field, path)?, mode });
        self.nodes.insert(path, Node::Dir);
        Ok(())
    }

    fn make_file(
        &mut self,
        field: Field,
        path: &Path,
        mode: u32,
        contents: Vec<u8>,
    ) -> Result<(), Refusal> {
        self.make_parents(field, path)?;
        self.ops.push(MountOp::File { target: c_string(field, path)?, mode, contents });
        self.nodes.insert(path, Node::File);
        Ok(())
    }

    /// A directory; one that is there already is left alone.
    pub(in crate::plan) fn dir(
        &mut self,
        field: Field,
        target: &Path,
        mode: u32,
    ) -> Result<(), Refusal> {
        let (path, place) = self.place(field, target)?;
        match place {
            Place::Free => self.make_dir(field, &path, mode),
            Place::Dir => Ok(()),
            Place::File | Place::Blocked => Err(Refusal::TargetKind { field, target: path }),
            Place::Hidden(mount) => Err(Refusal::TargetHidden { field, target: path, mount }),
            Place::Inside(behind) => match self.host.file(&behind) {
                Some(FileFact::Found(found)) if found.kind == FileKind::Dir => Ok(()),
                Some(_) | None => {
                    Err(Refusal::TargetNotOurs { field, target: path, source: behind })
                }
            },
        }
    }

    /// A file; an earlier one of ours at the same place is replaced.
    pub(in crate::plan) fn file(
        &mut self,
        field: Field,
        target: &Path,
        mode: u32,
        contents: Vec<u8>,
    ) -> Result<(), Refusal> {
        let (path, place) = self.place_with(field, target, Last::Keep)?;
        match place {
            Place::Free => self.make_file(field, &path, mode, contents),
            Place::File if matches!(self.nodes.get(&path), Some(Node::File)) => {
                let same = c_string(field, &path)?;
                self.ops
                    .retain(|op| !matches!(op, MountOp::File { target, .. } if *target == same));
                self.make_file(field, &path, mode, contents)
            }
            Place::Dir | Place::File | Place::Blocked => {
                Err(Refusal::TargetTaken { field, target: path })
            }
            Place::Hidden(mount) => Err(Refusal::TargetHidden { field, target: path, mount }),
            Place::Inside(source) => Err(Refusal::TargetNotOurs { field, target: path, source }),
        }
    }

    /// A symbolic link; an equal one that is there already is left alone.
    pub(in crate::plan) fn symlink(
        &mut self,
        field: Field,
        target: &Path,
        to: &Path,
    ) -> Result<(), Refusal> {
        let (path, place) = self.place_with(field, target, Last::Keep)?;
        match place {
            Place::Free => {
                self.make_parents(field, &path)?;
                let (target, says) = (c_string(field, &path)?, c_string(field, to)?);
                self.ops.push(MountOp::Symlink { target, to: says });
                self.nodes.insert(&path, Node::Link(to.to_owned()));
                Ok(())
            }
            Place::File if matches!(self.nodes.get(&path), Some(Node::Link(own)) if own == to) => {
                Ok(())
            }
            Place::Dir | Place::File | Place::Blocked => {
                Err(Refusal::TargetTaken { field, target: path })
            }
            Place::Hidden(mount) => Err(Refusal::TargetHidden { field, target: path, mount }),
            Place::Inside(source) => Err(Refusal::TargetNotOurs { field, target: path, source }),
        }
    }

    /// A bind. One that would show, read-only, what is already seen read-only there is left out.
    pub(in crate::plan) fn bind(
        &mut self,
        field: Field,
        source: &FoundFile,
        target: &Path,
        access: Access,
    ) -> Result<(), Refusal> {
        let (path, place) = self.place(field, target)?;
        if access == Access::ReadOnly
            && matches!(&place, Place::Inside(behind) if *behind == source.canonical)
            && self.is_untouched(&path)
        {
            return Ok(());
        }
        self.bind_with(field, source, target, access, Kind::Plain)
    }

    /// A bind of a device node that works.
    pub(in crate::plan) fn device(
        &mut self,
        field: Field,
        source: &FoundFile,
        target: &Path,
    ) -> Result<(), Refusal> {
        self.bind_with(field, source, target, Access::ReadOnly, Kind::Devices)
    }

    /// A bind that can be written to, where the guest's files are the owner's.
    pub(in crate::plan) fn bind_as(
        &mut self,
        field: Field,
        source: &FoundFile,
        target: &Path,
        owner: Owner,
    ) -> Result<(), Refusal> {
        self.bind_with(field, source, target, Access::ReadWrite, Kind::As(owner))
    }

    fn bind_with(
        &mut self,
        field: Field,
        source: &FoundFile,
        target: &Path,
        access: Access,
        how: Kind,
    ) -> Result<(), Refusal> {
        let kind = source_kind(source);
        let path = self.mount_point(field, target, kind)?;
        self.ops.push(MountOp::Bind {
            source: Source {
                path: source.canonical.clone(),
                kind,
                dev: source.dev,
                ino: source.ino,
            },
            target: c_string(field, &path)?,
            access,
            devices: how == Kind::Devices,
            owner: match how {
                Kind::As(owner) => Some(owner),
                Kind::Plain | Kind::Devices => None,
            },
        });
        self.cover(&path, Node::Bound { source: source.canonical.clone(), kind, access });
        Ok(())
    }

    /// A tmpfs, writable until a later [`Tree::read_only`].
    pub(in crate::plan) fn tmpfs(
        &mut self,
        field: Field,
        target: &Path,
        bounds: Bounds,
        export: Export,
    ) -> Result<(), Refusal> {
        let path = self.mount_point(field, target, SourceKind::Dir)?;
        self.ops.push(MountOp::Tmpfs {
            target: c_string(field, &path)?,
            size_bytes: bounds.size_bytes,
            inodes: bounds.inodes,
            mode: bounds.mode,
            access: bounds.access,
            export,
        });
        self.cover(&path, Node::Tmpfs);
        Ok(())
    }

    /// A procfs.
    pub(in crate::plan) fn proc(
        &mut self,
        field: Field,
        target: &Path,
        access: Access,
        only_pids: bool,
    ) -> Result<(), Refusal> {
        let path = self.mount_point(field, target, SourceKind::Dir)?;
        self.ops.push(MountOp::Proc { target: c_string(field, &path)?, access, only_pids });
        self.cover(&path, Node::Kernel);
        Ok(())
    }

    /// A directory over which each run mounts a tmpfs of its own.
    pub(in crate::plan) fn fresh(&mut self, field: Field, target: &Path) -> Result<(), Refusal> {
        let path = self.mount_point(field, target, SourceKind::Dir)?;
        self.cover(&path, Node::Fresh);
        Ok(())
    }

    /// Makes a mount of ours read-only.
    pub(in crate::plan) fn read_only(
        &mut self,
        field: Field,
        target: &Path,
    ) -> Result<(), Refusal> {
        self.ops.push(MountOp::ReadOnly { target: c_string(field, target)? });
        Ok(())
    }

    /// Puts a mount at `path`; what was beneath it can no longer be seen.
    fn cover(&mut self, path: &Path, node: Node) {
        self.nodes.remove_beneath(path);
        self.nodes.insert(path, node);
    }
}
