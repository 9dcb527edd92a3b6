//! A directory of this user's own under `/var/tmp` for what is fetched or made once a machine. What
//! is in it is whole: it is made under another name first. Nothing is ever taken out.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The cache of one purpose.
#[derive(Debug)]
pub(crate) struct Cache(PathBuf);

impl Cache {
    /// Opens it, and makes it where it is not there.
    ///
    /// # Errors
    /// A directory that is not this user's alone: somebody else can have put anything into it.
    pub(crate) fn open(purpose: &str) -> Result<Self, Failure> {
        let user = rustix::process::geteuid().as_raw();
        let path = PathBuf::from(format!("/var/tmp/postern-{purpose}-{user}"));
        own(&path, user)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Makes a directory of the cache by `fill`, for everybody to read.
    pub(crate) fn fill(
        &self,
        place: &Path,
        fill: impl FnOnce(&Path) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let unfinished = self.0.join(format!(".unfinished-{}", std::process::id()));
        directory(&unfinished)?;
        if let Err(failure) = fill(&unfinished) {
            fs::remove_dir_all(&unfinished).ok();
            return Err(failure);
        }
        match fs::rename(&unfinished, place) {
            // Someone else was faster.
            Err(_) if place.exists() => remove(&unfinished),
            renamed => renamed.map_err(|source| failure("rename", &unfinished, source)),
        }
    }
}

/// Nobody else can have put anything into it.
fn own(path: &Path, user: u32) -> Result<(), Failure> {
    if let Err(source) = DirBuilder::new().mode(0o755).create(path)
        && source.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(failure("make", path, source));
    }
    let found = fs::symlink_metadata(path).map_err(|source| failure("look at", path, source))?;
    match found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0 {
        true => allow(path, 0o755),
        false => {
            let source = io::Error::other("it is not a directory of this user alone");
            Err(failure("use", path, source))
        }
    }
}

/// Whatever the umask.
pub(crate) fn allow(path: &Path, mode: u32) -> Result<(), Failure> {
    let set = fs::set_permissions(path, Permissions::from_mode(mode));
    set.map_err(|source| failure("set the mode of", path, source))
}

/// Makes a directory and those above it.
pub(crate) fn directory(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|source| failure("make", path, source))?;
    allow(path, 0o755)
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|source| failure("write", path, source))
}

pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::rename(from, to).map_err(|source| failure("rename", from, source))
}

/// A file, or a directory with all it holds.
pub(crate) fn remove(path: &Path) -> Result<(), Failure> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.map_err(|source| failure("remove", path, source))
}

pub(crate) fn failure(act: &'static str, path: &Path, source: io::Error) -> Failure {
    Failure::File { act, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("postern-cache-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_cache_that_others_can_write_is_refused() {
        let user = rustix::process::geteuid().as_raw();
        let path = path("mode");
        for (mode, is_taken) in [(0o755, true), (0o777, false), (0o775, false)] {
            DirBuilder::new().create(&path).unwrap();
            allow(&path, mode).unwrap();
            let taken = own(&path, user).is_ok();
            fs::remove_dir(&path).unwrap();
            assert_eq!(taken, is_taken, "{mode:o}");
        }
    }

    #[test]
    fn what_fails_half_way_is_not_there() {
        let cache = Cache(path("half"));
        directory(&cache.0).unwrap();
        let place = cache.0.join("a");
        let fails = |path: &Path| {
            write(&path.join("x"), "half").unwrap();
            Err(Failure::Failed { count: 1 })
        };
        assert!(cache.fill(&place, fails).is_err());
        assert_eq!(fs::read_dir(&cache.0).unwrap().count(), 0);
        cache.fill(&place, |path| write(&path.join("x"), "whole")).unwrap();
        assert_eq!(fs::read_to_string(place.join("x")).unwrap(), "whole");
        remove(&cache.0).unwrap();
    }
}
