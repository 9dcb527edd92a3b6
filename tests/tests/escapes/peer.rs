//! The same questions under bubblewrap, with the arguments and the filter of the PyPI package
//! `postern` 0.5: how much of the headline rows other people's walls hold.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

use postern_seccomp::{Arch, Level};
use postern_tests::PROBE;
use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::{Value, json};

use crate::question::spelled;
use crate::stage::{Stage, answers_of};
use crate::table::{Ask, Expect, KILLED, Outside, Row, Severity};
use crate::verdict::{errno_of, unmet};

/// bubblewrap's arguments, one a line, as the benchmarks use them.
const ARGUMENTS: &str = include_str!("../../../bench/bwrap/postern-0.5.args");

/// The environment variable that names the peer's own filter.
const BLOB: &str = "POSTERN_PEER_BLOB";

/// Rows that describe our own layout, which nobody else has to have.
const OURS: [&str; 3] = ["C-04", "E-01", "F-03"];

/// Critical and high rows that the probe alone answers.
pub(crate) fn headline(rows: &[Row]) -> Vec<Row> {
    let is_asked = |row: &Row| row.asks.iter().any(|ask| ask.outside == Outside::Asked);
    let is_severe = |row: &Row| row.severity <= Severity::High;
    let all = rows.iter().filter(|row| is_severe(row) && is_asked(row) && !OURS.contains(&row.id));
    all.copied().collect()
}

/// Whether a row's questions are all refused or answered as they should be; any wall's errno will do.
fn holds(ask: &Ask, answer: &Value) -> bool {
    const WALLS: [i32; 7] =
        [libc::EPERM, libc::EACCES, libc::EROFS, libc::ENOSYS, libc::ENOENT, libc::EXDEV, KILLED];
    let by_a_wall = |answer: &Value| errno_of(answer).is_some_and(|errno| WALLS.contains(&errno));
    match ask.expect {
        _ if unmet(ask, answer).is_none() => true,
        Expect::Refused(_) => match answer {
            Value::Array(answers) => answers.last().is_some_and(by_a_wall),
            other => by_a_wall(other),
        },
        Expect::AllRefused(_) => answer.as_object().is_some_and(|all| all.values().all(by_a_wall)),
        Expect::At(..) | Expect::Meets(_) => false,
    }
}

/// `held` or `not held` for each row.
fn cells(rows: &[Row], answers: &[Value]) -> Vec<&'static str> {
    let whys = whys(rows, answers);
    whys.iter().map(|why| if why.is_empty() { "held" } else { "not held" }).collect()
}

/// What is open of each row, nothing where it is held.
fn whys(rows: &[Row], answers: &[Value]) -> Vec<String> {
    let mut left = answers.iter();
    let open = |row: &Row| {
        let asks = row.asks.iter().filter(|ask| ask.outside == Outside::Asked);
        let open = asks.filter_map(|ask| {
            let answer = left.next()?;
            (!holds(ask, answer)).then(|| unmet(ask, answer))?
        });
        open.collect::<Vec<_>>().join("; ")
    };
    rows.iter().map(open).collect()
}

fn questions(stage: &Stage, rows: &[Row]) -> Vec<String> {
    let names = stage.names("/workspace");
    let asks = rows.iter().flat_map(|row| row.asks).filter(|ask| ask.outside == Outside::Asked);
    asks.map(|ask| spelled(ask.question, &names)).collect()
}

/// bubblewrap's answers.
fn peers(stage: &Stage, questions: &[String]) -> Vec<Value> {
    let workspace = stage.scratch.directory("peer", 0o1777);
    stage.scratch.file("peer/probe", PROBE, 0o755);
    // Without close-on-exec: bubblewrap inherits it.
    let mut filter = File::from(memfd_create("filter", MemfdFlags::empty()).unwrap());
    match std::env::var_os(BLOB) {
        Some(path) => {
            let program = std::fs::read(&path);
            let program =
                program.unwrap_or_else(|error| panic!("{BLOB}={}: {error}", path.display()));
            filter.write_all(&program).unwrap();
        }
        None => {
            let compat = postern_seccomp::program(Level::Compat, Arch::X86_64).unwrap().unwrap();
            filter.write_all(compat.as_bytes()).unwrap();
        }
    }
    filter.rewind().unwrap();
    #[expect(clippy::disallowed_methods, reason = "a test starts what it compares with")]
    let mut bwrap = std::process::Command::new("bwrap");
    // The peer's init makes itself undumpable and starts the program, and so does the probe.
    let lines = ARGUMENTS.lines().filter(|line| !line.starts_with('#'));
    let lines: Vec<&str> = lines.collect();
    let walls = lines.windows(3).position(|three| three[1] == "{init}").unwrap();
    for line in &lines[..walls] {
        match *line {
            "{workspace}" => bwrap.arg(&workspace),
            "{filter}" => bwrap.arg(filter.as_raw_fd().to_string()),
            "{nothing}" => bwrap.arg(""),
            other => bwrap.arg(other),
        };
    }
    bwrap.args(["--", "/workspace/probe", "via", "init", "batch"]);
    bwrap.env_clear().env("PATH", "/usr/bin:/bin");
    answers_of(bwrap, questions)
}

/// The comparison on this host: id, severity, ours, the peer's.
pub(crate) fn compare(stage: &Stage, rows: &[Row]) -> Value {
    let rows = headline(rows);
    let questions = questions(stage, &rows);
    // What a service has open when it launches, the same for both.
    let _open = rustix::io::dup(File::open("/etc/hostname").unwrap()).unwrap();
    let ours = crate::stage::answers_in(&stage.sandbox, &questions);
    let peers = peers(stage, &questions);
    let why = whys(&rows, &peers);
    let (ours, peers) = (cells(&rows, &ours), cells(&rows, &peers));
    let line = |(index, row): (usize, &Row)| {
        json!({
            "id": row.id,
            "severity": row.severity.letter(),
            "what": row.what,
            "ours": ours[index],
            "peer": peers[index],
            "why": why[index],
        })
    };
    rows.iter().enumerate().map(line).collect::<Vec<_>>().into()
}

/// The page, once both hosts have been compared.
pub(crate) fn page(root: &Value, unprivileged: &Value) -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut text = include_str!("comparison-head.txt").replace("{kernel}", kernel.trim());
    let cell = |row: &Value, name: &str| row[name].as_str().unwrap_or("").to_owned();
    let none = Vec::new();
    let pairs =
        root.as_array().unwrap_or(&none).iter().zip(unprivileged.as_array().unwrap_or(&none));
    let mut held = [0; 4];
    let mut rows = String::new();
    for (root, other) in pairs {
        let cells =
            [cell(root, "ours"), cell(other, "ours"), cell(root, "peer"), cell(other, "peer")];
        for (count, cell) in held.iter_mut().zip(&cells) {
            *count += usize::from(cell == "held");
        }
        let (id, severity, what) = (cell(root, "id"), cell(root, "severity"), cell(root, "what"));
        writeln!(rows, "| {id} | {severity} | {what} | {} |", cells.join(" | ")).unwrap();
    }
    let held = held.map(|count| count.to_string()).join(" | ");
    writeln!(text, "| | | rows held | {held} |").unwrap();
    text + &rows
}

/// Writes this host's part where it is asked for, and the page when the other host's part is there.
pub(crate) fn publish(comparison: &Value, host: &str) {
    let Some(directory) = std::env::var_os("POSTERN_ESCAPES_OUT") else { return };
    let file = |host: &str| Path::new(&directory).join(format!("comparison-{host}.json"));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(file(host), format!("{comparison:#}\n")).unwrap();
    let read = |host: &str| {
        let text = std::fs::read(file(host)).ok()?;
        serde_json::from_slice::<Value>(&text).ok()
    };
    if let (Some(root), Some(unprivileged)) = (read("root"), read("unprivileged")) {
        std::fs::write(Path::new(&directory).join("comparison.md"), page(&root, &unprivileged))
            .unwrap();
    }
}

/// The page as it is committed.
const PAGE: &str = include_str!("../../../docs/security/comparison.md");

/// Where the committed page is otherwise: its rows, our column of this host, and, where the peer's
/// own filter is at hand and the kernel is the page's, the peer's.
pub(crate) fn differences(comparison: &Value, host: &str) -> Vec<String> {
    let is_line = |line: &&str| line.split(" | ").count() == 7 && !line.starts_with("| |");
    let lines: Vec<&str> = PAGE.lines().filter(is_line).skip(1).collect();
    let found = comparison.as_array().map(Vec::as_slice).unwrap_or_default();
    let (ours, peer) = match host {
        "root" | "container-root" => (3, 5),
        _ => (4, 6),
    };
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let is_comparable = std::env::var_os(BLOB).is_some() && PAGE.contains(kernel.trim());
    let mut differences = Vec::new();
    if lines.len() != found.len() {
        differences.push(format!("{} rows on the page, {} asked", lines.len(), found.len()));
    }
    for (line, row) in lines.iter().zip(found) {
        let cells: Vec<&str> = line.trim_matches(['|', ' ']).split(" | ").collect();
        let cell = |name: &str| row[name].as_str().unwrap_or("");
        let same = cells[0] == cell("id")
            && cells[2] == cell("what")
            && cells[ours] == cell("ours")
            && (!is_comparable || cells[peer] == cell("peer"));
        if !same {
            differences.push(format!("{line} but found {row}"));
        }
    }
    differences
}
