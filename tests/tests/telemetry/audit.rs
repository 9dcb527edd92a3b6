//! One record a run, whatever becomes of it, which reads back; and none of what a guest writes.

use std::fs;
use std::time::Duration;

use postern::{AUDIT_LINE_BYTES_MAX, Audit, Ceiling, Command, Sandbox, SandboxProfile, Stdin};
use postern_tests::{Scratch, Watch};
use serde_json::{Value, json};

fn records(path: &std::path::Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.is_ascii() && text.ends_with('\n'), "{text:?}");
    assert!(text.lines().all(|line| line.len() < AUDIT_LINE_BYTES_MAX), "{text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn sh(script: &str) -> Command {
    Command::new("sh").args(["-c", script])
}

type Run = fn(&Sandbox);

/// What the host keeps to itself.
const SECRET: &str = "s3cret-of-the-host";

/// What is run, and the ending in its record.
fn rows() -> [(&'static str, Run, Value); 9] {
    [
        ("exit", |s| drop(s.run(sh("exit 3")).unwrap()), json!({"kind": "exited", "code": 3})),
        (
            "signal",
            |s| drop(s.run(sh("kill -9 $$")).unwrap()),
            json!({"kind": "signaled", "signal": 9}),
        ),
        (
            "no program",
            |s| drop(s.run(["/no"]).unwrap()),
            json!({"kind": "exec_failed", "errno": 2}),
        ),
        (
            "time",
            |s| drop(s.run(sh("sleep 9").timeout(Duration::from_millis(20))).unwrap()),
            json!({"kind": "killed", "signal": 9}),
        ),
        ("dropped", |s| drop(s.start(sh("sleep 9")).unwrap()), json!({"kind": "dropped"})),
        ("wall", |s| drop(s.run(sh("true").cwd("/no")).unwrap_err()), json!({"kind": "failed"})),
        (
            "busy",
            |s| {
                let held = s.start(sh("sleep 9").queue_timeout(Duration::ZERO)).unwrap();
                s.run(sh("true").queue_timeout(Duration::ZERO)).unwrap_err();
                held.kill();
                held.wait().unwrap();
            },
            json!({"kind": "failed"}),
        ),
        (
            "private",
            |s| {
                let command = sh("cat; echo $SECRET").stdin(Stdin::Bytes(SECRET.into()));
                assert!(s.run(command.env("SECRET", SECRET)).unwrap().ok());
            },
            json!({"kind": "exited", "code": 0}),
        ),
        (
            "hostile",
            |s| drop(s.run(["/bin/true", "\n{\"version\": 9}\u{1b}"]).unwrap()),
            json!({"kind": "exited", "code": 0}),
        ),
    ]
}

#[test]
fn every_run_has_a_record_of_its_end() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let path = scratch.path().join("audit");
    let audit = Audit::append_to(&path).unwrap();
    let ceiling = Ceiling::new(1);
    let builder = Sandbox::builder(SandboxProfile::default());
    let sandbox = builder.audit(audit.clone()).ceiling(ceiling).build().unwrap();
    // Nothing is run by it.
    sandbox.verify().unwrap();
    assert_eq!(audit.written(), 0);
    let mut count = 0;
    for (name, run, ending) in rows() {
        run(&sandbox);
        let records = records(&path);
        let new = &records[count..];
        count = records.len();
        // A busy sandbox has another run, which ends after it.
        assert_eq!(new.len(), if name == "busy" { 2 } else { 1 }, "{name}");
        let record = &new[0];
        assert_eq!(record["ending"], ending, "{name}: {record}");
        assert_eq!(record["version"], 1, "{name}");
        assert_eq!(record["sandbox"], sandbox.id().to_string(), "{name}");
        assert_eq!(record["host_pid"], std::process::id(), "{name}");
        let is_failed = ending["kind"] == "failed";
        assert_eq!(record["error"].is_string(), is_failed, "{name}: {record}");
        let has_result = !is_failed && ending["kind"] != "dropped";
        assert_eq!(record["usage"].is_object(), has_result, "{name}: {record}");
        assert_eq!(record["enforcement"]["seccomp"].is_string(), has_result, "{name}");
        assert!(!record.to_string().contains(SECRET), "{name}: {record}");
    }
    assert_eq!((audit.written(), audit.lost()), (count as u64, 0));
    let last = records(&path).pop().unwrap();
    assert_eq!(last["argv"], json!(["/bin/true", "\n{\"version\": 9}\u{1b}"]));
    let runs: std::collections::BTreeSet<_> =
        records(&path).iter().map(|record| record["run"].to_string()).collect();
    assert_eq!(runs.len(), count, "two records of one run");
}

/// From many threads, and cancelled futures: each record is whole.
#[test]
fn records_of_many_runs_do_not_mix() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let path = scratch.path().join("audit");
    let builder = Sandbox::builder(SandboxProfile::default());
    let sandbox = builder.audit(Audit::append_to(&path).unwrap()).build().unwrap();
    let long = "x".repeat(3000);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    assert!(sandbox.run(["/bin/true", &long]).unwrap().ok());
                }
            });
        }
    });
    let records = records(&path);
    assert_eq!(records.len(), 80);
    assert!(records.iter().all(|record| record["argv_cut"] == true));
}

/// A record that cannot be written costs no run.
#[test]
fn a_full_disk_fails_no_run() {
    let _watch = Watch::begin();
    let audit = Audit::append_to("/dev/full").unwrap();
    let builder = Sandbox::builder(SandboxProfile::default());
    let sandbox = builder.audit(audit.clone()).build().unwrap();
    for _ in 0..3 {
        assert!(sandbox.run(["/bin/true"]).unwrap().ok());
    }
    assert_eq!((audit.written(), audit.lost()), (0, 3));
}

/// Every key of a record, with the keys within.
fn keys(value: &Value, all: &mut std::collections::BTreeSet<String>) {
    for (key, inner) in value.as_object().into_iter().flatten() {
        all.insert(key.clone());
        keys(inner, all);
    }
}

/// Of ordinary runs: each is on the page.
#[test]
fn the_page_has_every_key() {
    let page = include_str!("../../../docs/telemetry.md");
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let path = scratch.path().join("audit");
    let builder = Sandbox::builder(SandboxProfile::default());
    let sandbox = builder.audit(Audit::append_to(&path).unwrap()).build().unwrap();
    sandbox.run(["true"]).unwrap();
    sandbox.run(sh("kill -9 $$")).unwrap();
    sandbox.run(["/nonexistent"]).unwrap();
    let mut all = std::collections::BTreeSet::new();
    records(&path).iter().for_each(|record| keys(record, &mut all));
    assert!(all.len() > 25, "{all:?}");
    let missing: Vec<_> = all.iter().filter(|key| !page.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "not on the page: {missing:?}");
}
