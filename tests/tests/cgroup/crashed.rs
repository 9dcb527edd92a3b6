//! Services that ended without tidying up, and what the next one finds of them.

#![expect(clippy::disallowed_methods, reason = "a test starts the command that it kills")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use postern::profile::Cgroup;

use crate::refused::postern;
use crate::stage::{Stage, below, soon};

fn limits() -> Cgroup {
    Cgroup { pids: Some(64), ..Cgroup::default() }
}

/// A group that nobody holds goes with all in it; one in use, and one that is not ours, stay.
pub(crate) fn leftovers(stage: &Stage) {
    let (left, other) = (stage.parent.join("postern.1.left"), stage.parent.join("posternish"));
    for group in [&left.join("run-0"), &other] {
        fs::create_dir_all(group).unwrap();
    }
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    fs::write(left.join("run-0/cgroup.procs"), child.id().to_string()).unwrap();
    let first = stage.sandbox(limits());
    assert!(!left.exists(), "{}", left.display());
    let status = child.wait().unwrap();
    assert!(!status.success(), "what was in it was killed: {status}");
    let own = first.enforcement().unwrap().cgroup.clone().unwrap();
    let second = stage.sandbox(limits());
    assert!(own.exists() && other.exists(), "{}", own.display());
    assert!(first.run(["true"]).unwrap().ok() && second.run(["true"]).unwrap().ok());
    fs::remove_dir(other).unwrap();
}

pub(crate) fn killed_service(stage: &Stage) {
    let before: Vec<PathBuf> = stage.groups();
    let mut service = Command::new(postern());
    service.args(["run", "--pids", "64", "--stdin", "null", "--", "sleep", "1000"]);
    let mut child = service.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let has_guest = |group: &PathBuf| {
        let members = fs::read_to_string(group.join("run-0/cgroup.procs")).unwrap_or_default();
        members.lines().count() > 1 && !before.contains(group)
    };
    let group = soon(|| stage.groups().into_iter().find(has_guest));
    child.kill().unwrap();
    child.wait().unwrap();
    // The launcher goes with its host, and every run with the launcher; the group alone stays.
    drop(stage.sandbox(limits()));
    soon(|| {
        drop(stage.sandbox(limits()));
        Some(()).filter(|()| !group.exists())
    });
}

/// A command that is alone in a delegated group leaves it for a leaf, where that is allowed.
pub(crate) fn moved_service(stage: &Stage) {
    let group = stage.parent.join("alone");
    fs::create_dir(&group).unwrap();
    let (members, command) = (group.join("cgroup.procs"), postern());
    let script = "echo $$ >\"$0\" && exec \"$@\"";
    for (way, status) in [("stay", 125), ("move", 7)] {
        let mut service = Command::new("sh");
        service.args(["-c", script]).arg(&members).arg(&command).args(["run", "--stdin", "null"]);
        service.args(["--set", "cgroup.need=require", "--pids", "64"]);
        service.arg("--set").arg(format!("cgroup.service={way}"));
        service.arg("--set").arg(format!("cgroup.parent={}", group.display()));
        let output = service.args(["--", "sh", "-c", "exit 7"]).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{way}: {words}");
        assert_eq!(words.contains("cgroup-unavailable"), way == "stay", "{words}");
    }
    let left = below(&group);
    assert_eq!(left, [group.join("postern-service")]);
    left.iter().chain([&group]).for_each(|group| fs::remove_dir(group).unwrap());
}
