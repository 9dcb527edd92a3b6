//! The names of hatches, and the variables that guests find them by. Whether two hatches of a
//! sandbox share a variable is the sandbox's question.

use core::fmt;
use core::str::FromStr;

/// The name of a hatch: a letter or `_`, then letters, digits and `_`, at most 64 of them, and not
/// one of the words that Postern keeps for itself.
///
/// Two names that differ only in case have the same [`variable`](Self::variable).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HatchName(String);

impl HatchName {
    /// The longest name, in bytes.
    pub const BYTES_MAX: usize = 64;

    /// The name, if it is one.
    ///
    /// # Errors
    ///
    /// The first rule that it breaks.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        let name = name.into();
        match fault(&name) {
            None => Ok(Self(name)),
            Some(fault) => Err(NameError { name: shown(&name), fault }),
        }
    }

    /// As it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The environment variable that has the path of its socket in the guest: `POSTERN_HATCH_REPO`
    /// for the name `repo`.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("POSTERN_HATCH_{}", self.0.to_ascii_uppercase())
    }
}

impl fmt::Display for HatchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for HatchName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        Self::new(name)
    }
}

/// Why a text is not the name of a hatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameError {
    /// The text, escaped, and cut where it is long.
    name: String,
    fault: Fault,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Empty,
    Long,
    Start,
    Character(char),
    Kept,
}

/// Words of `$POSTERN_HATCH_…` that mean something else, or will.
const KEPT: [&str; 3] = ["hatch", "connect", "stubs"];

fn fault(name: &str) -> Option<Fault> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() {
        Some(Fault::Empty)
    } else if name.len() > HatchName::BYTES_MAX {
        Some(Fault::Long)
    } else if let Some(other) = name.chars().find(|c| !is_word(*c)) {
        Some(Fault::Character(other))
    } else if name.starts_with(|c: char| c.is_ascii_digit()) {
        Some(Fault::Start)
    } else {
        KEPT.iter().any(|word| name.eq_ignore_ascii_case(word)).then_some(Fault::Kept)
    }
}

fn shown(name: &str) -> String {
    name.chars().take(HatchName::BYTES_MAX).flat_map(char::escape_debug).collect()
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hatch name `{}`: ", self.name)?;
        match self.fault {
            Fault::Empty => f.write_str("empty; leave the name out for the hatch without one"),
            Fault::Long => {
                write!(f, "longer than {} bytes; choose a shorter one", HatchName::BYTES_MAX)
            }
            Fault::Start => f.write_str("begins with a digit; put a letter or `_` first"),
            Fault::Character(c) => write!(
                f,
                "has `{}`, and becomes an environment variable; use letters, digits and `_`",
                c.escape_debug()
            ),
            Fault::Kept => f.write_str("kept for Postern's own variables; choose another one"),
        }
    }
}

impl core::error::Error for NameError {}

#[cfg(test)]
mod tests {
    use super::HatchName;

    #[test]
    fn a_name_makes_a_variable() {
        let long = "a".repeat(64);
        let rows = [
            ("repo", "POSTERN_HATCH_REPO"),
            ("_x9", "POSTERN_HATCH__X9"),
            ("Hatches", "POSTERN_HATCH_HATCHES"),
            (&long, &format!("POSTERN_HATCH_{}", "A".repeat(64))),
        ];
        for (name, variable) in rows {
            let parsed: HatchName = name.parse().unwrap();
            assert_eq!((parsed.to_string().as_str(), parsed.variable().as_str()), (name, variable));
        }
    }

    #[test]
    fn each_other_text_is_refused_in_words() {
        let rows = [
            ("", "hatch name ``: empty; leave the name out for the hatch without one"),
            ("9a", "hatch name `9a`: begins with a digit; put a letter or `_` first"),
            (
                "a-b",
                "hatch name `a-b`: has `-`, and becomes an environment variable; use letters, \
                 digits and `_`",
            ),
            (
                "a\n",
                "hatch name `a\\n`: has `\\n`, and becomes an environment variable; use letters, \
                 digits and `_`",
            ),
            (
                "é",
                "hatch name `é`: has `é`, and becomes an environment variable; use letters, digits \
                 and `_`",
            ),
            ("Hatch", "hatch name `Hatch`: kept for Postern's own variables; choose another one"),
            (
                "CONNECT",
                "hatch name `CONNECT`: kept for Postern's own variables; choose another one",
            ),
            ("stubs", "hatch name `stubs`: kept for Postern's own variables; choose another one"),
        ];
        for (name, words) in rows {
            assert_eq!(HatchName::new(name).unwrap_err().to_string(), words);
        }
        let long = HatchName::new("a".repeat(65)).unwrap_err().to_string();
        assert!(long.ends_with("longer than 64 bytes; choose a shorter one"), "{long}");
    }
}
