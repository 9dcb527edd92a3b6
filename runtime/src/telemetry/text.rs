//! Other people's words in events: one line, no control characters, no more than so many bytes.

use core::fmt::{self, Write as _};
use std::ffi::CStr;

/// Bytes of a word that an event shows.
const BYTES_MAX: usize = 200;

/// A word for an event.
pub(crate) struct Word<'w>(pub(super) &'w [u8]);

impl Word<'_> {
    pub(super) fn of(word: Option<&std::ffi::CString>) -> Word<'_> {
        Word(word.map_or(&[][..], |word| CStr::to_bytes(word)))
    }
}

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.get(..BYTES_MAX).unwrap_or(self.0);
        for character in String::from_utf8_lossy(shown).chars() {
            match character {
                '"' | '\'' => f.write_char(character)?,
                other => write!(f, "{}", other.escape_debug())?,
            }
        }
        match self.0.len() - shown.len() {
            0 => Ok(()),
            more => write!(f, "... ({more} bytes more)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_one_line_and_ends() {
        let long = [b'x'; BYTES_MAX + 5];
        let rows: [(&[u8], &str); 5] = [
            (b"", ""),
            (b"/bin/echo 'a' \"b\"", "/bin/echo 'a' \"b\""),
            (b"a\nb\x1b[2J\\", "a\\nb\\u{1b}[2J\\\\"),
            (b"\xff\xfe", "\u{fffd}\u{fffd}"),
            ("\u{202e}gnp".as_bytes(), "\\u{202e}gnp"),
        ];
        for (word, shown) in rows {
            assert_eq!(Word(word).to_string(), shown, "{word:?}");
        }
        let shown = Word(&long).to_string();
        assert_eq!(shown, format!("{}... (5 bytes more)", "x".repeat(BYTES_MAX)));
    }
}
