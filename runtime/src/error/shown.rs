//! Paths in messages. A path is somebody's choice: nothing in it ends a line or moves a terminal.

use core::fmt::{self, Write as _};
use std::path::Path;

/// A path for a message.
pub(crate) trait Shown {
    /// Like `Path::display`, with control characters escaped.
    fn shown(&self) -> Visible<'_>;
}

impl Shown for Path {
    fn shown(&self) -> Visible<'_> {
        Visible(self)
    }
}

/// What [`Shown::shown`] gives.
pub(crate) struct Visible<'p>(&'p Path);

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.to_string_lossy().chars().try_for_each(|character| match character {
            '"' | '\'' | '\\' => f.write_char(character),
            other => write!(f, "{}", other.escape_debug()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        let rows = [
            ("/srv/a 'b' \"c\" \\ é", "/srv/a 'b' \"c\" \\ é"),
            ("/a\nb\r\tc", "/a\\nb\\r\\tc"),
            ("/\x1b]0;title\x07", "/\\u{1b}]0;title\\u{7}"),
            ("/\u{202e}gnp", "/\\u{202e}gnp"),
        ];
        for (path, expected) in rows {
            assert_eq!(Path::new(path).shown().to_string(), expected, "{path:?}");
        }
    }
}
