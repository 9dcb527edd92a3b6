//! Resolves host paths to facts, one `statx` per component and each only once; opens nothing.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, makedev, readlinkat, statx};
use rustix::io::Errno;

use super::{FileFact, FileKind, FoundFile};

/// How many symbolic links one path may hold, as in path_resolution(7).
pub(super) const LINKS_MAX: usize = 40;

/// Looks at paths and remembers what it has seen.
#[derive(Debug, Default)]
pub(super) struct Looker {
    seen: BTreeMap<OsString, Result<Statx, Errno>>,
}

impl Looker {
    /// The fact about `path`, whose symbolic links are resolved as if `root` were `/`.
    ///
    /// `root` itself has no symbolic link in it, and `path` begins with it.
    pub(super) fn look(&mut self, root: &Path, path: &Path) -> FileFact {
        let mut link = None;
        match (self.resolve(root, path, &mut link), link) {
            (Ok((canonical, status)), link) => FileFact::Found(found(&status, canonical, link)),
            (Err(Errno::NOENT | Errno::NOTDIR), Some(link)) => FileFact::Dangling { link },
            (Err(Errno::NOENT | Errno::NOTDIR), None) => FileFact::Missing,
            (Err(errno), _) => FileFact::Unreachable { errno: errno.raw_os_error() },
        }
    }

    /// As [`Looker::look`], for a path whose parents are known to be no links.
    pub(super) fn look_beyond(&mut self, root: &Path, path: &Path) -> FileFact {
        match self.status(path) {
            Ok(status) if !is_link(&status) => {
                FileFact::Found(found(&status, path.to_owned(), None))
            }
            Ok(_) | Err(_) => self.look(root, path),
        }
    }

    /// Follows every link; `link` becomes what the last component of `path` itself says.
    fn resolve(
        &mut self,
        root: &Path,
        path: &Path,
        link: &mut Option<PathBuf>,
    ) -> Result<(PathBuf, Statx), Errno> {
        let mut left = VecDeque::new();
        push_front(&mut left, path.strip_prefix(root).unwrap_or(path));
        let mut canonical = root.to_owned();
        let mut links = 0;
        let mut at_last = false;
        while let Some(name) = left.pop_front() {
            // The queue runs empty for the first time at the last component of `path` itself.
            let is_last = left.is_empty() && !core::mem::replace(&mut at_last, left.is_empty());
            if name == OsStr::new("..") {
                if canonical != root {
                    canonical.pop();
                }
                continue;
            }
            canonical.push(&name);
            let status = self.status(&canonical)?;
            if !is_link(&status) {
                continue;
            }
            links += 1;
            if links > LINKS_MAX {
                return Err(Errno::LOOP);
            }
            let says = read_link(&canonical)?;
            if says.is_absolute() {
                root.clone_into(&mut canonical);
            } else {
                canonical.pop();
            }
            push_front(&mut left, &says);
            if is_last {
                *link = Some(says);
            }
        }
        let status = self.status(&canonical)?;
        Ok((canonical, status))
    }

    /// `statx` without following a link at the end, without starting an automount and without
    /// asking a server.
    fn status(&mut self, path: &Path) -> Result<Statx, Errno> {
        if let Some(status) = self.seen.get(path.as_os_str()) {
            return *status;
        }
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
        let wanted = StatxFlags::TYPE
            | StatxFlags::MODE
            | StatxFlags::UID
            | StatxFlags::GID
            | StatxFlags::INO;
        let status = statx(CWD, path, flags, wanted);
        self.seen.insert(path.into(), status);
        status
    }
}

fn is_link(status: &Statx) -> bool {
    FileType::from_raw_mode(u32::from(status.stx_mode)) == FileType::Symlink
}

/// What a symbolic link says.
fn read_link(path: &Path) -> Result<PathBuf, Errno> {
    let says = readlinkat(CWD, path, Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(says.into_bytes())))
}

/// Puts the components of `path` before those that are left.
pub(super) fn push_front(left: &mut VecDeque<OsString>, path: &Path) {
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => left.push_front(name.to_owned()),
            Component::ParentDir => left.push_front(OsString::from("..")),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
}

/// The fact in a status.
fn found(status: &Statx, canonical: PathBuf, link: Option<PathBuf>) -> FoundFile {
    let mode = u32::from(status.stx_mode);
    let kind = match FileType::from_raw_mode(mode) {
        FileType::Directory => FileKind::Dir,
        FileType::RegularFile => FileKind::Regular,
        FileType::CharacterDevice => {
            FileKind::CharDevice { rdev: makedev(status.stx_rdev_major, status.stx_rdev_minor) }
        }
        FileType::Symlink
        | FileType::Fifo
        | FileType::Socket
        | FileType::BlockDevice
        | FileType::Unknown => FileKind::Other,
    };
    FoundFile {
        kind,
        canonical,
        link,
        dev: makedev(status.stx_dev_major, status.stx_dev_minor),
        ino: status.stx_ino,
        mode: mode & 0o7777,
        uid: status.stx_uid,
        gid: status.stx_gid,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    use super::Looker;
    use crate::host::{FileFact, FileKind};

    /// A directory of this test's own, removed when dropped.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("postern-{name}-{}", std::process::id());
            let path = fs::canonicalize(std::env::temp_dir()).unwrap().join(name);
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    /// A name, the root, a path below the scratch directory; where it leads and what it says.
    type Row<'a> = (&'a str, &'a Path, &'a str, Option<(&'a str, Option<&'a str>)>);

    #[test]
    fn links_are_resolved_beneath_the_root() {
        let scratch = Scratch::new("looker");
        let root = scratch.0.as_path();
        fs::create_dir_all(root.join("usr/bin")).unwrap();
        fs::write(root.join("usr/bin/tool"), "").unwrap();
        for (link, to) in [
            ("bin", "usr/bin"),
            ("absolute", "/usr/bin"),
            ("above", "../../../../../../../usr"),
            ("again", "bin"),
            ("loop", "loop"),
            ("dangling", "nowhere"),
        ] {
            symlink(to, root.join(link)).unwrap();
        }
        let elsewhere = Path::new("/");
        let rows: [Row<'_>; 10] = [
            ("a directory", root, "usr", Some(("usr", None))),
            ("a file", root, "usr/bin/tool", Some(("usr/bin/tool", None))),
            ("a link", root, "bin", Some(("usr/bin", Some("usr/bin")))),
            ("behind a link", root, "bin/tool", Some(("usr/bin/tool", None))),
            ("an absolute link", root, "absolute", Some(("usr/bin", Some("/usr/bin")))),
            (
                "a link above the root",
                root,
                "above",
                Some(("usr", Some("../../../../../../../usr"))),
            ),
            ("a link to a link", root, "again", Some(("usr/bin", Some("bin")))),
            ("dots", root, "usr/../usr/./bin", Some(("usr/bin", None))),
            ("nothing", root, "dangling", None),
            (
                "a relative link from the host's root",
                elsewhere,
                "again",
                Some(("usr/bin", Some("bin"))),
            ),
        ];
        for (name, from, path, expected) in rows {
            let fact = Looker::default().look(from, &root.join(path));
            let got = match &fact {
                FileFact::Found(found) => Some((
                    found.canonical.strip_prefix(root).unwrap().to_str().unwrap(),
                    found.link.as_deref().map(|link| link.to_str().unwrap()),
                )),
                FileFact::Missing | FileFact::Dangling { .. } | FileFact::Unreachable { .. } => {
                    None
                }
            };
            assert_eq!(got, expected, "{name}: {fact:?}");
        }
        let dangling = Looker::default().look(root, &root.join("dangling"));
        assert_eq!(dangling, FileFact::Dangling { link: "nowhere".into() });
        let looped = Looker::default().look(root, &root.join("loop"));
        assert_eq!(looped, FileFact::Unreachable { errno: libc::ELOOP });
    }

    #[test]
    fn kinds_and_numbers_are_the_kernels() {
        let scratch = Scratch::new("kinds");
        let fact = Looker::default().look(Path::new("/"), Path::new("/dev/null"));
        let FileFact::Found(null) = fact else { panic!("{fact:?}") };
        assert_eq!(null.kind, FileKind::CharDevice { rdev: libc::makedev(1, 3) });
        let fact = Looker::default().look(Path::new("/"), &scratch.0);
        let FileFact::Found(dir) = fact else { panic!("{fact:?}") };
        assert_eq!(dir.kind, FileKind::Dir);
        let status = std::os::unix::fs::MetadataExt::ino(&fs::metadata(&scratch.0).unwrap());
        assert_eq!(dir.ino, status);
    }
}
