//! Signals to the command: they reach the program, then its grace runs, then it is killed, and
//! nothing outlives the command.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use postern_tests::Watch;
use rustix::process::Signal;

use crate::command::{
    Terminal, is_running, postern, program, read_rest, read_until, shell, signal, soon, start,
    text, words,
};

/// Says `ready` once its handler of TERM, INT, HUP, QUIT, USR1, USR2 and WINCH stands, and which
/// one came; leaves at the first with code 7.
const HANDLER: &str = "
import os, signal, sys, time
def handle(number, frame):
    os.write(1, signal.Signals(number).name.encode() + b'\\n')
    sys.exit(7)
for name in 'TERM INT HUP QUIT USR1 USR2 WINCH'.split():
    signal.signal(signal.Signals['SIG' + name], handle)
os.write(1, b'ready\\n')
time.sleep(60)
";

/// Heeds nothing.
const STUBBORN: &str = "trap '' INT TERM HUP QUIT; echo ready; while :; do sleep 1; done";

fn start_ready(arguments: &[&str]) -> (Child, std::process::ChildStdout) {
    let mut child = start(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    read_until(&mut stdout, "ready\n");
    (child, stdout)
}

#[test]
fn each_signal_reaches_the_program() {
    let _watch = Watch::begin();
    let rows = [
        (Signal::TERM, "SIGTERM\n"),
        (Signal::INT, "SIGINT\n"),
        (Signal::HUP, "SIGHUP\n"),
        (Signal::QUIT, "SIGQUIT\n"),
        (Signal::USR1, "SIGUSR1\n"),
        (Signal::USR2, "SIGUSR2\n"),
        (Signal::WINCH, "SIGWINCH\n"),
    ];
    for (sent, expected) in rows {
        let (mut child, mut stdout) = start_ready(&["python", "-c", HANDLER]);
        signal(&child, sent);
        assert_eq!(read_rest(&mut stdout), expected);
        assert_eq!(child.wait().unwrap().code(), Some(7), "{expected}");
    }
}

#[test]
fn a_program_without_a_handler_ends_by_the_signal() {
    let _watch = Watch::begin();
    let rows = [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129), (Signal::USR1, 138)];
    for (sent, code) in rows {
        let (mut child, _stdout) =
            start_ready(&["run", "--", "sh", "-c", "echo ready; exec sleep 60"]);
        signal(&child, sent);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{sent:?}");
    }
}

#[test]
fn ctrl_c_on_a_terminal_runs_the_programs_handler() {
    let _watch = Watch::begin();
    let postern = postern();
    let line: [&OsStr; 4] = [postern.as_ref(), "python".as_ref(), "-c".as_ref(), HANDLER.as_ref()];
    let mut terminal = Terminal::start(&line);
    terminal.read_until("ready\r\n");
    terminal.type_in("\x03");
    let (code, rest) = terminal.finish();
    assert_eq!(code, Some(7), "{rest}");
    assert!(rest.contains("SIGINT\r\n") && !rest.contains("postern:"), "{rest}");
}

/// As a person knows it from the interpreter itself.
#[test]
fn ctrl_c_on_a_terminal_interrupts_python() {
    let _watch = Watch::begin();
    let postern = postern();
    // Not flushed: on a terminal python is unbuffered.
    let code = "import time; print('ready'); time.sleep(60)";
    let line: [&OsStr; 4] = [postern.as_ref(), "python".as_ref(), "-c".as_ref(), code.as_ref()];
    let mut terminal = Terminal::start(&line);
    terminal.read_until("ready\r\n");
    terminal.type_in("\x03");
    let (code, rest) = terminal.finish();
    assert_eq!(code, Some(130), "{rest}");
    assert!(rest.contains("KeyboardInterrupt"), "{rest}");
}

#[test]
fn a_stubborn_program_has_its_grace_and_is_killed() {
    let _watch = Watch::begin();
    let arguments = ["run", "--grace", "0.5", "--", "sh", "-c", STUBBORN];
    for sent in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let (child, _stdout) = start_ready(&arguments);
        let asked = Instant::now();
        signal(&child, sent);
        let output = child.wait_with_output().unwrap();
        let took = asked.elapsed();
        let stderr = words(&output.stderr);
        assert_eq!(output.status.code(), Some(137), "{stderr}");
        assert!(took >= Duration::from_millis(490), "{took:?}");
        assert!(took < Duration::from_secs(20), "{took:?}");
        let expected = "postern: it did not end within 0.5 s of SIG";
        assert!(stderr.starts_with(expected), "{stderr}");
    }
}

#[test]
fn a_second_int_kills_at_once() {
    let _watch = Watch::begin();
    let (mut child, _stdout) = start_ready(&["run", "--grace", "60", "--", "sh", "-c", STUBBORN]);
    let asked = Instant::now();
    signal(&child, Signal::INT);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(child.try_wait().unwrap(), None);
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(137));
    assert!(asked.elapsed() < Duration::from_secs(20));
}

/// `timeout(1)` sends it to the command and to the command's group.
#[test]
fn an_int_that_comes_twice_at_once_is_one() {
    let _watch = Watch::begin();
    let code = HANDLER.replace("sys.exit(7)", "time.sleep(0.2); sys.exit(7)");
    let mut command = program("timeout");
    command.args(["--signal=INT", "2"]).arg(postern()).args(["python", "-c", &code]);
    let output = command.output().unwrap();
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(124), "timeout's own: {stdout}");
    assert!(stdout.starts_with("ready\nSIGINT\n"), "{stdout}");
}

/// As after `nohup`, and of a job that a script puts in the background.
#[test]
fn what_was_ignored_at_the_start_stays_ignored() {
    let _watch = Watch::begin();
    let script = "trap '' INT HUP; exec $P run -- sh -c 'echo ready; sleep 1; echo done'";
    let mut child = shell(script).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    read_until(&mut stdout, "ready\n");
    signal(&child, Signal::INT);
    signal(&child, Signal::HUP);
    assert_eq!(read_rest(&mut stdout), "done\n");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// At any moment of its start.
#[test]
fn a_signal_while_the_sandbox_is_built_ends_it() {
    let _watch = Watch::begin();
    let mut before = 0;
    for step in 0..40u32 {
        let marker = format!("{}{step:02}", 8_000_000 + std::process::id());
        let mut child = start(&["run", "--", "sleep", &marker]).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(u64::from(step) * 400));
        signal(&child, Signal::TERM);
        let status = child.wait().unwrap();
        // Before it has taken its signals the kernel ends it, which a shell shows alike.
        let by_kernel = status.signal() == Some(15);
        before += u32::from(by_kernel);
        assert!(by_kernel || status.code() == Some(143), "{step}: {status:?}");
        assert!(soon(|| !is_running(&marker)), "{step}: left behind");
    }
    assert!(before < 40, "no signal met the command at work");
}

#[test]
fn it_needs_no_terminal_and_no_session() {
    let _watch = Watch::begin();
    let mut command = program("setsid");
    command.arg("--wait").arg(postern()).args(["python", "-c", "print(6 * 7)"]);
    let output = command.output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "42\n".to_owned()));
}

/// The shell's job control would stop a program that reads the terminal in the background; one that
/// does not read it is not to be stopped because its forwarder does.
#[test]
fn a_background_job_is_not_stopped() {
    let _watch = Watch::begin();
    let script = "set -m; $P run -- sh -c 'sleep 0.5; echo guest-done' & wait $!; echo code=$?";
    let mut terminal = Terminal::start(&["bash".as_ref(), "-c".as_ref(), script.as_ref()]);
    let seen = terminal.read_until("code=");
    assert!(seen.contains("guest-done") && !seen.contains("Stopped"), "{seen}");
    let (code, rest) = terminal.finish();
    assert_eq!((code, rest.trim()), (Some(0), "0"));
}

/// What is left to do is to write to somebody who does not read.
#[test]
fn a_signal_ends_it_when_the_run_is_over_and_nobody_reads() {
    let _watch = Watch::begin();
    let mut child = start(&["run", "--stats", "--", "head", "-c", "100000", "/dev/zero"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let unread = child.stdout.take().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(child.try_wait().unwrap(), None);
    signal(&child, Signal::INT);
    assert_eq!(ended(&mut child), Some(130));
    drop(unread);
}

/// The program has ended by the signal; its last output is not worth waiting for.
#[test]
fn a_signal_ends_it_although_nobody_reads() {
    let _watch = Watch::begin();
    let mut child = start(&["run", "--", "yes"]).stdout(Stdio::piped()).spawn().unwrap();
    let unread = child.stdout.take().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    signal(&child, Signal::INT);
    assert_eq!(ended(&mut child), Some(130));
    drop(unread);
}

/// Its exit status, soon.
fn ended(child: &mut Child) -> Option<i32> {
    let is_over = soon(|| child.try_wait().unwrap().is_some());
    if !is_over {
        child.kill().unwrap();
    }
    child.wait().unwrap().code()
}
