//! The first gate: two runs of one sandbox at the same time, each with a file of its own that the
//! other can neither see nor reach, and no trace of one run in the next one's PID 1.

use std::collections::BTreeSet;

use postern::host::Host;
use postern::plan::Tier;
use postern::profile::ProcKind;
use postern::{Command, Sandbox, SandboxProfile};
use postern_seccomp::Level;
use postern_tests::{
    Held, PROBE_PATH, Watch, ask, command, guest_of, hold, install, memory_holds, run, status,
};
use serde_json::{Value, json};

/// What run A alone knows; B must not be told, or it would find what it was told.
const CANARY: &str = "canary-of-run-a-4f1d";

/// Places where a guest can look for another run's files, without the bulk of `/usr`.
const SEARCHED: [&str; 7] = ["/run", "/proc", "/tmp", "/dev", "/etc", "/workspace", "/var"];

fn gate() -> Sandbox {
    gate_of(SandboxProfile::default())
}

fn gate_of(profile: SandboxProfile) -> Sandbox {
    let sandbox = Sandbox::builder(profile).run_directories(true).build();
    let sandbox = sandbox.unwrap_or_else(|error| panic!("{error}"));
    install(&sandbox);
    sandbox
}

/// The default profile, and each with one thing less in the way.
fn profiles() -> [(&'static str, SandboxProfile); 4] {
    let with = SandboxProfile::builder;
    [
        ("default", with()),
        ("no filter", with().seccomp(Level::Off)),
        ("writable processes in /proc", with().proc(ProcKind::Masked)),
        ("root inside", with().guest_uid(None).guest_gid(None)),
    ]
    .map(|(name, profile)| (name, profile.build().unwrap()))
}

/// Run A: a private file, an environment value and an argument, all with the canary.
fn run_a(sandbox: &Sandbox) -> Held {
    let contents = format!("{CANARY} in a file");
    let question = command(&["hold", "read", "/run/postern/secret-a", "/nowhere"]);
    let question = question.arg(format!("/{CANARY}/in/an/argument"));
    hold(
        sandbox,
        question.env("A", format!("{CANARY} in a value")).private_file("secret-a", contents),
    )
}

fn ask_b(sandbox: &Sandbox, question: &[&str]) -> Value {
    let result = run(sandbox, command(question).private_file("secret-b", "b's own"));
    serde_json::from_slice(&result.stdout).unwrap()
}

fn names(listing: &Value, directory: &str) -> BTreeSet<String> {
    let entries = listing[directory].as_array().unwrap_or_else(|| panic!("{listing}"));
    entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn each_run_reads_its_own_file_and_cannot_change_it() {
    let _watch = Watch::begin();
    let sandbox = gate();
    let a = run_a(&sandbox);
    let own = format!("{CANARY} in a file");
    assert_eq!(a.answer["/run/postern/secret-a"], json!(own));
    let read = ask_b(&sandbox, &["read", "/run/postern/secret-b"]);
    assert_eq!(read["/run/postern/secret-b"], json!("b's own"));
    // The file belongs to nobody who may write, and the mount is read-only besides.
    let rows =
        [("w", "/run/postern/secret-b", libc::EACCES), ("c", "/run/postern/new", libc::EROFS)];
    for (mode, file, errno) in rows {
        assert_eq!(ask_b(&sandbox, &["open", mode, file])[file]["errno"], json!(errno), "{file}");
    }
    let changed = Command::new("chmod").args(["666", "/run/postern/secret-b"]);
    let changed = sandbox.run(changed.private_file("secret-b", "b's own")).unwrap();
    assert!(changed.stderr_text().contains("Read-only file system"), "{changed:?}");
    assert!(a.release().ok());
}

#[test]
fn no_run_lists_anothers_files() {
    let _watch = Watch::begin();
    for (name, profile) in profiles() {
        let sandbox = gate_of(profile);
        let a = run_a(&sandbox);
        let listing = ask_b(&sandbox, &["list", "/run/postern", "/run", "/run/postern/.."]);
        let rows =
            [("/run/postern", "secret-b"), ("/run", "postern"), ("/run/postern/..", "postern")];
        for (directory, only) in rows {
            let found = names(&listing, directory);
            assert_eq!(found, BTreeSet::from([only.to_owned()]), "{name}: {directory}");
        }
        assert!(a.release().ok());
    }
}

/// Ways that could lead from run B to run A's file.
const TRICKS: [&str; 15] = [
    "/run/postern/secret-a",
    "/run/postern/../secret-a",
    "/run/postern/../postern/secret-a",
    "/run/postern/../run-0/secret-a",
    "/run/postern/run-0/secret-a",
    "/run/postern/../../run/postern/run-0/secret-a",
    "/run-0/secret-a",
    "/proc/self/root/run/postern/secret-a",
    "/proc/self/cwd/../run/postern/run-0/secret-a",
    "/proc/1/root/run/postern/secret-a",
    "/proc/1/root/run/postern/run-0/secret-a",
    "/proc/1/cwd/secret-a",
    "/proc/1/fd/3",
    "/proc/1/fd/4",
    "/proc/1/task/1/root/run/postern/secret-a",
];

/// Opened for reading, for writing, and as a bare path, from which a walk could go on.
#[test]
fn no_path_leads_to_another_runs_file() {
    let _watch = Watch::begin();
    for (name, profile) in profiles() {
        let sandbox = gate_of(profile);
        let a = run_a(&sandbox);
        for mode in ["r", "w", "p"] {
            let answer = ask_b(&sandbox, &[&["open", mode][..], &TRICKS].concat());
            for trick in TRICKS {
                let errno = answer[trick]["errno"].as_i64().unwrap_or(0);
                let refused = [libc::ENOENT, libc::EACCES, libc::EPERM].map(i64::from);
                assert!(refused.contains(&errno), "{name}: {mode} {trick}: {}", answer[trick]);
            }
        }
        assert!(a.release().ok());
    }
}

#[test]
fn a_search_of_everything_readable_finds_no_trace_of_another_run() {
    let _watch = Watch::begin();
    let sandbox = gate();
    let a = run_a(&sandbox);
    let question = [&["leaks", CANARY][..], &SEARCHED[..]].concat();
    let answer = ask_b(&sandbox, &question);
    assert_eq!(answer["found"], json!([]), "{answer}");
    assert!(answer["read"].as_i64() > Some(100), "it read too little: {answer}");
    // The same search finds what is there.
    let control = command(&question).private_file("secret-b", CANARY);
    let control: Value = serde_json::from_slice(&run(&sandbox, control).stdout).unwrap();
    assert_eq!(control["found"], json!(["/run/postern/secret-b"]));
    assert!(a.release().ok());
}

#[test]
fn no_mount_of_one_run_shows_anothers_directory() {
    let _watch = Watch::begin();
    let sandbox = gate();
    let a = run_a(&sandbox);
    let mounts = ask_b(&sandbox, &["mounts"]);
    let roots: Vec<_> = mounts.as_array().unwrap().iter().map(|mount| &mount["root"]).collect();
    assert!(!roots.contains(&&json!("/run-0")), "{roots:?}");
    let beneath = |mount: &&Value| mount["target"].as_str().unwrap().starts_with("/run/postern");
    let beneath: Vec<_> = mounts.as_array().unwrap().iter().filter(beneath).collect();
    let top = beneath.last().expect("a mount at /run/postern");
    assert_ne!(top["root"], json!("/"), "the exchange itself is on top: {beneath:?}");
    assert!(a.release().ok());
}

#[test]
fn the_kernel_uid_is_neither_root_nor_the_services_own() {
    let _watch = Watch::begin();
    let sandbox = gate();
    let a = run_a(&sandbox);
    let host = Host::probe(&SandboxProfile::default()).unwrap();
    let enforcement = sandbox.enforcement().unwrap();
    for pid in [a.init, a.guest] {
        let uids = status(pid)["Uid"].clone();
        let uid = enforcement.kernel_uid;
        assert_eq!(uids, format!("{uid} {uid} {uid} {uid}"), "{pid}");
        let own = (uid == 0, uid == host.uid, enforcement.shared_uid);
        let expected = match enforcement.tier {
            Tier::Privileged | Tier::MapWriter | Tier::Subordinate => (false, false, false),
            Tier::Unprivileged => (false, true, true),
        };
        assert_eq!(own, expected, "root, own, and whether that is reported");
    }
    assert!(a.release().ok());
}

/// Seen from the host through `/proc/PID/mem`: as root by right, without privileges because the
/// service owns the user namespace of both. A service whose guests have subordinate ids may not
/// open that file, of its own guests either; what it would see is made by the same code.
#[test]
fn no_trace_of_a_run_is_in_the_next_ones_pid_1() {
    let _watch = Watch::begin();
    let sandbox = gate();
    if sandbox.enforcement().unwrap().tier == Tier::Subordinate {
        let first = run_a(&sandbox);
        let refused = memory_holds(first.guest, CANARY.as_bytes()).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
        assert!(first.release().ok());
        return;
    }
    let first = run_a(&sandbox);
    assert!(memory_holds(first.guest, CANARY.as_bytes()).unwrap(), "the search finds nothing");
    let at_the_same_time = hold(&sandbox, command(&["hold", "identity"]));
    assert!(first.release().ok());
    let after = hold(&sandbox, command(&["hold", "identity"]));
    for other in [&at_the_same_time, &after] {
        for pid in [other.init, other.guest] {
            assert!(!memory_holds(pid, CANARY.as_bytes()).unwrap(), "{pid}");
        }
        // The program's name is in the request of every run.
        assert!(memory_holds(other.init, b"identity").unwrap(), "PID 1 was not seen");
    }
    assert!(at_the_same_time.release().ok() && after.release().ok());
}

#[test]
fn two_runs_share_no_tmp_and_no_shared_memory() {
    let _watch = Watch::begin();
    let sandbox = gate();
    let script = "echo secret > /tmp/a; echo secret > /dev/shm/a; exec $0 hold list /tmp /dev/shm";
    let a = hold(&sandbox, Command::new("sh").args(["-c", script, PROBE_PATH]));
    assert_eq!(names(&a.answer, "/tmp"), BTreeSet::from(["a".to_owned()]));
    let b = ask(&sandbox, &["list", "/tmp", "/dev/shm"]);
    assert_eq!(b, json!({ "/tmp": [], "/dev/shm": [] }));
    assert_ne!(guest_of(a.init), a.init);
    assert!(a.release().ok());
}
