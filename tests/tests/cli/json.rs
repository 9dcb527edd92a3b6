//! `--json`: one object, whatever happens, with the keys that the help names.

use postern_tests::Watch;
use serde_json::{Value, json};

use crate::command::{run, start, text, words};

/// The object, and that nothing else is there.
fn object(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = run(arguments);
    assert_eq!(text(&output.stderr), "", "{arguments:?}");
    let stdout = text(&output.stdout);
    assert_eq!(stdout.lines().count(), 1, "{arguments:?}: {stdout}");
    (output.status.code(), serde_json::from_str(&stdout).unwrap())
}

#[test]
fn every_ending_has_its_facts() {
    let _watch = Watch::begin();
    let plain = json!({
        "returncode": 0, "signal": null, "ok": true, "timed_out": false, "terminated": false,
        "truncated": false, "stdout_truncated": false, "stderr_truncated": false,
        "overflowed": false, "stdout": "", "stderr": "", "oom": null, "pids_limit": null,
        "ending": {"kind": "exited", "code": 0},
    });
    let rows: [(&[&str], Value); 10] = [
        (&["--", "true"], json!({})),
        (
            &["--", "sh", "-c", "echo out; echo err >&2"],
            json!({"stdout": "out\n", "stderr": "err\n"}),
        ),
        (
            &["--", "sh", "-c", "exit 7"],
            json!({"returncode": 7, "ok": false, "ending": {"kind": "exited", "code": 7}}),
        ),
        (
            &["--", "sh", "-c", "kill -SEGV $$"],
            json!({"returncode": 139, "ok": false, "signal": 11, "ending": {"kind": "signaled", "signal": 11}}),
        ),
        (
            &["--timeout", "0.2", "--", "sleep", "60"],
            json!({"returncode": 124, "ok": false, "timed_out": true, "signal": 9, "ending": {"kind": "killed", "signal": 9}}),
        ),
        (
            &["--", "no-such-program"],
            json!({"returncode": 127, "ok": false, "ending": {"kind": "exec_failed", "errno": 2}}),
        ),
        (
            &["--", "/etc/passwd"],
            json!({"returncode": 126, "ok": false, "ending": {"kind": "exec_failed", "errno": 13}}),
        ),
        (
            &["--max-output", "3", "--", "echo", "12345"],
            json!({"stdout": "123", "truncated": true, "stdout_truncated": true}),
        ),
        (
            &["--max-output", "3", "--at-max-output", "kill", "--", "sh", "-c", "yes >&2"],
            json!({"stderr": "y\ny", "returncode": 137, "ok": false, "truncated": true, "signal": 9,
                "stderr_truncated": true, "overflowed": true, "ending": {"kind": "killed", "signal": 9}}),
        ),
        (&["--merge", "--", "sh", "-c", "echo a; echo b >&2"], json!({"stdout": "a\nb\n"})),
    ];
    for (arguments, different) in rows {
        let mut expected = plain.clone();
        expected.as_object_mut().unwrap().extend(different.as_object().unwrap().clone());
        let (code, found) = object(&[&["run", "--json"], arguments].concat());
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&found[key], value, "{arguments:?} {key}");
        }
        assert_eq!(Some(found["returncode"].as_i64().unwrap()), code.map(i64::from));
    }
}

#[test]
fn the_help_names_every_key() {
    let _watch = Watch::begin();
    let (_, found) =
        object(&["run", "--json", "--", "sh", "-c", "printf '\\377'; printf '\\376' >&2"]);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let expected = "duration_ms ending enforcement ok oom overflowed pids_limit returncode signal stderr stderr_base64 \
                    stderr_truncated stdout stdout_base64 stdout_truncated terminated timed_out \
                    truncated usage";
    assert_eq!(keys(&found).join(" "), expected);
    assert_eq!(keys(&found["usage"]).join(" "), "cgroup peak_memory_kib system_ms user_ms");
    let walls = "cgroup fallbacks kernel_gid kernel_uid landlock landlock_abi launcher namespaces \
                 quota_gaps seccomp seccomp_digest seccomp_policy_digest shared_groups shared_uid \
                 tier warnings";
    assert_eq!(keys(&found["enforcement"]).join(" "), walls);
    let help = text(&run(&["run", "--help"]).stdout);
    let all =
        [keys(&found), keys(&found["usage"]), keys(&found["enforcement"]), keys(&found["ending"])];
    for key in all.concat() {
        assert!(help.contains(&key), "{key}: {help}");
    }
    assert!(found["duration_ms"].as_f64().unwrap() > 0.1, "{found}");
    assert!(found["usage"]["peak_memory_kib"].as_u64().unwrap() > 100, "{found}");
    assert_eq!(found["enforcement"]["seccomp"], "default");
    assert_eq!(found["enforcement"]["namespaces"].as_array().unwrap().len(), 7);
}

#[test]
fn bytes_that_are_no_text_are_whole_in_base64() {
    let _watch = Watch::begin();
    let (_, found) = object(&["run", "--json", "--", "printf", "a\\377\\000b"]);
    assert_eq!(found["stdout"], "a\u{fffd}\0b");
    assert_eq!(found["stdout_base64"], "Yf8AYg==");
    assert_eq!(found.get("stderr_base64"), None);
}

#[test]
fn our_own_failures_are_objects_too() {
    let _watch = Watch::begin();
    type Row<'a> = (&'a [&'a str], &'a [(&'a str, Value)]);
    let rows: [Row<'_>; 8] = [
        (
            &["run", "--json", "--hostname", "", "--", "true"],
            &[
                ("kind", json!("refused")),
                ("field", json!("hostname")),
                ("rule", json!("hostname-length")),
            ],
        ),
        (
            &["run", "--json", "--ro-bind", "/no/such/source", "--", "true"],
            &[("kind", json!("refused")), ("rule", json!("source-missing"))],
        ),
        (&["run", "--json"], &[("kind", json!("command"))]),
        (
            &["run", "--json", "--bogus"],
            &[("kind", json!("usage")), ("message", json!("unexpected argument '--bogus' found"))],
        ),
        (
            &["run", "--json", "--set", "limits.nproc=x", "--", "true"],
            &[("kind", json!("profile"))],
        ),
        (
            &["run", "--json", "--profile", "/no/such.toml", "--", "true"],
            &[("kind", json!("profile"))],
        ),
        (
            &["python", "--json", "/no/such.py"],
            &[("kind", json!("file")), ("errno", json!(2)), ("object", json!("/no/such.py"))],
        ),
        (&["python", "--json", "/"], &[("kind", json!("source"))]),
    ];
    for (arguments, expected) in rows {
        let (code, found) = object(arguments);
        assert_eq!(code, Some(125), "{arguments:?}");
        let error = &found["error"];
        for (key, value) in expected {
            assert_eq!(&error[key], value, "{arguments:?}: {error}");
        }
        assert!(!error["message"].as_str().unwrap().is_empty(), "{error}");
    }
}

/// A launch that fails, by the plainest of its causes.
#[test]
fn a_failed_launch_names_step_cause_and_fix() {
    let _watch = Watch::begin();
    let arguments = ["run", "--json", "--cwd", "/workspace/not/there", "--", "true"];
    let (code, found) = object(&arguments);
    assert_eq!(code, Some(125));
    let error = &found["error"];
    assert!(error["message"].as_str().unwrap().contains("/workspace/not/there"), "{error}");
}

#[test]
fn a_signal_that_ended_it_is_told() {
    let _watch = Watch::begin();
    let child = start(&["run", "--json", "--", "sleep", "60"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    crate::command::signal(&child, rustix::process::Signal::TERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{}", words(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ending = json!({"kind": "signaled", "signal": 15});
    assert_eq!((&found["terminated"], &found["ending"]), (&json!(true), &ending), "{found}");
}
