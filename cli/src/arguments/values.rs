//! Values of options, from a word to what it means; touches no file.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use clap::builder::{OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use postern::profile::{Bind, Etc, ProcKind, WorkspaceAccess};

/// The words of an option; those with `_`, a profile file's, are taken and not shown.
type Words<T> = &'static [(&'static str, T)];

const ACCESS: Words<WorkspaceAccess> = &[
    ("as-is", WorkspaceAccess::AsIs),
    ("as_is", WorkspaceAccess::AsIs),
    ("shared", WorkspaceAccess::Shared),
    ("mapped", WorkspaceAccess::Mapped),
];
const PROC: Words<ProcKind> = &[
    ("read-only", ProcKind::ReadOnly),
    ("read_only", ProcKind::ReadOnly),
    ("minimal", ProcKind::Minimal),
    ("masked", ProcKind::Masked),
    ("none", ProcKind::None),
];
const ETC: Words<Etc> = &[("generated", Etc::Generated), ("none", Etc::None)];

pub(super) fn access() -> impl TypedValueParser<Value = WorkspaceAccess> {
    word(ACCESS)
}

pub(super) fn proc() -> impl TypedValueParser<Value = ProcKind> {
    word(PROC)
}

pub(super) fn etc() -> impl TypedValueParser<Value = Etc> {
    word(ETC)
}

fn word<T: Copy + Send + Sync + 'static>(words: Words<T>) -> impl TypedValueParser<Value = T> {
    let shown = words.iter().map(|(word, _)| PossibleValue::new(*word).hide(word.contains('_')));
    PossibleValuesParser::new(shown).try_map(move |text| {
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or("no such word")
    })
}

/// Bytes, since paths are.
pub(super) fn bind() -> impl TypedValueParser<Value = Bind> {
    OsStringValueParser::new().try_map(|text| Bind::try_from(text.as_os_str()))
}

/// `NAME=VALUE`, of any bytes.
pub(super) fn variable() -> impl TypedValueParser<Value = (OsString, OsString)> {
    OsStringValueParser::new().try_map(|entry| {
        let mut halves = entry.as_bytes().splitn(2, |byte| *byte == b'=').map(OsStr::from_bytes);
        match (halves.next(), halves.next()) {
            (Some(name), _) if name.is_empty() => Err("the name before '=' is empty"),
            (Some(name), Some(value)) => Ok((name.to_owned(), value.to_owned())),
            _ => Err("no '='; write NAME=VALUE"),
        }
    })
}

/// `KEY=VALUE`.
pub(super) fn setting(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some(("", _)) => Err("the key before '=' is empty"),
        Some((key, value)) => Ok((key.trim().to_owned(), value.to_owned())),
        None => Err("no '='; write KEY=VALUE"),
    }
}

/// Bytes, or so many of a power of 1024.
pub(super) fn size(text: &str) -> Result<u64, String> {
    const UNITS: [(char, u32); 4] = [('k', 10), ('m', 20), ('g', 30), ('t', 40)];
    let unit = text
        .chars()
        .last()
        .and_then(|last| UNITS.into_iter().find(|(unit, _)| *unit == last.to_ascii_lowercase()));
    let (digits, shift) = match unit {
        Some((_, shift)) => (text.get(..text.len() - 1).unwrap_or_default(), shift),
        None => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|error| format!("not a size: {error}"))?;
    number.checked_mul(1 << shift).ok_or_else(|| "more bytes than there can be".to_owned())
}

/// Thousandths of a processor.
pub(super) fn cpus(text: &str) -> Result<u64, String> {
    let millis = seconds(text)?.as_millis();
    u64::try_from(millis).map_err(|error| error.to_string())
}

/// Not negative, a fraction allowed.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|error| format!("not a number: {error}"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Seconds, more than none.
pub(super) fn timeout(text: &str) -> Result<Duration, String> {
    match seconds(text)? {
        Duration::ZERO => Err("must be more than zero".to_owned()),
        duration => Ok(duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_a_number() {
        let rows = [
            ("2.5", true, true),
            ("0", true, false),
            ("0.0000000001", true, false),
            ("-1", false, false),
            ("x", false, false),
            ("", false, false),
            ("inf", false, false),
            ("NaN", false, false),
            ("1e30", false, false),
        ];
        for (text, as_grace, as_timeout) in rows {
            assert_eq!(
                (seconds(text).is_ok(), timeout(text).is_ok()),
                (as_grace, as_timeout),
                "{text}"
            );
        }
    }

    #[test]
    fn sizes_and_processors_are_numbers() {
        let rows = [
            ("4096", Some(4096), Some(4_096_000)),
            ("64k", Some(64 << 10), None),
            ("512M", Some(512 << 20), None),
            ("2G", Some(2 << 30), None),
            ("1t", Some(1 << 40), None),
            ("1.5", None, Some(1500)),
            ("0.25", None, Some(250)),
            ("", None, None),
            ("M", None, None),
            ("-1", None, None),
            ("99999999T", None, None),
        ];
        for (text, as_size, as_cpus) in rows {
            assert_eq!((size(text).ok(), cpus(text).ok()), (as_size, as_cpus), "{text}");
        }
    }

    #[test]
    fn settings_are_split_at_the_first_sign() {
        let pair = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));
        let rows = [
            ("a.b=c", pair("a.b", "c")),
            ("env.A=b=c", pair("env.A", "b=c")),
            ("a=", pair("a", "")),
            ("a", Err("no '='; write KEY=VALUE")),
            ("=b", Err("the key before '=' is empty")),
        ];
        for (text, expected) in rows {
            assert_eq!(setting(text), expected, "{text}");
        }
    }
}
