//! The binaries that are judged and compared with: Debian's newest bubblewrap, which needs a newer C
//! library than this machine may have, the one installed here, and ours. It runs none of them.

use std::path::{Path, PathBuf};

use crate::apt::{Apt, Kind, Package};
use crate::cache::{self, Cache};
use crate::command::{program, succeed};
use crate::executables::{self, Executable};
use crate::failure::Failure;
use crate::say;
use crate::scratch::Scratch;

/// The suite with the newest binary, and one with a C library that it runs with.
const NEWEST: &str = "sid";
const LIBRARY: &str = "trixie";

/// What is installed by the package `bubblewrap`.
const INSTALLED: &str = "/usr/bin/bwrap";

/// Something that is called `bwrap`.
#[derive(Debug, Clone)]
pub(super) struct Binary {
    /// Its version, or `ours`.
    pub(super) name: String,
    /// A directory that holds it under the name `bwrap`, for everyone, and outside `/tmp`.
    pub(super) directory: PathBuf,
}

impl Binary {
    pub(super) fn file(&self) -> PathBuf {
        self.directory.join("bwrap")
    }

    /// A search path on which it comes first.
    pub(super) fn path(&self) -> String {
        format!("{}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", self.directory.display())
    }
}

/// Who is compared with whom.
#[derive(Debug)]
pub(super) struct Binaries {
    /// The newest bubblewrap: what it does is right.
    pub(super) newest: Binary,
    /// This machine's: its totals are shown.
    pub(super) installed: Binary,
    pub(super) judged: Binary,
}

impl Binaries {
    pub(super) fn find(
        cache: &Cache,
        stage: &Scratch,
        judged: Option<&Path>,
    ) -> Result<Self, Failure> {
        let file = match judged {
            Some(file) => file.to_owned(),
            None => ours()?,
        };
        let name = if judged.is_some() { "judged" } else { "ours" };
        Ok(Self {
            newest: newest(cache)?,
            installed: copy(stage, "installed", Path::new(INSTALLED))?,
            judged: copy(stage, name, &file)?,
        })
    }
}

/// The command line of this build, which goes by its name.
fn ours() -> Result<PathBuf, Failure> {
    let is_ours = |program: &Executable| program.name == "postern";
    let found = executables::programs()?.into_iter().find(is_ours);
    found
        .map(|program| program.file)
        .ok_or_else(|| Failure::NotBuilt { what: "postern".to_owned() })
}

fn copy(stage: &Scratch, name: &str, file: &Path) -> Result<Binary, Failure> {
    let directory = stage.directory(name, 0o755)?;
    stage.copy(file, &format!("{name}/bwrap"))?;
    Ok(Binary { name: name.to_owned(), directory })
}

/// Fetched once for each version.
fn newest(cache: &Cache) -> Result<Binary, Failure> {
    let apt = Apt::new(cache, "/debian", NEWEST, Kind::Binary)?;
    let package = apt.show("bubblewrap")?;
    let directory = cache.path().join(format!("bubblewrap-{}", package.version));
    if !directory.exists() {
        say(&format!("xtask: fetching bubblewrap {}", package.version));
        let library = Apt::new(cache, "/debian", LIBRARY, Kind::Binary)?;
        let libc = library.show("libc6")?;
        cache.fill(&directory, |unfinished| {
            unpack(&apt, &package, unfinished)?;
            unpack(&library, &libc, unfinished)?;
            bind_together(unfinished, &directory)
        })?;
    }
    Ok(Binary { name: package.version, directory })
}

fn unpack(apt: &Apt, package: &Package, directory: &Path) -> Result<(), Failure> {
    let archive = directory.join("archive");
    cache::directory(&archive)?;
    apt.download(package, &archive)?;
    let unpack = "dpkg-deb --extract archive/*.deb .";
    succeed(program("sh").args(["-c", unpack]).current_dir(directory))?;
    cache::remove(&archive)
}

/// The binary with the library beside it; a loader on the command line would be its `/proc/self/exe`.
fn bind_together(unfinished: &Path, place: &Path) -> Result<(), Failure> {
    const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
    let libraries = place.join(LIBRARIES);
    let binary = unfinished.join("bwrap");
    cache::rename(&unfinished.join("usr/bin/bwrap"), &binary)?;
    let mut patch = program("patchelf");
    patch.arg("--set-interpreter").arg(libraries.join("ld-linux-x86-64.so.2"));
    patch.arg("--set-rpath").arg(format!("{}:/lib/x86_64-linux-gnu", libraries.display()));
    succeed(patch.arg(&binary))
}
