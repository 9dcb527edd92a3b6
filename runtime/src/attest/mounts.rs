//! Which mounts of a table a path leads to: a mount over another hides it and all beneath.

use std::collections::BTreeMap;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use procfs::process::MountInfo;

use super::AttestedMount;

/// The flags that are looked for, as the table and the plan have them.
pub(super) const FLAGS: [(&str, u64); 4] = {
    use crate::launch::attributes::{NODEV, NOEXEC, NOSUID, RDONLY};
    [("ro", RDONLY), ("nosuid", NOSUID), ("nodev", NODEV), ("noexec", NOEXEC)]
};

/// Everything that can be reached from the root.
pub(super) fn reachable(table: &[MountInfo]) -> Vec<AttestedMount> {
    let tree = Tree::new(table);
    // The root's own parent lies outside; of several, the last one covers the others.
    let mut roots = table.iter().filter(|mount| {
        path(mount) == b"/" && (mount.pid == mount.mnt_id || !tree.is_listed(mount.pid))
    });
    let mut found = Vec::with_capacity(table.len());
    if let Some(root) = roots.next_back() {
        tree.walk(root, &mut found);
    }
    found
}

/// Compared as bytes: a table has no odd slashes, and paths are slow to compare.
fn path(mount: &MountInfo) -> &[u8] {
    mount.mount_point.as_os_str().as_bytes()
}

/// A table by parents.
struct Tree<'a> {
    table: &'a [MountInfo],
    children: BTreeMap<i32, Vec<&'a MountInfo>>,
}

impl<'a> Tree<'a> {
    fn new(table: &'a [MountInfo]) -> Tree<'a> {
        let mut children = BTreeMap::<i32, Vec<&MountInfo>>::new();
        for mount in table.iter().filter(|mount| mount.pid != mount.mnt_id) {
            children.entry(mount.pid).or_default().push(mount);
        }
        Tree { table, children }
    }

    fn is_listed(&self, id: i32) -> bool {
        self.table.iter().any(|mount| mount.mnt_id == id)
    }

    fn children(&self, mount: &MountInfo) -> &[&'a MountInfo] {
        self.children.get(&mount.mnt_id).map_or(&[], Vec::as_slice)
    }

    fn walk(&self, mount: &'a MountInfo, found: &mut Vec<AttestedMount>) {
        // A table that leads in a circle is no table.
        if found.len() > self.table.len() {
            return;
        }
        let mount = self.top(mount);
        let flags = FLAGS.iter().map(|flag| flag.0);
        found.push(AttestedMount {
            target: plain(&mount.mount_point),
            file_system: mount.fs_type.clone(),
            flags: flags.filter(|flag| mount.mount_options.contains_key(*flag)).collect(),
        });
        let children = self.children(mount);
        for child in children {
            if !children.iter().any(|other| is_beneath(path(child), path(other))) {
                self.walk(child, found);
            }
        }
    }

    /// What lies on a mount's own root, and on that in turn.
    fn top(&self, mount: &'a MountInfo) -> &'a MountInfo {
        let mut top = mount;
        for _ in self.table {
            match self.children(top).iter().find(|child| path(child) == path(top)) {
                Some(child) => top = child,
                None => break,
            }
        }
        top
    }
}

/// Whether a path lies within another, which it is not itself.
pub(super) fn is_beneath(path: &[u8], above: &[u8]) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.starts_with(b"/"))
}

/// A path of a mount table, where white space and backslashes are three octal digits.
pub(crate) fn plain(path: &Path) -> std::path::PathBuf {
    let mut bytes = Vec::new();
    let mut rest = path.as_os_str().as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..3).filter(|_| *first == b'\\');
        let code = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(lines: &[&str]) -> Vec<MountInfo> {
        let line = |line: &&str| {
            let (head, tail) = line.split_once(" : ").unwrap();
            let (ids, target) = head.rsplit_once(' ').unwrap();
            MountInfo::from_line(&format!("{ids} 0:1 / {target} {tail} - tmpfs none rw")).unwrap()
        };
        lines.iter().map(line).collect()
    }

    /// Lines of a table, and what of them is reachable, with its flags.
    type Row<'a> = (&'a [&'a str], &'a [(&'a str, &'a [&'a str])]);

    #[test]
    fn what_is_covered_is_not_reachable() {
        let rows: [Row<'_>; 6] = [
            (&["1 1 / : ro,nosuid"], &[("/", &["ro", "nosuid"])]),
            (&["1 9 / : rw", "2 1 /a : rw,nodev"], &[("/", &[]), ("/a", &["nodev"])]),
            // A second mount on the same place, by the parent's id or in the parent's root.
            (&["1 9 / : rw", "2 1 /a : rw", "3 2 /a : ro"], &[("/", &[]), ("/a", &["ro"])]),
            (&["1 9 / : rw", "2 1 / : ro", "3 2 /a : rw"], &[("/", &["ro"]), ("/a", &[])]),
            // What lies beneath a place that is covered as a whole.
            (
                &["1 9 / : rw", "2 1 /a/b : rw", "3 1 /a : ro", "4 3 /a/b : ro"],
                &[("/", &[]), ("/a", &["ro"]), ("/a/b", &["ro"])],
            ),
            (
                &["1 9 / : rw", "2 1 /a : rw", "3 1 /ab : ro"],
                &[("/", &[]), ("/a", &[]), ("/ab", &["ro"])],
            ),
        ];
        for (lines, expected) in rows {
            let found = reachable(&table(lines));
            let found: Vec<_> = found
                .iter()
                .map(|mount| (mount.target.to_str().unwrap(), mount.flags.as_slice()))
                .collect();
            assert_eq!(found, expected, "{lines:?}");
        }
    }

    #[test]
    fn escapes_of_the_mount_table_are_undone() {
        let rows = [
            ("/a", "/a"),
            ("/a\\040b", "/a b"),
            ("/\\134040", "/\\040"),
            ("/x\\0", "/x\\0"),
            ("/\\011\\012", "/\t\n"),
        ];
        for (written, meant) in rows {
            assert_eq!(plain(Path::new(written)), Path::new(meant), "{written}");
        }
    }
}
