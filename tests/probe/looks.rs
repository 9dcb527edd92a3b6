//! Questions about what surrounds a process: how far up paths lead, who else is there, what can be
//! connected to. It changes nothing but what it is asked to make.

use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use crate::json::Value;
use crate::sys::{keep, kept, short, words};

mod nr {
    pub(super) const CONNECT: i64 = 42;
    pub(super) const SOCKET: i64 = 41;
    pub(super) const CLOSE: i64 = 3;
    pub(super) const KILL: i64 = 62;
    pub(super) const MKDIR: i64 = 83;
    pub(super) const CHDIR: i64 = 80;
    pub(super) const GETCWD: i64 = 79;
    pub(super) const OPENAT: i64 = 257;
    pub(super) const PRCTL: i64 = 157;
    pub(super) const GETPRIORITY: i64 = 140;
    pub(super) const SCHED_GETSCHEDULER: i64 = 145;
    pub(super) const IOPRIO_GET: i64 = 252;
}

/// `up PATH...`: whether a hundred steps to the parent from there end at the root.
pub(crate) fn up(paths: &[OsString]) -> Value {
    let root = fs::metadata("/").map(|root| (root.dev(), root.ino())).ok();
    let answers = paths.iter().map(|path| {
        let top = climb(path).and_then(|fd| {
            let found = fs::metadata(format!("/proc/self/fd/{fd}"))?;
            Ok(Some((found.dev(), found.ino())) == root)
        });
        (path.as_bytes().to_vec(), Value::of(top))
    });
    Value::Map(answers.collect())
}

fn climb(start: &OsString) -> io::Result<usize> {
    const O_PATH_DIRECTORY: usize = 0o10_200_000;
    let here = usize::from_ne_bytes((-100i64).to_ne_bytes());
    let open = |at: usize, path: &[u8]| {
        let path = CString::new(path)?;
        short(nr::OPENAT, [at, path.as_ptr().addr(), O_PATH_DIRECTORY, 0])
    };
    let mut fd = open(here, start.as_bytes())?;
    for _ in 0..100 {
        let parent = open(fd, b"..")?;
        short(nr::CLOSE, [fd])?;
        fd = parent;
    }
    Ok(fd)
}

/// `processes`: every number in `/proc`, with the lines of its `status` that say what it may do.
pub(crate) fn processes(_: &[OsString]) -> Value {
    const LINES: [&str; 12] = [
        "Name",
        "Uid",
        "Groups",
        "CapInh",
        "CapPrm",
        "CapEff",
        "CapBnd",
        "CapAmb",
        "NoNewPrivs",
        "Seccomp",
        "Seccomp_filters",
        "NSpid",
    ];
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let described = numbers.map(|pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        let wanted = lines.filter(|(name, _)| LINES.contains(name));
        let lines = wanted.map(|(name, value)| (name.into(), Value::from(value.trim())));
        (pid.to_string().into_bytes(), Value::Map(lines.collect()))
    });
    Value::Map(described.collect())
}

/// `signalable MOST`: which numbers up to that can be sent signal 0, and what `kill(-1, 0)` says.
pub(crate) fn signalable(arguments: &[OsString]) -> Value {
    let most = arguments.first().map_or(0, crate::number);
    let pids = (1..=most).filter(|pid| short(nr::KILL, [*pid, 0]).is_ok());
    let all = short(nr::KILL, [usize::MAX, 0]);
    let group = short(nr::KILL, [0, 0]);
    Value::map([
        ("pids", pids.map(Value::from).collect::<Vec<_>>().into()),
        ("all", Value::of(all)),
        ("group", Value::of(group)),
    ])
}

/// `sockets PATH...`: the sockets in these trees, and those of them that take a connection.
pub(crate) fn sockets(roots: &[OsString]) -> Value {
    let (mut found, mut open) = (Vec::new(), Vec::new());
    for root in roots {
        crate::files::walk(Path::new(root), &mut |path, kind| {
            if kind.is_socket() {
                let name = path.as_os_str().as_bytes();
                found.push(Value::from(name.to_vec()));
                if (1..=5).any(|kind| connects(kind, name)) {
                    open.push(Value::from(name.to_vec()));
                }
            }
        });
    }
    Value::map([("found", found.into()), ("open", open.into())])
}

fn connects(kind: usize, path: &[u8]) -> bool {
    let Some(address) = keep(&[&[1, 0], path, &[0]].concat(), 110) else { return false };
    let Ok(fd) = short(nr::SOCKET, [1, kind, 0]) else { return false };
    let connected = short(nr::CONNECT, [fd, address, 110]).is_ok();
    short(nr::CLOSE, [fd]).ok();
    connected
}

/// `magic`: links of processes that lead to a directory which no path of this root names, and how
/// many links were looked at.
pub(crate) fn magic(_: &[OsString]) -> Value {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers =
        entries.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok());
    let (mut looked, mut foreign) = (0u32, Vec::new());
    for process in numbers.map(|entry| entry.path()) {
        let mut links = vec![process.join("root"), process.join("cwd")];
        let opened = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        links.extend(opened.map(|entry| entry.path()));
        for link in links {
            let (Ok(behind), Ok(name)) = (fs::metadata(&link), fs::read_link(&link)) else {
                continue;
            };
            looked += 1;
            let named = fs::metadata(&name).map(|named| (named.dev(), named.ino()));
            let same = named.is_ok_and(|named| named == (behind.dev(), behind.ino()));
            if behind.is_dir() && !same {
                foreign.push(Value::from(link.into_os_string().into_vec()));
            }
        }
    }
    Value::map([("looked", looked.into()), ("foreign", foreign.into())])
}

/// `deep DIRECTORY LEVELS`: directories within directories, and whether the path of the innermost
/// can still be asked for.
pub(crate) fn deep(arguments: &[OsString]) -> Value {
    let [directory, levels] = arguments else { return false.into() };
    let (Ok(start), name) = (CString::new(directory.as_bytes()), c"dddddddddddddddd") else {
        return false.into();
    };
    let mut made = 0usize;
    let mut errno = 0;
    if let Err(error) = short(nr::CHDIR, [start.as_ptr().addr()]) {
        return Value::errno(error.raw_os_error().unwrap_or(-1));
    }
    while made < crate::number(levels) && errno == 0 {
        let step = short(nr::MKDIR, [name.as_ptr().addr(), 0o755])
            .and_then(|_| short(nr::CHDIR, [name.as_ptr().addr()]));
        match step {
            Ok(_) => made += 1,
            Err(error) => errno = error.raw_os_error().unwrap_or(-1),
        }
    }
    let cwd = words::<512>(nr::GETCWD, |buffer| [buffer, 4096, 0, 0]).map(|_| true);
    Value::map([("made", made.into()), ("errno", errno.into()), ("cwd", Value::of(cwd))])
}

/// `own`: what a program inherits besides descriptors: priority, scheduling, and what
/// `prctl` tells.
pub(crate) fn own(_: &[OsString]) -> Value {
    const PDEATHSIG: usize = 2;
    const THP_DISABLE: usize = 42;
    const TIMERSLACK: usize = 30;
    let signal = || -> io::Result<u32> {
        let address = keep(&[], 8).ok_or(io::ErrorKind::OutOfMemory)?;
        short(nr::PRCTL, [PDEATHSIG, address])?;
        Ok(u32::from_ne_bytes(kept(address, 4).try_into().unwrap_or_default()))
    };
    Value::map([
        // The kernel answers 20 minus the niceness.
        ("priority", Value::of(short(nr::GETPRIORITY, [0, 0]))),
        ("scheduler", Value::of(short(nr::SCHED_GETSCHEDULER, [0]))),
        ("ioprio", Value::of(short(nr::IOPRIO_GET, [1, 0]))),
        ("death_signal", Value::of(signal())),
        ("thp_disable", Value::of(short(nr::PRCTL, [THP_DISABLE, 0, 0]))),
        ("timer_slack", Value::of(short(nr::PRCTL, [TIMERSLACK, 0, 0]))),
    ])
}

/// `start PATH...`: which of them open for reading and which for writing, asked twenty times from
/// the first instruction on.
pub(crate) fn start(paths: &[OsString]) -> Value {
    let mut opened = Vec::new();
    for _ in 0..20 {
        for (flags, how) in [(0usize, "r "), (1, "w ")] {
            for path in paths {
                let Ok(name) = CString::new(path.as_bytes()) else { continue };
                let here = usize::from_ne_bytes((-100i64).to_ne_bytes());
                let given = short(nr::OPENAT, [here, name.as_ptr().addr(), flags | 0o4_400, 0]);
                if let Ok(fd) = given {
                    opened.push(Value::from([how.as_bytes(), path.as_bytes()].concat()));
                    short(nr::CLOSE, [fd]).ok();
                }
            }
        }
    }
    opened.into()
}
