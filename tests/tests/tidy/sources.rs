//! Rules for single files. One rule is one function and one row, with a text that breaks it.

use std::path::Path;

use super::none;
use super::tree::{File, files, root};

/// What is wrong in a file, with the line, counted from one.
type Faults = Vec<(usize, String)>;

/// A rule's name, the files it is for, and itself.
type Rule = (&'static str, fn(&File) -> bool, fn(&File) -> Faults);

const RULES: [Rule; 7] = [
    ("a module opens with one sentence", is_rust, opens_with_a_sentence),
    ("a file has at most 400 lines", is_rust, has_at_most_400_lines),
    ("unsafe code has its places", is_rust, keeps_unsafe_in_its_places),
    ("nothing is unfinished", is_rust, is_finished),
    ("no space ends a line", is_any, ends_no_line_in_space),
    ("a file ends with a newline", is_any, ends_with_a_newline),
    ("no file knows a machine", is_any, knows_no_machine),
];

/// Written by hand: generated files are as their generator makes them.
fn is_rust(file: &File) -> bool {
    file.is("rs") && !file.path.starts_with("proto/src/generated")
}

fn is_any(_: &File) -> bool {
    true
}

fn opens_with_a_sentence(file: &File) -> Faults {
    let comment = file.text.lines().map_while(|line| line.strip_prefix("//!"));
    let first: Vec<&str> = comment.map(str::trim).take_while(|line| !line.is_empty()).collect();
    match first.last() {
        None => vec![(1, "no module comment".to_owned())],
        Some(last) if !last.ends_with('.') => {
            vec![(first.len(), "the first paragraph is no sentence".to_owned())]
        }
        Some(_) if first == ["Placeholder."] => vec![(1, "a placeholder".to_owned())],
        Some(_) => Vec::new(),
    }
}

fn has_at_most_400_lines(file: &File) -> Faults {
    match file.text.lines().count() {
        0..=400 => Vec::new(),
        lines => vec![(lines, format!("{lines} lines"))],
    }
}

fn keeps_unsafe_in_its_places(file: &File) -> Faults {
    let may = file.path.file_name().is_some_and(|name| name == "sys.rs")
        || file.path.components().any(|part| part.as_os_str() == "arch")
        // Entry and memory functions: the image's own architecture file.
        || file.path == Path::new("runtime/launcher/src/image/x86_64.rs");
    match may {
        true => Vec::new(),
        false => lines(file, |line| code(line).is_some_and(is_unsafe)),
    }
}

/// A line without its comment.
fn code(line: &str) -> Option<&str> {
    line.split("//").next()
}

fn is_unsafe(code: &str) -> bool {
    const BEFORE: [&str; 6] = ["{", "fn ", "impl", "extern", "trait", "("];
    code.match_indices("unsafe").any(|(at, word)| {
        let before = code.get(..at).unwrap_or_default();
        let after = code.get(at + word.len()..).unwrap_or_default();
        !before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
            && BEFORE.iter().any(|start| after.trim_start().starts_with(start))
    })
}

fn is_finished(file: &File) -> Faults {
    let marks = ["to~do!(", "unimpl~emented!(", "FIX~ME", "XX~X", "#[ign~ore"].map(joined);
    lines(file, |line| marks.iter().any(|mark| line.contains(mark)))
}

fn ends_no_line_in_space(file: &File) -> Faults {
    lines(file, |line| line.ends_with([' ', '\t', '\r']))
}

fn ends_with_a_newline(file: &File) -> Faults {
    match file.text.is_empty() || file.text.ends_with('\n') && !file.text.ends_with("\n\n") {
        true => Vec::new(),
        false => vec![(file.text.lines().count(), "not one newline at the end".to_owned())],
    }
}

/// Homes that exist on no machine: the made-up hosts of the tests and examples.
const MADE_UP: [&str; 2] = ["/ho~me/ada", "/ro~ot/.pyenv/versions/3.12"];

fn knows_no_machine(file: &File) -> Faults {
    let root = root();
    let mut paths = vec![root.to_string_lossy().into_owned()];
    paths.extend(["/wo~rk/", "/ho~me/", "/ro~ot/"].map(joined));
    let made_up = MADE_UP.map(joined);
    lines(file, |line| {
        let line = made_up.iter().fold(line.to_owned(), |line, home| line.replace(home, ""));
        paths.iter().any(|path| begins_with(&line, path))
    })
}

/// Whether a path begins so somewhere in a line, and does not only go on so.
fn begins_with(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(at, _)| {
        let before = line.get(..at).unwrap_or_default();
        !before.ends_with(|c: char| c.is_alphanumeric() || "_-.}".contains(c))
    })
}

/// The faulty lines of a file.
fn lines(file: &File, is_faulty: impl Fn(&str) -> bool) -> Faults {
    let lines = file.text.split('\n').zip(1..);
    let faulty = lines.filter(|(line, _)| is_faulty(line));
    faulty.map(|(line, number)| (number, line.trim().to_owned())).collect()
}

/// A text that this file must not hold itself, put together.
fn joined(text: &str) -> String {
    text.replace('~', "")
}

#[test]
fn every_file_keeps_every_rule() {
    let mut faults = Vec::new();
    for (name, is_for, rule) in RULES {
        for file in files().iter().filter(|file| is_for(file)) {
            let found = rule(file).into_iter();
            faults.extend(
                found.map(|(line, text)| format!("{}:{line}: {name}: {text}", file.path.display())),
            );
        }
    }
    none(&faults);
}

#[test]
fn the_tree_is_there() {
    let sources = files().iter().filter(|file| is_rust(file)).count();
    assert!(sources > 100, "{sources} sources");
}

#[test]
fn each_rule_finds_its_offender_and_nothing_else() {
    let long = "//! A.\n".repeat(401);
    let rows: [(usize, &str, &str, &str); 15] = [
        (0, "a/lib.rs", "use std::fs;\n", "//! Does it.\n\n//! More\n"),
        (0, "a/lib.rs", "//! Half a thought\n", "//! A thought\n//! in two lines.\nuse a;\n"),
        (0, "a/lib.rs", "//! Placeholder.\n", "//! Places a holder.\n"),
        (1, "a/lib.rs", &long, "//! A.\n"),
        (2, "a/lib.rs", "x = un~safe { y() };\n", "x = y(); // un~safe { y() }\n"),
        (2, "a/lib.rs", "pub un~safe fn y() {}\n", "#![deny(un~safe_code)]\n"),
        (2, "a/table/x86_64.rs", "#[un~safe(no_mangle)]\n", "is_un~safe(1);\n"),
        (3, "a/lib.rs", "    to~do!()\n", "    // what to do\n"),
        (3, "a/lib.rs", "#[ign~ore = \"slow\"]\n", "ignore();\n"),
        (4, "a.md", "one \ntwo\n", "one\ntwo\n"),
        (4, "a.md", "one\r\n", "one\n"),
        (5, "a.md", "one", "one\n"),
        (5, "a.md", "one\n\n", ""),
        (6, "a.md", "see /wo~rk/x\n", "see /workspace/x and net/wo~rk/x\n"),
        (6, "a.md", "cd /ho~me/bob\n", "cd /ho~me/ada/project\n"),
    ];
    for (rule, path, bad, good) in rows {
        let (name, _, rule) = RULES[rule];
        let faults = |text: &str| rule(&File::new(path, joined(text))).len();
        assert_eq!(faults(bad), 1, "{name}: {bad:?}");
        assert_eq!(faults(good), 0, "{name}: {good:?}");
    }
}

#[test]
fn unsafe_code_is_allowed_in_its_places() {
    let places = ["a/sys.rs", "a/arch/x86_64.rs", "runtime/launcher/src/image/x86_64.rs"];
    for path in places {
        let file = File::new(path, joined("un~safe fn y() {}\n"));
        assert_eq!(keeps_unsafe_in_its_places(&file).len(), 0, "{path}");
    }
}
