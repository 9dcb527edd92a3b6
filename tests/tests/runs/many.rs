//! Many runs on one sandbox, at once and one after the other: no error, nothing kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use postern::{Command, Sandbox};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cancelled::Runs;
use crate::memory::anonymous_kib;
use crate::ways::{Way, sh};
use crate::{HANG, begin, figure, long_or, sandbox};

const RUNS: u64 = 200;
/// What a service has unless it says otherwise.
const DESCRIPTORS: u64 = 1024;

/// A run that takes longer has not noticed the end of a stream.
const GIVEN_UP: Duration = Duration::from_secs(1);

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Counts this process's descriptors until it is told to stop; the most there were.
fn peak_while<T>(act: impl FnOnce() -> T) -> (T, usize) {
    let (stop, peak) = (AtomicBool::new(false), AtomicUsize::new(0));
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                peak.fetch_max(descriptors(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let outcome = act();
        stop.store(true, Ordering::Relaxed);
        outcome
    });
    (outcome, peak.into_inner())
}

/// Numbers that look random and are the same each time.
fn scatter(number: u64) -> u64 {
    number.wrapping_mul(6_364_136_223_846_793_005).rotate_left(29).wrapping_mul(0x9e37_79b9) >> 16
}

/// One of many; what went wrong. Every third is given up at some moment, every second is Python.
async fn one(sandbox: &Sandbox, number: u64) -> Option<String> {
    let is_given_up = number.is_multiple_of(3);
    let seconds = if is_given_up { 1000 } else { 0 };
    let command = match number % 2 {
        0 => Command::python(format!("import time; time.sleep({seconds}); print({number})")),
        _ => sh(&format!("sleep {seconds}; echo {number}")),
    };
    if is_given_up {
        let moment = Duration::from_micros(scatter(number) % 300_000);
        let given_up = tokio::time::timeout(moment, sandbox.run_async(command)).await;
        return given_up.ok().map(|ended| format!("{number}: {ended:?}"));
    }
    match sandbox.run_async(command.timeout(HANG)).await {
        Ok(result) if result.ok() && result.stdout_text() == format!("{number}\n") => None,
        other => Some(format!("{number}: {other:?}")),
    }
}

#[test]
fn two_hundred_at_once_a_third_given_up() {
    let _watch = begin();
    let limit = getrlimit(Resource::Nofile);
    let limit = Rlimit { current: Some(DESCRIPTORS), maximum: limit.maximum };
    setrlimit(Resource::Nofile, limit).unwrap();
    let sandbox = Arc::new(sandbox());
    let runs = Runs::of(&sandbox);
    for way in [Way::CurrentThread, Way::MultiThread] {
        let runtime = way.runtime().unwrap();
        let before = descriptors();
        for round in 0..long_or(20, 1) {
            let begun = Instant::now();
            let (errors, peak) = peak_while(|| runtime.block_on(all(&sandbox, round * RUNS)));
            figure(format!(
                "{RUNS} at once, {way:?}: {:?}, {} errors, {peak} descriptors at most, last gone {:?} later",
                begun.elapsed(),
                errors.len(),
                runs.end(),
            ));
            assert!(errors.is_empty(), "{errors:#?}");
            assert_eq!(descriptors(), before, "{way:?}");
        }
    }
}

async fn all(sandbox: &Arc<Sandbox>, first: u64) -> Vec<String> {
    let tasks: Vec<_> = (first..first + RUNS)
        .map(|number| {
            let sandbox = Arc::clone(sandbox);
            tokio::spawn(async move { one(&sandbox, number).await })
        })
        .collect();
    let mut errors = Vec::new();
    for task in tasks {
        errors.extend(task.await.unwrap());
    }
    errors
}

#[test]
fn short_runs_one_after_the_other_keep_nothing() {
    let _watch = begin();
    let sandbox = sandbox();
    let runs = Runs::of(&sandbox);
    let count = long_or(10_000, 500);
    for way in Way::ALL {
        let runtime = way.runtime();
        let run = |number: u64| {
            let command = sh("echo $0 >&2; cat").arg(number.to_string());
            let command = command.stdin(postern::Stdin::Bytes(vec![b'x'; 1000]));
            let result = match &runtime {
                None => sandbox.run(command),
                Some(runtime) => runtime.block_on(sandbox.run_async(command)),
            };
            let result = result.unwrap();
            let found = (result.stdout.len(), result.stderr_text());
            assert_eq!(found, (1000, format!("{number}\n").into()));
        };
        (0..100).for_each(run);
        let (before, kib, begun) = (descriptors(), anonymous_kib(), Instant::now());
        let slow = (0..count).filter(|number| {
            let begun = Instant::now();
            run(*number);
            begun.elapsed() > GIVEN_UP
        });
        let slow = slow.count();
        let growth = anonymous_kib().saturating_sub(kib);
        figure(format!("{count} short runs, {way:?}: {:?}, {growth} KiB more", begun.elapsed()));
        assert_eq!(descriptors(), before, "{way:?}");
        assert!(slow * 100 <= usize::try_from(count).unwrap(), "{slow} of {count} waited, {way:?}");
        assert!(growth < 1024, "{growth} KiB more after {count} runs, {way:?}");
        runs.end();
    }
}
