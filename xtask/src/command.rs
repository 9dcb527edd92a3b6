//! Starts programs. The only file of the crate that does.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::failure::Failure;

/// The directory of the workspace.
pub(crate) fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}

/// A program that inherits everything and runs in the directory of the workspace.
#[expect(clippy::disallowed_methods, reason = "starting programs is this crate's job")]
pub(crate) fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// Runs a command and wants it to succeed.
pub(crate) fn succeed(command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(|source| start(command, source))?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Ended { command: line(command), status }),
    }
}

/// Runs a command, wants it to succeed, and gives back the lines that it printed.
pub(crate) fn lines_of(command: &mut Command) -> Result<Vec<String>, Failure> {
    let command = command.stderr(Stdio::inherit());
    let Output { status, stdout, .. } =
        command.output().map_err(|source| start(command, source))?;
    match status.success() {
        true => Ok(String::from_utf8_lossy(&stdout).lines().map(str::to_owned).collect()),
        false => Err(Failure::Ended { command: line(command), status }),
    }
}

/// As it would be typed, more or less.
fn line(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// One call of the cargo that runs this task.
#[derive(Debug)]
pub(crate) struct Cargo(Command);

impl Cargo {
    pub(crate) fn new<const N: usize>(arguments: [&str; N]) -> Self {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = program(cargo);
        command.args(arguments);
        Self(command)
    }

    pub(crate) fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.0.args(arguments);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    /// Runs it and wants it to succeed.
    pub(crate) fn succeed(mut self) -> Result<(), Failure> {
        let status = self.0.status().map_err(|source| start(&self.0, source))?;
        match status.success() {
            true => Ok(()),
            false => Err(Failure::Ended { command: self.line(), status }),
        }
    }

    /// Runs it, wants it to succeed, and gives back what it printed on standard output.
    pub(crate) fn print(mut self) -> Result<Vec<u8>, Failure> {
        self.0.stderr(Stdio::inherit());
        let Output { status, stdout, .. } =
            self.0.output().map_err(|source| start(&self.0, source))?;
        match status.success() {
            true => Ok(stdout),
            false => Err(Failure::Ended { command: self.line(), status }),
        }
    }

    /// Whether it succeeds, seen by nobody.
    pub(crate) fn works(mut self) -> bool {
        self.0.stdout(Stdio::null()).stderr(Stdio::null());
        self.0.status().is_ok_and(|status| status.success())
    }

    /// The command, to be run by someone else.
    pub(crate) fn into_command(self) -> Command {
        self.0
    }

    fn line(&self) -> String {
        let words: Vec<_> = self.0.get_args().map(OsStr::to_string_lossy).collect();
        format!("cargo {}", words.join(" "))
    }
}

/// A failed start, as the failure that names the program.
pub(crate) fn start(command: &Command, source: std::io::Error) -> Failure {
    Failure::Start { program: command.get_program().to_owned(), source }
}
