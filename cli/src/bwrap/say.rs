//! Says things as bwrap does: on stderr, its name first, the level before that on request.

use std::io::Write;

use crate::visible::visible;

/// How serious it is, by syslog(3)'s numbers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Level {
    Error = 3,
    Warning = 4,
}

/// What keeps the program from being started.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) text: String,
    pub(super) status: u8,
}

impl Wrong {
    pub(super) fn new(text: impl Into<String>) -> Wrong {
        Wrong { text: text.into(), status: super::FAILED }
    }

    /// Something that the kernel refused, in its words.
    pub(super) fn of(what: impl std::fmt::Display, errno: impl Into<std::io::Error>) -> Wrong {
        Wrong::new(format!("{what}: {}", reason(&errno.into())))
    }
}

/// The words of an error without its number.
pub(super) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// Writes one line; a stderr that is gone is nobody's.
pub(super) fn say(level: Level, prefix: bool, text: &str) {
    std::io::stderr().write_all(line(level, prefix, text).as_bytes()).ok();
}

/// The line. What the caller or the file system gave as a name does not end it.
pub(super) fn line(level: Level, prefix: bool, text: &str) -> String {
    let number = level as u8;
    let prefix = if prefix { format!("<{number}>") } else { String::new() };
    format!("{prefix}bwrap: {}\n", visible(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one() {
        let rows = [
            (Level::Error, false, "no a\nbwrap: b", "bwrap: no a\\nbwrap: b\n"),
            (Level::Error, true, "\x1b[2J", "<3>bwrap: \\u{1b}[2J\n"),
            (Level::Warning, true, "é", "<4>bwrap: é\n"),
        ];
        for (level, prefix, text, expected) in rows {
            assert_eq!(line(level, prefix, text), expected);
        }
    }
}
