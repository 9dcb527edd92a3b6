//! The sentence for each way in which a text is not a profile; decides nothing.

use core::fmt;
use std::io;
use std::path::Path;

use rustix::io::Errno;

use super::error::ProfileFileError;
use crate::error::Shown as _;

impl fmt::Display for ProfileFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, source } => read(f, path, source),
            Self::NotRegular { path, kind } => {
                let path = path.shown();
                write!(f, "{path}: is {kind}; a profile is read from a regular file")
            }
            Self::TooLarge { path, bytes, limit } => {
                let path = path.shown();
                write!(f, "{path}: has {bytes} bytes; a profile file has {limit} at most")
            }
            Self::NotUtf8 { place } => write!(f, "{place}not UTF-8; save the file as UTF-8 text"),
            Self::Extension { path } => {
                write!(f, "{}: a profile file ends in .toml or .json", path.shown())
            }
            Self::Toml { place, source } => {
                write!(f, "{place}not TOML: {}", source.message().replace('\n', "; "))
            }
            Self::Json { place, source } => write!(f, "{place}not JSON: {}", unplaced(source)),
            Self::TooDeep { place, limit } => {
                write!(f, "{place}nested more than {limit} deep, which no profile is")
            }
            Self::DuplicateKey { place, key } => {
                write!(f, "{place}the key `{key}` comes twice in one table; keep one")
            }
            Self::UnknownKey { place, key, known, nearest } => {
                write!(f, "{place}unknown key `{key}`; ")?;
                match nearest {
                    Some(nearest) => write!(f, "did you mean `{nearest}`?"),
                    None => list(f, "the keys there are ", known, '`'),
                }
            }
            Self::MissingKey { place, key, expects, example } => {
                write!(f, "{place}the key `{key}` is missing; it expects {expects}, e.g. {example}")
            }
            Self::UnknownWord { place, key, word, allowed, nearest } => {
                write!(f, "{place}{key}: unknown word \"{word}\"; ")?;
                let lead = match nearest {
                    Some(nearest) => &format!("did you mean \"{nearest}\"? The words are "),
                    None => "the words are ",
                };
                list(f, lead, allowed, '"')
            }
            Self::WrongType { place, key, found, expects, example } => {
                let colon = if key.is_empty() { "" } else { ": " };
                write!(f, "{place}{key}{colon}found {found}, expects {expects}, e.g. {example}")
            }
            Self::Notation { place, key, reason } => write!(f, "{place}{key}: {reason}"),
            Self::Refused { place, source } => write!(f, "{place}{source}"),
            Self::NotText { field } => {
                write!(f, "{field}: is not UTF-8, which a profile file cannot say")
            }
            Self::Write { source } => write!(f, "cannot be written as TOML: {source}"),
        }
    }
}

/// `"a", "b", "c"`
fn list(f: &mut fmt::Formatter<'_>, lead: &str, names: &[&str], quote: char) -> fmt::Result {
    f.write_str(lead)?;
    for (index, name) in names.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(f, "{comma}{quote}{name}{quote}")?;
    }
    Ok(())
}

/// Why a file cannot be read, and what to do.
fn read(f: &mut fmt::Formatter<'_>, path: &Path, source: &io::Error) -> fmt::Result {
    let path = path.shown();
    match Errno::from_io_error(source) {
        Some(Errno::NOENT) => write!(f, "{path}: no such file; check the path"),
        Some(Errno::ACCESS) => {
            let uid = rustix::process::geteuid().as_raw();
            write!(f, "{path}: uid {uid} may not read it; check its mode and its directories'")
        }
        Some(Errno::LOOP) => write!(f, "{path}: its symbolic links lead in a circle"),
        Some(_) | None => write!(f, "{path}: {source}"),
    }
}

/// What the parser said, without the place that it adds.
fn unplaced(source: &serde_json::Error) -> String {
    let text = source.to_string();
    let place = format!(" at line {} column {}", source.line(), source.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}
