//! Where the launcher's executable comes from: an installed copy, a sealed memfd, a private file.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use postern_launcher::IMAGE;
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals,
    flock, memfd_create, mkdirat, openat, unlinkat,
};

use super::leftovers::{Kind, sweep};

/// How the launcher was started, as the enforcement report names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageSource {
    /// From a file that the administrator installed and that nobody else can write: what an
    /// AppArmor, IMA or allow-list rule can name.
    Installed,
    /// From a sealed [memfd](https://man7.org/linux/man-pages/man2/memfd_create.2.html).
    Memfd,
    /// From a file in a private directory, already unlinked.
    PrivateFile,
}

impl ImageSource {
    /// In the order in which they are tried.
    pub(super) const ALL: [ImageSource; 3] = [Self::Installed, Self::Memfd, Self::PrivateFile];

    /// What a report says when it was there to try and another was used.
    pub(crate) const fn passed_over(self) -> &'static str {
        match self {
            Self::Installed => "the installed launcher could not be used",
            Self::Memfd => "a memfd could not be executed",
            Self::PrivateFile => "a private file could not be executed",
        }
    }

    /// One word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Memfd => "memfd",
            Self::PrivateFile => "private-file",
        }
    }
}

/// The environment variable that names an installed launcher.
pub const LAUNCHER_VARIABLE: &str = "POSTERN_LAUNCHER";

/// Opens the image in one way. `Ok(None)`: that way is not there to try.
pub(super) fn open(source: ImageSource) -> io::Result<Option<OwnedFd>> {
    match source {
        ImageSource::Installed => installed(),
        ImageSource::Memfd => memfd().map(Some),
        ImageSource::PrivateFile => private_file().map(Some),
    }
}

/// A launcher named by the environment must be right; one beside the executable may be absent.
fn installed() -> io::Result<Option<OwnedFd>> {
    installed_path().map(|path| check_installed(&path)).transpose()
}

fn installed_path() -> Option<PathBuf> {
    let named = std::env::var_os(LAUNCHER_VARIABLE).map(PathBuf::from);
    named.or_else(|| beside_executable().filter(|path| path.exists()))
}

/// Where the installed launcher is, and whether it may be used; `None` where there is none.
pub(crate) fn installed_image() -> Option<(PathBuf, io::Result<()>)> {
    let path = installed_path()?;
    let usable = check_installed(&path).map(drop);
    Some((path, usable))
}

/// `PREFIX/libexec/postern-launcher` for an executable in `PREFIX/bin`.
fn beside_executable() -> Option<PathBuf> {
    let executable = std::env::current_exe().ok()?;
    let bin = executable.parent()?;
    (bin.file_name() == Some(OsStr::new("bin"))).then_some(())?;
    Some(bin.parent()?.join("libexec/postern-launcher"))
}

/// The bytes are compared whole, on the descriptor that will be exec'ed, and only root may be able
/// to change them afterwards.
fn check_installed(path: &Path) -> io::Result<OwnedFd> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.uid() != 0 || metadata.mode() & 0o022 != 0 {
        let why = "not owned by root, or writable by others";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    let mut bytes = Vec::with_capacity(IMAGE.len());
    (&file).take(metadata.len().min(1 << 20)).read_to_end(&mut bytes)?;
    match bytes == IMAGE {
        true => Ok(file.into()),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "not this version's launcher")),
    }
}

/// One sealed memfd serves the whole process.
fn memfd() -> io::Result<OwnedFd> {
    static SEALED: OnceLock<OwnedFd> = OnceLock::new();
    if let Some(fd) = SEALED.get() {
        return fd.try_clone();
    }
    let fd = new_memfd()?;
    SEALED.get_or_init(|| fd).try_clone()
}

fn new_memfd() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // MFD_EXEC is known from Linux 6.3 on and needed where vm.memfd_noexec is 1.
    let fd = match memfd_create("postern-launcher", flags | MemfdFlags::EXEC) {
        Err(rustix::io::Errno::INVAL) => memfd_create("postern-launcher", flags),
        answer => answer,
    }?;
    let mut file = File::from(fd);
    file.write_all(IMAGE)?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(file.as_fd(), seals)?;
    Ok(file.into())
}

/// Nothing of it is left in the directory by the time it is returned, and where the file system can
/// make files without a name nothing of it ever was there.
fn private_file() -> io::Result<OwnedFd> {
    let directory = std::env::temp_dir();
    unnamed_file(&directory).or_else(|_| named_file(&directory))
}

fn unnamed_file(directory: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(directory, flags, Mode::RUSR | Mode::XUSR)?);
    file.write_all(IMAGE)?;
    // What is open for writing cannot be executed.
    let readable = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    drop(file);
    Ok(readable.into())
}

/// A directory in which a host that was killed has left its file.
const STALE: Kind = Kind {
    is_name: |name| {
        let numbers = name.strip_prefix(NAME).and_then(|rest| rest.split_once('-'));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        numbers.is_some_and(|(pid, count)| is_number(pid) && is_number(count))
    },
    file_type: FileType::Directory,
    mode: 0o700,
    holds: &[FILE],
};

/// How the names of private directories begin; a pid and a number follow.
const NAME: &str = "postern-launcher-";
const FILE: &CStr = c"launcher";

/// In a directory that is locked while it is there.
fn named_file(parent: &Path) -> io::Result<OwnedFd> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = openat(CWD, parent, flags, Mode::empty())?;
    sweep(parent.as_fd(), STALE);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{NAME}{}-{count}", std::process::id());
    mkdirat(&parent, &name, Mode::RWXU)?;
    let opened = openat(&parent, &name, DIRECTORY, Mode::empty()).map_err(io::Error::from);
    let opened = opened.and_then(|directory| {
        // Somebody else who sweeps may hold it for a moment, and takes it away: then this fails.
        flock(&directory, FlockOperation::LockExclusive)?;
        let file = write_and_open(&directory);
        unlinkat(&directory, FILE, AtFlags::empty()).ok();
        file
    });
    let removed = unlinkat(&parent, &name, AtFlags::REMOVEDIR);
    let file = opened?;
    removed?;
    Ok(file.into())
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn write_and_open(directory: &OwnedFd) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut file = File::from(openat(directory, FILE, flags, Mode::RUSR | Mode::XUSR)?);
    file.write_all(IMAGE)?;
    drop(file);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(directory, FILE, flags, Mode::empty())?))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_way_that_needs_no_installation_gives_the_image() {
        let directory = std::env::temp_dir();
        let rows = [
            ("memfd", open(ImageSource::Memfd).unwrap().unwrap()),
            ("private file", open(ImageSource::PrivateFile).unwrap().unwrap()),
            ("unnamed", unnamed_file(&directory).unwrap()),
            ("named", named_file(&directory).unwrap()),
        ];
        for (name, fd) in rows {
            let mut bytes = Vec::new();
            let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
            File::open(&path).unwrap().read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes, IMAGE, "{name}");
            // Nobody has it open for writing.
            #[expect(clippy::disallowed_methods, reason = "whether the kernel executes it")]
            let ended = std::process::Command::new(&path).output();
            assert_ne!(ended.err().and_then(|e| e.raw_os_error()), Some(libc::ETXTBSY), "{name}");
        }
    }

    /// What a host leaves that is killed while its file has a name.
    #[test]
    fn a_directory_that_nobody_holds_is_removed_by_the_next_file() {
        let parent = std::env::temp_dir().join(format!("postern-sweep-{}", std::process::id()));
        fs::create_dir(&parent).unwrap();
        let stale = parent.join("postern-launcher-1-0");
        fs::create_dir(&stale).unwrap();
        fs::set_permissions(&stale, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        fs::write(stale.join("launcher"), IMAGE).unwrap();
        drop(named_file(&parent).unwrap());
        assert_eq!(fs::read_dir(&parent).unwrap().count(), 0);
        fs::remove_dir(&parent).unwrap();
    }

    #[test]
    fn names_of_others_are_not_taken_for_ours() {
        let rows = [
            ("postern-launcher-12-0", true),
            ("postern-launcher-12", false),
            ("postern-launcher-12-", false),
            ("postern-launcher--1", false),
            ("postern-launcher-12-0.bak", false),
            ("postern-launcher-notes", false),
            ("launcher-12-0", false),
        ];
        for (name, is_ours) in rows {
            assert_eq!((STALE.is_name)(name), is_ours, "{name}");
        }
    }

    #[test]
    fn a_sealed_memfd_cannot_be_written() {
        let fd = open(ImageSource::Memfd).unwrap().unwrap();
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
        assert_eq!(file.write(b"x").unwrap_err().raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn a_file_that_others_can_write_is_refused() {
        let directory = std::env::temp_dir().join(format!("postern-image-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("launcher");
        let rows = [(&b"something else"[..], 0o755), (IMAGE, 0o777)];
        for (bytes, mode) in rows {
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
            assert!(check_installed(&path).is_err(), "{mode:o}");
        }
        fs::remove_dir_all(&directory).unwrap();
    }
}
