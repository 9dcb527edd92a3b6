//! The host's interpreter, which makes the guest's environment: what it is, and commands of it with
//! their output read line by line. What is made is decided elsewhere.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{DemoError, Step};

/// Lines of a failed command that are shown.
pub(crate) const LINES_MAX: usize = 8;

/// Prints the version, whether `ensurepip` is there, and the interpreter behind any shim.
const QUESTION: &str = "\
import sys, importlib.util as util
print(sys.implementation.name, *sys.version_info[:2], util.find_spec('ensurepip') is not None)
print(sys.executable)";

/// The oldest and the newest minor version of CPython 3 that all pinned packages have builds for.
const MINORS: [u32; 2] = [10, 13];

/// An interpreter and what it said about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Python {
    /// As it was named.
    program: OsString,
    /// What it is, behind any shim.
    pub(crate) executable: PathBuf,
    implementation: String,
    version: (u32, u32),
    has_ensurepip: bool,
}

impl Python {
    /// Starts it once.
    pub(crate) fn ask(program: &OsStr) -> Result<Python, DemoError> {
        let failed = |source| DemoError::Python { program: program.to_owned(), source };
        let output = command(program).args(["-I", "-c", QUESTION]).output().map_err(failed)?;
        let answer = String::from_utf8_lossy(&output.stdout);
        read(program, &answer).ok_or_else(|| {
            let words = String::from_utf8_lossy(&output.stderr);
            let last = words.lines().last().unwrap_or("it answered nothing").to_owned();
            failed(io::Error::other(last))
        })
    }

    /// As `3.11`.
    pub(crate) fn version(&self) -> String {
        format!("{}.{}", self.version.0, self.version.1)
    }

    /// Whether the guest's environment can be made with it.
    pub(crate) fn check(&self) -> Result<(), DemoError> {
        let program = self.program.clone();
        let is_known = self.version.0 == 3 && (MINORS[0]..=MINORS[1]).contains(&self.version.1);
        if self.implementation != "cpython" || !is_known {
            let version = format!("{} {}", self.implementation, self.version());
            return Err(DemoError::PythonVersion { program, version });
        }
        match self.has_ensurepip {
            true => Ok(()),
            false => Err(DemoError::NoEnsurepip { program, version: self.version() }),
        }
    }
}

fn read(program: &OsStr, answer: &str) -> Option<Python> {
    let (facts, executable) = answer.trim_end().split_once('\n')?;
    let mut words = facts.split(' ');
    let implementation = words.next()?.to_owned();
    let version = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let has_ensurepip = words.next()? == "True";
    let executable = PathBuf::from(executable);
    Some(Python { program: program.to_owned(), executable, implementation, version, has_ensurepip })
}

#[expect(clippy::disallowed_methods, reason = "the guest's environment is made by Python's tools")]
fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

/// Runs one command of the first use. What it makes is readable to all, whatever our umask: the
/// guest is another user. `heard` is told each line that it writes.
pub(crate) fn carry_out(
    step: Step,
    line: &[&OsStr],
    place: &Path,
    heard: &mut dyn FnMut(&str),
) -> Result<(), DemoError> {
    let program = || line.first().map_or_else(OsString::new, |word| (*word).to_owned());
    let failed = |source| DemoError::Python { program: program(), source };
    let (reader, writer) = io::pipe().map_err(failed)?;
    let mut shell = command("/bin/sh");
    shell.args(["-c", "umask 022; exec \"$@\"", "sh"]).args(line);
    shell.stderr(writer.try_clone().map_err(failed)?).stdout(writer);
    let mut child = shell.spawn().map_err(failed)?;
    // It holds our ends of the pipe, which would keep the output open.
    drop(shell);
    let mut last = VecDeque::new();
    for text in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
        let text = String::from_utf8_lossy(&text).trim().to_owned();
        if text.is_empty() {
            continue;
        }
        heard(&text);
        if last.len() == LINES_MAX {
            last.pop_front();
        }
        last.push_back(text);
    }
    let ending = child.wait().map_err(failed)?;
    if ending.success() {
        return Ok(());
    }
    let words: Vec<_> = line.iter().map(|word| word.to_string_lossy()).collect();
    let free = rustix::fs::statvfs(place).ok().map(|facts| facts.f_bavail * facts.f_frsize);
    let (command, lines) = (words.join(" "), last.into());
    Err(DemoError::Step { step, command, ending, lines, free_bytes: free })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_is_read_and_judged() {
        let rows = [
            ("cpython 3 11 True\n/usr/bin/python3\n", "fits"),
            ("cpython 3 10 True\n/usr/bin/python3\n", "fits"),
            ("cpython 3 9 True\n/usr/bin/python3\n", "python3 is cpython 3.9, and the guest's"),
            ("cpython 3 14 True\n/usr/bin/python3\n", "python3 is cpython 3.14, and the guest's"),
            ("pypy 3 11 True\n/usr/bin/pypy3\n", "python3 is pypy 3.11, and the guest's"),
            ("cpython 3 11 False\n/usr/bin/python3\n", "python3 (Python 3.11) cannot make"),
        ];
        for (answer, words) in rows {
            let python = read(OsStr::new("python3"), answer).unwrap();
            let judged = python.check().map_or_else(|error| error.to_string(), |()| "fits".into());
            assert!(judged.starts_with(words), "{answer}: {judged}");
        }
        for answer in ["", "cpython 3 11 True", "cpython 3 True\n/x", "hello\nworld"] {
            assert_eq!(read(OsStr::new("python3"), answer), None, "{answer}");
        }
    }

    #[test]
    fn a_command_that_fails_is_told_with_its_last_lines() {
        let script = "for n in 1 2 3 4 5 6 7 8 9 10; do echo $n; done; echo oops >&2; exit 3";
        let line = ["/bin/sh", "-c", script].map(OsStr::new);
        let mut heard = 0;
        let failed =
            carry_out(Step::Packages, &line, Path::new("/"), &mut |_| heard += 1).unwrap_err();
        assert_eq!(heard, 11);
        assert_eq!(failed.lines(), ["4", "5", "6", "7", "8", "9", "10", "oops"]);
        let words = "cannot install the guest's packages: the command ended with exit status: 3";
        assert_eq!(failed.to_string(), words);
        assert!(failed.fix().unwrap().contains("pip must reach a package index"));
    }
}
