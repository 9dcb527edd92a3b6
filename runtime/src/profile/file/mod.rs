//! Profiles as TOML and JSON text; an unknown key is an error, and no default is guessed from one.

use std::path::Path;

use serde::Deserialize;

use super::{Field, SandboxProfile, check};
use crate::error::Refusal;

mod error;
mod json;
mod keys;
mod node;
mod open;
mod read;
mod set;
#[cfg(test)]
mod tests;
mod toml;
mod words;
mod write;

use error::Notation;
pub use error::{Place, Position, ProfileFileError};
use node::Node;

/// Most bytes of a profile file: 1 MiB.
pub const PROFILE_BYTES_MAX: u64 = 1 << 20;

impl SandboxProfile {
    /// Reads a profile from TOML text; what it does not name keeps its default. A byte order mark
    /// before the text is passed over.
    ///
    /// # Errors
    ///
    /// Any [`ProfileFileError`] that is not about files or JSON.
    pub fn from_toml_str(text: &str) -> Result<Self, ProfileFileError> {
        let text = unmarked(text);
        read(text, &toml::tree(text)?, Notation::Toml)
    }

    /// Reads a profile from JSON text; what it does not name keeps its default. A byte order mark
    /// before the text is passed over, and empty text is an empty profile as it is in TOML.
    ///
    /// # Errors
    ///
    /// Any [`ProfileFileError`] that is not about files or TOML.
    pub fn from_json_str(text: &str) -> Result<Self, ProfileFileError> {
        let text = unmarked(text);
        read(text, &json::tree(text)?, Notation::Json)
    }

    /// Reads a profile from a regular file of at most [`PROFILE_BYTES_MAX`] whose name ends in
    /// `.toml` or `.json`; an empty one is the default profile.
    ///
    /// # Errors
    ///
    /// Any [`ProfileFileError`]; each names the file.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ProfileFileError> {
        let path = path.as_ref();
        let parse = match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => Self::from_toml_str,
            Some("json") => Self::from_json_str,
            Some(_) | None => return Err(ProfileFileError::Extension { path: path.to_owned() }),
        };
        parse(&open::text(path)?).map_err(|error| error.of_file(path))
    }
}

/// The text behind a byte order mark, which editors on other systems write.
fn unmarked(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// A tree to a profile that keeps the rules that need no machine.
fn read(text: &str, tree: &Node, notation: Notation) -> Result<SandboxProfile, ProfileFileError> {
    let profile = profile(tree, notation, |at| Place::in_text(text, at))?;
    check(&profile).map_err(|refusal| refused(refusal, Some(tree), text))?;
    Ok(profile)
}

/// A tree to a profile.
fn profile(
    tree: &Node,
    notation: Notation,
    place: impl FnOnce(Option<usize>) -> Place,
) -> Result<SandboxProfile, ProfileFileError> {
    SandboxProfile::deserialize(tree).map_err(|fault| {
        let place = place(fault.at);
        ProfileFileError::of_fault(fault, notation, place)
    })
}

/// A broken rule, with the place of its field where a text has it.
fn refused(refusal: Refusal, tree: Option<&Node>, text: &str) -> ProfileFileError {
    let at = tree.and_then(|tree| offset(tree, refusal.field()));
    let place = Place::in_text(text, at);
    ProfileFileError::Refused { place, source: Box::new(refusal) }
}

/// Where a field begins, or as much of it as the text has.
fn offset(tree: &Node, field: Field) -> Option<usize> {
    let (name, index, part) = field.steps();
    let whole = tree.get(name)?;
    let entry = index.and_then(|index| whole.item(index)).unwrap_or(whole);
    // Of a mount or workspace the part lies beneath the word that says which kind it is.
    let inner = part.and_then(|part| entry.get(part).or_else(|| entry.only()?.get(part)));
    Some(inner.unwrap_or(entry).at)
}
