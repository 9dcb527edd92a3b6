//! A first use that cannot be carried out says which step failed, why and what to do, and leaves
//! nothing half done. What it makes when it can is another module's.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use postern_tests::{Scratch, Watch};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process_group};

use super::{cut_off, demo, json, program, programs, text};

/// An interpreter that answers what it is, and can do no more.
fn interpreter(scratch: &Scratch, name: &str, facts: &str) -> OsString {
    let script = format!("#!/bin/sh\necho '{facts}'\necho /usr/bin/python3\n");
    scratch.file(name, script.as_bytes(), 0o755).into()
}

fn names(cache: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(cache).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn each_failure_names_the_step_the_reason_and_the_fix() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    scratch.file("file", b"", 0o644);
    let bare = interpreter(&scratch, "bare", "cpython 3 11 False");
    let old = interpreter(&scratch, "old", "cpython 3 9 True");
    let mute = interpreter(&scratch, "mute", "hello");
    let real = || OsString::from("python3");
    let rows = [
        (
            "no interpreter",
            "new",
            "/no/such/python".into(),
            "python",
            "cannot ask /no/such/python what",
        ),
        ("no answer", "new", mute, "python", "what it is: it answered nothing"),
        (
            "too old",
            "new",
            old,
            "python",
            "is cpython 3.9, and the guest's packages are pinned for",
        ),
        ("no python3-venv", "new", bare, "python", "(Python 3.11) cannot make environments"),
        ("no directory", "file/new", real(), "file", "cannot make"),
        (
            "no index",
            "new",
            real(),
            "step",
            "cannot install the guest's packages: the command ended",
        ),
    ];
    for (name, cache, python, kind, words) in rows {
        let cache = scratch.path().join(cache);
        let mut command = demo(&cache);
        let output =
            cut_off(&mut command).arg("--json").arg("--python").arg(python).output().unwrap();
        let error = &json(&output)["error"];
        assert_eq!(output.status.code(), Some(125), "{name}: {error:#}");
        assert_eq!(error["kind"], kind, "{name}: {error:#}");
        assert!(error["message"].as_str().unwrap().contains(words), "{name}: {error:#}");
        assert!(!error["fix"].as_str().unwrap().is_empty(), "{name}");
        let left = names(&cache);
        assert!(left.iter().all(|name| name == "lock"), "{name}: {left:?}");
    }
}

#[test]
fn people_are_told_the_last_lines_of_pip_and_what_to_install() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let bare = interpreter(&scratch, "bare", "cpython 3 11 False");
    let rows: [(OsString, &[&str]); 2] = [
        (
            "python3".into(),
            &[
                "postern demo: 1/21 packages\n",
                "postern demo: | ERROR: No matching distribution found for pandas",
                "postern demo: fix: pip must reach a package index",
            ],
        ),
        (bare, &["has no module ensurepip\n", "apt-get install python3-venv, or python3.11-venv"]),
    ];
    for (python, expected) in rows {
        let mut command = demo(&scratch.path().join("cache"));
        let output = cut_off(&mut command).arg("--python").arg(&python).output().unwrap();
        let stderr = text(&output.stderr);
        for words in expected {
            assert!(stderr.contains(words), "{}: {words}: {stderr}", python.display());
        }
        assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    }
}

/// As by Ctrl-C, which goes to pip too.
#[test]
fn an_interrupted_first_use_leaves_nothing_that_is_used() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let cache = scratch.path().join("cache");
    let mut command = demo(&cache);
    cut_off(&mut command).process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    let unfinished = || names(&cache).into_iter().find(|name| name.starts_with("unfinished-"));
    while unfinished().is_none_or(|name| !cache.join(name).join("venv").exists()) {
        assert!(Instant::now() < end, "nothing was begun: {:?}", names(&cache));
        sleep(Duration::from_millis(2));
    }
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(!child.wait().unwrap().success());
    let is_used = |name: &String| name.starts_with("python");
    assert!(!names(&cache).iter().any(is_used), "{:?}", names(&cache));

    // The next one, though it fails, takes away what is left.
    let mut next = demo(&cache);
    let output = cut_off(&mut next).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(names(&cache), ["lock"]);
}

/// Two at once: the second waits until the first is done, and says so.
#[test]
fn a_first_use_waits_for_another_one() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let cache = scratch.directory("cache", 0o755);
    let lock = File::create(cache.join("lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let mut command = demo(&cache);
    let mut child = cut_off(&mut command).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let waiting = "postern demo: 0/21 waiting for another first use to end";
    assert!(lines.any(|line| line == waiting));
    assert_eq!(names(&cache), ["lock"]);
    drop(lock);
    let next = "postern demo: 0/21 the guest's Python environment";
    assert_eq!(lines.next().unwrap(), next);
    assert!(lines.any(|line| line.starts_with("postern demo: cannot install")));
    assert_eq!(child.wait().unwrap().code(), Some(125));
}

/// The command alone, as somebody has it who installed nothing else.
#[test]
fn a_missing_program_is_named_with_the_command_that_installs_it() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let alone = scratch.path().join("postern");
    std::fs::copy(programs().join("postern"), &alone).unwrap();
    for (arguments, is_json) in [(&["demo", "--json"][..], true), (&["demo"], false)] {
        let output = program(&alone).args(arguments).env("PATH", "/nowhere").output().unwrap();
        assert_eq!(output.status.code(), Some(125));
        let said = text(if is_json { &output.stdout } else { &output.stderr });
        let place = scratch.path().display();
        for words in [format!("no postern-demo in {place}, nor in PATH"), "--path demo".to_owned()]
        {
            assert!(said.contains(&words), "{words}: {said}");
        }
    }
}
