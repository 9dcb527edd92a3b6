//! The async twins on the runtimes that services have: what they need, what they leave alone, and
//! that they hold nobody up.

use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use postern::{Command, Ending, Stdin};
use tokio::runtime::{Builder, Runtime};

use crate::ways::{Way, sh};
use crate::{HANG, begin, figure, sandbox};

/// What has to compile.
fn sent<T: Send>(value: T) -> T {
    value
}

fn both() -> impl Iterator<Item = Runtime> {
    [Way::CurrentThread, Way::MultiThread].into_iter().filter_map(Way::runtime)
}

#[test]
fn futures_may_change_their_thread() {
    let _watch = begin();
    let sandbox = sandbox();
    let all = async {
        assert!(sent(sandbox.run_async(["true"])).await.unwrap().ok());
        assert!(sent(sandbox.run_python_async("pass")).await.unwrap().ok());
        assert!(sent(sandbox.run_bash_async("true")).await.unwrap().ok());
        drop(sent(sandbox.start_python_async("pass")).await.unwrap());
        drop(sent(sandbox.start_bash_async("true")).await.unwrap());
        let mut process = sent(sandbox.start_async(sh("cat").stdin(Stdin::Piped))).await.unwrap();
        sent(process.write_stdin("a\nb")).await.unwrap();
        assert_eq!(sent(process.next_line()).await.unwrap().unwrap().text(), "a");
        process.close_stdin();
        while sent(process.next_chunk()).await.unwrap().is_some() {}
        assert!(sent(process.communicate(HANG, 7)).await.unwrap().ok());
        assert!(sent(process.wait()).await.unwrap().stdout.is_empty());
    };
    sent(&all);
    Way::MultiThread.runtime().unwrap().block_on(all);
}

/// The other branch of a `select!` asks the run to end, and the first one then waits for it.
#[test]
fn a_run_that_is_waited_for_can_be_terminated() {
    let _watch = begin();
    let sandbox = sandbox();
    let script = "trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.05; done";
    for runtime in both() {
        runtime.block_on(async {
            let mut process = sandbox.start_async(sh(script)).await.unwrap();
            let mut asked = false;
            let result = loop {
                tokio::select! {
                    result = process.wait() => break result.unwrap(),
                    () = tokio::time::sleep(Duration::from_millis(300)), if !asked => {
                        process.terminate(HANG);
                        asked = true;
                    }
                }
            };
            // What an abandoned wait had read is kept.
            let found = (result.ending, result.terminated, result.stdout_text());
            assert_eq!(found, (Ending::Exited(4), true, "ready\nbye\n".into()));
        });
    }
}

/// Each piece that a cancelled call might have taken is there for the next one.
#[test]
fn cancelled_reads_lose_nothing() {
    let _watch = begin();
    let sandbox = sandbox();
    for runtime in both() {
        runtime.block_on(async {
            let script = "for n in $(seq 300); do echo $n; [ $((n % 10)) = 0 ] && sleep 0.01; done";
            let mut process = sandbox.start_async(Command::bash(script)).await.unwrap();
            let mut found = Vec::new();
            let mut cancelled = 0;
            loop {
                let brief = Duration::from_micros(50);
                match tokio::time::timeout(brief, process.next_line()).await {
                    Ok(Ok(Some(line))) => found.push(line.text().into_owned()),
                    Ok(end) => break assert_eq!(end.unwrap(), None),
                    Err(_) => cancelled += 1,
                }
            }
            assert!(found.into_iter().eq((1..=300).map(|n| n.to_string())));
            assert!(cancelled > 0);
        });
    }
}

#[test]
fn runs_of_a_dropped_sandbox_end() {
    let _watch = begin();
    for runtime in both() {
        let sandbox = sandbox();
        runtime.block_on(async {
            let mut waiting = Vec::new();
            for _ in 0..8 {
                let mut process = sandbox.start_async(sh("echo a; sleep 1000")).await.unwrap();
                assert_eq!(process.next_line().await.unwrap().unwrap().text(), "a");
                waiting.push(tokio::spawn(async move { process.wait().await }));
            }
            tokio::task::yield_now().await;
            drop(sandbox);
            for task in waiting {
                let result = task.await.unwrap().unwrap();
                assert!(matches!(result.ending, Ending::LauncherLost | Ending::Killed(9)));
                assert!(!result.ok() && !result.timed_out, "{:?}", result.ending);
            }
        });
    }
}

/// A service that lacks a driver is told so by tokio, and nothing is left running.
#[test]
fn a_runtime_without_drivers_is_a_panic_and_leaves_nothing() {
    let _watch = begin();
    let sandbox = sandbox();
    let without = |prepare: fn(&mut Builder) -> &mut Builder| {
        prepare(&mut Builder::new_current_thread()).build().unwrap()
    };
    for runtime in [without(|it| it), without(Builder::enable_io), without(Builder::enable_time)] {
        let run = || runtime.block_on(sandbox.run_async(sh("sleep 1000").timeout(HANG)));
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    }
    let bare = || poll_once(sandbox.run_async(["true"]));
    assert!(catch_unwind(AssertUnwindSafe(bare)).is_err());
    assert!(sandbox.run(["true"]).unwrap().ok());
}

/// Polls a future outside of any runtime.
fn poll_once<F: Future>(future: F) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    std::pin::pin!(future).poll(&mut context).is_ready()
}

/// Each turn moves a few MiB at the most, and then other tasks have theirs.
const TURN_BYTES: usize = 4 << 20;

/// A run that is waited for leaves the thread to other tasks, however fast its guest is.
#[test]
fn a_run_leaves_the_thread_to_others() {
    let _watch = begin();
    let sandbox = sandbox();
    let bytes = 512 << 20;
    let input = Stdin::Bytes(vec![b'x'; bytes]);
    let output = format!("head -c {bytes} /dev/zero");
    let rows = [
        ("feeding", sh("cat >/dev/null").stdin(input)),
        ("capturing", sh(&output).output_bytes_max(1 << 20)),
    ];
    for (name, command) in rows {
        let turns = Cell::new(0);
        let worst = Cell::new(Duration::ZERO);
        let others = async {
            loop {
                let begun = Instant::now();
                tokio::task::yield_now().await;
                worst.set(worst.get().max(begun.elapsed()));
                turns.set(turns.get() + 1);
            }
        };
        Way::CurrentThread.runtime().unwrap().block_on(async {
            tokio::select! {
                biased;
                result = sandbox.run_async(command) => assert!(result.unwrap().ok()),
                () = others => {}
            }
        });
        let (turns, worst) = (turns.get(), worst.get());
        figure(format!("{name} 512 MiB: {turns} turns for others, the longest wait {worst:?}"));
        assert!(turns >= bytes / TURN_BYTES, "{name}: {turns} turns");
    }
}
