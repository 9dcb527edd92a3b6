//! `postern seccomp`: the answers in words and as JSON, policies, and words that are no call.

use postern::seccomp::Level;
use postern_tests::{Scratch, Watch};
use serde_json::{Value, json};

use crate::command::{run, text};

/// A command line after `postern seccomp`, its status, and parts of its output.
type Row = (&'static [&'static str], i32, &'static [&'static str]);

const ROWS: [Row; 13] = [
    (
        &["explain", "ptrace"],
        0,
        &["ptrace(), number 101 on x86_64, level default: EPERM", "always: takes over another"],
    ),
    (&["explain", "101"], 0, &["ptrace(), number 101"]),
    (&["explain", "read", "0"], 0, &["level default: allow", "no rule is about this"]),
    (
        &["explain", "socket", "AF_VSOCK", "SOCK_STREAM|SOCK_CLOEXEC", "0"],
        0,
        &["socket(0x28, 0x80001, 0x0)", "EAFNOSUPPORT, where arg0 != 0x1, arg0 != 0x2", "vsock"],
    ),
    (
        &["explain", "socket", "AF_VSOCK", "--level", "compat"],
        0,
        &["level compat: allow", "no rule is about this"],
    ),
    (
        &["explain", "openat", "-100", "0", "O_CREAT|O_WRONLY", "04755"],
        0,
        &["openat(0xffffffffffffff9c, 0x0, 0x41, 0x9ed)", "EPERM, where arg2 & 0x400040 != 0"],
    ),
    (&["explain", "openat", "-100", "0", "O_RDONLY", "04755"], 0, &["default: allow"]),
    (
        &["explain", "openat"],
        0,
        &["level default: depends", "EPERM, where arg2 & 0x400040", "otherwise allow"],
    ),
    (&["explain", "500"], 0, &["500(), number 500", "ENOSYS, a guard (unreviewed number): a ker"]),
    (&["explain", "ptrace", "--level", "off"], 0, &["level off: allow", "there is no filter"]),
    (&["list"], 0, &["default on x86_64: ", "KILL", "EPERM            ptrace(): takes over"]),
    (&["list", "--level", "off"], 0, &["off: no filter"]),
    (&["list", "--level", "strict"], 0, &["EAFNOSUPPORT     socket(arg0 == 0x10): a large"]),
];

#[test]
fn answers_have_their_rule_and_reason() {
    let _watch = Watch::begin();
    for (arguments, status, parts) in ROWS {
        let output = run(&[&["seccomp"], arguments].concat());
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output.stderr));
        let said = text(&output.stdout).to_lowercase();
        for part in parts {
            assert!(said.contains(&part.to_lowercase()), "{arguments:?}: {part:?} in {said}");
        }
    }
}

#[test]
fn what_is_no_question_is_refused_in_words() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let policy = |name: &str, text: &str| scratch.file(name, text.as_bytes(), 0o644);
    let broken = policy("broken.json", "{");
    let loose = policy(
        "loose.json",
        r#"{"a": {"mismatch_action": "trap", "match_action": "allow",
            "filter": [{"syscall": "execve"}, {"syscall": "mount"}]}}"#,
    );
    let (broken, loose) = (broken.to_str().unwrap(), loose.to_str().unwrap());
    let rows: [(&[&str], &str); 7] = [
        (
            &["explain", "openatt"],
            "no system call \"openatt\"; did you mean openat, openat2, open?",
        ),
        (&["explain", "zzz"], "no system call \"zzz\"; see `postern seccomp list`"),
        (&["explain", "socket", "AF_VSCK"], "\"AF_VSCK\" is no argument"),
        (&["explain", "ptrace", "--level", "tight"], "unknown seccomp level \"tight\""),
        (
            &["explain", "ptrace", "--policy", "/no/such/file"],
            "cannot read the policy /no/such/file",
        ),
        (&["explain", "ptrace", "--policy", broken], "[policy-syntax]"),
        (&["explain", "ptrace", "--policy", loose], "[policy-loosens]"),
    ];
    for (arguments, words) in rows {
        let output = run(&[&["seccomp"], arguments].concat());
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{arguments:?}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

fn object(arguments: &[&str]) -> Value {
    let output = run(&[&["seccomp"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn programs_read_the_same_as_json() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let policy = scratch.file(
        "policy.json",
        br#"{"own": {"mismatch_action": "allow", "match_action": {"errno": 13}, "filter": [
            {"syscall": "read", "comment": "nothing to read"}, {"syscall": "ptrace"}]}}"#,
        0o644,
    );
    let policy = policy.to_str().unwrap();
    let found = object(&["explain", "ptrace", "0", "--policy", policy, "--json"]);
    // Of two errors the kernel gives that of the filter that came later.
    assert_eq!((&found["answer"], &found["errno"]), (&json!("errno 13"), &json!(13)));
    assert_eq!(found["level_says"]["answer"], "EPERM");
    assert_eq!(found["policy_says"]["name"], "own.filter[1]");
    let found = object(&["explain", "read", "--policy", policy, "--json"]);
    assert_eq!(found["policy_says"]["reason"], "nothing to read");
    assert_eq!((&found["call"], &found["number"]), (&json!("read"), &json!(0)));
    let found = object(&["explain", "write", "--policy", policy, "--json"]);
    assert_eq!((&found["answer"], &found["errno"]), (&json!("allow"), &Value::Null));

    let found = object(&["list", "--json"]);
    let program = Level::Default.native_program().unwrap().unwrap();
    assert_eq!(found["sha256"], program.digest().to_string());
    assert_eq!(found["instructions"], program.len());
    assert_eq!(found["guards"].as_array().unwrap().len(), 3);
    assert!(found["rules"].as_array().unwrap().len() > 100);
}

/// The file on the command line is the profile's text.
#[test]
fn a_run_takes_a_policy_from_a_file() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let policy = scratch.file(
        "policy.json",
        br#"{"own": {"mismatch_action": "allow", "match_action": {"errno": 28}, "filter": [
            {"syscall": "mkdir"}, {"syscall": "mkdirat"}]}}"#,
        0o644,
    );
    let policy = policy.to_str().unwrap();
    let output = run(&["run", "--seccomp-policy", policy, "--", "mkdir", "made"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("No space left"), "{}", text(&output.stderr));
    let output = run(&["run", "--", "mkdir", "made"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}
