//! A static program that answers one question about the world it runs in, as JSON on stdout. It
//! judges nothing: a test compares the answer with what was promised.

#![no_main]

mod acts;
mod arch;
mod batch;
mod calls;
mod files;
mod json;
mod looks;
mod network;
mod processes;
mod quotas;
mod sys;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;

use json::Value;

/// A question's name and how it is answered.
type Question = (&'static str, fn(&[OsString]) -> Value);

const QUESTIONS: [Question; 41] = [
    ("act", acts::act),
    ("argv", processes::arguments),
    ("batch", batch::batch),
    ("calls", calls::sequence),
    ("capabilities", processes::capabilities),
    ("deep", looks::deep),
    ("env", processes::environment),
    ("fds", processes::descriptors),
    ("fill", files::fill),
    ("fill-inodes", files::fill_inodes),
    ("fork", processes::fork_until_refused),
    ("frame", calls::frame),
    ("identity", processes::identity),
    ("leaks", files::leaks),
    ("list", files::list),
    ("loopback", network::loopback),
    ("lower-core", processes::lower_core_limit),
    ("magic", looks::magic),
    ("mounts", files::mounts),
    ("namespaces", files::namespaces),
    ("open", files::open),
    ("orphans", processes::orphans),
    ("own", looks::own),
    ("processes", looks::processes),
    ("race", calls::race),
    ("read", files::read),
    ("repeat", calls::repeat),
    ("rlimits", processes::limits),
    ("rooted", batch::rooted),
    ("search-memory", processes::search_memory),
    ("signalable", looks::signalable),
    ("sockets", looks::sockets),
    ("start", looks::start),
    ("statfs", files::statfs),
    ("status", processes::status),
    ("sweep", files::sweep),
    ("syscall", processes::system_call),
    ("use-up", quotas::use_up),
    ("up", looks::up),
    ("via", batch::via),
    ("vsyscall", calls::vsyscall),
];

/// Answers the question of the command line; `hold` before it keeps the process until stdin ends.
fn answer() -> i32 {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (held, question) = match arguments.split_first() {
        Some((first, rest)) if first == "hold" => (true, rest),
        _ => (false, arguments.as_slice()),
    };
    let Some(answer) = ask(question) else { return 2 };
    let line = format!("{answer}\n");
    if std::io::stdout().write_all(line.as_bytes()).is_err() {
        return 3;
    }
    if held {
        std::io::stdin().read_to_end(&mut Vec::new()).ok();
    }
    0
}

/// The answer to one question; `None` for one that does not exist.
fn ask(question: &[OsString]) -> Option<Value> {
    let (name, rest) = question.split_first()?;
    let (_, answer) = QUESTIONS.iter().find(|(known, _)| name == known)?;
    Some(answer(rest))
}

/// An argument as a number, hexadecimal with `0x`.
fn number(text: &OsString) -> usize {
    let text = String::from_utf8_lossy(text.as_bytes());
    match text.strip_prefix("0x") {
        Some(digits) => usize::from_str_radix(digits, 16).unwrap_or(0),
        None => text.parse().unwrap_or(0),
    }
}
