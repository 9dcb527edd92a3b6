//! Ordinary programs run in the default profile. A host without one of them fails here and is told
//! the package: a promise that is not tried is not kept.

use postern::{Command, Ending};
use postern_tests::Watch;

use crate::default_sandbox;

/// A program, the Debian package that holds it, a script, and what the script prints.
const PROGRAMS: [(&str, &str, &str, &str); 9] = [
    ("python3", "python3", "python3 -c 'print(6 * 7)'", "42\n"),
    (
        "python3",
        "python3",
        "python3 -c 'import subprocess, threading, tempfile, sqlite3, socket; \
         t = threading.Thread(target=lambda: print(subprocess.check_output([\"echo\", \"in\"]))); \
         t.start(); t.join(); print(tempfile.gettempdir(), socket.gethostbyname(\"localhost\"))'",
        "b'in\\n'\n/tmp 127.0.0.1\n",
    ),
    ("bash", "bash", "bash -c 'cat <(echo $((6 * 7)))'", "42\n"),
    (
        "git",
        "git",
        "git init -q repository && cd repository && echo text > file && git add file && \
         git -c user.name=a -c user.email=a@b.c commit -q -m message && git log --format=%s",
        "message\n",
    ),
    (
        "cc",
        "gcc",
        "printf '#include <stdio.h>\\nint main(void) { puts(\"hello\"); }' > hello.c && \
         cc hello.c -o hello && ./hello",
        "hello\n",
    ),
    ("awk", "gawk", "echo 6 7 | awk '{ print $1 * $2 }'", "42\n"),
    ("node", "nodejs", "node -e 'console.log(Object.keys(os.networkInterfaces()).join())'", "lo\n"),
    ("gpg", "gnupg", "gpg --version | sed -n '1s/ .*//p'", "gpg\n"),
    (
        "ssh-keygen",
        "openssh-client",
        "ssh-keygen -q -t ed25519 -N '' -f key && cut -d' ' -f1 key.pub",
        "ssh-ed25519\n",
    ),
];

#[test]
fn ordinary_programs_run() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    for (program, package, script, expected) in PROGRAMS {
        let there = sandbox.run(["sh", "-c", &format!("command -v {program}")]).unwrap();
        assert!(there.ok(), "{program} is missing on this host: install {package}");
        let result = sandbox.run(Command::new("sh").args(["-c", script])).unwrap();
        let found = (result.ending, result.stdout_text());
        let stderr = result.stderr_text();
        assert_eq!(found, (Ending::Exited(0), expected.into()), "{program}: {stderr}");
    }
}

#[test]
fn users_and_times_have_names() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let rows = [
        ("id -un", "sandbox\n"),
        ("id -gn", "sandbox\n"),
        ("echo ~", "/workspace\n"),
        ("hostname", "sandbox\n"),
    ];
    for (script, expected) in rows {
        let result = sandbox.run(["bash", "-c", script]).unwrap();
        assert_eq!(result.stdout_text(), expected, "{script}: {}", result.stderr_text());
    }
}
