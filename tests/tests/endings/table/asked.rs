//! Runs that their service ends: by asking, by force, by a limit, or by letting go of them.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use postern::error::CommandError;
use postern::{Command, Ending, Error, Sandbox, Signal, Stdin};
use tokio::runtime::{Builder, Runtime};

use super::{
    AT_ONCE, Act, Begun, Flag, HANG, Row, SHORT, SHORTLY, Seen, Told, row, sh, sh_limited,
};

const OBEYS: &str = "echo ready; exec sleep 60";
const TRAPS: &str = "trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.05; done";
const IGNORES: &str = "trap '' TERM INT HUP; echo ready; while :; do sleep 60; done";
/// Writes as much as its pipe takes, and becomes another program.
const WRITES: &str = "echo ready; head -c 60000 /dev/zero; exec sleep 60";

const KILLED: Told = Told::Result(Ending::Killed(9), &[Flag::Terminated]);
const OVER_TIME: Told = Told::Result(Ending::Killed(9), &[Flag::TimedOut]);

fn started(
    name: &str,
    script: &'static str,
    act: fn(Begun) -> Seen,
    within: Duration,
    told: Told,
    stdout: &str,
) -> Row {
    row(name, sh(script), Act::Started(act), within, told, stdout)
}

fn limited(name: &str, script: &'static str, stdout: &str) -> Row {
    row(name, sh_limited(script), Act::Run, SHORTLY, OVER_TIME, stdout)
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = terminated();
    rows.extend(killed());
    rows.extend(out_of_time());
    rows.extend(let_go());
    rows.extend(cancelled());
    rows
}

fn terminate(mut begun: Begun, grace: Duration) -> Seen {
    begun.process.terminate(grace);
    begun.wait()
}

fn terminated() -> Vec<Row> {
    vec![
        started(
            "is asked to end, and does",
            OBEYS,
            |begun| terminate(begun, HANG),
            AT_ONCE,
            Told::Result(Ending::Signaled(15), &[Flag::Terminated]),
            "ready\n",
        ),
        started(
            "is asked to end, and says good bye",
            TRAPS,
            |begun| terminate(begun, HANG),
            AT_ONCE,
            Told::Result(Ending::Exited(4), &[Flag::Terminated]),
            "ready\nbye\n",
        ),
        started(
            "is asked to end, and does not",
            IGNORES,
            |begun| terminate(begun, SHORT),
            SHORTLY,
            KILLED,
            "ready\n",
        ),
        started(
            "is asked to end, but stopped",
            "echo ready; kill -STOP $$; exit 1",
            |begun| terminate(begun.in_state('T'), SHORT),
            SHORTLY,
            KILLED,
            "ready\n",
        ),
        started(
            "is asked to end, without grace",
            IGNORES,
            |begun| terminate(begun, Duration::ZERO),
            AT_ONCE,
            KILLED,
            "ready\n",
        ),
        started(
            "is asked to end, and killed",
            IGNORES,
            |mut begun| {
                begun.process.terminate(HANG);
                begun.process.kill();
                begun.wait()
            },
            AT_ONCE,
            KILLED,
            "ready\n",
        ),
        started(
            "is asked to end by a signal that it takes",
            "trap 'echo here; exit 6' USR1; echo ready; while :; do sleep 0.05; done",
            |begun| {
                begun.process.signal(Signal::USR1);
                begun.wait()
            },
            AT_ONCE,
            Told::Result(Ending::Exited(6), &[]),
            "ready\nhere\n",
        ),
    ]
}

fn killed() -> Vec<Row> {
    let written = format!("ready\n{}", "\0".repeat(60_000));
    vec![
        started(
            "is killed",
            IGNORES,
            |begun| {
                begun.process.kill();
                begun.wait()
            },
            AT_ONCE,
            KILLED,
            "ready\n",
        ),
        started(
            "is killed with its output unread",
            WRITES,
            |begun| {
                let comm = format!("/proc/{}/comm", begun.guest());
                while std::fs::read_to_string(&comm).unwrap() != "sleep\n" {
                    std::thread::sleep(Duration::from_millis(1));
                }
                begun.process.kill();
                begun.wait()
            },
            AT_ONCE,
            KILLED,
            &written,
        ),
        started(
            "is killed from another thread meanwhile",
            IGNORES,
            |begun| {
                let handle = begun.process.handle();
                let other = std::thread::spawn(move || {
                    std::thread::sleep(SHORT);
                    handle.kill();
                });
                begun.wait_and(|| other.join().unwrap())
            },
            SHORTLY,
            KILLED,
            "ready\n",
        ),
        started(
            "is killed by a handle's signal",
            IGNORES,
            |begun| {
                begun.process.handle().signal(Signal::KILL);
                begun.wait()
            },
            AT_ONCE,
            Told::Result(Ending::Killed(9), &[]),
            "ready\n",
        ),
        row(
            "is killed before its program begins",
            sh(OBEYS),
            Act::Sandbox(|sandbox, command| {
                let process = sandbox.start(command).unwrap();
                process.kill();
                // The program may have come as far as its line.
                Seen::of(process.communicate(None, 0).map(|mut result| {
                    result.truncated = false;
                    result
                }))
            }),
            AT_ONCE,
            KILLED,
            "",
        ),
    ]
}

fn out_of_time() -> Vec<Row> {
    vec![
        limited("has its time and obeys nobody", IGNORES, "ready\n"),
        limited("has its time and is stopped", "echo ready; kill -STOP $$; exit 1", "ready\n"),
        limited(
            "has its time and children in sessions of their own, which hold its output",
            "(setsid sh -c 'trap \"\" TERM; sleep 60' & exit) & setsid sh -c '(sleep 60 &); sleep \
             60' & echo ready; sleep 60",
            "ready\n",
        ),
        limited(
            "has its time and no output any more",
            "echo ready; exec >&- 2>&-; sleep 60",
            "ready\n",
        ),
        row(
            "has no time at all",
            |mark| sh("sleep 60")(mark).timeout(Duration::ZERO),
            Act::Run,
            AT_ONCE,
            Told::Failed(|error| matches!(error, Error::Command(CommandError::ZeroTimeout))),
            "",
        ),
        row(
            "has its time and does not read its input",
            |mark| {
                sh_limited("echo ready; sleep 60")(mark).stdin(Stdin::Bytes(vec![b'x'; 4 << 20]))
            },
            Act::Run,
            SHORTLY,
            OVER_TIME,
            "ready\n",
        ),
        row(
            "has its time from when it is waited for",
            sh(IGNORES),
            Act::Sandbox(|sandbox, command| {
                Seen::of(sandbox.start(command).unwrap().communicate(SHORT, None))
            }),
            SHORTLY,
            OVER_TIME,
            "ready\n",
        ),
        row(
            "has its time while its caller is elsewhere",
            sh_limited(IGNORES),
            Act::Started(|begun| {
                std::thread::sleep(2 * SHORT);
                begun.wait()
            }),
            SHORTLY,
            OVER_TIME,
            "ready\n",
        ),
    ]
}

/// Starts no thread but its own.
pub(super) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn given_up(sandbox: Sandbox, command: Command, polls: usize) -> Seen {
    runtime().block_on(async {
        let mut run = Box::pin(sandbox.run_async(command));
        let mut left = polls;
        std::future::poll_fn(|context| {
            left = left.saturating_sub(1);
            match (left, run.as_mut().poll(context)) {
                (0, _) => std::task::Poll::Ready(()),
                (_, ready) => ready.map(|ended| panic!("{ended:?}")),
            }
        })
        .await;
    });
    Seen::gone()
}

fn let_go() -> Vec<Row> {
    let gone = |name, act| row(name, sh(IGNORES), act, AT_ONCE, Told::Gone, "");
    vec![gone(
        "is dropped",
        Act::Started(|begun| {
            drop(begun.process);
            let seen = Seen::gone();
            drop(begun.sandbox);
            seen
        }),
    )]
}

/// By futures that are dropped, whatever drops them.
fn cancelled() -> Vec<Row> {
    let gone = |name, act| row(name, sh(IGNORES), act, AT_ONCE, Told::Gone, "");
    vec![
        gone(
            "is dropped with what the thread that panics had",
            Act::Started(|begun| {
                let Begun { sandbox, process, .. } = begun;
                let thread = std::thread::spawn(move || {
                    let _process = process;
                    resume_unwind(Box::new("a panic"));
                });
                assert!(thread.join().is_err());
                drop(sandbox);
                Seen::gone()
            }),
        ),
        gone(
            "is given up before it has begun",
            Act::Sandbox(|sandbox, command| given_up(sandbox, command, 1)),
        ),
        gone(
            "is given up while it is waited for",
            Act::Sandbox(|sandbox, command| {
                runtime().block_on(async {
                    tokio::time::timeout(SHORT, sandbox.run_async(command)).await.unwrap_err();
                });
                Seen::gone()
            }),
        ),
        gone(
            "is aborted with its task",
            Act::Sandbox(|sandbox, command| {
                runtime().block_on(async {
                    let task = tokio::spawn(async move { sandbox.run_async(command).await });
                    tokio::time::sleep(SHORT).await;
                    task.abort();
                    assert!(task.await.unwrap_err().is_cancelled());
                });
                Seen::gone()
            }),
        ),
        gone(
            "goes with the runtime that its task is on",
            Act::Sandbox(|sandbox, command| {
                let (runtime, sandbox) = (runtime(), Arc::new(sandbox));
                drop(runtime.spawn({
                    let sandbox = Arc::clone(&sandbox);
                    async move { sandbox.run_async(command).await }
                }));
                runtime.block_on(async { tokio::time::sleep(SHORT).await });
                drop(runtime);
                drop(sandbox);
                Seen::gone()
            }),
        ),
        row(
            "loses its sandbox",
            sh("echo ready; echo more; sleep 60"),
            Act::Started(|begun| {
                std::thread::sleep(SHORT);
                let Begun { sandbox, process, stdout, since } = begun;
                drop(sandbox);
                Seen { outcome: Some(process.wait()), stdout, took: Some(since.elapsed()) }
            }),
            SHORTLY,
            Told::Result(Ending::LauncherLost, &[]),
            "ready\nmore\n",
        ),
    ]
}
