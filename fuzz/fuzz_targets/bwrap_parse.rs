//! Words of a bwrap command line come to what bwrap's rules allow, in operations whose places are
//! inside the new root, or are refused in one line; the same whether given or read from a file.
#![no_main]
#![allow(dead_code, reason = "of the front end's modules only what reads is used")]
#![allow(unfulfilled_lint_expectations, reason = "they expect lints that are not on here")]

#[path = "../../cli/src/bwrap/environment.rs"]
mod environment;
#[path = "../../cli/src/bwrap/invocation.rs"]
mod invocation;
#[path = "../../cli/src/bwrap/kept.rs"]
mod kept;
#[path = "../../cli/src/bwrap/operations.rs"]
mod operations;
#[path = "../../cli/src/bwrap/options.rs"]
mod options;
#[path = "../../cli/src/bwrap/parse/mod.rs"]
mod parse;
#[path = "../../cli/src/bwrap/say.rs"]
mod say;
#[path = "../../cli/src/bwrap/sys.rs"]
mod sys;
#[path = "../../cli/src/bwrap/values.rs"]
mod values;
#[path = "../../cli/src/visible.rs"]
mod visible;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, OsStr, OsString};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use invocation::{Filters, Invocation, Setup, Source, Wish};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use options::OPTIONS;
use parse::{Caller, Misread, Parsed, ReadArgs, parse};
use postern_launcher::direct::{Operation, Upper};

/// As the front end has it.
const FAILED: u8 = 1;

/// A descriptor whose file the second reading takes its words from.
const OF_WORDS: RawFd = 77;

fuzz_target!(|data: &[u8]| {
    let mut bytes = Unstructured::new(data);
    if let Ok(line) = line(&mut bytes) {
        judge(&line);
    }
});

/// What is read, by whom, and what its descriptors hold.
#[derive(Debug, Clone)]
struct Line {
    words: Vec<OsString>,
    caller: Caller,
    files: Files,
    /// The operations too: their strings stay in memory, which only some inputs may cost.
    is_carried_on: bool,
}

#[derive(Debug, Clone, Default)]
struct Files(BTreeMap<RawFd, Vec<u8>>);

impl ReadArgs for Files {
    fn read(&mut self, fd: RawFd) -> io::Result<Vec<u8>> {
        self.0.remove(&fd).ok_or_else(|| io::Error::from_raw_os_error(9))
    }
}

fn read(line: &Line) -> std::result::Result<Parsed, Misread> {
    parse(line.words.iter().cloned(), line.caller, &mut line.files.clone())
}

fn judge(line: &Line) {
    let read_once = read(line);
    assert_eq!(read_once, read(line), "{line:?}");
    match &read_once {
        Ok(Parsed::Help | Parsed::Version) | Err(Misread::NoCommand) => {}
        Err(Misread::Wrong { text, level_prefix }) => {
            assert!(!text.is_empty(), "{line:?}");
            let said = say::line(say::Level::Error, *level_prefix, text);
            let start = if *level_prefix { "<3>bwrap: " } else { "bwrap: " };
            let rest = said.strip_prefix(start).and_then(|rest| rest.strip_suffix('\n'));
            assert!(rest.is_some_and(|rest| !rest.chars().any(char::is_control)), "{said:?}");
        }
        Ok(Parsed::Run(asked)) => {
            keeps_rules(asked, line.caller);
            from_a_file(line, asked);
            if line.is_carried_on {
                carry_on(asked);
            }
        }
    }
}

/// What nothing later looks at again.
fn keeps_rules(asked: &Invocation, caller: Caller) {
    let spaces = &asked.namespaces;
    assert!(!asked.command.is_empty(), "{asked:?}");
    assert!(asked.uid != Some(u32::MAX) && asked.gid != Some(u32::MAX), "{asked:?}");
    assert!(caller.is_root() || spaces.user == Wish::Yes || spaces.userns.is_some(), "{asked:?}");
    assert!(spaces.user == Wish::No || spaces.userns.is_none(), "{asked:?}");
    assert!(!asked.as_pid_1 || spaces.pid && asked.locks.is_empty(), "{asked:?}");
    assert!(asked.hostname.is_none() || spaces.uts, "{asked:?}");
    let filters = match &asked.filters {
        Filters::None => &[][..],
        Filters::One(fd) => std::slice::from_ref(fd),
        Filters::Stacked(fds) => fds,
    };
    let named = [spaces.userns, spaces.userns2, spaces.pidns, asked.block_fd, asked.info_fd];
    let mut fds = filters.iter().chain(&asked.sync_fds).copied().chain(named.into_iter().flatten());
    assert!(fds.all(|fd| fd >= 0), "{asked:?}");
    for entry in &asked.setup {
        let (mode, fd) = match entry {
            Setup::Tmpfs { mode, size_bytes, .. } => {
                assert!(*size_bytes != Some(0), "{entry:?}");
                (*mode, None)
            }
            Setup::Dir { mode, .. } => (*mode, None),
            Setup::File { mode, fd, .. } | Setup::BindData { mode, fd, .. } => (*mode, Some(*fd)),
            Setup::Chmod { mode, .. } => (Some(*mode), None),
            Setup::Bind { source: Source::Fd(fd), .. } => (None, Some(*fd)),
            Setup::Overlay { layers, .. } => {
                assert!(!layers.is_empty(), "{entry:?}");
                (None, None)
            }
            _ => (None, None),
        };
        assert!(mode.is_none_or(|mode| mode <= 0o7777) && fd.is_none_or(|fd| fd >= 0), "{entry:?}");
        assert!(!operations::target_of(entry).as_os_str().is_empty(), "{entry:?}");
    }
}

/// All that comes before the program may as well be in a file, which may not name another.
fn from_a_file(line: &Line, asked: &Invocation) {
    let before = line.words.len().checked_sub(asked.command.len());
    let Some(own) = before.and_then(|end| line.words.get(..end)) else { return };
    // With a file in it already, the program and some of its arguments may come from there.
    if own.is_empty() || line.words.iter().any(|word| word == "--args") {
        return;
    }
    let mut text = Vec::new();
    own.iter().for_each(|word| text.extend([word.as_bytes(), b"\0"].concat()));
    let words = ["--args".into(), OF_WORDS.to_string().into()];
    let mut other = line.clone();
    other.words = words.into_iter().chain(asked.command.iter().cloned()).collect();
    // A program that looks like an option comes after the two dashes, which the file has.
    other.files.0.insert(OF_WORDS, text);
    assert_eq!(read(&other), Ok(Parsed::Run(Box::new(asked.clone()))), "{line:?}");
}

fn carry_on(asked: &Invocation) {
    let own = Some(Path::new("/own"));
    // A descriptor may be none of ours, which is said.
    if let Ok(operations) = operations::operations(&asked.setup, own) {
        assert_eq!(operations.len(), asked.setup.len(), "{asked:?}");
        operations.iter().for_each(is_in_place);
    }
    let variables = environment::Variables::new(
        [("PWD".into(), "/own".into())].into_iter(),
        &asked.environment,
    );
    let mut names = BTreeSet::new();
    for entry in variables.entries() {
        let name = entry.to_bytes().split(|byte| *byte == b'=').next().unwrap();
        assert!(name != b"PWD" && names.insert(name), "{asked:?}");
    }
}

/// Targets are relative to the new root, so that none can be the host's; sources are absolute.
fn is_in_place(operation: &Operation<'_>) {
    let is_absolute = |path: &CStr| path.to_bytes().starts_with(b"/");
    let (target, sources) = match operation {
        Operation::Bind { source, target, seen: None, .. } => (target, vec![*source]),
        // A descriptor may lead to no path; what is bound must be what it is open on.
        Operation::Bind { target, seen: Some(_), .. } => (target, Vec::new()),
        Operation::Overlay { layers, upper, target } => {
            let upper = match upper {
                Upper::Directory { upper, work } => vec![*upper, *work],
                Upper::Memory | Upper::ReadOnly => Vec::new(),
            };
            (target, [*layers, &upper[..]].concat())
        }
        Operation::RemountReadOnly { target }
        | Operation::Proc { target }
        | Operation::Dev { target }
        | Operation::Tmpfs { target, .. }
        | Operation::Mqueue { target }
        | Operation::Dir { target, .. }
        | Operation::File { target, .. }
        | Operation::BindData { target, .. }
        | Operation::Symlink { target, .. }
        | Operation::Chmod { target, .. } => (target, Vec::new()),
        Operation::Hostname { .. } => return,
    };
    let ends = [target.to_bytes().first(), target.to_bytes().last()];
    assert!(ends.iter().all(|end| end.is_some_and(|byte| *byte != b'/')), "{operation:?}");
    assert!(sources.iter().all(|source| is_absolute(source)), "{operation:?}");
}

const VALUES: [&str; 32] = [
    "/",
    "/a",
    "/a/b/",
    "//c",
    "..",
    ".",
    "",
    "-",
    "--",
    "--args",
    "0",
    "1",
    "3",
    "9",
    "077",
    "0x1f",
    " 5",
    "+6",
    "-1",
    "1.5",
    "2147483648",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "ALL",
    "cap_sys_admin",
    "CAP_NET_RAW",
    "A",
    "A=b",
    "PWD",
    "a\nb\u{9b}",
    "true",
];

fn line(bytes: &mut Unstructured<'_>) -> Result<Line> {
    let is_root: bool = bytes.arbitrary()?;
    let caller = if is_root { Caller::default() } else { Caller { uid: 1000, gid: 100 } };
    let is_carried_on = bytes.ratio(1, 16)?;
    let mut files = Files::default();
    for fd in [3, 9] {
        let words = words(bytes, 4)?;
        let mut text = words.join(OsStr::new("\0")).into_vec();
        // Now and then one without its end.
        if !text.is_empty() && !bytes.ratio(1, 8)? {
            text.push(0);
        }
        files.0.insert(fd, text);
    }
    Ok(Line { words: words(bytes, 12)?, caller, files, is_carried_on })
}

/// Options with their values, mostly.
fn words(bytes: &mut Unstructured<'_>, most: usize) -> Result<Vec<OsString>> {
    let mut words = Vec::new();
    for _ in 0..bytes.int_in_range(0..=most)? {
        let spec = bytes.choose(&OPTIONS)?;
        words.push(spec.name.into());
        let missing = usize::from(bytes.ratio(1, 16)?);
        for _ in missing..spec.count {
            words.push(word(bytes)?);
        }
    }
    if bytes.ratio(7, 8)? {
        words.push("true".into());
    }
    Ok(words)
}

fn word(bytes: &mut Unstructured<'_>) -> Result<OsString> {
    if bytes.ratio(7, 8)? {
        return Ok(bytes.choose(&VALUES)?.into());
    }
    let mut word: Vec<u8> = bytes.arbitrary()?;
    word.retain(|byte| *byte != 0);
    Ok(OsString::from_vec(word))
}
