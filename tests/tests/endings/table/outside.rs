//! Runs that somebody else on the machine ends, stops, holds, or writes for.

use std::fs::{self, OpenOptions};
use std::sync::mpsc;
use std::time::Duration;

use postern::Ending;
use postern_tests::children;
use rustix::process::{Pid, Signal, kill_process};

use super::{AT_ONCE, Act, Begun, Flag, Row, SHORT, SHORTLY, Seen, Told, row, sh, sh_limited, sys};

const IGNORES: &str = "trap '' TERM INT HUP; echo ready; while :; do sleep 60; done";
/// A killed run has its result within this, and what makes it known.
const DEATH: Duration = Duration::from_secs(12);

/// Sends a signal to a process of the host's.
pub(super) fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// The launcher of the only sandbox of this process.
fn launcher() -> i32 {
    let own = i32::try_from(std::process::id()).unwrap();
    match children(own)[..] {
        [launcher] => launcher,
        ref others => panic!("{others:?}: one launcher was expected"),
    }
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = killed();
    rows.extend(stopped_and_held());
    rows
}

fn killed() -> Vec<Row> {
    let started = |name, act, within, told| {
        row(name, sh(IGNORES), Act::Started(act), within, told, "ready\n")
    };
    vec![
        started(
            "is killed from outside",
            |begun| {
                send(begun.guest(), Signal::KILL);
                begun.wait()
            },
            AT_ONCE,
            Told::Result(Ending::Signaled(9), &[]),
        ),
        started(
            "loses its PID 1",
            |begun| {
                send(begun.init(), Signal::KILL);
                begun.wait()
            },
            AT_ONCE,
            Told::Result(Ending::Killed(9), &[]),
        ),
        started(
            "loses its launcher",
            |begun| {
                send(launcher(), Signal::KILL);
                begun.wait()
            },
            AT_ONCE,
            Told::Result(Ending::LauncherLost, &[]),
        ),
        started(
            "loses its launcher before anybody waits for it",
            |begun| {
                send(launcher(), Signal::KILL);
                std::thread::sleep(SHORT);
                begun.wait()
            },
            SHORTLY,
            Told::Result(Ending::LauncherLost, &[]),
        ),
    ]
}

fn stopped_and_held() -> Vec<Row> {
    vec![
        row(
            "has its time, and a PID 1 that is stopped",
            sh_limited(IGNORES),
            Act::Started(|begun| {
                send(begun.init(), Signal::STOP);
                begun.wait()
            }),
            SHORTLY,
            Told::Result(Ending::Killed(9), &[Flag::TimedOut]),
            "ready\n",
        ),
        row(
            "leaves while its launcher is stopped",
            sh("echo ready; sleep 0.3; exit 6"),
            Act::Started(|begun| {
                let launcher = launcher();
                send(launcher, Signal::STOP);
                begun.wait_and(|| send(launcher, Signal::CONT))
            }),
            AT_ONCE,
            Told::Result(Ending::Exited(6), &[]),
            "ready\n",
        ),
        row(
            "leaves while a stranger holds its output",
            sh("echo ready; sleep 0.1; echo more; exit 6"),
            Act::Started(|begun| {
                let held = format!("/proc/{}/fd/1", begun.guest());
                let held = OpenOptions::new().write(true).open(held).unwrap();
                begun.wait_and(|| drop(held))
            }),
            AT_ONCE,
            Told::Result(Ending::Exited(6), &[]),
            "ready\nmore\n",
        ),
        row(
            "is killed while a stranger holds its output",
            sh_limited(IGNORES),
            Act::Started(|begun| {
                let held = format!("/proc/{}/fd/1", begun.guest());
                let held = OpenOptions::new().write(true).open(held).unwrap();
                begun.wait_and(|| drop(held))
            }),
            SHORTLY,
            Told::Result(Ending::Killed(9), &[Flag::TimedOut]),
            "ready\n",
        ),
    ]
}

/// Rows that take as long as a killed run may take to be gone.
pub(super) fn unreaped() -> Vec<Row> {
    let held = |name, act, told| row(name, sh(IGNORES), Act::Started(act), DEATH, told, "ready\n");
    let asked = Told::Result(Ending::Unreaped, &[Flag::Terminated]);
    let mut rows = vec![
        held(
            "is killed by a handle while somebody traces it",
            |begun| {
                let handle = begun.process.handle();
                traced(begun, move || {
                    std::thread::sleep(SHORT);
                    handle.kill();
                })
            },
            asked,
        ),
        row(
            "has its time while somebody traces it",
            sh_limited(IGNORES),
            Act::Started(|begun| traced(begun, || {})),
            DEATH,
            Told::Result(Ending::Unreaped, &[Flag::TimedOut]),
            "ready\n",
        ),
        held(
            "is killed while its launcher is stopped",
            |begun| {
                let launcher = launcher();
                send(launcher, Signal::STOP);
                begun.process.kill();
                begun.wait_and(|| send(launcher, Signal::CONT))
            },
            Told::Result(Ending::LauncherLost, &[Flag::Terminated]),
        ),
    ];
    if fs::metadata(FREEZER).is_ok() && rustix::process::geteuid().is_root() {
        rows.push(held(
            "is killed by a handle while it is frozen",
            frozen,
            Told::Result(Ending::Unreaped, &[Flag::Terminated]),
        ));
    }
    rows
}

/// A traced process is there until its tracer has seen its end, and PID 1 until then. The tracer
/// acts while the run is waited for.
fn traced(begun: Begun, act: impl FnOnce() + Send + 'static) -> Seen {
    let (guest, (seized, is_seized), (over, is_over)) =
        (begun.guest(), mpsc::channel(), mpsc::channel::<()>());
    let tracer = std::thread::spawn(move || {
        seized.send(sys::seize(guest)).unwrap();
        act();
        is_over.recv().unwrap_err();
    });
    is_seized.recv().unwrap().unwrap();
    begun.wait_and(|| {
        drop(over);
        tracer.join().unwrap();
    })
}

/// Where the first version of control groups freezes processes, which then do not even die.
const FREEZER: &str = "/sys/fs/cgroup/freezer/tasks";

fn frozen(begun: Begun) -> Seen {
    let group = format!("/sys/fs/cgroup/freezer/postern-tests-{}", std::process::id());
    fs::create_dir(&group).unwrap();
    fs::write(format!("{group}/tasks"), begun.guest().to_string()).unwrap();
    fs::write(format!("{group}/freezer.state"), "FROZEN").unwrap();
    // Nothing of it moves, so that nothing but its bound tells whoever waits.
    let handle = begun.process.handle();
    let other = std::thread::spawn(move || {
        std::thread::sleep(SHORT);
        handle.kill();
    });
    begun.wait_and(|| {
        other.join().unwrap();
        fs::write(format!("{group}/freezer.state"), "THAWED").unwrap();
        while fs::remove_dir(&group).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
    })
}
