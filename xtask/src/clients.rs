//! The gRPC clients that the hatch tests run as guests: fetched once a machine and user, shared by
//! both hosts. Which calls they make is the tests' affair.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::Cache;
use crate::command::{program, succeed};
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
    let cache = Cache::open("test-clients")?;
    for client in CLIENTS {
        let place = cache.path().join(client.directory());
        if !place.exists() {
            say(&format!("xtask: fetching a client for the tests: {}", client.directory()));
            cache.fill(&place, |unfinished| fetch(&client, unfinished))?;
        }
    }
    Ok(cache.path().to_owned())
}

fn fetch(client: &Client, directory: &Path) -> Result<(), Failure> {
    let package = format!("{}@{}", client.package, client.version);
    (client.fetch)(directory, &package).iter_mut().try_for_each(succeed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_a_directory_of_its_own() {
        let names = CLIENTS.map(|client| client.directory());
        assert_eq!(names, ["grpcio-1.60.2", "grpcio-1.85.3", "grpc-js-1.14.7"]);
    }
}
