//! What the options of the streams take: a size, a source of input. Opens nothing.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::{OsStringValueParser, TypedValueParser};

/// Where the guest's stdin comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StdinChoice {
    /// This process's own.
    Inherit,
    /// `/dev/null`.
    Null,
    /// A file of the host's, copied.
    File(PathBuf),
}

/// What becomes of a run that writes more than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Beyond {
    /// The rest is dropped.
    Drop,
    /// The run is killed.
    Kill,
}

pub(super) fn stdin() -> impl TypedValueParser<Value = StdinChoice> {
    OsStringValueParser::new().try_map(|word: OsString| match word.to_str() {
        Some("inherit") => Ok(StdinChoice::Inherit),
        Some("null") => Ok(StdinChoice::Null),
        Some("") => Err("empty; write inherit, null or the name of a file"),
        Some(_) | None => Ok(StdinChoice::File(word.into())),
    })
}

/// A number of bytes, or of KiB, MiB, GiB or TiB with K, M, G or T behind it.
pub(super) fn size(text: &str) -> Result<u64, &'static str> {
    const WORDS: &str = "not a size; write a number of bytes, or one with K, M, G or T behind it";
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let unit = text.get(digits.len()..).unwrap_or_default().to_ascii_lowercase();
    let shift = match unit.as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(WORDS),
    };
    let number: u64 = digits.parse().or(Err(WORDS))?;
    number.checked_mul(1 << shift).ok_or("too large")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_powers_of_1024() {
        let rows = [
            ("0", Some(0)),
            ("1000000", Some(1_000_000)),
            ("4k", Some(4096)),
            ("64M", Some(64 << 20)),
            ("2GiB", Some(2 << 30)),
            ("1tb", Some(1 << 40)),
            ("", None),
            ("M", None),
            ("-1", None),
            ("1.5M", None),
            ("1 M", None),
            ("1x", None),
            ("99999999T", None),
        ];
        for (text, expected) in rows {
            assert_eq!(size(text).ok(), expected, "{text}");
        }
    }
}
