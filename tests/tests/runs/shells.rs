//! Shell scripts of any size, each way.

use postern::{Command, Ending, Stdin};

use crate::ways::each_way;
use crate::{begin, sandbox};

#[test]
fn scripts_run_in_the_shell_that_is_asked_for() {
    let _watch = begin();
    let arguments = ["a b", "", "*", "\n", "\u{e9}"];
    let show = "printf '<%s>' \"$0\" \"$@\" $#";
    let shown = "</run/postern/main.sh><a b><><*><\n><\u{e9}><5>";
    let big = format!("{}echo end", "x=1 # a line that does a little\n".repeat((4 << 20) / 32));
    let dir = "echo ${BASH_VERSION:+bash}; pwd";
    let rows: [(&str, Command, &str, &str, i32); 12] = [
        ("bash", Command::bash(dir), "bash\n/workspace\n", "", 0),
        ("sh", Command::shell("sh", "echo $((6 * 7))"), "42\n", "", 0),
        ("a path", Command::shell("/bin/bash", dir), "bash\n/workspace\n", "", 0),
        ("arguments", Command::bash(show).args(arguments), shown, "", 0),
        ("arguments of sh", Command::shell("sh", show).args(arguments), shown, "", 0),
        ("a name", Command::bash("echo $0").script_name("a b"), "/run/postern/a b\n", "", 0),
        ("4 MiB", Command::bash(big), "end\n", "", 0),
        ("-e", Command::bash("set -e; echo a; false; echo b"), "a\n", "", 1),
        ("stderr", Command::shell("sh", "echo a >&2; exit 7"), "", "a\n", 7),
        ("nothing", Command::bash(""), "", "", 0),
        ("CRLF", Command::bash("echo a\r\n"), "a\r\n", "", 0),
        (
            "stdin",
            Command::bash("read x; cat; echo [$x]").stdin(Stdin::Bytes(b"1\n2\n".into())),
            "2\n[1]\n",
            "",
            0,
        ),
    ];
    each_way(&sandbox(), |service| {
        for (name, command, stdout, stderr, code) in &rows {
            let name = format!("{name}, {:?}", service.way);
            let result = service.run(command.clone()).unwrap();
            let found = (result.stdout_text(), result.stderr_text(), result.returncode());
            assert_eq!(found, ((*stdout).into(), (*stderr).into(), *code), "{name}");
        }
    });
}

/// The shell names the script and the line.
#[test]
fn an_error_names_its_line() {
    let _watch = begin();
    let result = sandbox().run_bash("true\nno-such-program\n").unwrap();
    assert_eq!(result.returncode(), 127);
    let stderr = result.stderr_text();
    assert!(stderr.contains("/run/postern/main.sh: line 2: no-such-program"), "{stderr}");
}

#[test]
fn a_shell_that_is_not_there_is_an_ending() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        for shell in ["no-such-shell", "/no/such/shell"] {
            let result = service.run(Command::shell(shell, "true")).unwrap();
            let found = (result.ending, result.returncode());
            assert_eq!(found, (Ending::ExecFailed(libc::ENOENT), 127), "{shell}");
        }
    });
}
