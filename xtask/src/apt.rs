//! Apt with one suite of the archive that this machine already trusts, in lists of its own. The
//! machine's lists and packages are left alone; what is fetched is for tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{self, Cache};
use crate::command::{lines_of, program, succeed};
use crate::failure::Failure;

/// What signs the archive.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A package as the archive has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) digest: String,
    pub(crate) depends: Vec<String>,
}

/// Which packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Binary,
    Source,
}

/// One suite.
#[derive(Debug)]
pub(crate) struct Apt {
    directory: PathBuf,
}

impl Apt {
    /// Asks for its lists; those of last time do where nobody answers.
    ///
    /// # Errors
    /// No archive among apt's sources whose address ends so.
    pub(crate) fn new(
        cache: &Cache,
        ending: &str,
        suite: &str,
        kind: Kind,
    ) -> Result<Self, Failure> {
        let address = archive(ending)?;
        let kind = match kind {
            Kind::Binary => "deb",
            Kind::Source => "deb-src",
        };
        let directory = cache.path().join(format!("apt-{kind}-{suite}"));
        cache::directory(&directory.join("lists/partial"))?;
        cache::directory(&directory.join("cache"))?;
        let source = format!(
            "Types: {kind}\nURIs: {address}\nSuites: {suite}\nComponents: main\n\
             Signed-By: {KEYRING}\n"
        );
        cache::write(&directory.join("archive.sources"), &source)?;
        let apt = Self { directory };
        succeed(apt.command("apt-get").args(["--quiet", "--quiet", "update"]))?;
        Ok(apt)
    }

    fn command(&self, name: &str) -> Command {
        let mut command = program(name);
        let place = |name: &str| self.directory.join(name).display().to_string();
        let settings = [
            ("Dir::Etc::SourceList", place("archive.sources")),
            ("Dir::Etc::SourceParts", "/dev/null".to_owned()),
            ("Dir::Etc::Preferences", "/dev/null".to_owned()),
            ("Dir::Etc::PreferencesParts", "/dev/null".to_owned()),
            ("Dir::State::Lists", place("lists")),
            ("Dir::State::Status", "/dev/null".to_owned()),
            ("Dir::Cache", place("cache")),
            ("APT::Architecture", "amd64".to_owned()),
            // Another user could not write to these directories.
            ("APT::Sandbox::User", String::new()),
        ];
        for (name, value) in settings {
            command.arg("--option").arg(format!("{name}={value}"));
        }
        command
    }

    /// The newest of a name.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn show(&self, name: &str) -> Result<Package, Failure> {
        let mut show = self.command("apt-cache");
        let lines = lines_of(show.args(["show", "--no-all-versions", name]))?;
        match Package::read(&lines) {
            Some(package) => Ok(package),
            None => Err(Failure::Archive { fact: format!("there is no package {name}") }),
        }
    }

    /// Leaves the package's archive in the directory, as its only file.
    pub(crate) fn download(&self, package: &Package, directory: &Path) -> Result<(), Failure> {
        let named = format!("{}={}", package.name, package.version);
        let mut download = self.command("apt-get");
        succeed(download.args(["--quiet", "--quiet", "download", &named]).current_dir(directory))
    }

    /// Leaves the files of a source package in the directory.
    pub(crate) fn source(&self, name: &str, directory: &Path) -> Result<(), Failure> {
        self.sources(&[name], directory)
    }

    /// Leaves only the authors' own archive there, which some mirrors keep for longer.
    pub(crate) fn tarball(&self, name: &str, directory: &Path) -> Result<(), Failure> {
        self.sources(&["--tar-only", name], directory)
    }

    fn sources(&self, arguments: &[&str], directory: &Path) -> Result<(), Failure> {
        let mut download = self.command("apt-get");
        download.args(["--quiet", "--quiet", "source", "--download-only"]).args(arguments);
        succeed(download.current_dir(directory))
    }
}

/// The address of an archive among apt's own sources, such as a mirror's.
fn archive(ending: &str) -> Result<String, Failure> {
    let mut targets = program("apt-get");
    let lines = lines_of(targets.args(["indextargets", "--format", "$(SITE)"]))?;
    let site = lines.into_iter().find(|site| site.trim_end_matches('/').ends_with(ending));
    site.ok_or_else(|| Failure::Archive {
        fact: format!("no source of apt's ends in {ending}: the kernels are Debian's"),
    })
}

impl Package {
    /// From the paragraph that `apt-cache show` prints.
    fn read(lines: &[String]) -> Option<Self> {
        let field = |name: &str| {
            let value =
                |line: &String| Some(line.strip_prefix(name)?.strip_prefix(": ")?.to_owned());
            lines.iter().find_map(value)
        };
        let depends = field("Depends").unwrap_or_default();
        // Of alternatives the first; versions are the archive's own business.
        let names = depends.split(", ").filter_map(|one| one.split([' ', '|']).next());
        Some(Self {
            name: field("Package")?,
            version: field("Version")?,
            digest: field("SHA256")?,
            depends: names.map(str::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_is_read_field_by_field() {
        let text = "Package: linux-image-7.3-amd64\nVersion: 7.3-1\nPre-Depends: linux-base\n\
            Depends: dracut | initramfs-tools (>= 0.1), linux-binary-7.3-amd64 (= 7.3-1)\nSHA256: 0f";
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let package = Package::read(&lines).unwrap();
        assert_eq!(package.depends, ["dracut", "linux-binary-7.3-amd64"]);
        assert_eq!((&*package.version, &*package.digest), ("7.3-1", "0f"));
        assert_eq!(Package::read(&lines[..4]), None, "no digest");
    }
}
