//! The tree as the guest will see it, path by path; what is not in it may show through from the
//! host, for whoever wants to know what to add.

use std::path::Path;

use super::{Access, Node, Tree};
use crate::host::{Shown, View};

/// A look at the tree.
#[derive(Debug)]
pub(in crate::plan) struct Seen<'t, 'a> {
    tree: &'t Tree<'a>,
    /// What shows where nothing has been put; nothing does in the guest.
    beneath: Option<&'t Path>,
}

impl<'a> Tree<'a> {
    /// What the guest sees.
    pub(in crate::plan) const fn seen<'t>(&'t self) -> Seen<'t, 'a> {
        Seen { tree: self, beneath: None }
    }

    /// What the guest would see if what is missing were there as it is beneath `base`.
    pub(in crate::plan) const fn seen_over<'t>(&'t self, base: &'t Path) -> Seen<'t, 'a> {
        Seen { tree: self, beneath: Some(base) }
    }

    /// Whether nothing has been put at `path`, or beneath it, and something can be.
    pub(in crate::plan) fn is_free(&self, path: &Path) -> bool {
        let above = self.nodes.upwards(path).next();
        let is_ours = above.is_some_and(|(_, node)| matches!(node, Node::Dir | Node::Tmpfs));
        is_ours && self.is_on_root(path) && self.is_untaken(path)
    }

    /// Whether nothing has been put at `path` or beneath it.
    pub(in crate::plan) fn is_untaken(&self, path: &Path) -> bool {
        self.nodes.get(path).is_none() && !self.nodes.has_beneath(path)
    }

    /// Whether a path of ours is on the root's own file system, which no guest writes to.
    fn is_on_root(&self, path: &Path) -> bool {
        let mut above = self.nodes.upwards(path);
        let mount = above.find(|(_, node)| matches!(node, Node::Tmpfs));
        mount.is_some_and(|(mount, _)| mount == Path::new("/"))
    }

    /// The directory of the bind that `path` is seen through.
    pub(in crate::plan) fn bind_above<'p>(&'p self, path: &'p Path) -> Option<&'p Path> {
        let (above, node) = self.nodes.upwards(path).next()?;
        matches!(node, Node::Bound { .. }).then_some(above)
    }
}

impl View for Seen<'_, '_> {
    fn shows(&mut self, path: &Path) -> Shown {
        let tree = self.tree;
        let Some((above, node)) = tree.nodes.upwards(path).next() else { return Shown::Nothing };
        let is_exact = above.as_os_str() == path.as_os_str();
        match node {
            Node::Link(to) if is_exact => Shown::Link(to.clone()),
            Node::File if is_exact => Shown::Unknown,
            Node::Link(_) | Node::File => Shown::Nothing,
            Node::Dir | Node::Tmpfs | Node::Kernel | Node::Fresh if is_exact => Shown::Made,
            Node::Kernel | Node::Fresh => Shown::Covered,
            Node::Dir | Node::Tmpfs => match self.beneath {
                _ if !tree.is_on_root(path) => Shown::Covered,
                Some(base) => {
                    Shown::of(tree.host.file(&base.join(path.strip_prefix("/").unwrap_or(path))))
                }
                None => Shown::Nothing,
            },
            Node::Bound { source, access, .. } => {
                let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
                let behind = if is_exact { source.clone() } else { source.join(rest) };
                match (Shown::of(tree.host.file(&behind)), access) {
                    (Shown::Nothing, Access::ReadWrite) => Shown::Unknown,
                    (shown, _) => shown,
                }
            }
        }
    }
}
