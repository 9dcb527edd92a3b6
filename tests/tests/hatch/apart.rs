//! Two runs of one sandbox at the same time, each with a hatch that the other has not: neither
//! reaches the other's, wherever it looks.

use std::collections::BTreeSet;

use postern::{Command, Process, Sandbox};
use serde_json::{Value, json};

use crate::fixture::{
    GREETER, HANG, NEWEST, begin, bind, fetched, figure, greeting, hatch, profile, python, run,
    within,
};
use crate::socket::profiles;

/// What the guest finds that searches while the other run is there.
fn found(sandbox: &Sandbox) -> Value {
    let (hatch, _) = greeting("b");
    let search = python(include_str!("guests/search.py")).hatch(hatch.build().unwrap());
    let result = run(sandbox, search);
    serde_json::from_slice(&result.stdout).unwrap()
}

#[test]
fn no_run_reaches_the_hatch_of_another() {
    let _watch = begin();
    for (name, profile) in profiles() {
        let profile = profile.venv(fetched(NEWEST)).required_ro_binds([bind()]).build().unwrap();
        let sandbox = Sandbox::builder(profile).build().unwrap_or_else(|error| panic!("{error}"));
        let (hatch, waiting) = greeting("a");
        let other = Command::new(GREETER).args(["sleep", "for", "ever"]).timeout(HANG);
        let other = sandbox.start(other.hatch(hatch.build().unwrap())).unwrap();
        within(HANG, "the other run calls", || waiting.of(other.id()) == 2);
        let found = found(&sandbox);
        // It found its own, which shows that it can find, and it is the only one that answers.
        let files = found["files"].as_object().unwrap();
        assert!(!files.is_empty(), "{name}: {found}");
        let others: Vec<_> = files.iter().filter(|(_, answer)| *answer != "b").collect();
        assert!(others.is_empty(), "{name}: {others:?}");
        assert_eq!(found["own"], "b", "{name}");
        assert_eq!(found["abstract"], json!([]), "{name}");
        let listed = json!(["hatch.sock", "hatch.sock@localhost", "main.py"]);
        assert_eq!(found["listed"], listed, "{name}");
        assert_eq!(waiting.of(other.id()), 2, "{name}: the other run goes on");
        figure(format!("{name}: found {}", found["files"]));
        drop(other);
    }
}

/// A hatch of the sandbox serves each run apart: the host knows which one asks.
#[test]
fn concurrent_runs_are_told_apart() {
    let _watch = begin();
    let (hatch, _) = hatch();
    let profile = profile().build().unwrap();
    let sandbox = Sandbox::builder(profile).hatch(hatch).build().unwrap();
    let command = || Command::new(GREETER).arg("connect").timeout(HANG);
    let runs: Vec<_> = (0..8).map(|_| sandbox.start(command()).unwrap()).collect();
    let ids: BTreeSet<_> = runs.iter().map(Process::id).collect();
    assert_eq!(ids.len(), runs.len());
    for run in runs {
        let expected = format!("hello, ada of {}\n", run.id());
        assert_eq!(run.wait().unwrap().stdout_text(), expected);
    }
}
