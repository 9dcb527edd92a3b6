//! Many runs and many sandboxes: nothing grows.

use std::time::Instant;

use super::number;
use crate::world::{self, Outcome, Snapshot, ensure, marker, resident_kib, text};

/// Growth that an allocator's own habits explain.
const GROWTH_KIB: u64 = 512;

/// THREADS, RUNS of each: one sandbox, all at once.
pub(super) fn threads(arguments: &[String]) -> Outcome {
    let (threads, runs) = (number(arguments, 0)?, number(arguments, 1)?);
    let before = world::warm()?;
    let sandbox = world::sandbox()?;
    let with_launcher = Snapshot::take();
    let mark = marker("threads");
    let start = Instant::now();
    let one = |thread: usize| {
        (0..runs).try_for_each(|run| {
            let line = format!("echo {thread} {run}; exit 0");
            let result = sandbox.run(["/bin/sh", "-c", &line, &mark]).map_err(text)?;
            let right = result.ok() && result.stdout == format!("{thread} {run}\n").into_bytes();
            ensure(right, || format!("thread {thread}, run {run}: {result:?}"))
        })
    };
    let one = &one;
    let outcomes: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|thread| scope.spawn(move || one(thread))).collect();
        let joined = all.into_iter().map(|thread| thread.join());
        joined.map(|outcome| outcome.unwrap_or_else(|_| Err("panicked".to_owned()))).collect()
    });
    let wrong: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    ensure(wrong.is_empty(), || format!("{} threads failed: {:?}", wrong.len(), wrong.first()))?;
    let took = start.elapsed();
    let left = world::marked(&mark);
    ensure(left.is_empty(), || format!("guests {left:?} are left"))?;
    with_launcher.compare()?;
    drop(sandbox);
    before.compare()?;
    Ok(format!("{threads} threads with {runs} runs each in {took:?}"))
}

/// Repeats `act` and compares what there is after a tenth of the rounds with what there is after
/// all of them.
fn flat(rounds: usize, with_what: &str, mut act: impl FnMut() -> Result<(), String>) -> Outcome {
    let (warm, rest) = (rounds / 10, rounds - rounds / 10);
    (0..warm).try_for_each(|_| act())?;
    let (before, resident) = (Snapshot::take(), resident_kib(std::process::id())?);
    let start = Instant::now();
    (0..rest).try_for_each(|_| act())?;
    let took = start.elapsed();
    before.compare()?;
    let grown = resident_kib(std::process::id())?.saturating_sub(resident);
    ensure(grown <= GROWTH_KIB, || format!("{grown} KiB more after {rest} {with_what}"))?;
    Ok(format!("{rest} {with_what} in {took:?}, {grown} KiB more than before"))
}

/// RUNS of one sandbox.
pub(super) fn many_runs(arguments: &[String]) -> Outcome {
    let before = world::warm()?;
    let sandbox = world::sandbox()?;
    let figures = flat(number(arguments, 0)?, "runs", || {
        let result = sandbox.run(["/bin/true"]).map_err(text)?;
        ensure(result.ok(), || format!("{:?}", result.ending))
    })?;
    drop(sandbox);
    before.compare()?;
    Ok(figures)
}

/// SANDBOXES, with one run each.
pub(super) fn many_sandboxes(arguments: &[String]) -> Outcome {
    let before = world::warm()?;
    let figures = flat(number(arguments, 0)?, "sandboxes", || {
        let result = world::sandbox()?.run(["/bin/true"]).map_err(text)?;
        ensure(result.ok(), || format!("{:?}", result.ending))
    })?;
    before.compare()?;
    Ok(figures)
}
