//! What cargo builds for the tests, read from its messages; nothing is guessed from file names.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command::{Cargo, root};
use crate::failure::Failure;

/// What an executable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The unit tests of a library, a program or a build script.
    Unit,
    /// A test of its own, in a package's `tests/`.
    Test,
    /// A program that tests start.
    Program,
}

/// One executable that cargo built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Executable {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// The directory of its package.
    pub(crate) package: PathBuf,
    pub(crate) file: PathBuf,
}

impl Executable {
    /// The name with its package's directory: two packages may have a target of one name.
    pub(crate) fn label(&self) -> String {
        let package = self.package.strip_prefix(root()).unwrap_or(&self.package);
        format!("{} of {}", self.name, package.display())
    }

    /// Whether the package of system tests has built it.
    pub(crate) fn is_of_tests(&self) -> bool {
        self.package == root().join("tests")
    }
}

/// Everything in one way, so that nothing is built twice.
const ALL: [&str; 4] =
    ["--workspace", "--all-features", "--release", "--message-format=json-render-diagnostics"];

/// Builds every test and every program of the workspace, once, in release mode.
pub(crate) fn build() -> Result<Vec<Executable>, Failure> {
    let tests = Cargo::new(["test", "--no-run"]).args(ALL);
    let mut built = read(&tests.print()?)?;
    for program in programs()? {
        if !built.contains(&program) {
            built.push(program);
        }
    }
    Ok(built)
}

/// Builds the programs alone, as [`build`] does.
pub(crate) fn programs() -> Result<Vec<Executable>, Failure> {
    let programs = Cargo::new(["build", "--bins"]).args(ALL);
    read(&programs.print()?)
}

fn read(text: &[u8]) -> Result<Vec<Executable>, Failure> {
    let mut executables = Vec::new();
    for message in messages(text) {
        executables.extend(executable(&message?));
    }
    Ok(executables)
}

/// Cargo's messages, one after the other.
pub(crate) fn messages(text: &[u8]) -> impl Iterator<Item = Result<Value, Failure>> {
    let values = serde_json::Deserializer::from_slice(text).into_iter();
    values.map(|value| value.map_err(|source| Failure::Message { source }))
}

fn executable(message: &Value) -> Option<Executable> {
    let file = message.get("executable")?.as_str()?;
    let manifest = Path::new(message.get("manifest_path")?.as_str()?);
    let target = message.get("target")?;
    let kind = target.get("kind")?.get(0)?.as_str()?;
    let is_test = message.get("profile")?.get("test")?.as_bool()?;
    let kind = match (kind, is_test) {
        ("test", true) => Kind::Test,
        (_, true) => Kind::Unit,
        ("bin" | "example", false) => Kind::Program,
        (_, false) => return None,
    };
    Some(Executable {
        name: target.get("name")?.as_str()?.to_owned(),
        kind,
        package: manifest.parent()?.to_owned(),
        file: PathBuf::from(file),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: &str, is_test: &str, executable: &str) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","manifest_path":"/p/x/Cargo.toml","target":
            {{"kind":["{kind}"],"name":"x"}},"profile":{{"test":{is_test}}},
            "executable":{executable}}}"#
        )
    }

    #[test]
    fn each_message_is_an_executable_or_nothing() {
        let rows = [
            (message("test", "true", "\"/t/x\""), Some(Kind::Test)),
            (message("lib", "true", "\"/t/x\""), Some(Kind::Unit)),
            (message("bin", "true", "\"/t/x\""), Some(Kind::Unit)),
            (message("bin", "false", "\"/t/x\""), Some(Kind::Program)),
            (message("example", "false", "\"/t/x\""), Some(Kind::Program)),
            (message("proc-macro", "false", "\"/t/x\""), None),
            (message("lib", "false", "null"), None),
            (r#"{"reason":"build-finished","success":true}"#.to_owned(), None),
        ];
        for (text, kind) in rows {
            let read = read(text.as_bytes()).unwrap();
            let found = read.first().map(|executable| executable.kind);
            assert_eq!(found, kind, "{text}");
            assert!(read.iter().all(|executable| executable.package == Path::new("/p/x")));
        }
    }

    #[test]
    fn other_text_is_refused() {
        assert!(matches!(read(b"warning: x"), Err(Failure::Message { .. })));
    }
}
