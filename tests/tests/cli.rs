//! The `postern` command as a person meets it: exit statuses, streams, signals, words, pages.

#![expect(clippy::unwrap_used, reason = "a test's own helpers fail the test")]

#[path = "cli/command.rs"]
mod command;
#[path = "cli/json.rs"]
mod json;
#[path = "cli/options.rs"]
mod options;
#[path = "cli/pages.rs"]
mod pages;
#[path = "cli/scripts.rs"]
mod scripts;
#[path = "cli/seccomp.rs"]
mod seccomp;
#[path = "cli/signals.rs"]
mod signals;
#[path = "cli/streams.rs"]
mod streams;
#[path = "cli/telemetry.rs"]
mod telemetry;
#[path = "cli/tty.rs"]
mod tty;
#[path = "cli/words.rs"]
mod words;

use command::{run, text};
use postern_tests::Watch;

struct Row {
    name: &'static str,
    arguments: &'static [&'static str],
    status: i32,
    stdout: &'static str,
    /// A part of stderr.
    stderr: &'static str,
}

const ROWS: [Row; 28] = [
    Row {
        name: "no terminal to give over",
        arguments: &["run", "-t", "--", "true"],
        status: 125,
        stdout: "",
        stderr: "postern: --tty: stdin is no terminal; leave --tty out",
    },
    Row {
        name: "a terminal has one output",
        arguments: &["run", "-t", "--merge", "--", "true"],
        status: 125,
        stdout: "",
        stderr: "cannot be used with",
    },
    Row {
        name: "output up to the limit",
        arguments: &["run", "--max-output", "4", "--", "echo", "abc"],
        status: 0,
        stdout: "abc\n",
        stderr: "",
    },
    Row {
        name: "output beyond the limit is dropped",
        arguments: &["run", "--max-output", "4", "--", "sh", "-c", "echo abcdef; exit 3"],
        status: 3,
        stdout: "abcd",
        stderr: "postern: warning: output beyond 4 bytes (--max-output) was dropped\n",
    },
    Row {
        name: "output beyond the limit is the end",
        arguments: &[
            "run",
            "--max-output",
            "1k",
            "--at-max-output",
            "kill",
            "--",
            "sh",
            "-c",
            "yes >&2",
        ],
        status: 137,
        stdout: "",
        stderr: "postern: it wrote more than 1024 bytes to an output (--max-output), and was killed",
    },
    Row {
        name: "input from a file",
        arguments: &[
            "run",
            "--stdin",
            "/etc/hostname",
            "--",
            "sh",
            "-c",
            "wc -l; cat /proc/self/fdinfo/0 | grep -c mnt",
        ],
        status: 0,
        stdout: "1\n1\n",
        stderr: "",
    },
    Row {
        name: "input from a directory",
        arguments: &["run", "--stdin", "/etc", "--", "cat"],
        status: 125,
        stdout: "",
        stderr: "postern: cannot read /etc: is a directory",
    },
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
        name: "a time that no clock can tell",
        arguments: &["run", "--timeout", "1e19", "--grace", "1e19", "--", "echo", "x"],
        status: 0,
        stdout: "x\n",
        stderr: "",
    },
    Row {
        name: "a program without the sign",
        arguments: &["run", "--stdin", "null", "printf", "%s", "--json"],
        status: 0,
        stdout: "--json",
        stderr: "",
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
        stderr: "postern: invalid value 'A' for '--env <NAME=VALUE>': no '='; write NAME=VALUE",
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
fn the_plan_is_printed_and_nothing_is_started() {
    let _watch = Watch::begin();
    let output = run(&["plan", "--ro-bind", "/usr/share:/data"]);
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    for line in ["plan 1\n", "template bind /data ro dir from /usr/share\n", "seccomp default\n"] {
        assert!(stdout.contains(line), "{line}{stdout}");
    }
}
