//! Looks at what leads to the guest's Python interpreter, and at the installation around it; runs
//! no interpreter and decides nothing.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::files::Looker;
use super::probe::small_file;
use super::trail::{Shown, View, follow};
use super::venv::VenvConfig;
use super::{FileFact, FileKind, FoundFile, Host};
use crate::plan::SYSTEM_DIRECTORIES;
use crate::profile::{Root, SandboxProfile};

/// More names than an installation has at its top; a directory with more is no fact.
const NAMES_MAX: usize = 256;

/// More names than a `lib` has, that of a large conda environment included.
const LIBRARIES_MAX: usize = 32_768;

/// More than `pyvenv.cfg` ever holds.
const CONFIG_BYTES_MAX: u64 = 1 << 16;

/// Adds to `host` the facts that tell which Python the guest will run.
pub(super) fn look(profile: &SandboxProfile, looker: &mut Looker, host: &mut Host) {
    let mut tree = Expected::new(profile, looker, &mut host.files);
    for program in profile.python_candidates().iter().filter(|program| program.is_absolute()) {
        if matches!(follow(&mut tree, program).end, Shown::Found(_)) {
            break;
        }
    }
    let Some(venv) = &profile.venv else { return };
    let program = follow(&mut tree, &venv.join("bin/python"));
    host.venv = config(&venv.join("pyvenv.cfg"));
    let home = host.venv.as_ref().and_then(|config| config.home.as_deref());
    let home = home.map(|home| follow(&mut tree, home).at);
    let directories = program.at.parent().into_iter().chain(home.as_deref());
    for prefix in directories.filter_map(Path::parent) {
        if tree.is_hole(prefix) {
            tree.installation(prefix, &mut host.listings);
        }
    }
    if profile.rootfs.is_none() && !host.listings.is_empty() {
        host.homes = homes();
        let is_same_name = |home: &&PathBuf| {
            host.listings.keys().any(|prefix| prefix.file_name() == home.file_name())
        };
        for home in host.homes.iter().filter(is_same_name) {
            tree.look(home.clone());
        }
    }
}

/// The guest's tree as the profile will make it: where nothing is made, the host's own shows.
struct Expected<'a> {
    looker: &'a mut Looker,
    files: &'a mut BTreeMap<PathBuf, FileFact>,
    /// What the guest's root is made of.
    base: PathBuf,
    /// Targets and canonical sources of the profile's binds.
    binds: Vec<(&'a Path, PathBuf)>,
    root: Root,
}

impl<'a> Expected<'a> {
    fn new(
        profile: &'a SandboxProfile,
        looker: &'a mut Looker,
        files: &'a mut BTreeMap<PathBuf, FileFact>,
    ) -> Self {
        let canonical = |path: &Path| match files.get(path) {
            Some(FileFact::Found(found)) => Some(found.canonical.clone()),
            Some(_) | None => None,
        };
        let base = profile.system_base();
        let base = canonical(base).unwrap_or_else(|| base.to_owned());
        let sources = profile.sources();
        let binds = sources.filter_map(|(source, target)| Some((target, canonical(source)?)));
        let binds = binds.collect();
        Self { looker, files, base, binds, root: profile.root }
    }

    /// The host path behind a path of the guest.
    fn behind(&self, path: &Path) -> PathBuf {
        let above = self.binds.iter().filter_map(|(target, source)| {
            Some((target.as_os_str().len(), source, path.strip_prefix(target).ok()?))
        });
        match above.max_by_key(|(depth, ..)| *depth) {
            Some((_, source, rest)) if rest.as_os_str().is_empty() => source.clone(),
            Some((_, source, rest)) => source.join(rest),
            None => self.base.join(path.strip_prefix("/").unwrap_or(path)),
        }
    }

    /// Whether the guest would see nothing of the host's at a path.
    fn is_hole(&self, path: &Path) -> bool {
        let inside = path.strip_prefix("/").unwrap_or(path);
        self.root == Root::Curated
            && !SYSTEM_DIRECTORIES.iter().any(|name| inside.starts_with(name))
            && !self.binds.iter().any(|(target, _)| path.starts_with(target))
    }

    /// The fact about a host path, which is remembered. A directory that the guest has may be a
    /// link on the host: then the fact is that of the path without the link, too.
    fn look(&mut self, path: PathBuf) -> &FileFact {
        let root = if path.starts_with(&self.base) { &self.base } else { Path::new("/") };
        let above = match path.parent().map(|above| (above, self.files.get(above))) {
            Some((_, Some(FileFact::Found(found)))) => Some(found.canonical.clone()),
            Some((above, _)) if above == root => Some(above.to_owned()),
            Some(_) | None => None,
        };
        let direct = above.zip(path.file_name()).map(|(above, name)| above.join(name));
        let looker = &mut *self.looker;
        match direct {
            Some(direct) if direct == path => {
                self.files.entry(path).or_insert_with_key(|path| looker.look_beyond(root, path))
            }
            Some(direct) => {
                let fact = looker.look_beyond(root, &direct);
                self.files.entry(direct).or_insert_with(|| fact.clone());
                self.files.entry(path).or_insert(fact)
            }
            None => {
                let fact = looker.look(root, &path);
                if let FileFact::Found(found @ FoundFile { link: None, canonical, .. }) = &fact {
                    let found = FileFact::Found(found.clone());
                    self.files.entry(canonical.clone()).or_insert(found);
                }
                self.files.entry(path).or_insert(fact)
            }
        }
    }

    /// What there is of a Python installation below `prefix`.
    fn installation(&mut self, prefix: &Path, listings: &mut BTreeMap<PathBuf, Vec<OsString>>) {
        let behind = self.behind(prefix);
        if !listings.contains_key(&behind)
            && let Some(names) = names(&behind, NAMES_MAX, |_| true)
        {
            listings.insert(behind, names);
        }
        self.shows(prefix);
        self.shows(&prefix.join("bin"));
        self.shows(&prefix.join("ssl"));
        for library in ["lib", "lib64"].map(|name| prefix.join(name)) {
            let Shown::Found(found) = self.shows(&library) else { continue };
            let behind = self.behind(&library);
            let Some(names) = (found.kind == FileKind::Dir)
                .then(|| names(&behind, LIBRARIES_MAX, is_of_python))
                .flatten()
            else {
                continue;
            };
            for name in &names {
                self.shows(&library.join(name));
                self.shows(&library.join(name).join("os.py"));
                self.shows(&prefix.join("bin").join(name));
            }
            listings.insert(behind, names);
        }
    }
}

impl View for Expected<'_> {
    fn shows(&mut self, path: &Path) -> Shown {
        let is_above = |(target, _): &(&Path, PathBuf)| *target != path && target.starts_with(path);
        if self.binds.iter().any(is_above) && self.is_hole(path) {
            return Shown::Made;
        }
        let behind = self.behind(path);
        Shown::of(Some(self.look(behind)))
    }
}

/// Whether a name in a `lib` is the standard library's or the interpreter's own.
fn is_of_python(name: &OsStr) -> bool {
    [&b"python"[..], b"pypy", b"libpython", b"libpypy"]
        .iter()
        .any(|start| name.as_bytes().starts_with(start))
}

/// The sorted names in a directory that are wanted; none if there are very many to read.
fn names(path: &Path, max: usize, is_wanted: fn(&OsStr) -> bool) -> Option<Vec<OsString>> {
    let mut names = Vec::new();
    for (index, entry) in std::fs::read_dir(path).ok()?.enumerate() {
        let name = entry.ok().filter(|_| index < max)?.file_name();
        names.extend(is_wanted(&name).then_some(name));
    }
    names.sort_unstable();
    Some(names)
}

/// What `pyvenv.cfg` says; a pipe in its place must not hold the service up.
fn config(path: &Path) -> Option<VenvConfig> {
    let mut options = std::fs::OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let file = file.ok().filter(|file| file.metadata().is_ok_and(|status| status.is_file()))?;
    let mut text = Vec::new();
    file.take(CONFIG_BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(VenvConfig::parse(&text))
}

/// Every home that this host knows by name.
fn homes() -> Vec<PathBuf> {
    let users = small_file("/etc/passwd").unwrap_or_default();
    let homes = users.lines().filter_map(|line| line.split(':').nth(5)).map(PathBuf::from);
    let own = std::env::var_os("HOME").map(PathBuf::from);
    let mut homes: Vec<_> = homes.chain(own).filter(|home| home.is_absolute()).collect();
    homes.sort_unstable();
    homes.dedup();
    homes
}
