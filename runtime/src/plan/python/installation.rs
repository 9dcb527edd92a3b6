//! Which host paths make up a Python installation, and whether they may be shown to a guest
//! without being asked for; decides from names alone and looks at no file.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Tree;
use crate::error::PythonHidden;
use crate::host::{FileFact, FileKind, FoundFile, Host, named_version};

/// What an installation's own directory holds and nothing else does. Not `etc` and `var`, which
/// a larger application around the interpreter keeps its secrets in.
const OWN_NAMES: [&str; 16] = [
    "bin",
    "include",
    "lib",
    "lib64",
    "libexec",
    "man",
    "sbin",
    "share",
    "src",
    "doc",
    // python-build-standalone, which uv and others install.
    "BUILD",
    "LICENSE",
    "LICENSE.txt",
    // PyPy before 3.9.
    "lib-python",
    "lib_pypy",
    "site-packages",
];

/// Stores whose packages find the rest of themselves elsewhere in the store.
const STORES: [&str; 2] = ["/nix/store", "/gnu/store"];

/// Homebrew's prefix, wherever it is, is such a store too.
const HOMEBREW: &str = ".linuxbrew";

/// What to do about an installation.
pub(super) enum Installation {
    /// These, each bound or linked at its path in the guest, are enough.
    Parts(Vec<(PathBuf, FoundFile)>),
    /// It is not shown unless the profile asks for these.
    Refused {
        /// Why.
        why: PythonHidden,
        /// Paths in the guest.
        paths: Vec<PathBuf>,
    },
}

/// The facts about one prefix, by paths of the guest.
struct Prefix<'a> {
    host: &'a Host,
    base: &'a Path,
    path: &'a Path,
    /// The interpreter in question, where it is in here.
    executable: Option<&'a Path>,
}

/// The installation with this prefix in the guest, if it is one: its `lib` or `lib64` has the
/// standard library of the interpreter in question.
pub(super) fn at(
    tree: &Tree<'_>,
    base: &Path,
    path: &Path,
    executable: Option<&Path>,
) -> Option<Installation> {
    let prefix = Prefix { host: tree.host(), base, path, executable };
    let libraries = prefix.libraries();
    if libraries.is_empty() {
        return None;
    }
    let parts = match prefix.found(path) {
        Some(found) if tree.is_untaken(path) && prefix.is_nothing_else() => {
            vec![(path.to_owned(), found)]
        }
        Some(_) | None => prefix.parts(libraries),
    };
    let refused = |why, paths| Some(Installation::Refused { why, paths });
    if let Some(store) = store(path) {
        return refused(PythonHidden::Store, vec![store.to_owned()]);
    }
    if prefix.is_home() {
        return refused(PythonHidden::Home, parts.into_iter().map(|(path, _)| path).collect());
    }
    Some(Installation::Parts(parts))
}

/// The package store that a prefix is in.
fn store(prefix: &Path) -> Option<&Path> {
    let is_store = |above: &&Path| {
        STORES.iter().any(|store| *above == Path::new(store))
            || above.file_name() == Some(OsStr::new(HOMEBREW))
    };
    prefix.ancestors().find(is_store)
}

impl Prefix<'_> {
    /// The host path behind a path of the guest.
    fn behind(&self, path: &Path) -> PathBuf {
        self.base.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn found(&self, path: &Path) -> Option<FoundFile> {
        match self.host.file(&self.behind(path)) {
            Some(FileFact::Found(found)) => Some(found.clone()),
            Some(FileFact::Missing | FileFact::Dangling { .. } | FileFact::Unreachable { .. })
            | None => None,
        }
    }

    /// The names in a directory, as far as they were read.
    fn names(&self, path: &Path) -> &[std::ffi::OsString] {
        self.host.listings.get(&self.behind(path)).map_or(&[], Vec::as_slice)
    }

    /// Whether a name belongs to the interpreter in question rather than to another version.
    fn is_wanted(&self, name: &OsStr) -> bool {
        let own = self.executable.and_then(Path::file_name).and_then(named_version);
        let other = name.as_bytes().strip_prefix(b"lib").map_or(name, OsStr::from_bytes);
        match (own, named_version(other)) {
            (Some(own), Some(other)) => own == other,
            (_, Some(_)) => true,
            (_, None) => name == OsStr::new("libpython3.so"),
        }
    }

    /// The directories of the standard library.
    fn libraries(&self) -> Vec<PathBuf> {
        let library = |name: &str| self.path.join(name);
        let directories = ["lib", "lib64"].map(library).into_iter().flat_map(|library| {
            let names = self.names(&library).iter().filter(|name| self.is_wanted(name));
            names.map(|name| library.join(name)).collect::<Vec<_>>()
        });
        directories.filter(|path| self.found(&path.join("os.py")).is_some()).collect()
    }

    /// Whether the directory holds nothing but the installation: every name in it is one of an
    /// installation's, and it is no such general place as `/opt`.
    fn is_nothing_else(&self) -> bool {
        let names = self.names(self.path);
        let is_own = |name: &std::ffi::OsString| OWN_NAMES.iter().any(|own| name == own);
        let depth = self.path.components().count();
        let holds_home = self.host.homes.iter().any(|home| home.starts_with(self.path));
        depth > 2 && !names.is_empty() && names.iter().all(is_own) && !holds_home
    }

    /// Whether the directory is a user's home.
    fn is_home(&self) -> bool {
        let own = self.found(self.path);
        let canonical = |path: &Path| match self.host.file(path) {
            Some(FileFact::Found(found)) => Some(found.canonical.as_path()),
            Some(_) | None => None,
        };
        self.host.homes.iter().any(|home| {
            home == self.path
                || own.as_ref().is_some_and(|own| canonical(home) == Some(&own.canonical))
        })
    }

    /// What of the directory is the interpreter's: itself, its standard library and its shared
    /// library; of a conda environment all libraries, since its `ssl` is built on those.
    fn parts(&self, libraries: Vec<PathBuf>) -> Vec<(PathBuf, FoundFile)> {
        let bin = self.path.join("bin");
        let named = libraries.iter().filter_map(|library| library.file_name());
        let mut paths: Vec<PathBuf> = self.executable.map(Path::to_owned).into_iter().collect();
        paths.extend(named.map(|name| bin.join(name)));
        if self.names(self.path).iter().any(|name| name == "conda-meta") {
            paths.extend(["lib", "ssl", "share"].map(|name| self.path.join(name)));
        } else {
            paths.extend(libraries);
            let libraries = ["lib", "lib64"].map(|name| self.path.join(name));
            for library in libraries.iter().chain([&bin]) {
                let names = self.names(library).iter().filter(|name| self.is_wanted(name));
                let shared = names.filter(|name| name.as_bytes().starts_with(b"lib"));
                paths.extend(shared.map(|name| library.join(name)));
            }
        }
        paths.sort_unstable();
        paths.dedup();
        let found = |path: PathBuf| self.found(&path).map(|found| (path, found));
        let is_part = |(path, found): &(PathBuf, FoundFile)| {
            let is_shared =
                path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"lib"));
            found.kind == FileKind::Regular || !is_shared || path.ends_with("lib")
        };
        paths.into_iter().filter_map(found).filter(is_part).collect()
    }
}
