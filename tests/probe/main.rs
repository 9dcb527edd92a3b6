//! A static program that answers one question about the world it runs in, as JSON on stdout. It
//! judges nothing: a test compares the answer with what was promised.

#![no_main]

mod files;
mod json;
mod network;
mod processes;
mod sys;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;

use json::Value;

/// A question's name and how it is answered.
type Question = (&'static str, fn(&[OsString]) -> Value);

const QUESTIONS: [Question; 23] = [
    ("argv", processes::arguments),
    ("capabilities", processes::capabilities),
    ("env", processes::environment),
    ("fds", processes::descriptors),
    ("fill", files::fill),
    ("fill-inodes", files::fill_inodes),
    ("fork", processes::fork_until_refused),
    ("identity", processes::identity),
    ("leaks", files::leaks),
    ("list", files::list),
    ("loopback", network::loopback),
    ("lower-core", processes::lower_core_limit),
    ("mounts", files::mounts),
    ("namespaces", files::namespaces),
    ("open", files::open),
    ("orphans", processes::orphans),
    ("read", files::read),
    ("rlimits", processes::limits),
    ("search-memory", processes::search_memory),
    ("statfs", files::statfs),
    ("status", processes::status),
    ("sweep", files::sweep),
    ("syscall", processes::system_call),
];

/// Answers the question of the command line; `hold` before it keeps the process until stdin ends.
fn answer() -> i32 {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (held, question) = match arguments.split_first() {
        Some((first, rest)) if first == "hold" => (true, rest),
        _ => (false, arguments.as_slice()),
    };
    let Some((name, rest)) = question.split_first() else { return 2 };
    let Some((_, answer)) = QUESTIONS.iter().find(|(known, _)| name == known) else { return 2 };
    let line = format!("{}\n", answer(rest));
    if std::io::stdout().write_all(line.as_bytes()).is_err() {
        return 3;
    }
    if held {
        std::io::stdin().read_to_end(&mut Vec::new()).ok();
    }
    0
}

/// An argument as a number, hexadecimal with `0x`.
fn number(text: &OsString) -> usize {
    let text = String::from_utf8_lossy(text.as_bytes());
    match text.strip_prefix("0x") {
        Some(digits) => usize::from_str_radix(digits, 16).unwrap_or(0),
        None => text.parse().unwrap_or(0),
    }
}
