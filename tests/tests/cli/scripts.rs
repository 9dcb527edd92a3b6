//! Python and shell source as people have it: on the command line, in files of every kind, on stdin.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use postern_tests::{Scratch, Watch};

use crate::command::{Terminal, postern, run, shell, start, text, words};

const ARGV: &str = "import sys; print(sys.argv[1:])";

#[test]
fn what_follows_the_code_is_the_scripts() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let python = scratch.file("job.py", ARGV.as_bytes(), 0o644);
    let bash = scratch.file("job.sh", b"printf '[%s]' \"$@\"", 0o644);
    let (python, bash) = (python.to_str().unwrap(), bash.to_str().unwrap());
    let printf = "printf '[%s]' \"$@\"";
    let rows: [(&[&str], &str); 9] = [
        (&["python", "-c", ARGV, "--timeout", "3"], "['--timeout', '3']\n"),
        (&["python", "--timeout", "60", "-c", ARGV, "-c", "--", "x"], "['-c', '--', 'x']\n"),
        (&["python", python, "--timeout", "3"], "['--timeout', '3']\n"),
        (&["python", python, "-c", "--", "a b", "", "l\nm"], "['-c', '--', 'a b', '', 'l\\nm']\n"),
        (&["python", "--", python, "--help"], "['--help']\n"),
        (&["python", "-c", ARGV], "[]\n"),
        (&["bash", "-c", printf, "--json", "a b"], "[--json][a b]"),
        (&["bash", bash, "--json", "--", "$x"], "[--json][--][$x]"),
        (&["bash", "--shell", "sh", bash, "--version"], "[--version]"),
    ];
    for (arguments, expected) in rows {
        let output = run(arguments);
        let stderr = words(&output.stderr);
        assert_eq!(text(&output.stdout), expected, "{arguments:?}: {stderr}");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
    }
}

/// Source as it is, in the ways that the interpreters themselves take it.
#[test]
fn files_of_every_kind_run_under_their_name() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let rows: [(&str, &[u8], &str, &str); 8] = [
        ("python", b"#!/usr/bin/env python3\nprint(1)\n", "job.py", "1\n"),
        ("python", b"print(1)\r\nif True:\r\n    print(2)\r\n", "crlf.py", "1\n2\n"),
        ("python", b"\xef\xbb\xbfprint('\xc3\xa9')\n", "bom.py", "\u{e9}\n"),
        ("python", b"# -*- coding: latin-1 -*-\nprint('\xe9')\n", "latin.py", "\u{e9}\n"),
        ("python", b"print(__file__)", "two words.py", "/run/postern/two words.py\n"),
        ("python", b"import sys; print(sys.argv[0])", "l\nm.py", "/run/postern/l\nm.py\n"),
        ("bash", b"#!/bin/sh -e\necho $0\n", "job", "/run/postern/job\n"),
        ("bash", b"echo \"$0\"", "two words.sh", "/run/postern/two words.sh\n"),
    ];
    for (verb, source, name, expected) in rows {
        let path = scratch.file(name, source, 0o600);
        let output = run(&[verb, path.to_str().unwrap()]);
        assert_eq!(text(&output.stdout), expected, "{name}: {}", words(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{name}");
    }
}

#[test]
fn a_name_that_is_no_text_is_kept() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let directory = scratch.directory("names", 0o755);
    let path = directory.join(OsStr::from_bytes(b"\xff.py"));
    std::fs::write(&path, "import os, sys; print(os.fsencode(sys.argv[0]), sys.argv[1:])").unwrap();
    let argument = OsStr::from_bytes(b"\xfe");
    let output = run(&["python".as_ref(), path.as_os_str(), argument]);
    let expected = "b'/run/postern/\\xff.py' ['\\udcfe']\n";
    assert_eq!(text(&output.stdout), expected, "{}", words(&output.stderr));
}

#[test]
fn a_traceback_names_the_file_and_shows_the_line() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let path = scratch.file("broken.py", b"x = 1\nraise ValueError(x)\n", 0o644);
    let output = run(&["python", path.to_str().unwrap()]);
    let stderr = words(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    for part in ["File \"/run/postern/broken.py\", line 2", "raise ValueError(x)", "ValueError: 1"]
    {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
}

#[test]
fn code_from_stdin_leaves_nothing_there_for_the_guest() {
    let _watch = Watch::begin();
    let rows = [
        (
            &["python", "-", "x"][..],
            "import sys; print(sys.argv[1:], sys.stdin.read())",
            "['x'] \n",
        ),
        (&["bash", "-", "x"][..], "echo \"$1\"; cat", "x\n"),
    ];
    for (arguments, code, expected) in rows {
        let mut child = start(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(code.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(text(&output.stdout), expected, "{}", words(&output.stderr));
    }
}

/// A terminal can be read again after its end; the guest is not to wait for that.
#[test]
fn code_from_a_terminal_ends_the_guests_input() {
    let _watch = Watch::begin();
    let postern = postern();
    let mut terminal = Terminal::start(&[postern.as_ref(), "python".as_ref(), "-".as_ref()]);
    terminal.type_in("import sys; print(len(sys.stdin.read()) + 41 + 1)\n\x04");
    let (code, seen) = terminal.finish();
    assert!(code == Some(0) && seen.ends_with("42\r\n"), "{code:?} {seen}");
}

#[test]
fn a_pipe_is_a_file_too() {
    let _watch = Watch::begin();
    let output = shell("echo 7 | $P python <(echo 'print(input())')").output().unwrap();
    assert_eq!(text(&output.stdout), "7\n", "{}", words(&output.stderr));
}

#[test]
fn what_is_no_source_is_refused_with_a_way_out() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let directory = scratch.directory("package", 0o755);
    let zip = scratch.file("app.pyz", b"PK\x03\x04\0\0", 0o644);
    let (directory, zip) = (directory.to_str().unwrap(), zip.to_str().unwrap());
    let rows: [(&[&str], &[&str]); 7] = [
        (&["python"], &["postern: nothing to run: give -c CODE, a FILE, or - for stdin\n"]),
        (&["bash"], &["postern: nothing to run"]),
        (
            &["python", directory],
            &["package: is a directory", "postern: fix: show it to the guest"],
        ),
        (&["python", zip], &["line 1 holds a NUL byte", "postern: fix: a zip application"]),
        (&["python", "/no/such/job.py"], &["postern: cannot read /no/such/job.py: No such file"]),
        (&["python", "/dev/zero"], &["/dev/zero: has more than 268435456 bytes", "postern: fix: "]),
        (&["bash", "--shell", "no-such-shell", "-c", "x"], &["cannot exec \"no-such-shell\""]),
    ];
    for (arguments, parts) in rows {
        let output = run(arguments);
        let stderr = words(&output.stderr);
        let expected = if stderr.contains("cannot exec") { 127 } else { 125 };
        assert_eq!(output.status.code(), Some(expected), "{arguments:?}: {stderr}");
        for part in parts {
            assert!(stderr.contains(part), "{part}: {stderr}");
        }
        assert!(stderr.lines().all(|line| line.starts_with("postern: ")), "{stderr}");
    }
}

#[test]
fn a_guest_without_a_python_that_will_do_is_told_before_the_run() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let root = scratch.directory("root", 0o755);
    std::fs::create_dir_all(root.join("usr/bin")).unwrap();
    let rows = [
        (None, 127, "python: the guest has no python3 in "),
        (Some("python2.7"), 125, "/python3 is Python 2.7; 3.8 is the oldest"),
    ];
    for (program, code, part) in rows {
        if let Some(program) = program {
            std::fs::copy("/bin/true", root.join("usr/bin").join(program)).unwrap();
            std::os::unix::fs::symlink(program, root.join("usr/bin/python3")).unwrap();
        }
        let output = run(&["python", "--rootfs", root.to_str().unwrap(), "-c", "pass"]);
        let stderr = words(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(part), "{stderr}");
    }
}
