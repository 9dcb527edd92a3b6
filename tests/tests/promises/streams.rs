//! What goes in and comes out: bytes, arguments, environment, time and the end.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use postern::{Command, Ending, Stdin};
use postern_tests::{Watch, ask, command, run};
use serde_json::Value;

use crate::default_sandbox;

#[test]
fn a_hundred_megabytes_go_through_unchanged() {
    let _watch = Watch::begin();
    // No byte repeats at the distance of a page or a pipe.
    let bytes: Vec<u8> =
        (0..100_000_000u32).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    let cat = Command::new("cat").stdin(Stdin::Bytes(bytes.clone())).output_bytes_max(u64::MAX);
    let result = run(&default_sandbox(), cat);
    assert!(result.stdout == bytes, "{} bytes came back", result.stdout.len());
    assert!(!result.truncated);
}

#[test]
fn output_over_the_cap_is_dropped_and_flagged() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let rows = [
        ("below", "head -c 999 /dev/zero", 999, 0, false),
        ("exactly", "head -c 1000 /dev/zero", 1000, 0, false),
        ("above", "head -c 1001 /dev/zero", 1000, 0, true),
        ("far above", "head -c 5000000 /dev/zero", 1000, 0, true),
        ("stderr", "head -c 5000000 /dev/zero >&2", 0, 1000, true),
    ];
    for (name, script, stdout, stderr, truncated) in rows {
        let capped = Command::new("sh").args(["-c", script]).output_bytes_max(1000);
        let result = run(&sandbox, capped);
        let found = (result.stdout.len(), result.stderr.len(), result.truncated);
        assert_eq!(found, (stdout, stderr, truncated), "{name}");
    }
}

#[test]
fn a_run_over_its_time_is_killed_and_flagged() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let scripts =
        ["sleep 1000", "trap '' TERM INT HUP; while :; do sleep 1000; done", "sleep 1000 & wait"];
    for script in scripts {
        let timed = Command::new("sh").args(["-c", &format!("echo begun; {script}")]);
        let result = sandbox.run(timed.timeout(Duration::from_secs(2))).unwrap();
        let found = (result.timed_out, result.returncode(), result.ending, result.ok());
        assert_eq!(found, (true, 124, Ending::Killed(9), false), "{script}");
        assert_eq!(result.stdout_text(), "begun\n", "{script}");
    }
}

#[test]
fn every_exit_code_is_passed_on() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    for code in 0..=255 {
        let result = sandbox.run(["sh", "-c", &format!("exit {code}")]).unwrap();
        assert_eq!((result.ending, result.returncode()), (Ending::Exited(code), code));
    }
}

#[test]
fn every_fatal_signal_is_passed_on() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    for signal in [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 24, 31] {
        let result = sandbox.run(["sh", "-c", &format!("kill -{signal} $$")]).unwrap();
        let found = (result.ending, result.returncode());
        assert_eq!(found, (Ending::Signaled(signal), 128 + signal));
    }
}

#[test]
fn a_program_that_cannot_be_started_says_why() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let workspace = sandbox.workspace().unwrap();
    workspace.write("plain", "no program").unwrap();
    let rows = [
        ("no-such-program", libc::ENOENT, 127),
        ("/no/such/program", libc::ENOENT, 127),
        ("/etc/passwd/program", libc::ENOTDIR, 127),
        ("/etc/passwd", libc::EACCES, 126),
        ("/workspace", libc::EACCES, 126),
        ("/workspace/plain", libc::EACCES, 126),
    ];
    for (program, errno, code) in rows {
        let result = sandbox.run([program]).unwrap();
        let found = (result.ending, result.returncode());
        assert_eq!(found, (Ending::ExecFailed(errno), code), "{program}");
    }
}

/// The probe writes each byte as the character of its number.
fn bytes(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    text.chars().map(|character| u8::try_from(u32::from(character)).unwrap()).collect()
}

#[test]
fn arguments_arrive_as_they_are() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let all: Vec<u8> = (1..=255).collect();
    let long = vec![b'a'; 100 << 10];
    let rows: [(&str, Vec<Vec<u8>>); 5] = [
        ("none", vec![]),
        ("empty ones", vec![vec![], b"x".to_vec(), vec![], vec![]]),
        (
            "white space",
            vec![b"a b".to_vec(), b"\n".to_vec(), b" \t\r\n".to_vec(), b"'\"$".to_vec()],
        ),
        ("every byte", vec![all]),
        ("2 MB", vec![long; 20]),
    ];
    for (name, arguments) in rows {
        let given = arguments.iter().cloned().map(OsString::from_vec);
        let result = run(&sandbox, command(&["argv"]).args(given));
        let found: Vec<Value> = serde_json::from_slice(&result.stdout).unwrap();
        assert!(found.iter().map(bytes).eq(arguments), "{name}");
    }
}

#[test]
fn a_megabyte_of_environment_arrives_as_it_is() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let value: Vec<u8> = (0..100 << 10).map(|n: u32| u8::try_from(1 + n % 255).unwrap()).collect();
    let variables =
        (0..10).map(|number| (format!("BIG_{number}"), OsString::from_vec(value.clone())));
    let question =
        variables.fold(command(&["env"]), |command, (name, value)| command.env(name, value));
    let found: Vec<Value> = serde_json::from_slice(&run(&sandbox, question).stdout).unwrap();
    let found: Vec<_> =
        found.iter().map(bytes).filter(|entry| entry.starts_with(b"BIG_")).collect();
    assert_eq!(found.len(), 10);
    assert!(found.iter().all(|entry| entry.ends_with(&value)));
}

/// Beyond what the kernel takes: the run ends as one whose program cannot be started.
#[test]
fn too_many_arguments_are_an_ending_and_no_error() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let rows = [("one too long", 1, 200 << 10), ("too many", 40, 100 << 10)];
    for (name, count, length) in rows {
        let arguments = vec!["a".repeat(length); count];
        let result = sandbox.run(command(&["argv"]).args(arguments)).unwrap();
        assert_eq!(result.ending, Ending::ExecFailed(libc::E2BIG), "{name}");
    }
    assert_eq!(ask(&sandbox, &["argv", "after"]), Value::from(vec!["after"]));
}
