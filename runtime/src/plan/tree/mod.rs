//! The guest's tree as it stands after the operations so far: says where a path comes to lie.
//! It reads facts only; `make` adds operations.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::{Access, MountOp, SourceKind};
use crate::error::Refusal;
use crate::host::{FileFact, FileKind, FoundFile, Host};
use crate::profile::Field;

mod make;
mod view;

pub(super) use make::Bounds;

/// How many symbolic links one path may hold.
const LINKS_MAX: usize = 40;

/// What is at a path, as far as the plan put it there.
#[derive(Debug, Clone)]
enum Node {
    /// A directory on a file system of ours.
    Dir,
    /// A regular file on a file system of ours.
    File,
    /// A symbolic link on a file system of ours.
    Link(PathBuf),
    /// The root of a tmpfs of ours.
    Tmpfs,
    /// A host path.
    Bound { source: PathBuf, kind: SourceKind, access: Access },
    /// A procfs.
    Kernel,
    /// A directory over which something is mounted later: by the profile, or by each run a tmpfs.
    Fresh,
}

/// Where a path comes to lie.
#[derive(Debug)]
pub(super) enum Place {
    /// A directory that the plan has put there.
    Dir,
    /// A file that the plan has put there.
    File,
    /// Nothing yet, on a file system of ours.
    Free,
    /// In a bind; this is the path behind it.
    Inside(PathBuf),
    /// Beneath this directory, over which something is mounted later.
    Hidden(PathBuf),
    /// Beneath something that is not a directory.
    Blocked,
}

/// Nodes by the bytes of their paths, which have no slash but single ones before each name.
///
/// Bytes, since comparing paths component by component took half of the time of a plan.
#[derive(Debug, Default)]
struct Nodes(BTreeMap<Vec<u8>, Node>);

impl Nodes {
    fn of_root(node: Node) -> Self {
        Self(BTreeMap::from([(b"/".to_vec(), node)]))
    }

    fn get(&self, path: &Path) -> Option<&Node> {
        self.0.get(path.as_os_str().as_bytes())
    }

    fn insert(&mut self, path: &Path, node: Node) {
        self.0.insert(path.as_os_str().as_bytes().to_vec(), node);
    }

    /// The nodes at and above `path`, deepest first.
    fn upwards<'n>(&'n self, path: &'n Path) -> impl Iterator<Item = (&'n Path, &'n Node)> {
        prefixes(path).filter_map(|above| Some((above, self.get(above)?)))
    }

    /// Whether anything lies beneath `path`.
    fn has_beneath(&self, path: &Path) -> bool {
        self.0.range(beneath(path)).next().is_some()
    }

    /// Forgets what lies beneath `path`.
    fn remove_beneath(&mut self, path: &Path) {
        let keys: Vec<_> = self.0.range(beneath(path)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.0.remove(&key);
        }
    }
}

/// The keys of everything beneath `path`, which is never the root: `/` precedes `0` in ASCII.
fn beneath(path: &Path) -> core::ops::Range<Vec<u8>> {
    let with = |last| [path.as_os_str().as_bytes(), &[last]].concat();
    with(b'/')..with(b'0')
}

/// `path` and every directory above it, deepest first.
fn prefixes(path: &Path) -> impl Iterator<Item = &Path> {
    core::iter::successors(Some(path.as_os_str().as_bytes()), |path| parent(path))
        .map(|bytes| Path::new(OsStr::from_bytes(bytes)))
}

/// The directory above an absolute path.
fn parent(path: &[u8]) -> Option<&[u8]> {
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    let end = if slash == 0 { 1 } else { slash };
    path.get(..end).filter(|_| path.len() > 1)
}

/// Operations so far, and what they amount to.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    host: &'a Host,
    nodes: Nodes,
    ops: Vec<MountOp>,
}

impl<'a> Tree<'a> {
    /// A tree whose root is a tmpfs; its bounds are set by [`Tree::into_ops`].
    pub(super) fn on_tmpfs(host: &'a Host) -> Self {
        let nodes = Nodes::of_root(Node::Tmpfs);
        Self { host, nodes, ops: vec![MountOp::Root { size_bytes: 0, inodes: 0 }] }
    }

    /// A tree whose root is the host's own.
    pub(super) fn on_host(host: &'a Host) -> Self {
        let (source, kind) = (PathBuf::from("/"), SourceKind::Dir);
        let root = Node::Bound { source, kind, access: Access::ReadOnly };
        let nodes = Nodes::of_root(root);
        Self { host, nodes, ops: vec![MountOp::HostRoot] }
    }

    /// The facts that this tree is built on.
    pub(super) const fn host(&self) -> &'a Host {
        self.host
    }

    /// The operations; a root tmpfs gets room for what they make and no more.
    pub(super) fn into_ops(mut self) -> Vec<MountOp> {
        const SIZE_BYTES_MIN: u64 = 1 << 20;
        const INODES_MIN: u64 = 1024;
        let (mut bytes, mut made) = (0_u64, 0_u64);
        for op in &self.ops {
            if let MountOp::File { contents, .. } = op {
                let length = u64::try_from(contents.len()).unwrap_or(u64::MAX);
                bytes = bytes.saturating_add(length.next_multiple_of(4096));
            }
            let is_made =
                matches!(op, MountOp::Dir { .. } | MountOp::File { .. } | MountOp::Symlink { .. });
            made += u64::from(is_made);
        }
        if let Some(MountOp::Root { size_bytes, inodes }) = self.ops.first_mut() {
            *size_bytes = bytes.saturating_mul(2).next_power_of_two().max(SIZE_BYTES_MIN);
            *inodes = (made * 2).next_power_of_two().max(INODES_MIN);
        }
        self.ops
    }

    /// `path` with the links of ours in it resolved; the last component only on request.
    fn follow(&self, field: Field, path: &Path, last: Last) -> Result<PathBuf, Refusal> {
        let mut path: PathBuf = path.components().collect();
        for _ in 0..LINKS_MAX {
            let links = self.nodes.upwards(&path).filter_map(|(prefix, node)| match node {
                Node::Link(_) if last == Last::Keep && *prefix == path => None,
                Node::Link(to) => Some((prefix, to)),
                Node::Dir
                | Node::File
                | Node::Tmpfs
                | Node::Bound { .. }
                | Node::Kernel
                | Node::Fresh => None,
            });
            let Some((prefix, to)) = links.last() else { return Ok(path) };
            let rest = path.strip_prefix(prefix).unwrap_or(Path::new(""));
            // By components, since joining nothing would add a slash.
            let behind = joined(prefix.parent().unwrap_or(Path::new("/")), to);
            path = behind.components().chain(rest.components()).collect();
        }
        Err(Refusal::TargetBehindLink { field, target: path })
    }

    /// Where `path` comes to lie, and the path there without a symbolic link that we know of.
    pub(super) fn place(&self, field: Field, path: &Path) -> Result<(PathBuf, Place), Refusal> {
        self.place_with(field, path, Last::Follow)
    }

    fn place_with(
        &self,
        field: Field,
        path: &Path,
        last: Last,
    ) -> Result<(PathBuf, Place), Refusal> {
        let mut path = self.follow(field, path, last)?;
        for _ in 0..LINKS_MAX {
            let Some((above, node)) = self.nodes.upwards(&path).next() else {
                return Ok((path, Place::Blocked));
            };
            let exact = above.as_os_str() == path.as_os_str();
            let place = match node {
                Node::Dir | Node::Tmpfs if !exact => Place::Free,
                Node::Dir | Node::Tmpfs | Node::Kernel => Place::Dir,
                Node::Fresh if exact => Place::Dir,
                Node::Fresh => Place::Hidden(above.to_owned()),
                Node::File | Node::Link(_) if exact => Place::File,
                Node::File | Node::Link(_) => Place::Blocked,
                Node::Bound { source, kind, .. } => {
                    let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
                    if *kind == SourceKind::File && !exact {
                        return Ok((path, Place::Blocked));
                    }
                    let behind = if exact { source.clone() } else { source.join(rest) };
                    let Some(FileFact::Found(found)) = self.host.file(&behind) else {
                        return Ok((path, Place::Inside(behind)));
                    };
                    if found.canonical == behind {
                        return Ok((path, Place::Inside(behind)));
                    }
                    let Ok(inner) = found.canonical.strip_prefix(source) else {
                        return Err(Refusal::TargetBehindLink { field, target: path });
                    };
                    path = self.follow(field, &above.join(inner), last)?;
                    continue;
                }
            };
            return Ok((path, place));
        }
        Err(Refusal::TargetBehindLink { field, target: path })
    }

    /// Whether [`Tree::fresh`] still is the last word about a path.
    pub(super) fn is_fresh(&self, path: &Path) -> bool {
        matches!(self.nodes.get(path), Some(Node::Fresh))
    }

    /// Whether `path` is seen through one read-only bind with nothing on top.
    fn is_untouched(&self, path: &Path) -> bool {
        let node = self.nodes.upwards(path).next().map(|(_, node)| node);
        matches!(node, Some(Node::Bound { access: Access::ReadOnly, .. }))
            && !self.nodes.has_beneath(path)
    }
}

/// Whether the last component of a path is followed if it is a link of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Follow,
    Keep,
}

/// What kind of mount point a file needs.
pub(super) const fn source_kind(found: &FoundFile) -> SourceKind {
    match found.kind {
        FileKind::Dir => SourceKind::Dir,
        FileKind::Regular | FileKind::CharDevice { .. } | FileKind::Other => SourceKind::File,
    }
}

/// `to` as seen from the directory `base`, without `.` and `..`.
fn joined(base: &Path, to: &Path) -> PathBuf {
    let mut path = base.to_owned();
    for component in to.components() {
        match component {
            Component::RootDir | Component::Prefix(_) => path = PathBuf::from("/"),
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
        }
    }
    path
}
