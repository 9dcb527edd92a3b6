//! The gRPC clients that the hatch tests run as guests: fetched once a machine and user, shared by
//! both hosts. Which calls they make is the tests' affair.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{program, start};
use crate::failure::Failure;
use crate::say;

/// Tells the tests where the clients are.
pub(crate) const CLIENTS_VARIABLE: &str = "POSTERN_TEST_CLIENTS_DIR";

/// One client in its own directory.
struct Client {
    package: &'static str,
    version: &'static str,
    fetch: fn(&Path, &str) -> Vec<Command>,
}

/// The oldest grpcio that is promised, and the newest of each. The tests have the same list.
const CLIENTS: [Client; 3] = [
    Client { package: "grpcio", version: "1.60.2", fetch: by_pip },
    Client { package: "grpcio", version: "1.85.3", fetch: by_pip },
    Client { package: "@grpc/grpc-js", version: "1.14.7", fetch: by_npm },
];

impl Client {
    /// Such as `grpc-js-1.14.7`.
    fn directory(&self) -> String {
        let name = self.package.rsplit('/').next().unwrap_or(self.package);
        format!("{name}-{}", self.version)
    }
}

/// An environment of the system's own Python, as the guest has it.
fn by_pip(directory: &Path, package: &str) -> Vec<Command> {
    let (package, version) = package.rsplit_once('@').unwrap_or((package, ""));
    let mut make = program("/usr/bin/python3");
    make.args(["-m", "venv"]).arg(directory);
    let mut install = program(directory.join("bin/python"));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    install.arg(format!("{package}=={version}"));
    vec![make, install]
}

fn by_npm(directory: &Path, package: &str) -> Vec<Command> {
    let mut install = program("npm");
    install.args(["install", "--silent", "--ignore-scripts", "--prefix"]).arg(directory);
    install.arg(package);
    vec![install]
}

/// The directory with all of them, for everybody to read; what is missing is fetched.
///
/// # Errors
/// What kept a client from being fetched: a registry, or a directory that is not only ours.
pub(crate) fn make() -> Result<PathBuf, Failure> {
    let user = rustix::process::geteuid().as_raw();
    let cache = PathBuf::from(format!("/var/tmp/postern-test-clients-{user}"));
    own(&cache, user)?;
    for client in CLIENTS {
        let place = cache.join(client.directory());
        if !place.exists() {
            say(&format!("xtask: fetching a client for the tests: {}", client.directory()));
            fetch(&client, &cache, &place)?;
        }
    }
    Ok(cache)
}

/// The cache, which nobody else can have put anything into.
fn own(cache: &Path, user: u32) -> Result<(), Failure> {
    if let Err(source) = DirBuilder::new().mode(0o755).create(cache)
        && source.kind() != std::io::ErrorKind::AlreadyExists
    {
        return Err(failure("make", cache, source));
    }
    let found = fs::symlink_metadata(cache).map_err(|source| failure("look at", cache, source))?;
    match found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0 {
        true => allow(cache),
        false => {
            let source = std::io::Error::other("it is not a directory of this user alone");
            Err(failure("use", cache, source))
        }
    }
}

/// Whatever the umask.
fn allow(path: &Path) -> Result<(), Failure> {
    let set = fs::set_permissions(path, fs::Permissions::from_mode(0o755));
    set.map_err(|source| failure("set the mode of", path, source))
}

/// Under another name first, so that what is there is whole.
fn fetch(client: &Client, cache: &Path, place: &Path) -> Result<(), Failure> {
    let unfinished = cache.join(format!(".{}.{}", client.directory(), std::process::id()));
    let package = format!("{}@{}", client.package, client.version);
    for mut command in (client.fetch)(&unfinished, &package) {
        let status = command.status().map_err(|source| start(&command, source))?;
        if !status.success() {
            fs::remove_dir_all(&unfinished).ok();
            return Err(Failure::Ended { command: format!("fetching {package}"), status });
        }
    }
    allow(&unfinished)?;
    match fs::rename(&unfinished, place) {
        // Someone else was faster.
        Err(_) if place.exists() => {
            fs::remove_dir_all(&unfinished).map_err(|source| failure("remove", &unfinished, source))
        }
        renamed => renamed.map_err(|source| failure("rename", &unfinished, source)),
    }
}

fn failure(act: &'static str, path: &Path, source: std::io::Error) -> Failure {
    Failure::File { act, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_a_directory_of_its_own() {
        let names = CLIENTS.map(|client| client.directory());
        assert_eq!(names, ["grpcio-1.60.2", "grpcio-1.85.3", "grpc-js-1.14.7"]);
    }

    #[test]
    fn a_cache_that_others_can_write_is_refused() {
        let user = rustix::process::geteuid().as_raw();
        let path = std::env::temp_dir().join(format!("postern-clients-{}", std::process::id()));
        for (mode, is_taken) in [(0o755, true), (0o777, false), (0o775, false)] {
            DirBuilder::new().create(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let taken = own(&path, user).is_ok();
            fs::remove_dir(&path).unwrap();
            assert_eq!(taken, is_taken, "{mode:o}");
        }
    }
}
