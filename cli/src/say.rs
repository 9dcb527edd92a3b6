//! What postern says itself, on stderr, each line marked as its own; it decides nothing that is said.

use std::io::{IsTerminal, Write as _};

use crate::arguments::Paint;
use crate::visible::visible;

/// One line of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// What went wrong.
    Failure(String),
    /// Why, most likely.
    Cause(String),
    /// What to do about it.
    Fix(String),
    /// What is weaker than usual.
    Warning(String),
    /// Anything else.
    Note(String),
    /// The time was up, in the words of PyPI's postern.
    TimedOut,
}

/// Where our lines go, and how they look there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    Plain,
    Coloured,
}

const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[1;33m";
const GREEN: &str = "\x1b[1;32m";
const CYAN: &str = "\x1b[1;36m";
const RESET: &str = "\x1b[0m";

impl Voice {
    /// For our lines, on stderr.
    pub(crate) fn new(paint: Paint) -> Voice {
        Voice::on(paint, std::io::stderr().is_terminal())
    }

    /// As the user says; left to itself, colours only on a terminal that can and may show them
    /// (<https://no-color.org>).
    pub(crate) fn on(paint: Paint, is_terminal: bool) -> Voice {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let is_wanted = match paint {
            Paint::Always => true,
            Paint::Never => false,
            Paint::Auto => {
                let is_dumb = set("TERM").is_none_or(|term| term == "dumb");
                is_terminal && !is_dumb && set("NO_COLOR").is_none()
            }
        };
        if is_wanted { Voice::Coloured } else { Voice::Plain }
    }

    /// Says some lines in one piece, so that nothing of the guest's comes between them.
    pub(crate) fn say(self, lines: &[Line]) {
        if lines.is_empty() {
            return;
        }
        let text: String = lines.iter().map(|line| self.render(line)).collect();
        // Nowhere left to say that it could not be said.
        std::io::stderr().write_all(text.as_bytes()).ok();
    }

    fn render(self, line: &Line) -> String {
        let (colour, label, text) = match line {
            Line::TimedOut => return "[postern] timed out\n".to_owned(),
            Line::Failure(text) => (RED, "", text),
            Line::Cause(text) => (CYAN, "cause: ", text),
            Line::Fix(text) => (GREEN, "fix: ", text),
            Line::Warning(text) => (YELLOW, "warning: ", text),
            Line::Note(text) => ("", "", text),
        };
        let text = visible(text);
        match self {
            Voice::Coloured if !colour.is_empty() => {
                format!("{colour}postern: {label}{RESET}{text}\n")
            }
            Voice::Plain | Voice::Coloured => format!("postern: {label}{text}\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_marked() {
        let text = || "x".to_owned();
        let rows = [
            (Line::Failure(text()), "postern: x\n"),
            (Line::Cause(text()), "postern: cause: x\n"),
            (Line::Fix(text()), "postern: fix: x\n"),
            (Line::Warning(text()), "postern: warning: x\n"),
            (Line::Note(text()), "postern: x\n"),
            (Line::TimedOut, "[postern] timed out\n"),
        ];
        for (line, expected) in rows {
            assert_eq!(Voice::Plain.render(&line), expected);
            let coloured = Voice::Coloured.render(&line);
            assert_eq!(
                coloured.contains('\x1b'),
                !matches!(line, Line::Note(_) | Line::TimedOut),
                "{coloured:?}"
            );
        }
    }
}
