//! Follows a path of the guest link by link through a view of its tree; looks at no file itself.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::files::{LINKS_MAX, push_front};
use super::{FileFact, FileKind, FoundFile};

/// What a view shows at a path none of whose parents is a symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    /// A file or directory of the host's.
    Found(FoundFile),
    /// A directory of ours.
    Made,
    /// A symbolic link that says this.
    Link(PathBuf),
    /// Nothing, for certain.
    Nothing,
    /// Something of ours is mounted above it, here, and hides what the host has.
    Covered,
    /// The service was not allowed to look.
    Unreachable(i32),
    /// Nobody has looked, or the guest may change it.
    Unknown,
}

impl Shown {
    /// What a fact about a path without a link above it shows.
    pub(crate) fn of(fact: Option<&FileFact>) -> Self {
        match fact {
            Some(FileFact::Found(FoundFile { link: Some(says), .. }))
            | Some(FileFact::Dangling { link: says }) => Self::Link(says.clone()),
            Some(FileFact::Found(found)) => Self::Found(found.clone()),
            Some(FileFact::Missing) => Self::Nothing,
            Some(FileFact::Unreachable { errno }) => Self::Unreachable(*errno),
            None => Self::Unknown,
        }
    }
}

/// The guest's tree, as somebody sees it.
pub(crate) trait View {
    /// What is at `path`, none of whose parents is a symbolic link.
    fn shows(&mut self, path: &Path) -> Shown;
}

/// Where a path leads.
#[derive(Debug)]
pub(crate) struct Trail {
    /// The symbolic links on the way, each with what it says.
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
    /// The path without symbolic links, as far as it could be followed.
    pub(crate) at: PathBuf,
    /// What is there; never a link.
    pub(crate) end: Shown,
}

/// Follows `path`, as path_resolution(7) does in the guest.
pub(crate) fn follow(view: &mut impl View, path: &Path) -> Trail {
    let mut trail = Trail { links: Vec::new(), at: PathBuf::from("/"), end: Shown::Made };
    let mut left = VecDeque::new();
    push_front(&mut left, path);
    while let Some(name) = left.pop_front() {
        if name == OsStr::new("..") {
            trail.at.pop();
            trail.end = view.shows(&trail.at);
            continue;
        }
        trail.at.push(&name);
        trail.end = view.shows(&trail.at);
        match &trail.end {
            Shown::Made => {}
            Shown::Found(found) if found.kind == FileKind::Dir || left.is_empty() => {}
            Shown::Found(_) => trail.end = Shown::Nothing,
            Shown::Link(_) if trail.links.len() == LINKS_MAX => {
                trail.end = Shown::Unreachable(libc::ELOOP);
            }
            Shown::Link(says) => {
                let says = says.clone();
                trail.links.push((trail.at.clone(), says.clone()));
                if says.is_absolute() {
                    trail.at = PathBuf::from("/");
                } else {
                    trail.at.pop();
                }
                push_front(&mut left, &says);
                if left.is_empty() {
                    trail.end = view.shows(&trail.at);
                }
                continue;
            }
            Shown::Nothing | Shown::Covered | Shown::Unreachable(_) | Shown::Unknown => {}
        }
        if !matches!(trail.end, Shown::Made | Shown::Found(_)) {
            break;
        }
    }
    trail
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::{Shown, View, follow};

    /// Links and directories by path; a path that is not listed is nothing.
    struct Listed(BTreeMap<&'static str, &'static str>);

    impl View for Listed {
        fn shows(&mut self, path: &Path) -> Shown {
            match self.0.get(path.to_str().unwrap()) {
                Some(&"") => Shown::Made,
                Some(says) => Shown::Link(says.into()),
                None => Shown::Nothing,
            }
        }
    }

    #[test]
    fn links_are_followed_as_the_kernel_does() {
        let mut view = Listed(BTreeMap::from([
            ("/", ""),
            ("/opt", ""),
            ("/opt/py", "py-3.12"),
            ("/opt/py-3.12", "./py-3.12.5"),
            ("/opt/py-3.12.5", ""),
            ("/opt/py-3.12.5/bin", ""),
            ("/opt/here", "."),
            ("/opt/up", "../../opt/py"),
            ("/opt/loop", "loop"),
            ("/opt/dangling", "/nowhere/at/all"),
        ]));
        let rows = [
            ("/opt/py-3.12.5/bin", "/opt/py-3.12.5/bin", 0, Shown::Made),
            ("/opt/py/bin", "/opt/py-3.12.5/bin", 2, Shown::Made),
            ("/opt/py/../py/bin/..", "/opt/py-3.12.5", 4, Shown::Made),
            ("/opt/here", "/opt", 1, Shown::Made),
            ("/opt/here/up/bin", "/opt/py-3.12.5/bin", 4, Shown::Made),
            ("/opt/loop", "/opt/loop", 40, Shown::Unreachable(libc::ELOOP)),
            ("/opt/dangling", "/nowhere", 1, Shown::Nothing),
            ("/opt/py/lib/os.py", "/opt/py-3.12.5/lib", 2, Shown::Nothing),
        ];
        for (path, at, links, end) in rows {
            let trail = follow(&mut view, Path::new(path));
            let found = (trail.at.to_str().unwrap(), trail.links.len(), &trail.end);
            assert_eq!(found, (at, links, &end), "{path}");
        }
    }
}
