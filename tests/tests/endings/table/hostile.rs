//! Guests that do what they can to stay, to be taken for something else, or to keep others busy.

use postern::Ending;

use super::{AT_ONCE, Act, Flag, Row, SHORT, SHORTLY, Told, python, row, sh};

/// Python takes longer to begin.
const PYTHON: std::time::Duration = std::time::Duration::from_secs(10);

const OVER_TIME: Told = Told::Result(Ending::Killed(9), &[Flag::TimedOut]);
const KILLED: Told = Told::Result(Ending::Killed(9), &[Flag::Terminated]);

fn exits(name: &str, script: &'static str, code: i32, stdout: &str) -> Row {
    row(name, sh(script), Act::Run, AT_ONCE, Told::Result(Ending::Exited(code), &[]), stdout)
}

fn python_exits(name: &str, code: &'static str, stdout: &str) -> Row {
    row(name, python(code), Act::Run, PYTHON, Told::Result(Ending::Exited(3), &[]), stdout)
}

/// Killed once it has said that it is ready.
fn python_killed(name: &str, code: &'static str) -> Row {
    let act = Act::Started(|begun| {
        begun.process.kill();
        begun.wait()
    });
    row(name, python(code), act, AT_ONCE, KILLED, "ready\n")
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = quiet();
    rows.extend(leaving());
    rows.extend(floods());
    rows.extend(more_floods());
    rows.extend(held());
    rows
}

fn quiet() -> Vec<Row> {
    vec![
        exits(
            "closes its outputs and lives on",
            "echo out; exec >&- 2>&-; sleep 0.5; exit 7",
            7,
            "out\n",
        ),
        row(
            "closes its outputs, which somebody reads to their end",
            sh("echo out; exec >&- 2>&-; sleep 0.5; exit 7"),
            Act::Started(|mut begun| {
                assert_eq!(begun.process.next_chunk().unwrap(), None);
                begun.wait()
            }),
            AT_ONCE,
            Told::Result(Ending::Exited(7), &[]),
            "out\n",
        ),
        row(
            "stops itself and is let go on",
            sh("echo ready; kill -STOP $$; echo on; exit 8"),
            Act::Started(|begun| {
                let begun = begun.in_state('T');
                super::outside::send(begun.guest(), rustix::process::Signal::CONT);
                begun.wait()
            }),
            AT_ONCE,
            Told::Result(Ending::Exited(8), &[]),
            "ready\non\n",
        ),
        exits(
            "stops and kills PID 1, which does not heed it",
            "kill -STOP 1; kill -KILL 1; echo out; exit 9",
            9,
            "out\n",
        ),
    ]
}

/// What stays behind holds the outputs.
fn leaving() -> Vec<Row> {
    vec![
        exits(
            "leaves children in sessions of their own behind",
            "trap '' TERM HUP INT; for i in 1 2 3 4 5; do (setsid sh -c 'sleep 60' & exit) & done; \
             echo out; exit 5",
            5,
            "out\n",
        ),
        exits("leaves a child that writes on", "yes >&2 & echo out; exit 5", 5, "out\n"),
        python_exits(
            "leaves a family that has no parent and reaps itself",
            r"
import ctypes, os, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
for _ in range(50):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
print('out', flush=True)
os._exit(3)
",
            "out\n",
        ),
        row(
            "leaves its first thread behind, and others wait",
            |mark| {
                python(
                    r"
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
print('out', flush=True)
ctypes.CDLL(None).syscall(60, 0)
",
                )(mark)
                .timeout(5 * SHORT)
            },
            Act::Run,
            PYTHON,
            OVER_TIME,
            "out\n",
        ),
    ]
}

/// Of signals.
fn floods() -> Vec<Row> {
    vec![
        python_exits(
            "leaves a flood of signals to PID 1 behind",
            r"
import os, signal
for number in (1, 2, 10, 12, 15):
    signal.signal(number, signal.SIG_IGN)
for number in (10, 12, 15, 40):
    if os.fork() == 0:
        os.setsid()
        while True:
            os.kill(1, number)
print('out', flush=True)
os._exit(3)
",
            "out\n",
        ),
        row(
            "floods its own group and PID 1 with signals, and is asked to end",
            python(
                r"
import os, signal, sys
for number in (1, 2, 10, 12):
    signal.signal(number, signal.SIG_IGN)
signal.signal(15, lambda *_: os._exit(3))
for number in (1, 2, 10, 12):
    if os.fork() == 0:
        signal.signal(15, signal.SIG_IGN)
        while True:
            os.kill(1, number)
            os.kill(0, number)
print('ready', flush=True)
while True:
    signal.pause()
",
            ),
            Act::Started(|mut begun| {
                begun.process.terminate(super::HANG);
                begun.wait()
            }),
            AT_ONCE,
            Told::Result(Ending::Exited(3), &[Flag::Terminated]),
            "ready\n",
        ),
    ]
}

/// Of processes.
fn more_floods() -> Vec<Row> {
    vec![
        row(
            "floods PID 1 with orphans, and is asked to end",
            python(
                r"
import os, signal
print('ready', flush=True)
signal.signal(15, lambda *_: os._exit(3))
while True:
    pid = os.fork()
    if pid == 0:
        signal.signal(15, signal.SIG_IGN)
        for _ in range(20):
            try:
                if os.fork() == 0:
                    os._exit(0)
            except BlockingIOError:
                pass
        os._exit(0)
    os.waitpid(pid, 0)
",
            ),
            Act::Started(|mut begun| {
                std::thread::sleep(SHORT);
                begun.process.terminate(super::HANG);
                begun.wait()
            }),
            SHORTLY,
            Told::Result(Ending::Exited(3), &[Flag::Terminated]),
            "ready\n",
        ),
        python_exits(
            "leaves as many processes behind as it may have",
            r"
import os, time
while True:
    try:
        if os.fork() == 0:
            time.sleep(60)
    except OSError:
        break
print('out', flush=True)
os._exit(3)
",
            "out\n",
        ),
        python_killed(
            "is killed while its processes multiply",
            r"
import os
print('ready', flush=True)
while True:
    try:
        os.fork()
    except OSError:
        pass
",
        ),
    ]
}

/// Where a signal finds a process busy, or is to find it late.
fn held() -> Vec<Row> {
    vec![
        row(
            "is killed while it floods its output",
            |mark| sh("echo ready; exec yes >&2")(mark).output_bytes_max(6),
            Act::Started(|begun| {
                std::thread::sleep(SHORT);
                begun.process.kill();
                begun.wait()
            }),
            SHORTLY,
            Told::Result(Ending::Killed(9), &[Flag::Terminated, Flag::Truncated]),
            "ready\n",
        ),
        row(
            "is killed while it waits for a vfork'ed child",
            python(
                r"
import ctypes, os
libc = ctypes.CDLL(None)
print('ready', flush=True)
if libc.syscall(58) == 0:
    while True:
        libc.pause()
",
            ),
            Act::Started(|begun| {
                let begun = begun.in_state('D');
                begun.process.kill();
                begun.wait()
            }),
            AT_ONCE,
            KILLED,
            "ready\n",
        ),
        python_killed(
            "is killed with many threads",
            r"
import threading, time
threading.stack_size(65536)
for _ in range(200):
    try:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    except RuntimeError:
        break
print('ready', flush=True)
time.sleep(60)
",
        ),
        python_exits(
            "traces PID 1 and its parent",
            r"
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
for request in (16, 0x4206):
    for pid in (1, os.getppid()):
        assert libc.ptrace(request, pid, 0, 0) == -1, (request, pid)
print('out', flush=True)
os._exit(3)
",
            "out\n",
        ),
    ]
}
