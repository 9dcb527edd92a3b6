//! A guest with a terminal of its own: its size, its keys, its jobs, its output, and its end, each
//! way.

use std::io::Write;
use std::time::{Duration, Instant};

use postern::error::CommandError;
use postern::{Command, Ending, Error, SandboxProfile, Signal, Stdin, WindowSize};

use crate::ways::{Live, each_way, sh};
use crate::{HANG, begin, sandbox, sandbox_of};

const SIZE: WindowSize = WindowSize { rows: 30, columns: 100 };

fn on_terminal(command: Command) -> Command {
    command.env("TERM", "xterm").stdin(Stdin::Piped).terminal(SIZE).timeout(HANG)
}

/// What was shown up to `wanted`, which must come.
fn until(live: &mut Live<'_>, seen: &mut String, wanted: &str) -> String {
    loop {
        if let Some(at) = seen.find(wanted) {
            let rest = seen.split_off(at + wanted.len());
            return std::mem::replace(seen, rest);
        }
        match live.next_chunk().unwrap() {
            Some(chunk) => seen.push_str(&String::from_utf8_lossy(&chunk.bytes)),
            None => panic!("the end, and no {wanted:?} in {seen:?}"),
        }
    }
}

/// Keys, each with what must be shown after it; then how it ended.
struct Row {
    name: &'static str,
    command: fn() -> Command,
    first: &'static str,
    keys: &'static [(&'static str, &'static str)],
    ending: Ending,
}

const PASSWORD: &str = "
import getpass, sys
word = getpass.getpass('word: ')
print('got', word[::-1])
";

/// As an editor does it: no echo, no lines, no signals; the keys as they are.
const RAW: &str = "
import os, tty, termios
old = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b'raw\\r\\n')
keys = b''
while b'q' not in keys: keys += os.read(0, 100)
termios.tcsetattr(0, termios.TCSADRAIN, old)
print(keys)
";

const RESIZED: &str = "
import os, signal, sys
def handle(*_):
    size = os.get_terminal_size()
    print(size.lines, size.columns, flush=True)
    sys.exit(3)
signal.signal(signal.SIGWINCH, handle)
print('ready', flush=True)
while True: signal.pause()
";

fn bash() -> Command {
    Command::new("bash").args(["--norc", "--noprofile", "-i"]).env("PS1", "$ ")
}

/// What a program could type would be taken for the person's own.
const TYPING: &str = "
import fcntl, termios
try: fcntl.ioctl(0, termios.TIOCSTI, b'x')
except PermissionError: print('refused')
";

const ROWS: [Row; 9] = [
    Row {
        name: "typing into it",
        command: || Command::python(TYPING),
        first: "refused\r\n",
        keys: &[],
        ending: Ending::Exited(0),
    },
    Row {
        name: "streams, size and controlling terminal",
        command: || {
            sh("test -t 0 && test -t 1 && test -t 2 && tty && stty size && : >/dev/tty && echo own")
        },
        first: "/dev/pts/0\r\n30 100\r\nown\r\n",
        keys: &[],
        ending: Ending::Exited(0),
    },
    Row {
        name: "Ctrl-C",
        command: || sh("trap 'echo int; exit 4' INT; echo ready; while :; do sleep 0.1; done"),
        first: "ready\r\n",
        keys: &[("\x03", "int\r\n")],
        ending: Ending::Exited(4),
    },
    Row {
        name: "Ctrl-\\",
        command: || sh("ulimit -c 0; echo ready; exec sleep 1000"),
        first: "ready\r\n",
        keys: &[("\x1c", "")],
        ending: Ending::Signaled(3),
    },
    Row {
        name: "Ctrl-D",
        command: || sh("echo ready; cat; echo end"),
        first: "ready\r\n",
        keys: &[("text\n", "text\r\ntext\r\n"), ("\x04", "end\r\n")],
        ending: Ending::Exited(0),
    },
    Row {
        name: "jobs of a shell",
        command: bash,
        first: "$ ",
        keys: &[
            ("sleep 1000\r", "sleep 1000\r\n"),
            ("\x1a", "Stopped"),
            ("jobs; echo listed\r", "\nlisted\r\n"),
            ("bg; echo back\r", "\nback\r\n"),
            ("fg\r", "sleep 1000\r\n"),
            ("\x03", "$ "),
            ("exit 5\r", "exit"),
        ],
        ending: Ending::Exited(5),
    },
    Row {
        name: "a password",
        command: || Command::python(PASSWORD),
        first: "word: ",
        keys: &[("secret\n", "\r\ngot terces\r\n")],
        ending: Ending::Exited(0),
    },
    Row {
        name: "keys as they are",
        command: || Command::python(RAW),
        first: "raw\r\n",
        keys: &[("a\x03\x1a\r\x04q", "b'a\\x03\\x1a\\r\\x04q'\r\n")],
        ending: Ending::Exited(0),
    },
    Row {
        name: "a program that is not there",
        command: || Command::new("no-such-program"),
        first: "",
        keys: &[],
        ending: Ending::ExecFailed(2),
    },
];

#[test]
fn what_is_typed_and_shown() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        for row in &ROWS {
            let mut live = service.start(on_terminal((row.command)()));
            let mut seen = String::new();
            until(&mut live, &mut seen, row.first);
            for (keys, shown) in row.keys {
                // A job has begun to run when its echo is here; a moment later it has the terminal.
                std::thread::sleep(Duration::from_millis(150));
                live.write_stdin(keys.as_bytes()).unwrap();
                until(&mut live, &mut seen, shown);
            }
            let result = live.wait().unwrap();
            assert_eq!(result.ending, row.ending, "{}, {:?}: {seen}", row.name, service.way);
            assert!(!seen.contains("secret") && result.stderr.is_empty(), "{}", row.name);
        }
    });
}

#[test]
fn another_size_is_told() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        let mut live = service.start(on_terminal(Command::python(RESIZED)));
        let mut seen = String::new();
        until(&mut live, &mut seen, "ready\r\n");
        live.resize(40, 132);
        until(&mut live, &mut seen, "40 132\r\n");
        let handle = live.handle();
        assert_eq!(live.wait().unwrap().ending, Ending::Exited(3), "{:?}", service.way);
        assert!(handle.resize(SIZE).is_err(), "the run and its terminal are gone");
        let plain = service.start_sh("true");
        assert!(plain.handle().resize(SIZE).is_err());
        plain.wait().unwrap();
    });
}

/// Script, keys that are there from the start, and what it comes to.
#[test]
fn input_and_its_end_are_typed() {
    let _watch = begin();
    let rows: [(&str, Stdin, &str); 5] = [
        ("cat; echo end", Stdin::Null, "end\r\n"),
        ("cat; echo end", Stdin::Bytes(b"a\n".to_vec()), "a\r\na\r\nend\r\n"),
        ("stty -echo; echo on; cat; echo end", Stdin::Bytes(b"".to_vec()), "on\r\nend\r\n"),
        ("head -c 1; echo; cat; echo end", Stdin::Bytes(b"xy".to_vec()), "xyx\r\nyend\r\n"),
        ("true", Stdin::Bytes(vec![b'\n'; 1_000_000]), ""),
    ];
    each_way(&sandbox(), |service| {
        for (script, input, shown) in &rows {
            let command = on_terminal(sh(script)).stdin(input.clone());
            let result = service.run(command).unwrap();
            assert!(result.ok(), "{script}: {:?}", result.ending);
            assert!(result.stdout_text().ends_with(shown), "{script}: {}", result.stdout_text());
        }
    });
}

/// Nothing of what was written before the end is lost, and `\n` comes as `\r\n`.
#[test]
fn ten_megabytes_come_whole() {
    let _watch = begin();
    let code = "import os\nfor n in range(1000): os.write(1, b''.join(b'%09d\\n' % (n * 1000 + i) for i in range(1000)))";
    each_way(&sandbox(), |service| {
        let command = on_terminal(Command::python(code)).stdin(Stdin::Null);
        let result = service.run(command).unwrap();
        let lines = result.stdout.strip_prefix(b"^D\x08\x08").unwrap_or(&result.stdout);
        assert_eq!(lines.len(), 11_000_000, "{:?}", service.way);
        let in_order = |(n, line): (usize, &[u8])| line == format!("{n:09}\r\n").as_bytes();
        assert!(lines.chunks(11).enumerate().all(in_order), "{:?}", service.way);
    });
}

/// Script, and how it ends.
#[test]
fn each_end_is_told_as_it_was() {
    let _watch = begin();
    let rows = [
        ("exec <&- >&- 2>&-; sleep 0.3; exit 3", "", Ending::Exited(3)),
        (
            "exec <&- >&- 2>&-; sleep 0.3; echo again >/dev/tty; exit 3",
            "again\r\n",
            Ending::Exited(3),
        ),
        ("printf last; kill -9 $$", "last", Ending::Signaled(9)),
        ("setsid sh -c 'sleep 1000' & printf left; exit 6", "left", Ending::Exited(6)),
    ];
    each_way(&sandbox(), |service| {
        for (script, shown, ending) in rows {
            let begun = Instant::now();
            let result = service.run(on_terminal(sh(script))).unwrap();
            let stdout = result.stdout_text();
            assert_eq!(result.ending, ending, "{script}, {:?}: {stdout}", service.way);
            assert!(stdout.contains(shown) && begun.elapsed() < HANG / 2, "{script}: {stdout}");
        }
    });
}

#[test]
fn a_hung_up_terminal_is_told() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        let mut live = service.start(on_terminal(sh("echo ready; exec sleep 1000")));
        until(&mut live, &mut String::new(), "ready\r\n");
        live.hang_up();
        assert!(live.write_stdin(b"x").is_err());
        assert!(live.next_chunk().unwrap().is_none());
        assert_eq!(live.wait().unwrap().ending, Ending::Signaled(1), "{:?}", service.way);
        let mut live = service.start(on_terminal(sh("trap '' HUP; echo ready; sleep 1000")));
        until(&mut live, &mut String::new(), "ready\r\n");
        live.hang_up();
        live.signal(Signal::KILL);
        assert_eq!(live.wait().unwrap().ending, Ending::Killed(9), "{:?}", service.way);
    });
}

/// A flood does not keep a key from the guest.
#[test]
fn a_flood_can_be_interrupted() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        let mut live = service.start(on_terminal(Command::new("yes")));
        until(&mut live, &mut String::new(), "y\r\n");
        live.write_stdin(b"\x03").unwrap();
        while live.next_chunk().unwrap().is_some() {}
        assert_eq!(live.wait().unwrap().ending, Ending::Signaled(2), "{:?}", service.way);
        // By whoever takes the output.
        let begun = Instant::now();
        let (keys, mut typed) = std::io::pipe().unwrap();
        let keys = Stdin::copied(keys);
        let mut live = service.start(on_terminal(Command::new("yes")).stdin(keys));
        until(&mut live, &mut String::new(), "y\r\n");
        typed.write_all(b"\x03").unwrap();
        while live.next_chunk().unwrap().is_some() {
            // So that there is always more.
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(live.wait().unwrap().ending, Ending::Signaled(2), "{:?}", service.way);
        assert!(begun.elapsed() < HANG / 10, "{:?}: {:?}", service.way, begun.elapsed());
    });
}

#[test]
fn a_sandbox_without_terminals_has_none() {
    let _watch = begin();
    let profile = SandboxProfile::builder().pty_max(0).build().unwrap();
    each_way(&sandbox_of(profile), |service| {
        let error = service.run(on_terminal(sh("true"))).unwrap_err();
        assert!(matches!(error, Error::Command(CommandError::NoTerminals)), "{error}");
    });
}
