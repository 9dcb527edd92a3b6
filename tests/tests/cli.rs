//! The `postern` command as a person meets it: exit statuses, streams, refusals, the plan.

#![expect(clippy::unwrap_used, reason = "a test's own helpers fail the test")]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use postern_tests::{Scratch, Watch};

/// The command: beside the copies that the runner made, or where cargo puts it.
fn postern() -> PathBuf {
    let copies = std::env::var_os("POSTERN_TEST_BIN_DIR").map(PathBuf::from);
    let built = || std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned();
    let path = copies.unwrap_or_else(built).join("postern");
    assert!(path.exists(), "{} is not built: cargo build -p postern-cli", path.display());
    path
}

#[expect(clippy::disallowed_methods, reason = "a test starts the command it is about")]
fn start(arguments: &[&str]) -> Command {
    let mut command = Command::new(postern());
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    start(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

struct Row {
    name: &'static str,
    arguments: &'static [&'static str],
    status: i32,
    stdout: &'static str,
    /// A part of stderr.
    stderr: &'static str,
}

const ROWS: [Row; 19] = [
    Row {
        name: "a program's own code",
        arguments: &["run", "--", "sh", "-c", "exit 7"],
        status: 7,
        stdout: "",
        stderr: "",
    },
    Row {
        name: "both outputs",
        arguments: &["run", "--", "sh", "-c", "echo out; echo err >&2"],
        status: 0,
        stdout: "out\n",
        stderr: "err\n",
    },
    Row {
        name: "a signal",
        arguments: &["run", "--", "sh", "-c", "kill -SEGV $$"],
        status: 139,
        stdout: "",
        stderr: "",
    },
    Row {
        name: "not found",
        arguments: &["run", "--", "no-such-program"],
        status: 127,
        stdout: "",
        stderr: "postern: cannot exec \"no-such-program\": No such file or directory",
    },
    Row {
        name: "not executable",
        arguments: &["run", "--", "/etc/passwd"],
        status: 126,
        stdout: "",
        stderr: "postern: cannot exec \"/etc/passwd\": Permission denied",
    },
    Row {
        name: "time is up",
        arguments: &["run", "--timeout", "0.2", "--", "sleep", "60"],
        status: 124,
        stdout: "",
        stderr: "[postern] timed out",
    },
    Row {
        name: "an environment of its own",
        arguments: &["run", "--env", "B=two words", "--env", "A=", "--", "env"],
        status: 0,
        stdout: "HOME=/workspace\nLANG=C.UTF-8\nPATH=/usr/local/bin:/usr/bin:/bin\nTMPDIR=/tmp\nB=two \
                 words\nA=\n",
        stderr: "",
    },
    Row {
        name: "arguments as they are",
        arguments: &["run", "--", "printf", "[%s]", "", " a b ", "line\nline", "--help"],
        status: 0,
        stdout: "[][ a b ][line\nline][--help]",
        stderr: "",
    },
    Row { name: "no program", arguments: &["run"], status: 125, stdout: "", stderr: "argv: empty" },
    Row {
        name: "an empty program",
        arguments: &["run", "--", ""],
        status: 125,
        stdout: "",
        stderr: "argv: the program's name is empty",
    },
    Row {
        name: "an unknown option",
        arguments: &["run", "--no-such-option", "--", "true"],
        status: 125,
        stdout: "",
        stderr: "--no-such-option",
    },
    Row {
        name: "an environment without '='",
        arguments: &["run", "--env", "A", "--", "true"],
        status: 125,
        stdout: "",
        stderr: "--env \"A\": no '='",
    },
    Row {
        name: "no time at all",
        arguments: &["run", "--timeout", "0", "--", "true"],
        status: 125,
        stdout: "",
        stderr: "must be more than zero",
    },
    Row {
        name: "a missing profile",
        arguments: &["run", "--profile", "/no/such/file.toml", "--", "true"],
        status: 125,
        stdout: "",
        stderr: "/no/such/file.toml",
    },
    Row {
        name: "a missing workspace",
        arguments: &["run", "--workspace", "/no/such/directory", "--", "true"],
        status: 125,
        stdout: "",
        stderr: "workspace",
    },
    Row {
        name: "a missing venv",
        arguments: &["run", "--venv", "/no/such/venv", "--", "true"],
        status: 125,
        stdout: "",
        stderr: "/no/such/venv",
    },
    Row {
        name: "a bind over /proc",
        arguments: &["run", "--ro-bind", "/usr:/proc/sys", "--", "true"],
        status: 125,
        stdout: "",
        stderr: "/proc",
    },
    Row {
        name: "a missing source",
        arguments: &["run", "--ro-bind", "/no/such/source:/data", "--", "true"],
        status: 125,
        stdout: "",
        stderr: "/no/such/source",
    },
    Row {
        name: "no verb",
        arguments: &[],
        status: 125,
        stdout: "",
        stderr: "Usage: postern <COMMAND>",
    },
];

#[test]
fn statuses_and_outputs() {
    let _watch = Watch::begin();
    for row in &ROWS {
        let output = run(row.arguments);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(row.status), "{}: {stderr}", row.name);
        assert_eq!(stdout, row.stdout, "{}", row.name);
        assert!(stderr.contains(row.stderr), "{}: {stderr}", row.name);
    }
}

#[test]
fn stdin_reaches_the_guest_to_its_end() {
    let _watch = Watch::begin();
    let bytes: Vec<u8> = (0..=255u8).cycle().take(3_000_001).collect();
    let mut child =
        start(&["run", "--", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout == bytes, "{} of {} bytes", output.stdout.len(), bytes.len());
}

#[test]
fn a_guest_that_ignores_stdin_is_not_waited_for() {
    let _watch = Watch::begin();
    let started = Instant::now();
    let mut child = start(&["run", "--", "true"]).stdin(Stdio::piped()).spawn().unwrap();
    let kept = child.stdin.take();
    let status = child.wait().unwrap();
    drop(kept);
    assert_eq!(status.code(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_guest() {
    let _watch = Watch::begin();
    let mut child = start(&["run", "--", "yes"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut stdout, &mut [0u8; 4096]).unwrap();
    drop(stdout);
    // SIGPIPE, as for any program in a pipe.
    assert_eq!(child.wait().unwrap().code(), Some(141));
}

#[test]
fn an_output_that_cannot_be_written_is_our_failure() {
    let _watch = Watch::begin();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = start(&["run", "--", "echo", "lost"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("No space left on device"));
}

/// Both streams often share one open file, as after `2>&1`, and so does whoever writes next.
#[test]
fn a_file_that_both_streams_share_loses_nothing() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let path = scratch.file("log", b"", 0o644);
    let mut file = std::fs::File::options().write(true).open(&path).unwrap();
    let (stdout, stderr) = (file.try_clone().unwrap(), file.try_clone().unwrap());
    let script = "echo out; sleep 0.1; echo err >&2; sleep 0.1; echo more";
    let status =
        start(&["run", "--", "sh", "-c", script]).stdout(stdout).stderr(stderr).status().unwrap();
    assert_eq!(status.code(), Some(0));
    file.write_all(b"after\n").unwrap();
    let log = std::fs::read_to_string(&path).unwrap();
    // An unprivileged host has a warning to give, in the same file.
    let lines = log.lines().filter(|line| !line.starts_with("postern: warning: "));
    assert_eq!(lines.collect::<Vec<_>>(), ["out", "err", "more", "after"]);
}

#[test]
fn a_profile_file_is_read_and_options_override_it() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let data = scratch.directory("data", 0o755);
    scratch.file("data/value", b"42", 0o644);
    let profile = format!(
        "hostname = \"box\"\nrequired_ro_binds = [\"{}:/data\"]\n\n[env]\nA = \"file\"\n",
        data.display()
    );
    let profile = scratch.file("profile.toml", profile.as_bytes(), 0o644);
    let profile = profile.to_str().unwrap();
    let script = "hostname; cat /data/value; echo $A";
    let output = run(&["run", "--profile", profile, "--env", "A=line", "--", "sh", "-c", script]);
    assert_eq!(text(&output.stdout), "box\n42line\n", "{}", text(&output.stderr));

    let wrong = scratch.file("wrong.toml", b"hostnam = \"box\"\n", 0o644);
    let output = run(&["run", "--profile", wrong.to_str().unwrap(), "--", "true"]);
    assert_eq!(output.status.code(), Some(125));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("wrong.toml") && stderr.contains("hostnam"), "{stderr}");
}

#[test]
fn a_workspace_of_the_callers_is_read_and_written() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let job = scratch.directory("a job: \\ with \n odd name", 0o755);
    let job = job.to_str().unwrap();
    let options = ["run", "--workspace", job, "--workspace-access", "shared", "--"];
    let output = run(&[&options[..], &["sh", "-c", "pwd; echo 42 > answer"]].concat());
    assert_eq!(text(&output.stdout), "/workspace\n", "{}", text(&output.stderr));
    let answer = std::fs::read_to_string(format!("{job}/answer")).unwrap();
    assert_eq!(answer, "42\n");
}

#[test]
fn the_plan_is_printed_and_nothing_is_started() {
    let _watch = Watch::begin();
    let output = run(&["plan", "--ro-bind", "/usr/share:/data"]);
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    for line in ["plan 1\n", "template bind /data ro dir from /usr/share\n", "seccomp compat\n"] {
        assert!(stdout.contains(line), "{line}{stdout}");
    }
}

#[test]
fn help_goes_to_stdout() {
    let _watch = Watch::begin();
    for arguments in [&["--help"][..], &["run", "--help"], &["plan", "--help"], &["--version"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{arguments:?}");
    }
}
