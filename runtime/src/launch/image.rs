//! Where the launcher's executable comes from: an installed copy, a sealed memfd, a private file.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use postern_launcher::IMAGE;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

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

/// Nothing of it is left in the directory by the time it is returned.
fn private_file() -> io::Result<OwnedFd> {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("postern-launcher-{}-{count}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    fs::DirBuilder::new().mode(0o700).create(&directory)?;
    let opened = write_and_open(&directory.join("launcher"));
    let removed = fs::remove_dir_all(&directory);
    let file = opened?;
    removed?;
    Ok(file.into())
}

fn write_and_open(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o500).open(path)?;
    file.write_all(IMAGE)?;
    drop(file);
    File::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_that_needs_no_installation_gives_the_image() {
        for source in [ImageSource::Memfd, ImageSource::PrivateFile] {
            let fd = open(source).unwrap().unwrap();
            let mut bytes = Vec::new();
            let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
            File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes, IMAGE, "{source:?}");
        }
    }

    #[test]
    fn a_sealed_memfd_cannot_be_written() {
        let fd = open(ImageSource::Memfd).unwrap().unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
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
