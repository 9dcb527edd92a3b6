//! Hosts that end while their runs live: the program `hostprog`, in a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command as Program, Stdio};
use std::time::Instant;

use postern::Command;

use super::{AT_ONCE, Act, Row, Told, row};
use crate::host::{Scratch, program};

pub(super) fn rows() -> Vec<Row> {
    let rows = [
        ("leaves", "leaves"),
        ("returns", "returns"),
        ("aborts", "aborts"),
        ("becomes another program", "becomes"),
        ("is killed", "lives"),
        ("is killed, and has forked", "forks"),
        ("is killed, and has children that nobody waits for", "ignores"),
        ("is killed in the middle of many runs", "works"),
    ];
    let host = |(name, how)| {
        let name = format!("loses its host, which {name}");
        row(name, |_| Command::new("/bin/true"), Act::Host(how), AT_ONCE, Told::Gone, "")
    };
    rows.map(host).into()
}

/// Has a host begin a run and end so; when that was.
pub(super) fn end(how: &str, mark: &str) -> Instant {
    let is_killed = ["lives", "forks", "ignores", "works"].contains(&how);
    with_host(how, mark, |host| {
        if is_killed {
            host.kill().unwrap();
        }
        Instant::now()
    })
}

/// Starts a host with a run that bears this mark, and acts once that has begun. Waits for the end
/// of the host itself, not for that of its children.
fn with_host<T>(how: &str, mark: &str, act: impl FnOnce(&mut Child) -> T) -> T {
    let scratch = Scratch::new(how);
    let mut host = Program::new(program())
        .args(["mortal", how])
        .env("POSTERN_MARK", mark)
        .env("POSTERN_RUNTIME_DIR", scratch.0.join("run"))
        .env("TMPDIR", scratch.0.join("tmp"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(host.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n", "the host {how}");
    let outcome = act(&mut host);
    host.wait().unwrap();
    outcome
}
