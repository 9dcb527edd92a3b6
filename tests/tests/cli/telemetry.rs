//! `--audit` and `POSTERN_LOG`: what is recorded and told, and what is said where it cannot be.

use postern_tests::{Scratch, Watch};
use serde_json::{Value, json};

use crate::command::{run, start, text, words};

#[test]
fn each_run_adds_its_record() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let path = scratch.path().join("audit");
    let file = path.to_str().unwrap();
    let rows: [(&[&str], i32, Value); 3] = [
        (
            &["run", "--audit", file, "--", "sh", "-c", "exit 3"],
            3,
            json!({"kind": "exited", "code": 3}),
        ),
        (
            &["python", "--audit", file, "--json", "-c", "1"],
            0,
            json!({"kind": "exited", "code": 0}),
        ),
        (&["run", "--audit", file, "--", "/no"], 127, json!({"kind": "exec_failed", "errno": 2})),
    ];
    for (count, (arguments, code, ending)) in rows.into_iter().enumerate() {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", words(&output.stderr));
        let records = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = records.lines().collect();
        assert_eq!(lines.len(), count + 1, "{arguments:?}: {records}");
        let record: Value = serde_json::from_str(lines[count]).unwrap();
        assert_eq!(record["ending"], ending, "{arguments:?}: {record}");
    }
}

#[test]
fn a_record_that_cannot_be_written_is_told() {
    let _watch = Watch::begin();
    let output = run(&["run", "--audit", "/dev/full", "--", "sh", "-c", "exit 3"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        words(&output.stderr).contains("warning: the audit record"),
        "{}",
        text(&output.stderr)
    );
    let output = run(&["run", "--audit", "/nonexistent/audit", "--", "sh", "-c", "echo ran"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(125), ""));
    assert!(words(&output.stderr).contains("cannot append to /nonexistent/audit"));
}

#[test]
fn what_is_told_depends_on_the_level() {
    let _watch = Watch::begin();
    let rows = [
        ("", 0, "", "run.ended"),
        ("off", 0, "", "postern"),
        ("info", 0, "sandbox built", "launcher started"),
        ("debug", 0, "launcher started", "the launcher has it"),
        ("trace", 0, "the launcher has it", "\u{1b}"),
        ("loud", 125, "POSTERN_LOG is \"loud\"", "sandbox built"),
    ];
    for (level, code, told, not_told) in rows {
        let output = start(&["run", "--", "true"]).env("POSTERN_LOG", level).output().unwrap();
        let stderr = words(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{level:?}: {stderr}");
        assert!(stderr.contains(told), "{level:?}: no {told:?} in {stderr}");
        assert!(!stderr.contains(not_told), "{level:?}: {not_told:?} in {stderr}");
    }
}
