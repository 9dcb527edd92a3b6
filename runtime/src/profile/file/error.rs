//! Why a text is not a profile, or a profile not a text: facts and their words.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::keys::{self, Key};
use super::node::{quoted, text_words};
use super::read::{Fault, What};
use crate::error::Refusal;
use crate::error::Shown as _;
use crate::profile::Field;

/// A line and a column of a text, both counted from 1; a column is one character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column in it.
    pub column: u32,
}

/// Where something is wrong, as far as it is known: of a text that is no file there is no path,
/// and of a single value not even a position.
///
/// Prints as `FILE:LINE:COLUMN: `, the way compilers do; nothing at all where nothing is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: Option<Box<Path>>,
    /// Where in it.
    pub position: Option<Position>,
}

impl Place {
    pub(super) fn at(line: usize, column: usize) -> Self {
        let number = |number| u32::try_from(number).unwrap_or(u32::MAX);
        let position = Position { line: number(line), column: number(column) };
        Self { path: None, position: Some(position) }
    }

    /// From an offset in bytes.
    pub(super) fn in_text(text: &str, offset: Option<usize>) -> Self {
        let Some(before) = offset.and_then(|offset| text.get(..offset)) else {
            return Self::default();
        };
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(start..).map_or(0, |line| line.chars().count());
        Self::at(before.matches('\n').count() + 1, column + 1)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.path, self.position) {
            (None, None) => return Ok(()),
            (Some(path), _) => write!(f, "{}", path.shown())?,
            (None, Some(_)) => f.write_str("profile")?,
        }
        if let Some(Position { line, column }) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        f.write_str(": ")
    }
}

/// Why a profile file is not a profile, why an option does not fit into one, or why a profile
/// cannot be written as a file.
///
/// Keys are written as [`SandboxProfile::set`](crate::SandboxProfile::set) takes them, with
/// indices for lists: `limits.nproc`, `mounts[0].tmpfs.mode`.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProfileFileError {
    /// The file cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A directory, pipe, device or socket. Nothing was read from it.
    NotRegular {
        /// The path.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// More than [`PROFILE_BYTES_MAX`](super::PROFILE_BYTES_MAX).
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes, or what had been read when it grew too large.
        bytes: u64,
        /// The most that is read.
        limit: u64,
    },
    /// The file is not UTF-8.
    NotUtf8 {
        /// The file and the first byte that is wrong.
        place: Place,
    },
    /// The name ends neither in `.toml` nor in `.json`.
    Extension {
        /// The file.
        path: PathBuf,
    },
    /// Not TOML; a key that comes twice in a table is not.
    Toml {
        /// Where.
        place: Place,
        /// What the parser said.
        source: Box<toml::de::Error>,
    },
    /// Not JSON.
    Json {
        /// Where.
        place: Place,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// Nested deeper than any profile is.
    TooDeep {
        /// Where.
        place: Place,
        /// The deepest that is read.
        limit: usize,
    },
    /// A key that comes twice in a table of JSON.
    DuplicateKey {
        /// The second one.
        place: Place,
        /// Its name.
        key: String,
    },
    /// No such key.
    UnknownKey {
        /// Where.
        place: Place,
        /// The key.
        key: String,
        /// The keys that the table has.
        known: &'static [&'static str],
        /// The key that was probably meant, in this table or another.
        nearest: Option<String>,
    },
    /// A key without which its table means nothing.
    MissingKey {
        /// The table.
        place: Place,
        /// The key.
        key: String,
        /// What its value would be, in words.
        expects: &'static str,
        /// A value that would do, in the notation of the text.
        example: String,
    },
    /// A word that is not one of the key's.
    UnknownWord {
        /// Where.
        place: Place,
        /// The key.
        key: String,
        /// The word.
        word: String,
        /// The words that it takes.
        allowed: &'static [&'static str],
        /// The one that was probably meant.
        nearest: Option<&'static str>,
    },
    /// A value of a kind, or a number of a size, that the key cannot hold.
    WrongType {
        /// Where.
        place: Place,
        /// The key.
        key: String,
        /// What stands there, in words.
        found: String,
        /// What should, in words.
        expects: &'static str,
        /// A value that would do, in the notation of the text.
        example: String,
    },
    /// A text that breaks its key's notation, such as that of a bind.
    Notation {
        /// Where.
        place: Place,
        /// The key.
        key: String,
        /// What the notation is.
        reason: String,
    },
    /// Well-formed, but a rule refuses it.
    Refused {
        /// Where.
        place: Place,
        /// The rule.
        source: Box<Refusal>,
    },
    /// A path or file content that is not UTF-8 has no spelling in a profile file.
    NotText {
        /// The field.
        field: Field,
    },
    /// The TOML writer refused.
    Write {
        /// What it said.
        source: toml::ser::Error,
    },
}

/// The notation that examples are given in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    Toml,
    Json,
}

impl Notation {
    /// What a key expects, and an example.
    fn hint(self, path: &str) -> (&'static str, String) {
        let hint = |key: &Key| (key.expects, self.example(key.example));
        keys::find(path).map_or_else(|| ("another value", String::new()), hint)
    }

    /// An example of the table of keys in this notation.
    fn example(self, toml: &str) -> String {
        let json = || {
            let table = toml::from_str::<serde_json::Value>(&format!("value = {toml}")).ok()?;
            serde_json::to_string(table.get("value")?).ok()
        };
        match self {
            Self::Toml => toml.to_owned(),
            Self::Json => json().unwrap_or_else(|| toml.to_owned()),
        }
    }
}

impl ProfileFileError {
    /// The words for a fault of a text.
    pub(super) fn of_fault(fault: Fault, notation: Notation, place: Place) -> Self {
        let path = fault.path();
        let wrong_type = |path: &str, found| {
            let (expects, example) = notation.hint(path);
            Self::WrongType { place: place.clone(), key: quoted(path), found, expects, example }
        };
        match fault.what {
            What::UnknownKey { name, known } => Self::UnknownKey {
                place,
                nearest: keys::nearest_key(&path, &name),
                key: quoted(&keys::join(&path, &name)),
                known,
            },
            What::MissingKey { name } => {
                let key = keys::join(&path, name);
                let (expects, example) = notation.hint(&key);
                Self::MissingKey { place, key, expects, example }
            }
            // A word where a table with one of the words stands.
            What::UnknownWord { word, .. } if !keys::find(&path).is_some_and(Key::is_word) => {
                wrong_type(&path, text_words(&word))
            }
            What::UnknownWord { word, allowed } => Self::UnknownWord {
                place,
                key: path,
                nearest: keys::nearest_word(&word, allowed),
                word: quoted(&word),
                allowed,
            },
            What::WrongType { found } => wrong_type(&path, found),
            What::Notation { reason } => Self::Notation { place, key: path, reason },
        }
    }

    /// Where in a text or file, for the variants that are about one.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::NotUtf8 { place }
            | Self::Toml { place, .. }
            | Self::Json { place, .. }
            | Self::TooDeep { place, .. }
            | Self::DuplicateKey { place, .. }
            | Self::UnknownKey { place, .. }
            | Self::MissingKey { place, .. }
            | Self::UnknownWord { place, .. }
            | Self::WrongType { place, .. }
            | Self::Notation { place, .. }
            | Self::Refused { place, .. } => Some(place),
            Self::Read { .. }
            | Self::NotRegular { .. }
            | Self::TooLarge { .. }
            | Self::Extension { .. }
            | Self::NotText { .. }
            | Self::Write { .. } => None,
        }
    }

    /// The same error, with the file that the text came from.
    pub(super) fn of_file(mut self, file: &Path) -> Self {
        match &mut self {
            Self::NotUtf8 { place }
            | Self::Toml { place, .. }
            | Self::Json { place, .. }
            | Self::TooDeep { place, .. }
            | Self::DuplicateKey { place, .. }
            | Self::UnknownKey { place, .. }
            | Self::MissingKey { place, .. }
            | Self::UnknownWord { place, .. }
            | Self::WrongType { place, .. }
            | Self::Notation { place, .. }
            | Self::Refused { place, .. } => place.path = Some(file.into()),
            Self::Read { .. }
            | Self::NotRegular { .. }
            | Self::TooLarge { .. }
            | Self::Extension { .. }
            | Self::NotText { .. }
            | Self::Write { .. } => {}
        }
        self
    }
}

impl core::error::Error for ProfileFileError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } => Some(source),
            Self::Toml { source, .. } => Some(source.as_ref()),
            Self::Json { source, .. } => Some(source),
            Self::Refused { source, .. } => Some(source.as_ref()),
            Self::Write { source } => Some(source),
            Self::NotRegular { .. }
            | Self::TooLarge { .. }
            | Self::NotUtf8 { .. }
            | Self::Extension { .. }
            | Self::TooDeep { .. }
            | Self::DuplicateKey { .. }
            | Self::UnknownKey { .. }
            | Self::MissingKey { .. }
            | Self::UnknownWord { .. }
            | Self::WrongType { .. }
            | Self::Notation { .. }
            | Self::NotText { .. } => None,
        }
    }
}
