//! Reads a bwrap command line: options in their order, each acting on what comes after it. The words
//! of what is wrong are bwrap's, as programs look for them.

mod apply;
mod rules;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use super::invocation::{Invocation, Wish};
use super::options::{Name, Spec};
use super::values::fd;

/// What a command line comes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// Something to run.
    Run(Box<Invocation>),
    /// `--help` came first.
    Help,
    /// `--version` came first.
    Version,
}

/// Why a command line cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Misread {
    /// No program is named: the usage is what helps.
    NoCommand,
    /// Something is wrong with it.
    Wrong {
        /// What, without the name of the program before it.
        text: String,
        /// Whether the level stands before that.
        level_prefix: bool,
    },
}

/// Who calls: everybody but root gets a user namespace, asked for or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Caller {
    pub(crate) const fn is_root(self) -> bool {
        self.uid == 0
    }
}

/// Reads the NUL-separated arguments of a descriptor.
pub(crate) trait ReadArgs {
    /// All bytes of a descriptor, which is closed.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read(&mut self, fd: RawFd) -> std::io::Result<Vec<u8>>;
}

/// Reads the words after the name of the program.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn parse(
    words: impl IntoIterator<Item = OsString>,
    caller: Caller,
    files: &mut dyn ReadArgs,
) -> Result<Parsed, Misread> {
    let words = words.into_iter().collect();
    let mut parser = Parser { words, caller, ..Parser::default() };
    match parser.read(files) {
        Ok(parsed) => Ok(parsed),
        Err(Stop::NoCommand) => Err(Misread::NoCommand),
        Err(Stop::Wrong(text)) => {
            Err(Misread::Wrong { text, level_prefix: parser.asked.level_prefix })
        }
    }
}

enum Stop {
    NoCommand,
    Wrong(String),
}

impl From<String> for Stop {
    fn from(text: String) -> Self {
        Self::Wrong(text)
    }
}

#[derive(Default)]
struct Parser {
    words: VecDeque<OsString>,
    /// How many of the next words come from a file of arguments, which may not name another.
    filed: usize,
    asked: Invocation,
    caller: Caller,
    /// For the next option that makes a file.
    mode: Option<u32>,
    /// For the next tmpfs.
    size_bytes: Option<u64>,
    /// For the next overlay, the lowest first.
    layers: Vec<PathBuf>,
}

impl Parser {
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others")]
    fn read(&mut self, files: &mut dyn ReadArgs) -> Result<Parsed, Stop> {
        while let Some(word) = self.words.front() {
            if !word.as_bytes().starts_with(b"-") {
                break;
            }
            let word = self.next_word();
            if word == "--" {
                break;
            }
            let Some(spec) = Spec::of(word.as_bytes()) else {
                return Err(Stop::Wrong(format!("Unknown option {}", word.display())));
            };
            let is_filed = self.filed > 0;
            let values = self.values(spec)?;
            match spec.own {
                Name::Help => return Ok(Parsed::Help),
                Name::Version => return Ok(Parsed::Version),
                Name::Args if is_filed => {
                    return Err(Stop::Wrong("--args not supported in arguments file".to_owned()));
                }
                Name::Args => self.take_in(fd(&values[0])?, files)?,
                own => self.apply(own, spec.name, values)?,
            }
            self.nothing_waits_in_vain(spec.own)?;
        }
        rules::layers_are_taken(&self.layers)?;
        rules::ends_well(&self.asked, self.caller)?;
        let spaces = &mut self.asked.namespaces;
        if !self.caller.is_root() && spaces.userns.is_none() {
            spaces.user = Wish::Yes;
        }
        self.asked.command = core::mem::take(&mut self.words).into();
        if self.asked.command.is_empty() {
            return Err(Stop::NoCommand);
        }
        Ok(Parsed::Run(Box::new(core::mem::take(&mut self.asked))))
    }

    fn next_word(&mut self) -> OsString {
        self.filed = self.filed.saturating_sub(1);
        self.words.pop_front().unwrap_or_default()
    }

    fn values(&mut self, spec: &Spec) -> Result<Vec<OsString>, String> {
        // Those of a file's last option are in the file.
        let there = if self.filed > 0 { self.filed } else { self.words.len() };
        if there < spec.count {
            return Err(format!("{} takes {}", spec.name, spec.takes));
        }
        let values: Vec<_> = (0..spec.count).map(|_| self.next_word()).collect();
        let is_overlay = matches!(spec.own, Name::Overlay | Name::TmpOverlay | Name::RoOverlay);
        let is_empty = |index: &usize| values.get(*index).is_some_and(|value| value.is_empty());
        match spec.paths.iter().any(is_empty) && !(is_overlay && self.layers.is_empty()) {
            true => Err(format!("{} does not take an empty path argument", spec.name)),
            false => Ok(values),
        }
    }

    /// Puts the arguments of a file before those that are left.
    fn take_in(&mut self, fd: RawFd, files: &mut dyn ReadArgs) -> Result<(), String> {
        let bytes = files.read(fd).map_err(|error| {
            let text = std::io::Error::to_string(&error);
            format!("Can't read --args data: {}", without_code(&text))
        })?;
        if bytes.last().is_some_and(|last| *last != 0) {
            return Err("Can't read --args data: its last argument has no end".to_owned());
        }
        let words = bytes.split_inclusive(|byte| *byte == 0).map(|word| {
            let word = word.strip_suffix(&[0]).unwrap_or(word);
            OsString::from_vec(word.to_vec())
        });
        let words: Vec<OsString> = words.collect();
        self.filed = words.len();
        for word in words.into_iter().rev() {
            self.words.push_front(word);
        }
        Ok(())
    }

    /// What was said about the next option must have met one that it can be about.
    fn nothing_waits_in_vain(&self, own: Name) -> Result<(), String> {
        let is_about = matches!(own, Name::Perms | Name::Size);
        if self.mode.is_some() && !is_about {
            return Err("--perms must be followed by an option that creates a file".to_owned());
        }
        if self.size_bytes.is_some() && !is_about {
            return Err("--size must be followed by --tmpfs".to_owned());
        }
        match self.layers.is_empty() || own == Name::OverlaySrc {
            true => Ok(()),
            false => Err(rules::LAYERS_WAIT.to_owned()),
        }
    }
}

/// The words of an error without its number.
fn without_code(text: &str) -> &str {
    text.split(" (os error").next().unwrap_or(text)
}
