//! Many runs at one moment, and a host that has few descriptors left.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use postern::error::LaunchError;
use postern::{Error, Process, Sandbox};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::number;
use crate::world::{self, Outcome, Snapshot, ensure, marker, sleeper, text};

/// The slowest start takes so many times as long as the one in the middle, most times: the machine
/// may be busy with something else in one of them.
const TIMES_MAX: f64 = 3.0;

/// RUNS, ROUNDS: all asked for at once, all alive at once.
pub(super) fn at_once(arguments: &[String]) -> Outcome {
    let (runs, rounds) = (number(arguments, 0)?, number(arguments, 1)?);
    let before = world::warm()?;
    let sandbox = world::sandbox()?;
    // The first run of a launcher is looked at.
    sandbox.run(["/bin/true"]).map_err(text)?;
    let with_launcher = Snapshot::take();
    let mut all = Vec::new();
    let mut times = Vec::new();
    for round in 0..rounds {
        let mark = format!("{}-{round}", marker("at-once"));
        let (processes, mut took) = start_all(&sandbox, runs, &mark)?;
        // Each is one that can be ended.
        for process in processes {
            process.kill();
            let result = process.wait().map_err(text)?;
            ensure(result.terminated && result.signal() == Some(9), || result.reason())?;
        }
        ensure(world::marked(&mark).is_empty(), || "guests are left".to_owned())?;
        times.push(times_of(&mut took));
        all.append(&mut took);
    }
    with_launcher.compare()?;
    drop(sandbox);
    before.compare()?;
    let spread = world::spread(&mut all);
    times.sort_by(f64::total_cmp);
    let at = |index: usize| times.get(index).copied().unwrap_or_default();
    let (middle, worst) = (at(times.len() / 2), at(times.len().saturating_sub(1)));
    let figures = format!(
        "{runs} runs at once, {rounds} times: started after {spread}; p99 over p50 of a time: \
         {middle:.2} in the middle, {worst:.2} at worst"
    );
    ensure(middle <= TIMES_MAX, || figures.clone())?;
    Ok(figures)
}

/// How many times as long as the start in the middle the slowest of a hundred takes.
fn times_of(took: &mut [Duration]) -> f64 {
    took.sort_unstable();
    let at = |percent: usize| took.get((took.len() - 1) * percent / 100).copied();
    match (at(99), at(50)) {
        (Some(slow), Some(middle)) => slow.as_secs_f64() / middle.as_secs_f64(),
        (Some(_) | None, _) => f64::INFINITY,
    }
}

fn start_all(
    sandbox: &Sandbox,
    runs: usize,
    mark: &str,
) -> Result<(Vec<Process>, Vec<Duration>), String> {
    let barrier = &Barrier::new(runs);
    let one = move || {
        barrier.wait();
        let begun = Instant::now();
        let process = sandbox.start(sleeper(mark)).map_err(text)?;
        Ok((process, begun.elapsed()))
    };
    let one = &one;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..runs).map(|_| scope.spawn(one)).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|outcome| outcome.unwrap_or_else(|_| Err("panicked".to_owned()))).collect()
    })
}

/// THREADS: a host that may have fewer and fewer descriptors, and whose threads all start runs: each
/// starts or is refused, and one that lives is not harmed.
pub(super) fn few_descriptors(arguments: &[String]) -> Outcome {
    let threads = number(arguments, 0)?;
    let before = world::warm()?;
    let sandbox = world::sandbox()?;
    let witness = sandbox.start(sleeper(&marker("witness"))).map_err(text)?;
    let with_witness = Snapshot::take();
    let old = getrlimit(Resource::Nofile);
    let (mut started, mut refused) = (0, 0);
    for spare in (1..16 + 4 * threads).rev() {
        let limit = Rlimit { current: Some(world::limit_leaving(spare)), maximum: old.maximum };
        let mark = marker("few");
        let until_refused = || {
            let mut processes = Vec::new();
            loop {
                match sandbox.start(sleeper(&mark)) {
                    Ok(process) => processes.push(process),
                    Err(error) => return (processes, error),
                }
            }
        };
        let barrier = Barrier::new(threads + 1);
        let (until_refused, barrier) = (&until_refused, &barrier);
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let one = move || {
                barrier.wait();
                until_refused()
            };
            let all: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
            let limited = setrlimit(Resource::Nofile, limit).map_err(text);
            barrier.wait();
            let joined: Vec<_> = all.into_iter().map(|thread| thread.join()).collect();
            limited.map(|()| joined)
        })?;
        setrlimit(Resource::Nofile, old).map_err(text)?;
        for outcome in outcomes {
            let (processes, refusal) = outcome.map_err(|_panic| "a thread panicked")?;
            started += processes.len();
            refused += 1;
            ensure(is_typed(&refusal), || format!("{spare} descriptors: {refusal:?}"))?;
        }
        let gone = || world::marked(&mark).is_empty();
        world::until(Duration::from_secs(5), "the end of every run", gone)
            .map_err(|wrong| format!("{spare} descriptors: {wrong}"))?;
        with_witness.compare().map_err(|wrong| format!("{spare} descriptors: {wrong}"))?;
    }
    witness.kill();
    let result = witness.wait().map_err(text)?;
    ensure(result.terminated && result.signal() == Some(9), || result.reason())?;
    drop(sandbox);
    before.compare()?;
    Ok(format!("{started} runs started and {refused} were refused for want of a descriptor"))
}

fn is_typed(refusal: &Error) -> bool {
    let Error::Launch(LaunchError::Prepare { source, .. }) = refusal else { return false };
    source.raw_os_error() == Some(libc::EMFILE)
}
