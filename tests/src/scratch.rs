//! A directory for one test, which takes it away again; it makes nothing in it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where they are made. Not in `/tmp`, since a mount beneath it changes what the guest's is.
const PARENT: &str = "/var/tmp";

/// How the names of this process's directories begin.
fn prefix() -> String {
    format!("postern-tests-{}-", std::process::id())
}

/// What of this process's is in the directory for temporary files.
pub(crate) fn names() -> BTreeSet<String> {
    let entries = fs::read_dir(PARENT).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&prefix())).collect()
}

/// A directory of its own, removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes one that everybody may look into, as a guest with another uid has to.
    #[expect(clippy::new_without_default, reason = "it makes a directory")]
    pub fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}{}", prefix(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(PARENT).join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Scratch { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file below it, with these permission bits.
    pub fn file(&self, name: &str, contents: &[u8], mode: u32) -> PathBuf {
        let path = self.path.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// Makes a directory below it, with these permission bits.
    pub fn directory(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.path.join(name);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if fs::remove_dir_all(&self.path).is_err() {
            open_up(&self.path);
            fs::remove_dir_all(&self.path).ok();
        }
    }
}

/// Lets their owner into directories that a program has closed.
fn open_up(directory: &Path) {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).ok();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}
