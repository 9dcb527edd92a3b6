//! `postern check` on the hosts of `causes`, and its every word on this one: each finding against
//! what the kernel says of a run of the same profile, also where the profile knocks the wall out.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test's own helpers start programs, show what they print and fail the test"
)]

#[path = "check/findings.rs"]
mod findings;
#[path = "endings/host.rs"]
mod host;
#[path = "check/hosts.rs"]
mod hosts;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use postern::check::{Name, Status};
use postern::profile::{Workspace, WorkspaceAccess};
use postern_tests::{Scratch, Watch};
use serde_json::{Value, json};

use hosts::{Maker, ROWS, Row};

/// What is aimed at, and printed beside what was measured; a busy machine is given more.
const AIM: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(2);

fn is_root() -> bool {
    std::fs::metadata("/proc/self").map(|own| std::os::unix::fs::MetadataExt::uid(&own)).unwrap()
        == 0
}

fn finding(report: &Value, name: Name) -> &Value {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["name"] == name.as_str()).unwrap()
}

/// What of a report is not as its row says.
fn wrong(row: &Row, report: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    if report["ok"] != json!(row.status == 0) {
        wrong.push(format!("ok is {}", report["ok"]));
    }
    let cause = report["failure"]["cause"].as_str().unwrap_or_default();
    if cause != row.cause {
        wrong.push(format!("cause {cause:?}: {}", report["failure"]));
    }
    let fixes = report["failure"]["fixes"].as_array().cloned().unwrap_or_default();
    for (place, words) in row.fixes {
        let fits = |fix: &Value| {
            let texts = ["text", "file", "command"].map(|key| fix[key].as_str());
            fix["place"] == *place && texts.iter().flatten().any(|text| text.contains(words))
        };
        if !fixes.iter().any(fits) {
            wrong.push(format!("no fix for {place} with {words:?}: {fixes:#?}"));
        }
    }
    for (name, status, words) in row.findings {
        let found = finding(report, *name);
        let texts = ["detail", "why", "fix"].map(|key| found[key].as_str());
        let says = texts.iter().flatten().any(|text| text.contains(words));
        if found["status"] != status.name() || !says {
            wrong.push(format!("{name} is not {} with {words:?}: {found}", status.name()));
        }
    }
    wrong
}

/// The profile for AppArmor names the executable that asked.
fn names_itself(report: &Value) -> bool {
    let fixes = report["failure"]["fixes"].as_array().cloned().unwrap_or_default();
    let attachment = format!("\"{}\" flags=(unconfined)", report["executable"].as_str().unwrap());
    let profiles = fixes.iter().filter_map(|fix| fix["text"].as_str());
    profiles.filter(|text| text.contains("userns,")).all(|text| text.contains(&attachment))
}

#[test]
fn each_host_is_diagnosed() {
    let _watch = Watch::begin();
    let mut all = Vec::new();
    for row in &ROWS {
        if row.maker == Maker::Root && !is_root() {
            println!("{:?}: only root can make this host", row.host);
            continue;
        }
        let told = host::outcome("check", row.host, Duration::from_secs(60));
        let told = told.unwrap_or_else(|failure| panic!("{:?}: {failure}", row.host));
        let told: Value = serde_json::from_str(told.trim()).unwrap();
        let reports = ["library", "cli"].map(|who| (who, told.get(who)));
        for (who, report) in reports.iter().filter_map(|(who, report)| Some((who, (*report)?))) {
            let took = Duration::from_micros(told[format!("{who}_us")].as_u64().unwrap());
            let verdict = if took < AIM { "within" } else { "OVER" };
            println!("{:?} by {who}: {took:?}, {verdict} {AIM:?}", row.host);
            let mut wrong = wrong(row, report);
            if took > MOST {
                wrong.push(format!("{took:?} is over {MOST:?}"));
            }
            if !names_itself(report) {
                wrong.push("the AppArmor profile is for another executable".to_owned());
            }
            all.extend(wrong.iter().map(|wrong| format!("{:?} by {who}: {wrong}", row.host)));
        }
        if told.get("cli").is_some() {
            let ended = (told["status"].as_u64(), told["stderr"].as_str());
            if ended != (Some(row.status), Some("")) {
                all.push(format!("{:?}: {ended:?}", row.host));
            }
        }
    }
    assert!(all.is_empty(), "{all:#?}");
}

/// The command: beside the copies that the runner made, or where cargo puts it.
fn postern(arguments: &[&str]) -> Output {
    let copies = std::env::var_os("POSTERN_TEST_BIN_DIR").map(PathBuf::from);
    let built = || std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned();
    let mut command = Command::new(copies.unwrap_or_else(built).join("postern"));
    command.args(arguments).output().unwrap()
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn the_json_has_the_keys_of_the_page() {
    let _watch = Watch::begin();
    let output = postern(&["check", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    assert_eq!(report["ok"], json!(true));
    assert_eq!(report["failure"], Value::Null);
    let top = [
        "architecture",
        "attestation",
        "elapsed_us",
        "executable",
        "failure",
        "findings",
        "kernel",
        "ok",
        "quotas",
        "version",
    ];
    assert_eq!(keys(&report), BTreeSet::from(top));
    let quota = BTreeSet::from(["gap", "limit", "name", "scope"]);
    assert!(report["quotas"].as_array().unwrap().iter().all(|found| keys(found) == quota));
    let attested = "capabilities descriptors dumpable gid_map gids groups keyring_closed landlock \
                    mounts namespaces no_new_privs oom_score_adj rlimits seccomp_filters \
                    seccomp_mode securebits uid_map uids";
    let attested: BTreeSet<_> = attested.split_ascii_whitespace().collect();
    assert_eq!(keys(&report["attestation"]), attested);
    let page = include_str!("../../docs/errors.md");
    let unnamed: Vec<_> =
        attested.iter().filter(|key| !page.contains(&format!("`{key}`"))).collect();
    assert!(unnamed.is_empty(), "{unnamed:?}");
    let findings = report["findings"].as_array().unwrap();
    for finding in findings {
        let expected = BTreeSet::from(["detail", "fix", "name", "status", "why"]);
        assert_eq!(keys(finding), expected, "{finding}");
    }
    let names: Vec<_> = findings.iter().map(|finding| finding["name"].as_str().unwrap()).collect();
    let all: Vec<_> = Name::ALL.iter().map(|name| name.as_str()).collect();
    assert_eq!(names, all);
}

#[test]
fn a_failure_has_the_keys_of_the_page() {
    let _watch = Watch::begin();
    let told = host::outcome("check", &["no-user-namespaces"], Duration::from_secs(60)).unwrap();
    let told: Value = serde_json::from_str(told.trim()).unwrap();
    let failure = &told["cli"]["failure"];
    let expected = ["call", "cause", "errno", "error", "fix", "fixes", "object", "step", "why"];
    assert_eq!(keys(failure), BTreeSet::from(expected));
    assert_eq!((&failure["call"], &failure["errno"]), (&json!("clone"), &json!(28)));
    let expected = ["command", "file", "place", "text", "what"];
    assert_eq!(keys(&failure["fixes"][0]), BTreeSet::from(expected));
}

#[test]
fn text_is_plain_where_nobody_looks_and_125_is_our_own_failure() {
    let _watch = Watch::begin();
    let output = postern(&["check"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
    let missing = Name::ALL.iter().filter(|name| !text.contains(&format!("  {name} ")));
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&Name>::new(), "{text}");
    let output = postern(&["check", "--profile", "/nonexistent/profile.toml"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(output.stdout.is_empty() && !output.stderr.is_empty());
}

#[test]
fn a_shared_workspace_is_not_opened_by_a_check() {
    use std::os::unix::fs::PermissionsExt;
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let directory = scratch.directory("job", 0o700);
    let access = WorkspaceAccess::Shared;
    let workspace = Workspace::Directory { path: directory.clone(), access };
    let profile = postern::SandboxProfile::builder().workspace(workspace).build().unwrap();
    let report = postern::check::run(&profile);
    let mode = std::fs::metadata(&directory).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o700);
    let found = report.findings.iter().find(|found| found.name == Name::Workspace).unwrap();
    assert_eq!(found.status, Status::Weaker, "{found:?}");
    assert!(found.detail.contains("1777"), "{found:?}");
    assert!(report.ok, "{report:#?}");
}

#[test]
fn every_cause_finding_and_key_is_on_the_page() {
    let page = include_str!("../../docs/errors.md");
    let is_there = |name: &str| page.contains(&format!("`{name}`"));
    let causes = postern::error::causes().map(|cause| cause.name);
    let names = Name::ALL.iter().map(|name| name.as_str());
    let statuses = ["enforced", "weaker", "failed", "not-used", "unknown"];
    let places = ["host", "systemd", "docker", "kubernetes", "profile", "service"];
    let others = ["unconfined", "no-free-id", "deadline", "launcher-lost", "missing-capabilities"];
    let keys = [
        "ok",
        "version",
        "kernel",
        "architecture",
        "executable",
        "elapsed_us",
        "failure",
        "findings",
        "name",
        "status",
        "detail",
        "why",
        "fix",
        "error",
        "step",
        "call",
        "object",
        "errno",
        "cause",
        "fixes",
        "place",
        "what",
        "file",
        "text",
        "command",
    ];
    let all = causes.chain(names).chain(statuses).chain(places).chain(others).chain(keys);
    let missing: Vec<_> = all.filter(|name| !is_there(name)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}
