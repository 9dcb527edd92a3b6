//! The bwrap front end where it could differ from bwrap, or go wrong in a way of its own; what it shares
//! with bwrap is judged by bwrap's own tests.

#![expect(clippy::unwrap_used, reason = "a test's own helpers fail the test")]

use std::path::PathBuf;
use std::process::{Command, Stdio};

use postern_tests::Watch;

/// Whom a row is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Both,
    Root,
}

struct Row {
    name: &'static str,
    half: Half,
    /// For bash; `$D` is a directory of the row's own, with `ws` and `outside` in it.
    script: &'static str,
    /// stdout and stderr together.
    prints: &'static str,
}

const ROWS: [Row; 21] = [
    Row {
        name: "a bind of the root is one mount there",
        half: Half::Both,
        script: "bwrap --bind / / awk '$5 == \"/\"' /proc/self/mountinfo | wc -l",
        prints: "1\n",
    },
    Row {
        name: "a second bind of the root holds nothing of the first",
        half: Half::Both,
        script: "bwrap --tmpfs / --ro-bind / /a --ro-bind / /a/mnt /a/usr/bin/true 2>&1; \
                 bwrap --ro-bind / / --tmpfs /tmp --ro-bind / /tmp/a \
                 awk '$5 ~ \"^/tmp/a.*/tmp/a\"' /proc/self/mountinfo",
        prints: "bwrap: execvp /a/usr/bin/true: No such file or directory\n",
    },
    Row {
        name: "a planted link leads nowhere on the host",
        half: Half::Both,
        script: "ln -s \"$D/outside\" \"$D/ws/link\"; \
                 bwrap --ro-bind /usr /usr --bind \"$D/ws\" /w --dir /w/link/x /usr/bin/true 2>&1 \
                 | sed 's/.*: //'; ls \"$D/outside\"",
        prints: "No such file or directory\n",
    },
    Row {
        name: "a planted link is no mount point",
        half: Half::Both,
        script: "ln -s \"$D/outside\" \"$D/ws/link\"; \
                 bwrap --ro-bind / / --bind \"$D/ws\" /tmp --bind /usr /tmp/link true 2>&1",
        prints: "bwrap: Can't mount on symlink destination /tmp/link\n",
    },
    Row {
        name: "what was not started has statuses of its own",
        half: Half::Both,
        script: "for program in /nowhere /etc/passwd; do bwrap --ro-bind / / $program 2>/dev/null; \
                 echo $?; done; bwrap --ro-bind /nowhere / true 2>/dev/null; echo $?",
        prints: "127\n126\n1\n",
    },
    Row {
        name: "a program's own status is told, and none where there was no program",
        half: Half::Both,
        script: "for program in 'exit 5' 'kill -9 $$'; do \
                 bwrap --ro-bind / / --unshare-pid --json-status-fd 1 sh -c \"$program\" \
                 | grep exit; done; bwrap --ro-bind / / --json-status-fd 1 /nowhere 2>/dev/null \
                 | grep -c exit",
        prints: "{ \"exit-code\": 5 }\n{ \"exit-code\": 137 }\n0\n",
    },
    Row {
        name: "ignored signals are not inherited, but for that of nohup",
        half: Half::Both,
        script: "trap '' HUP INT PIPE; \
                 bwrap --ro-bind / / grep SigIgn /proc/self/status | tr -d '\\t'",
        prints: "SigIgn:0000000000000001\n",
    },
    Row {
        name: "blocked signals stay blocked",
        half: Half::Both,
        script: "for more in '' --unshare-pid '--unshare-pid --as-pid-1'; do \
                 env --block-signal=TERM --block-signal=USR1 \"$P\" bwrap --ro-bind / / $more \
                 grep SigBlk /proc/self/status; done | tr -d '\\t'",
        prints: "SigBlk:0000000000004200\nSigBlk:0000000000004200\nSigBlk:0000000000004200\n",
    },
    Row {
        name: "a blocked signal waits until PID 1 takes it",
        half: Half::Both,
        script: "mkfifo \"$D/gate\"; env --block-signal=TERM \"$P\" bwrap --ro-bind / / \
                 --unshare-pid --as-pid-1 --info-fd 9 --block-fd 8 /usr/bin/python3 -c \
                 'import signal; print(signal.sigtimedwait([15], 5).si_signo)' \
                 9>\"$D/info\" 8<>\"$D/gate\" & \
                 until pid=$(grep -sEo '[0-9]+,' \"$D/info\"); do :; done; \
                 kill -TERM ${pid%%,*}; echo >\"$D/gate\"; wait",
        prints: "15\n",
    },
    Row {
        name: "a pid namespace within one that was joined",
        half: Half::Root,
        script: "bwrap --ro-bind / / --pidns 9 --unshare-pid --proc /proc sh -c 'echo $$; exit 6' \
                 9</proc/self/ns/pid; echo $?",
        prints: "2\n6\n",
    },
    Row {
        name: "a launch that is given up runs nothing",
        half: Half::Both,
        script: "bwrap --bind / / --info-fd 9 touch \"$D/ran\" 9>/dev/full 2>&1; echo $?; \
                 sleep 0.1; ls \"$D\"",
        prints: "bwrap: Write to info_fd: No space left on device\n1\noutside\nws\n",
    },
    Row {
        name: "a parent that dies at any moment takes the program along",
        half: Half::Both,
        script: "for i in 0 1 2 3 4 5 6 7; do \
                 (exec \"$P\" bwrap --ro-bind / / --dev /dev --die-with-parent sleep 71.125) & pid=$!; \
                 sleep 0.00$i; kill -9 $pid; wait $pid; done 2>/dev/null; sleep 0.5; \
                 pgrep -fx 'sleep 71.125'; echo none",
        prints: "none\n",
    },
    Row {
        name: "arguments without number",
        half: Half::Both,
        script: "{ yes -- --dir | head -50000 | sed 's,$,\\n/tmp/a,'; } | tr '\\n' '\\0' >\"$D/args\"; \
                 bwrap --ro-bind / / --tmpfs /tmp --args 9 ls /tmp 9<\"$D/args\"",
        prints: "a\n",
    },
    Row {
        name: "words that are wrong are one line and status 1",
        half: Half::Both,
        script: "say() { bwrap \"$@\" 2>&1 | cut -c1-60; echo ${PIPESTATUS[0]}; }; \
                 say --nonsense true; say --bind /a; say --bind --ro-bind /x true; \
                 say --cap-add CAP_FOO true; say --uid 4294967296 true; say --perms 888 --dir /a true; \
                 say --size 0 --tmpfs /a true; say --setenv A=B c true; say --chdir",
        prints: "bwrap: Unknown option --nonsense\n1\nbwrap: --bind takes two arguments\n1\n\
                 bwrap: Can't find source path --ro-bind: No such file or dir\n1\n\
                 bwrap: unknown cap: CAP_FOO\n1\nbwrap: Invalid uid: 4294967296\n1\n\
                 bwrap: --perms takes an octal argument <= 07777\n1\n\
                 bwrap: --size takes a non-zero number of bytes\n1\n\
                 bwrap: setenv failed: \"A=B\" is no name of a variable\n1\n\
                 bwrap: --chdir takes one argument\n1\n",
    },
    Row {
        name: "what descriptors hold may be wrong as well",
        half: Half::Both,
        script: "say() { bwrap --ro-bind / / \"$@\" true 2>&1 | cut -c1-56; echo ${PIPESTATUS[0]}; }; \
                 say --args 9 9< <(printf -- '--dir\\0/a'); say --args 9 9<&-; \
                 for bytes in '' 1234567 '\\006\\0\\0\\0\\0\\0\\0\\0\\0' 12345678; do \
                 say --seccomp 9 9< <(printf \"$bytes\"); done",
        prints: "bwrap: Can't read --args data: its last argument has no \n1\n\
                 bwrap: Can't read --args data: Bad file descriptor\n1\n\
                 bwrap: Unable to set up system call filtering as request\n1\n\
                 bwrap: Invalid seccomp data, must be multiple of 8\n1\n\
                 bwrap: Invalid seccomp data, must be multiple of 8\n1\n\
                 bwrap: Unable to set up system call filtering as request\n1\n",
    },
    Row {
        name: "a hundred thousand words, for the program and for us",
        half: Half::Both,
        script: "bwrap --ro-bind / / sh -c 'echo $#' $(yes a | head -100000); \
                 bwrap $(yes -- --clearenv | head -100000) --ro-bind / / /bin/echo b",
        prints: "99999\nb\n",
    },
    Row {
        name: "a descriptor that is none is said so, before anything is done",
        half: Half::Both,
        script: "bwrap --bind / / --dir \"$D/made\" --sync-fd 77 true 2>&1; ls \"$D\"",
        prints: "bwrap: --sync-fd 77: Bad file descriptor\noutside\nws\n",
    },
    Row {
        name: "/proc/self/exe is bwrap again",
        half: Half::Both,
        script: "bwrap --ro-bind / / -- /proc/self/exe --version | cut -d' ' -f1",
        prints: "bubblewrap\n",
    },
    Row {
        name: "--hardened drops capabilities and descriptors, and filters",
        half: Half::Both,
        script: "bwrap --hardened --ro-bind / / --unshare-pid --proc /proc \
                 sh -c 'grep -E \"^(CapEff|CapBnd|Seccomp):\" /proc/self/status | tr -d \"\\t\"; \
                 test -e /proc/self/fd/8 && echo open' 8</etc/passwd",
        prints: "CapEff:0000000000000000\nCapBnd:0000000000000000\nSeccomp:2\n",
    },
    Row {
        name: "--hardened masks and limits as the default profile does",
        half: Half::Both,
        script: "bwrap --hardened --ro-bind / / --unshare-pid --proc /proc \
                 bash -c 'for f in kallsyms cmdline bus/; do cat /proc/$f 2>&1; done; ulimit -c; \
                 echo x 2>&1 >/proc/self/comm' 2>&1 | sed 's/.*: //'",
        prints: "Permission denied\nPermission denied\nPermission denied\n0\nRead-only file system\n",
    },
    Row {
        name: "without --hardened nothing is added",
        half: Half::Both,
        script: "bwrap --ro-bind / / sh -c 'grep ^Seccomp: /proc/self/status | tr -d \"\\t\"; \
                 test -e /proc/self/fd/8 && echo open' 8</etc/passwd",
        prints: "Seccomp:0\nopen\n",
    },
];

#[test]
fn the_front_end_does_what_its_page_says() {
    let is_root = rustix::process::getuid().is_root();
    for row in ROWS.iter().filter(|row| is_root || row.half == Half::Both) {
        let _watch = Watch::begin();
        assert_eq!(printed(row), row.prints, "{}", row.name);
    }
}

/// What a row's script writes.
fn printed(row: &Row) -> String {
    let directory = PathBuf::from(format!("/var/tmp/postern-bwrap-{}", std::process::id()));
    for inner in ["ws", "outside"] {
        std::fs::create_dir_all(directory.join(inner)).unwrap();
    }
    let script = format!("bwrap() {{ \"$P\" bwrap \"$@\"; }}\n{}", row.script);
    #[expect(clippy::disallowed_methods, reason = "a test starts the command it is about")]
    let mut command = Command::new("bash");
    command.args(["-c", &script]).env("P", postern()).env("D", &directory);
    let output = command.stdin(Stdio::null()).output().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// The command: beside the copies that the runner made, or where cargo puts it.
fn postern() -> PathBuf {
    let copies = std::env::var_os("POSTERN_TEST_BIN_DIR").map(PathBuf::from);
    let built = || std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned();
    let path = copies.unwrap_or_else(built).join("postern");
    assert!(path.exists(), "{} is not built: cargo build -p postern-cli", path.display());
    path
}
