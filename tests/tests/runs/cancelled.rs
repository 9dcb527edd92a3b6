//! Futures that are dropped wherever they wait: what they had begun ends, and nothing is left.

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::{Duration, Instant};

use postern::{Command, Sandbox, Stdin};
use postern_tests::children;

use crate::ways::{Way, sh};
use crate::{HANG, begin, figure, long_or, sandbox};

/// The children of the launcher: the runs that there are, and what it keeps ready.
#[derive(Debug)]
pub(crate) struct Runs {
    launcher: i32,
    at_rest: usize,
}

impl Runs {
    /// Of the only sandbox of this process, in which nothing runs.
    pub(crate) fn of(sandbox: &Sandbox) -> Runs {
        assert!(sandbox.run(["true"]).unwrap().ok());
        let own = i32::try_from(std::process::id()).unwrap();
        let launcher = match children(own)[..] {
            [launcher] => launcher,
            ref others => panic!("{others:?}: one launcher was expected"),
        };
        std::thread::sleep(Duration::from_millis(100));
        Runs { launcher, at_rest: children(launcher).len() }
    }

    /// How long it takes until none is left.
    pub(crate) fn end(&self) -> Duration {
        let begun = Instant::now();
        loop {
            let found = children(self.launcher);
            if found.len() <= self.at_rest {
                return begun.elapsed();
            }
            assert!(begun.elapsed() < HANG / 6, "{found:?} live on, {} at rest", self.at_rest);
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Polls a future so many times, drops it a moment later; whether it was ready before.
async fn cut<F: Future>(future: F, polls: usize, later: Duration) -> bool {
    let mut future = Box::pin(future);
    let mut left = polls;
    let is_ready = poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if left == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await;
    spin(later);
    is_ready
}

/// Not a wait of the runtime's: the launcher works meanwhile, and nobody hears of it.
fn spin(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// The moments that lie between a request, its announcement and the guest's beginning.
fn moments() -> impl Iterator<Item = Duration> {
    (0..long_or(200, 40)).map(|n| Duration::from_micros(n * long_or(10, 50)))
}

#[test]
fn a_start_may_be_given_up_at_every_point() {
    let _watch = begin();
    let sandbox = sandbox();
    let runs = Runs::of(&sandbox);
    let commands = [
        sh("sleep 1000"),
        Command::python("import time; time.sleep(1000)"),
        Command::new("cat").stdin(Stdin::Piped),
        // Too long for one message.
        Command::new("sleep").arg("1000").env("LONG", "x".repeat(100_000)),
    ];
    for way in [Way::CurrentThread, Way::MultiThread] {
        let runtime = way.runtime().unwrap();
        let mut polls_max = 0;
        for command in &commands {
            for later in moments() {
                for polls in 0.. {
                    let start = sandbox.start_async(command.clone());
                    if runtime.block_on(cut(start, polls, later)) {
                        polls_max = polls_max.max(polls);
                        break;
                    }
                }
            }
            runs.end();
        }
        figure(format!("a start is ready after {polls_max} polls at most, {way:?}"));
    }
}

/// Whether a start that is polled again a moment after the first time is ready.
async fn is_announced<F: Future>(start: F, later: Duration) -> bool {
    let mut start = Box::pin(start);
    let mut polls = 0;
    poll_fn(|context| {
        polls += 1;
        match (start.as_mut().poll(context), polls) {
            (Poll::Ready(_), _) => Poll::Ready(true),
            (Poll::Pending, 1) => {
                spin(later);
                context.waker().wake_by_ref();
                Poll::Pending
            }
            (Poll::Pending, _) => Poll::Ready(false),
        }
    })
    .await
}

/// An announcement that comes while the handle is dropped is either seen or cannot be made. Every
/// other start is there to find the moment, which moves with the machine's load.
#[test]
fn a_start_may_be_given_up_as_it_is_announced() {
    const STEP: Duration = Duration::from_micros(4);
    let _watch = begin();
    let sandbox = sandbox();
    let runs = Runs::of(&sandbox);
    let runtime = Way::CurrentThread.runtime().unwrap();
    let mut moment = Duration::from_millis(1);
    for number in 0..long_or(20_000, 3000) {
        let start = sandbox.start_async(sh("exec sleep 1000"));
        moment = match runtime.block_on(is_announced(start, moment)) {
            true => moment.saturating_sub(STEP),
            false => moment + STEP,
        };
        let around = (moment + number % 20 * STEP).saturating_sub(10 * STEP);
        runtime.block_on(cut(sandbox.start_async(sh("exec sleep 1000")), 1, around));
    }
    figure(format!(
        "a run is announced {moment:?} after its request, all gone {:?} later",
        runs.end()
    ));
}

#[test]
fn a_run_may_be_given_up_at_every_point() {
    let _watch = begin();
    let sandbox = sandbox();
    let runs = Runs::of(&sandbox);
    let feed = Stdin::Bytes(vec![b'x'; 1 << 20]);
    let commands = [
        // Something to poll for, again and again.
        sh("while :; do echo x; sleep 0.001; done"),
        sh("yes >&2").timeout(HANG),
        Command::new("sleep").arg("1000").stdin(feed),
    ];
    for way in [Way::CurrentThread, Way::MultiThread] {
        let runtime = way.runtime().unwrap();
        for command in &commands {
            for polls in 0..12 {
                // One that feeds a guest which does not read waits for ever before that.
                let run = cut(sandbox.run_async(command.clone()), polls, Duration::ZERO);
                let limited = async { tokio::time::timeout(Duration::from_millis(50), run).await };
                assert!(!runtime.block_on(limited).unwrap_or(false));
            }
            runs.end();
        }
    }
}

/// A task that is aborted drops what it waits for.
#[test]
fn an_aborted_task_ends_its_run() {
    let _watch = begin();
    let sandbox = std::sync::Arc::new(sandbox());
    let runs = Runs::of(&sandbox);
    for way in [Way::CurrentThread, Way::MultiThread] {
        way.runtime().unwrap().block_on(async {
            for _ in 0..long_or(500, 50) {
                let sandbox = std::sync::Arc::clone(&sandbox);
                let task = tokio::spawn(async move { sandbox.run_async(sh("sleep 1000")).await });
                tokio::time::sleep(Duration::from_millis(1)).await;
                task.abort();
                assert!(task.await.unwrap_err().is_cancelled());
            }
        });
        figure(format!("aborted and gone, {way:?}: {:?}", runs.end()));
    }
}
