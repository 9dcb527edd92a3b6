//! A private directory that every user can read and only its maker can write, gone at the end.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::half::User;

/// Not `TMPDIR`, which other users need not be able to enter.
const PARENT: &str = "/tmp";

/// The directory; removed with all it holds when dropped.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes it, under a name that nobody else has.
    pub(crate) fn new() -> Result<Self, Failure> {
        Self::beneath(Path::new(PARENT))
    }

    /// Makes it elsewhere, for what must be seen by guests that have a `/tmp` of their own.
    pub(crate) fn beneath(parent: &Path) -> Result<Self, Failure> {
        let name = format!("postern-test.{}", std::process::id());
        let scratch = Self(parent.join(name));
        make(&scratch.0, 0o755)?;
        Ok(scratch)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A directory inside.
    pub(crate) fn directory(&self, name: &str, mode: u32) -> Result<PathBuf, Failure> {
        let path = self.0.join(name);
        make(&path, mode)?;
        Ok(path)
    }

    /// A directory inside that belongs to a user.
    pub(crate) fn home(&self, name: &str, user: &User) -> Result<PathBuf, Failure> {
        let path = self.directory(name, 0o755)?;
        chown(&path, Some(user.uid), Some(user.gid))
            .map_err(|source| failure("give away", &path, source))?;
        Ok(path)
    }

    /// A copy of an executable inside, for everyone to run.
    pub(crate) fn copy(&self, file: &Path, name: &str) -> Result<(), Failure> {
        let path = self.0.join(name);
        if path.exists() {
            return Err(Failure::SameName { name: name.to_owned() });
        }
        fs::copy(file, &path).map_err(|source| failure("copy", file, source))?;
        allow(&path, 0o755)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed lies in a temporary directory, for the machine to remove.
        drop(fs::remove_dir_all(&self.0));
    }
}

fn make(path: &Path, mode: u32) -> Result<(), Failure> {
    let made = DirBuilder::new().mode(0o700).create(path);
    made.map_err(|source| failure("make", path, source))?;
    allow(path, mode)
}

/// The mode in full, whatever the umask.
fn allow(path: &Path, mode: u32) -> Result<(), Failure> {
    let set = fs::set_permissions(path, Permissions::from_mode(mode));
    set.map_err(|source| failure("set the mode of", path, source))
}

fn failure(act: &'static str, path: &Path, source: io::Error) -> Failure {
    Failure::File { act, path: path.to_owned(), source }
}
