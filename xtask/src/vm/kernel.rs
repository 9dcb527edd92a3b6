//! The kernels that the product is tried on: each the newest of one suite of the archive that this
//! machine's apt already trusts. Finds, fetches and unpacks; boots nothing.

use std::fs;
use std::path::{Path, PathBuf};

use crate::apt::{Apt, Kind, Package};
use crate::cache::{self, Cache};
use crate::command::{program, succeed};
use crate::failure::Failure;

/// A kernel, and where the archive keeps it. A package's version is found at the time: the archive
/// drops old ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    suite: &'static str,
    /// How the archive's address ends.
    archive: &'static str,
}

/// Oldest first. The last is whatever the archive has.
pub(crate) const KERNELS: [Kernel; 4] = [
    Kernel { name: "5.10", suite: "bullseye-security", archive: "/debian-security" },
    Kernel { name: "6.1", suite: "bookworm", archive: "/debian" },
    Kernel { name: "6.12", suite: "trixie", archive: "/debian" },
    Kernel { name: "newest", suite: "trixie-backports", archive: "/debian" },
];

/// The package that depends on the newest of its suite: small, with NVMe and ext4 built in.
const META: &str = "linux-image-cloud-amd64";

/// A kernel on this machine.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) kernel: Kernel,
    /// Such as `6.12.117-1`.
    pub(crate) version: String,
    pub(crate) file: PathBuf,
}

impl Kernel {
    /// The one of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        KERNELS.into_iter().find(|kernel| kernel.name == name)
    }

    /// Its image, fetched unless the cache has it under its digest.
    ///
    /// # Errors
    /// No archive among apt's sources, no network, or a package with nothing to boot in it.
    pub(crate) fn image(self, cache: &Cache) -> Result<Image, Failure> {
        let apt = Apt::new(cache, self.archive, self.suite, Kind::Binary)?;
        let package = newest(&apt)?;
        let place = cache.path().join(&package.digest);
        let file = place.join("vmlinuz");
        if !file.exists() {
            cache.fill(&place, |unfinished| unpack(&apt, &package, unfinished))?;
        }
        Ok(Image { kernel: self, version: package.version, file })
    }
}

/// The package with the image: the one that the meta package names, or, where that is a shell
/// (from 6.19 on), the one that it names in turn.
fn newest(apt: &Apt) -> Result<Package, Failure> {
    let image = needed_by(apt, &apt.show(META)?, "linux-image-")?;
    match image.depends.iter().any(|name| name.starts_with("linux-binary-")) {
        true => needed_by(apt, &image, "linux-binary-"),
        false => Ok(image),
    }
}

fn needed_by(apt: &Apt, package: &Package, prefix: &str) -> Result<Package, Failure> {
    let needed = package.depends.iter().find(|name| name.starts_with(prefix));
    match needed {
        Some(name) => apt.show(name),
        None => Err(Failure::Archive {
            fact: format!("{} {} needs no {prefix}*", package.name, package.version),
        }),
    }
}

/// Leaves `vmlinuz` in the directory, and nothing else.
fn unpack(apt: &Apt, package: &Package, directory: &Path) -> Result<(), Failure> {
    apt.download(package, directory)?;
    let all = directory.join("all");
    let archive = only_file(directory)?;
    succeed(program("dpkg-deb").arg("--extract").arg(&archive).arg(&all))?;
    let images = [all.join("boot"), all.join("usr/lib/modules")];
    let found = images.iter().find_map(|place| find_image(place));
    let Some(found) = found else {
        return Err(Failure::Archive { fact: format!("{} has no vmlinuz in it", package.name) });
    };
    cache::rename(&found, &directory.join("vmlinuz"))?;
    cache::remove(&all)?;
    cache::remove(&archive)
}

fn only_file(directory: &Path) -> Result<PathBuf, Failure> {
    let entries =
        fs::read_dir(directory).map_err(|source| cache::failure("list", directory, source))?;
    let mut files = entries.flatten().map(|entry| entry.path());
    files.next().ok_or_else(|| Failure::Archive { fact: "apt downloaded nothing".to_owned() })
}

/// `vmlinuz-V` in the directory, or `V/vmlinuz` below it.
fn find_image(directory: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    entries.map(|entry| entry.path()).find_map(|path| {
        let is_image = path.file_name()?.to_str()?.starts_with("vmlinuz");
        let below = path.join("vmlinuz");
        match (is_image, below.is_file()) {
            (true, _) => Some(path),
            (false, true) => Some(below),
            (false, false) => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_has_one_name() {
        for kernel in KERNELS {
            assert_eq!(Kernel::named(kernel.name), Some(kernel));
        }
        assert_eq!(Kernel::named("2.6"), None);
    }
}
