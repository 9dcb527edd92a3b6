//! What stands where leftovers are looked for: some are, and most only look like one.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use super::*;

/// A directory of this test's own, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("postern-leftovers-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    fn sweep(&self, kind: Kind) {
        sweep(File::open(&self.0).unwrap().as_fd(), kind);
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn file(path: &Path, mode: u32) {
    fs::write(path, "x").unwrap();
    set_mode(path, mode);
}

fn directory(path: &Path, mode: u32) {
    fs::create_dir(path).unwrap();
    set_mode(path, mode);
}

/// A lock of somebody else: another open file, as another process has it.
fn held(path: &Path) -> File {
    let file = File::open(path).unwrap();
    flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    file
}

const FILES: Kind = Kind {
    is_name: |name| name.starts_with("own-"),
    file_type: FileType::RegularFile,
    mode: 0o600,
    holds: &[],
};

const DIRECTORIES: Kind =
    Kind { file_type: FileType::Directory, mode: 0o700, holds: &[c"inner"], ..FILES };

/// What is planted as `own-1`, beside a directory `elsewhere` with a file `kept`; a lock that is held
/// meanwhile; and whether it is removed.
type Row = (&'static str, Kind, fn(&Path) -> Option<File>, bool);

const ROWS: [Row; 14] = [
    (
        "a file",
        FILES,
        |path| {
            file(path, 0o600);
            None
        },
        true,
    ),
    (
        "a file that is held",
        FILES,
        |path| {
            file(path, 0o600);
            Some(held(path))
        },
        false,
    ),
    (
        "a file with another mode",
        FILES,
        |path| {
            file(path, 0o644);
            None
        },
        false,
    ),
    (
        "a link to a file",
        FILES,
        |path| {
            symlink("elsewhere/kept", path).unwrap();
            None
        },
        false,
    ),
    (
        "a link to nothing",
        FILES,
        |path| {
            symlink("nowhere", path).unwrap();
            None
        },
        false,
    ),
    (
        "a directory for a file",
        FILES,
        |path| {
            directory(path, 0o600);
            None
        },
        false,
    ),
    (
        "a pipe",
        FILES,
        |path| {
            pipe(path);
            None
        },
        false,
    ),
    (
        "a directory",
        DIRECTORIES,
        |path| {
            directory(path, 0o700);
            None
        },
        true,
    ),
    (
        "a directory with its file",
        DIRECTORIES,
        |path| {
            directory(path, 0o700);
            file(&path.join("inner"), 0o500);
            None
        },
        true,
    ),
    (
        "a directory with a link for its file",
        DIRECTORIES,
        |path| {
            directory(path, 0o700);
            symlink("../elsewhere/kept", path.join("inner")).unwrap();
            None
        },
        true,
    ),
    (
        "a directory that is held",
        DIRECTORIES,
        |path| {
            directory(path, 0o700);
            Some(held(path))
        },
        false,
    ),
    (
        "a directory with something else",
        DIRECTORIES,
        |path| {
            directory(path, 0o700);
            file(&path.join("other"), 0o600);
            None
        },
        false,
    ),
    (
        "a directory of everybody",
        DIRECTORIES,
        |path| {
            directory(path, 0o755);
            None
        },
        false,
    ),
    (
        "a link to a directory",
        DIRECTORIES,
        |path| {
            symlink("elsewhere", path).unwrap();
            None
        },
        false,
    ),
];

fn pipe(path: &Path) {
    let (kind, mode) = (FileType::Fifo, Mode::RUSR | Mode::WUSR);
    rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
}

#[test]
fn only_what_is_ours_and_nobodys_is_removed() {
    for (name, kind, plant, is_removed) in ROWS {
        let scratch = Scratch::new("planted");
        directory(&scratch.0.join("elsewhere"), 0o700);
        file(&scratch.0.join("elsewhere/kept"), 0o600);
        file(&scratch.0.join("other-1"), 0o600);
        let path = scratch.0.join("own-1");
        let lock = plant(&path);
        scratch.sweep(kind);
        assert_eq!(fs::symlink_metadata(&path).is_err(), is_removed, "{name}");
        let others = ["elsewhere/kept", "other-1"].map(|other| scratch.0.join(other).exists());
        assert_eq!(others, [true, true], "{name}");
        drop(lock);
    }
}

/// Only root can make it so.
#[test]
fn what_is_another_users_stays() {
    let scratch = Scratch::new("another");
    let path = scratch.0.join("own-1");
    file(&path, 0o600);
    let is_given = chown(&path, Some(4_000_000_000), None).is_ok();
    assert_eq!(is_given, geteuid().is_root());
    scratch.sweep(FILES);
    assert_eq!(path.exists(), is_given);
}
