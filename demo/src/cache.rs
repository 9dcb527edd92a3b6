//! What the first use makes and later ones find: the guest's environment and the database, one
//! directory for each version of Python. It appears whole or not at all.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::{DemoError, Step};
use crate::python::{Python, carry_out};
use crate::{Progress, data};

/// What the guest imports.
const REQUIREMENTS: &str = include_str!("../guest/requirements.txt");
/// The package that ships the data set (Horst, Hill, Gorman; CC0 1.0), and the file in it.
const DATA: (&str, &str) = ("palmerpenguins==0.1.6", "palmerpenguins/data/penguins.csv");

/// How the names of unfinished directories begin. None is ever used.
const UNFINISHED: &str = "unfinished-";
/// Locked by whoever makes something.
const LOCK: &str = "lock";
/// Written last, beside what it is the recipe of.
const RECIPE: &str = "recipe";

/// How many parts a first use has, for a bar: the environment, the packages as pip names them, their
/// installation, the data set, the database.
pub const PARTS: u64 = 4 + PACKAGES;
/// What pip says once for each package.
const PACKAGE_LINE: &str = "Collecting ";
const PACKAGES: u64 = 17;

/// `$XDG_CACHE_HOME/postern`, else `$HOME/.cache/postern`.
///
/// # Errors
/// [`DemoError::NoCache`] when neither variable holds an absolute path.
pub fn default_cache() -> Result<PathBuf, DemoError> {
    let absolute =
        |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let parent =
        absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    parent.map(|parent| parent.join("postern")).ok_or(DemoError::NoCache)
}

/// A directory that has everything.
#[derive(Debug)]
pub(crate) struct Ready {
    place: PathBuf,
    /// It was made just now.
    pub(crate) is_first_use: bool,
}

impl Ready {
    /// The guest's environment.
    pub(crate) fn venv(&self) -> PathBuf {
        self.place.join("venv")
    }

    /// The host's database.
    pub(crate) fn database(&self) -> PathBuf {
        self.place.join("penguins.sqlite")
    }
}

/// Finds what is there, or makes it. Writes nothing where all is there, so that a cache may be
/// another user's.
pub(crate) fn ready(
    cache: &Path,
    program: &OsStr,
    progress: &mut dyn Progress,
) -> Result<Ready, DemoError> {
    let python = Python::ask(program)?;
    if !cache.is_dir() {
        python.check()?;
        fs::create_dir_all(cache).map_err(DemoError::file("make", cache))?;
    }
    // A profile takes absolute paths without dots.
    let cache = fs::canonicalize(cache).map_err(DemoError::file("find", cache))?;
    let place = cache.join(format!("python{}", python.version()));
    let recipe = format!("{}\n{REQUIREMENTS}{}\n", python.executable.display(), DATA.0);
    if is_made(&place, &recipe) {
        return Ok(Ready { place, is_first_use: false });
    }
    python.check()?;
    progress.begin(&cache);
    let made = lock(&cache, progress).and_then(|lock| {
        // Whoever held the lock may have made it.
        let is_first_use = !is_made(&place, &recipe);
        if is_first_use {
            sweep(&cache);
            make(&cache, &place, &python, &recipe, progress)?;
        }
        drop(lock);
        Ok(Ready { place, is_first_use })
    });
    progress.end();
    made
}

/// Whether a place was made by this recipe, and its interpreter is still there.
fn is_made(place: &Path, recipe: &str) -> bool {
    fs::read_to_string(place.join(RECIPE)).is_ok_and(|made| made == recipe)
        && place.join("venv/bin/python").exists()
}

/// The right to make something, until it is dropped.
fn lock(cache: &Path, progress: &mut dyn Progress) -> Result<File, DemoError> {
    let path = cache.join(LOCK);
    let failed = |source: io::Error| DemoError::File { what: "lock", path: path.clone(), source };
    let open = File::options().create(true).append(true).open(&path);
    let file = open.map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => return Ok(file),
        Err(Errno::WOULDBLOCK) => progress.part(0, "waiting for another first use to end"),
        Err(errno) => return Err(failed(errno.into())),
    }
    flock(&file, FlockOperation::LockExclusive).map_err(|errno| failed(errno.into()))?;
    Ok(file)
}

/// Takes away what interrupted uses left. What cannot be removed is in nobody's way.
fn sweep(cache: &Path) {
    let entries = fs::read_dir(cache).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

fn make(
    cache: &Path,
    place: &Path,
    python: &Python,
    recipe: &str,
    progress: &mut dyn Progress,
) -> Result<(), DemoError> {
    let everyone = fs::Permissions::from_mode(0o755);
    let unfinished = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .permissions(everyone)
        .tempdir_in(cache)
        .map_err(DemoError::file("make a directory in", cache))?;
    let here = unfinished.path();

    environment(here, python, progress)?;
    progress.part(2 + PACKAGES, "the data set");
    let table = data_set(here)?;
    progress.part(3 + PACKAGES, "the database");
    data::load(&table, &here.join("penguins.sqlite"))?;
    let shipped = here.join("data");
    fs::remove_dir_all(&shipped).map_err(DemoError::file("remove", &shipped))?;

    let path = here.join(RECIPE);
    fs::write(&path, recipe).map_err(DemoError::file("write", &path))?;
    if place.exists() {
        // Of another recipe. It may be in use, which a rename does not disturb.
        let old = cache.join(format!("{UNFINISHED}old-{}", std::process::id()));
        fs::rename(place, &old).map_err(DemoError::file("move away", place))?;
        fs::remove_dir_all(&old).ok();
    }
    fs::rename(here, place).map_err(DemoError::file("put in its place", place))
}

/// The environment, with what the guest imports in it. Nothing in it knows its own path but the
/// scripts beside the interpreter, which nobody starts: it can be renamed.
fn environment(here: &Path, python: &Python, progress: &mut dyn Progress) -> Result<(), DemoError> {
    progress.part(0, "the guest's Python environment");
    let (venv, list) = (here.join("venv"), here.join("requirements.txt"));
    let words = ["-I", "-m", "venv"].map(OsStr::new);
    let line = [&[python.executable.as_os_str()], &words[..], &[venv.as_os_str()]].concat();
    carry_out(Step::Environment, &line, here, &mut |_| {})?;
    fs::write(&list, REQUIREMENTS).map_err(DemoError::file("write", &list))?;
    let mut done = 1;
    progress.part(done, "packages");
    let words = ["--requirement".as_ref(), list.as_os_str()];
    pip(here, Step::Packages, &words, &mut |text| {
        if let Some(package) = text.strip_prefix(PACKAGE_LINE) {
            progress.part(done, package.split(' ').next().unwrap_or(package));
            done = (done + 1).min(1 + PACKAGES);
        } else if text.starts_with("Installing ") {
            progress.part(1 + PACKAGES, "installing the packages");
        }
    })
}

/// The file of the data set, which the host reads and the guest never sees.
fn data_set(here: &Path) -> Result<PathBuf, DemoError> {
    let data = here.join("data");
    let words = ["--no-deps".as_ref(), "--target".as_ref(), data.as_os_str(), DATA.0.as_ref()];
    pip(here, Step::Data, &words, &mut |_| {})?;
    Ok(data.join(DATA.1))
}

/// Only built packages: nothing of them is run on the host.
fn pip(
    here: &Path,
    step: Step,
    words: &[&OsStr],
    heard: &mut dyn FnMut(&str),
) -> Result<(), DemoError> {
    let own = ["-I", "-m", "pip", "install", "--no-input", "--disable-pip-version-check"];
    let more = ["--progress-bar=off", "--only-binary=:all:"];
    let python = here.join("venv/bin/python");
    let own: Vec<&OsStr> = own.iter().chain(&more).map(OsStr::new).collect();
    let line = [&[python.as_os_str()], &own[..], words].concat();
    carry_out(step, &line, here, heard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_has_a_part_for_each_package() {
        let pinned = REQUIREMENTS.lines().filter(|line| line.contains("=="));
        assert_eq!(u64::try_from(pinned.count()).unwrap(), PACKAGES);
    }

    #[test]
    fn only_what_the_recipe_made_is_used() {
        let cache = tempfile::tempdir().unwrap();
        let place = cache.path().join("python3.11");
        assert!(!is_made(&place, "recipe"), "nothing there");
        fs::create_dir_all(place.join("venv/bin")).unwrap();
        fs::write(place.join("venv/bin/python"), "").unwrap();
        assert!(!is_made(&place, "recipe"), "no recipe");
        fs::write(place.join(RECIPE), "recipe").unwrap();
        assert!(is_made(&place, "recipe"));
        assert!(!is_made(&place, "another recipe"));
        fs::remove_file(place.join("venv/bin/python")).unwrap();
        std::os::unix::fs::symlink("/no/such/python", place.join("venv/bin/python")).unwrap();
        assert!(!is_made(&place, "recipe"), "the interpreter is gone");
    }

    #[test]
    fn what_was_interrupted_is_swept_away() {
        let cache = tempfile::tempdir().unwrap();
        for name in ["unfinished-a", "python3.11"] {
            fs::create_dir(cache.path().join(name)).unwrap();
        }
        sweep(cache.path());
        let names = fs::read_dir(cache.path()).unwrap().flatten().map(|entry| entry.file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["python3.11"]);
    }
}
