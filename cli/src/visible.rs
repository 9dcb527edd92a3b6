//! Text that no terminal acts on. It escapes; what is said, and where, is for others.

use std::fmt::Write as _;

/// The text with every character that a terminal would act on written as an escape: names come from
/// files and arguments, and may be the guest's choice.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '\'' | '\\' => shown.push(character),
            other => write!(shown, "{}", other.escape_debug()).unwrap_or_default(),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_line_moves_the_terminal() {
        let rows = [
            ("plain 'text' \"here\" \\ é", "plain 'text' \"here\" \\ é"),
            ("a\nb\r\tc", "a\\nb\\r\\tc"),
            ("\x1b]0;title\x07", "\\u{1b}]0;title\\u{7}"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("abc\u{202e}cba", "abc\\u{202e}cba"),
        ];
        for (text, shown) in rows {
            assert_eq!(visible(text), shown);
        }
    }
}
