//! `--tty`: the person's terminal is the program's, and afterwards what it was, however it ends.

use std::ffi::OsStr;

use postern_tests::Watch;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use crate::command::{Terminal, soon};

/// How a run on a terminal ends.
struct Row {
    name: &'static str,
    /// Options, then the program.
    line: &'static str,
    /// What is done once it says `ready`.
    then: Then,
    status: &'static str,
}

enum Then {
    Nothing,
    Type(&'static str),
    Send(Signal),
}

const SLEEP: &str = "-- sh -c 'echo ready; exec sleep 60'";
const STUBBORN: &str =
    "--grace 0.3 -- sh -c 'trap \"\" TERM HUP; echo ready; while :; do sleep 0.1; done'";

const ROWS: [Row; 11] = [
    Row {
        name: "a code of its own",
        line: "-- sh -c 'stty -echo; echo ready; exit 7'",
        then: Then::Nothing,
        status: "7",
    },
    Row { name: "Ctrl-C", line: SLEEP, then: Then::Type("\x03"), status: "130" },
    Row { name: "Ctrl-\\", line: SLEEP, then: Then::Type("\x1c"), status: "131" },
    Row { name: "TERM", line: SLEEP, then: Then::Send(Signal::TERM), status: "143" },
    Row { name: "HUP", line: SLEEP, then: Then::Send(Signal::HUP), status: "129" },
    Row { name: "TERM, not heeded", line: STUBBORN, then: Then::Send(Signal::TERM), status: "137" },
    Row {
        name: "the program is killed",
        line: "-- sh -c 'echo ready; kill -9 $$'",
        then: Then::Nothing,
        status: "137",
    },
    Row {
        name: "its time is up",
        line: "--timeout 0.5 -- sh -c 'stty raw; echo ready; exec sleep 60'",
        then: Then::Nothing,
        status: "124",
    },
    Row {
        name: "it writes too much",
        line: "--max-output 2k --at-max-output kill -- sh -c 'echo ready; exec yes'",
        then: Then::Nothing,
        status: "137",
    },
    Row {
        name: "it is not there",
        line: "--stats -- no-such-ready-program",
        then: Then::Nothing,
        status: "127",
    },
    Row {
        name: "it cannot be confined",
        line: "--cwd /no/such/ready -- true",
        then: Then::Nothing,
        status: "125",
    },
];

fn start(script: &str) -> Terminal {
    Terminal::start(&["bash".as_ref(), "-c".as_ref(), OsStr::new(script)])
}

/// The number after `name=` on the screen.
fn number(terminal: &mut Terminal, name: &str) -> i32 {
    terminal.read_until(&format!("{name}="));
    terminal.read_until("\n").trim().parse().unwrap()
}

/// Keys are the program's and not signals to us.
fn is_given_over(terminal: &Terminal) -> bool {
    !tcgetattr(&terminal.screen).unwrap().local_modes.contains(LocalModes::ISIG)
}

fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// The shell leads the session: the kernel itself would reset a terminal whose leader has ended.
#[test]
fn the_terminal_is_as_before_however_it_ends() {
    let _watch = Watch::begin();
    for row in &ROWS {
        let mut terminal = start(&format!(
            "echo modes=$(stty -g); $P run -t {} </dev/tty & echo pid=$!; wait $!; \
             echo code=$? now=$(stty -g) =over",
            row.line
        ));
        let _start = terminal.read_until("modes=");
        let before = terminal.read_until("\n").trim().to_owned();
        let pid = number(&mut terminal, "pid");
        let shown = terminal.read_until("ready");
        match row.then {
            Then::Nothing => {}
            Then::Type(keys) => terminal.type_in(keys),
            Then::Send(signal) => send(pid, signal),
        }
        let rest = terminal.read_until("=over");
        let end = format!("code={} now={before} =over", row.status);
        assert!(rest.contains(&end), "{}: {shown}{rest} is not {end}", row.name);
        terminal.finish();
    }
}

#[test]
fn the_program_sees_a_terminal_like_this_one() {
    let _watch = Watch::begin();
    let script = "stty rows 33 cols 99; $P run -t -- sh -c 'tty; stty size; echo $TERM' </dev/tty";
    let (code, shown) = start(script).finish();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("/dev/pts/0\r\n33 99\r\nxterm\r\n"), "{shown}");
}

#[test]
fn another_size_is_passed_on() {
    let _watch = Watch::begin();
    let script = "$P run -t -- bash -c 'trap \"stty size; exit 5\" WINCH; echo ready; \
                  while :; do sleep 0.1; done'; echo code=$?";
    let mut terminal = start(script);
    terminal.read_until("ready");
    let size = Winsize { ws_row: 41, ws_col: 111, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal.screen, size).unwrap();
    terminal.read_until("41 111\r\n");
    assert_eq!(number(&mut terminal, "code"), 5);
    terminal.finish();
}

/// As a person does who has to leave a program that knows no Ctrl-Z.
#[test]
fn a_stopped_postern_gives_the_terminal_back() {
    let _watch = Watch::begin();
    let script = "$P run -t -- sh -c 'echo ready; read line; echo got $line' </dev/tty & \
                  echo pid=$!; wait $!; echo code=$?";
    let mut terminal = start(script);
    let pid = number(&mut terminal, "pid");
    terminal.read_until("ready");
    assert!(is_given_over(&terminal));
    send(pid, Signal::TSTP);
    assert!(soon(|| !is_given_over(&terminal)), "not given back");
    send(pid, Signal::CONT);
    assert!(soon(|| is_given_over(&terminal)), "not taken again");
    // Nobody can say goodbye before this one; a shell then puts the terminal right itself.
    send(pid, Signal::STOP);
    let mut modes = tcgetattr(&terminal.screen).unwrap();
    modes.local_modes.insert(LocalModes::ISIG);
    tcsetattr(&terminal.screen, OptionalActions::Now, &modes).unwrap();
    send(pid, Signal::CONT);
    assert!(soon(|| is_given_over(&terminal)), "not taken a third time");
    terminal.type_in("word\r");
    terminal.read_until("got word\r\n");
    assert_eq!(number(&mut terminal, "code"), 0);
    terminal.finish();
}

/// It is not stopped, leaves the terminal to whoever has it, and takes it when it is its turn.
#[test]
fn a_job_in_the_background_leaves_the_terminal_alone() {
    let _watch = Watch::begin();
    let script = "set -m; $P run -t -- sh -c 'echo ready; read line; echo got $line' & \
                  sleep 2; jobs; stty -a | grep -o -- '-*isig'; fg; echo code=$?";
    let mut terminal = start(script);
    let shown = terminal.read_until("isig");
    assert!(shown.ends_with("\nisig"), "{shown}");
    assert!(shown.contains("in the background") && shown.contains("ready"), "{shown}");
    assert!(shown.contains("Running") && !shown.contains("Stopped"), "{shown}");
    assert!(soon(|| is_given_over(&terminal)), "not taken in the foreground");
    terminal.type_in("word\r");
    terminal.read_until("got word\r\n");
    assert_eq!(number(&mut terminal, "code"), 0);
    terminal.finish();
}
