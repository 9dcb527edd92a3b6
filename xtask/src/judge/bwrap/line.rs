//! One call of something named `bwrap`, from words with names and descriptors in braces. What ought to
//! come of it is its caller's affair.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};

use super::reference::Binary;
use crate::cache;
use crate::command::start;
use crate::failure::Failure;
use crate::half::Place;

/// How long one call may take.
const SECONDS: &str = "20";

/// A filter that answers `keyctl` with `EPERM` and admits everything else: four instructions of a
/// code, two jumps and an operand.
const FILTER: [(u16, u8, u8, u32); 4] =
    [(0x20, 0, 0, 0), (0x15, 0, 1, 250), (0x06, 0, 0, 0x0005_0001), (0x06, 0, 0, 0x7fff_0000)];

/// What stands for what in a word: `{name}`.
#[derive(Debug, Clone, Default)]
pub(super) struct Names(pub(super) Vec<(&'static str, String)>);

impl Names {
    pub(super) fn fill(&self, word: &str) -> String {
        let put = |text: String, (name, value): &(&str, String)| {
            text.replace(&format!("{{{name}}}"), value)
        };
        self.0.iter().fold(word.to_owned(), put)
    }
}

/// What `{fd:…}` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Other words, each ended by a null byte.
    Args,
    Data,
    Directory,
    Filter,
    /// Something to write to.
    Info,
    Null,
    /// A number that is no descriptor.
    Closed,
}

impl Kind {
    fn named(name: &str) -> Option<Self> {
        match name {
            "args" => Some(Self::Args),
            "data" => Some(Self::Data),
            "directory" => Some(Self::Directory),
            "filter" => Some(Self::Filter),
            "info" => Some(Self::Info),
            "null" => Some(Self::Null),
            "closed" => Some(Self::Closed),
            _ => None,
        }
    }
}

/// Words that can be run, and the descriptors that they name.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) words: Vec<String>,
    /// Open in what is run, each under its number here.
    descriptors: Vec<OwnedFd>,
}

impl Line {
    /// # Errors
    /// A descriptor of no kind, or one that cannot be opened.
    pub(super) fn fill(
        words: &[impl AsRef<str>],
        args: &[String],
        names: &Names,
        directory: &Path,
    ) -> Result<Self, Failure> {
        let mut line = Self::default();
        for word in words.iter().map(AsRef::as_ref) {
            let filled = match word.strip_prefix("{fd:").and_then(|rest| rest.strip_suffix('}')) {
                None => names.fill(word),
                Some(name) => {
                    // The words are open before the descriptor that holds them, and are held too.
                    let inner = match name {
                        "args" => Self::fill(args, &[], names, directory)?,
                        _ => Self::default(),
                    };
                    line.descriptors.extend(inner.descriptors);
                    line.opened(name, &inner.words, directory)?
                }
            };
            line.words.push(filled);
        }
        Ok(line)
    }

    fn opened(&mut self, name: &str, args: &[String], directory: &Path) -> Result<String, Failure> {
        let fd = match Kind::named(name) {
            Some(Kind::Closed) => return Ok("999".to_owned()),
            Some(kind) => inherited(kind, args, directory)
                .map_err(|e| cache::failure("open", directory, e))?,
            None => return Err(Failure::Archive { fact: format!("no descriptor {name}") }),
        };
        let number = fd.as_raw_fd().to_string();
        self.descriptors.push(fd);
        Ok(number)
    }

    /// Runs it.
    pub(super) fn run(
        &self,
        place: &Place<'_>,
        binary: &Binary,
        input: &[u8],
    ) -> Result<Ended, Failure> {
        // What whoever runs the judge ignores is no part of the line.
        let mut command = place.program(Path::new("/usr/bin/env"));
        command.args(["--default-signal", "/usr/bin/timeout", "--kill-after=1", SECONDS]);
        command.arg(binary.file()).args(&self.words);
        let failed = |source| Failure::Start { program: binary.file().into(), source };
        // Files, since a pipe would wait for whatever outlives the call.
        let stdin = own(input, false).map_err(failed)?;
        let mut out = own(b"", false).map_err(failed)?;
        let mut err = own(b"", false).map_err(failed)?;
        command.stdin(Stdio::from(stdin));
        command.stdout(out.try_clone().map_err(failed)?).stderr(err.try_clone().map_err(failed)?);
        let status = command.status().map_err(|source| start(&command, source))?;
        let (stdout, stderr) = (text(&mut out).map_err(failed)?, text(&mut err).map_err(failed)?);
        Ok(Ended { status: status.code().unwrap_or(-1), stdout, stderr })
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended {
    /// The exit status; 124 and 137 are those of one that took too long.
    pub(super) status: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

fn text(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Open for whoever is started, under the same number.
fn inherited(kind: Kind, args: &[String], directory: &Path) -> io::Result<OwnedFd> {
    let filter = FILTER.iter().flat_map(|(code, yes, no, operand)| {
        let jumps = [*yes, *no];
        code.to_ne_bytes()
            .into_iter()
            .chain(jumps)
            .chain(operand.to_ne_bytes())
            .collect::<Vec<u8>>()
    });
    let words = args.iter().flat_map(|word| word.bytes().chain([0]));
    let at = |path: PathBuf, flags| Ok(open(path, flags, Mode::empty())?);
    match kind {
        Kind::Args => own(&words.collect::<Vec<u8>>(), true).map(OwnedFd::from),
        Kind::Data => own(b"data\n", true).map(OwnedFd::from),
        Kind::Filter => own(&filter.collect::<Vec<u8>>(), true).map(OwnedFd::from),
        Kind::Info => own(b"", true).map(OwnedFd::from),
        Kind::Directory => at(directory.to_owned(), OFlags::PATH | OFlags::DIRECTORY),
        Kind::Null | Kind::Closed => at("/dev/null".into(), OFlags::RDONLY),
    }
}

/// A file without a name.
fn own(text: &[u8], is_inherited: bool) -> io::Result<File> {
    let flags = if is_inherited { MemfdFlags::empty() } else { MemfdFlags::CLOEXEC };
    let mut file = File::from(memfd_create("peer", flags)?);
    file.write_all(text)?;
    file.rewind()?;
    Ok(file)
}
