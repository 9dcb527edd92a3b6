//! Runs that end in every way, for long: nothing grows, in the host, in its launcher, on the machine.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use postern::{Command, Ending, ProcResult, Sandbox, Signal, Stdin};

use super::number;
use super::random::Random;
use crate::sys;
use crate::world::{self, Outcome, Snapshot, ensure, marker, resident_kib, text};

const WORKERS: usize = 2;
/// Growth that an allocator's own habits explain.
const GROWTH_KIB: u64 = 1024;
/// One in so many has a sandbox of its own.
const OWN_SANDBOX: u64 = 100;
/// The moments of a run at which somebody else ends it.
const MOMENTS_US: u64 = 4000;

/// What of this service's the kernel counts.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    /// Processes that the launcher has.
    runs: usize,
    /// Keys of this user.
    keys: usize,
    /// Control groups that bear our name.
    groups: usize,
}

/// Keys and groups of other services, which come and go meanwhile; a leak would be one a run.
const OTHERS: usize = 16;

impl Counts {
    fn take(launcher: i32) -> Result<Counts, String> {
        Ok(Counts {
            runs: world::children_of(launcher).len(),
            keys: keys()?,
            groups: groups(Path::new("/sys/fs/cgroup"), 6),
        })
    }
}

/// As `/proc/key-users` has it: of the quota, what is used of it.
fn keys() -> Result<usize, String> {
    let own = format!("{}:", rustix::process::getuid().as_raw());
    let all = std::fs::read_to_string("/proc/key-users").map_err(text)?;
    let line = all.lines().find(|line| line.trim_start().starts_with(&own));
    let quota = line.and_then(|line| line.split_ascii_whitespace().nth(3));
    quota.and_then(|quota| quota.split('/').next()).map_or(Ok(0), |used| used.parse().map_err(text))
}

fn groups(directory: &Path, depth: usize) -> usize {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories
        .map(|entry| {
            let own = usize::from(entry.file_name().to_string_lossy().contains("postern"));
            own + if depth > 0 { groups(&entry.path(), depth - 1) } else { 0 }
        })
        .sum()
}

/// RUNS of two workers, SEED (0: take one).
pub(super) fn soak(arguments: &[String]) -> Outcome {
    let (runs, seed) = (number(arguments, 0)?, Random::seed(number(arguments, 1)?));
    let before = world::warm()?;
    let sandbox = world::sandbox()?;
    let mark = marker("soak");
    work(&sandbox, runs / 10, seed, &mark)?;
    let launcher = world::launcher()?;
    at_rest(launcher, &mark)?;
    let (with_launcher, counts) = (Snapshot::take(), Counts::take(launcher)?);
    let resident = [std::process::id(), launcher.unsigned_abs()].map(resident_kib);
    let start = Instant::now();
    let ways = work(&sandbox, runs - runs / 10, seed + 1, &mark)?;
    let took = start.elapsed();
    at_rest(launcher, &mark)?;
    with_launcher.compare()?;
    let now = Counts::take(launcher)?;
    let has_grown = now.keys > counts.keys + OTHERS || now.groups > counts.groups + OTHERS;
    let as_before = now.runs == counts.runs && !has_grown;
    ensure(as_before, || format!("{counts:?} before, {now:?} after"))?;
    let mut grown = [0; 2];
    let now = [std::process::id(), launcher.unsigned_abs()].map(resident_kib);
    for (grown, (before, now)) in grown.iter_mut().zip(resident.into_iter().zip(now)) {
        *grown = now?.saturating_sub(before?);
        ensure(*grown <= GROWTH_KIB, || format!("{grown} KiB more after {runs} runs"))?;
    }
    drop(sandbox);
    before.compare()?;
    let [host, launcher] = grown;
    Ok(format!(
        "{runs} runs in {took:?}, each way at least {ways} times; host {host} KiB and launcher \
         {launcher} KiB more than before; seed {seed}"
    ))
}

/// A dropped run is not waited for, so that its end may come a moment later.
fn at_rest(launcher: i32, mark: &str) -> Result<(), String> {
    let limit = Duration::from_secs(5);
    world::until(limit, "the last guest's end", || world::marked(mark).is_empty())?;
    let ended = || world::children_of(launcher).iter().all(|child| child.state != 'Z');
    world::until(limit, "the last run's end", ended).map(drop)
}

/// So many runs; how often the rarest way came.
fn work(sandbox: &Sandbox, runs: usize, seed: u64, mark: &str) -> Result<usize, String> {
    let counts: [AtomicUsize; WAYS.len()] = Default::default();
    let counts = &counts;
    let worker = |worker: u64| -> Result<(), String> {
        let mut random = Random::new(seed.wrapping_mul(2 * worker + 1));
        for _ in 0..runs / WORKERS {
            let own = (random.below(OWN_SANDBOX) == 0).then(world::sandbox).transpose()?;
            let way = usize::try_from(random.below(WAYS.len() as u64)).map_err(text)?;
            let (Some((name, act)), Some(count)) = (WAYS.get(way), counts.get(way)) else {
                continue;
            };
            act(own.as_ref().unwrap_or(sandbox), mark, &mut random)
                .map_err(|wrong| format!("{name}, seed {seed}: {wrong}"))?;
            count.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    let worker = &worker;
    std::thread::scope(|scope| {
        let all: Vec<_> =
            (0..WORKERS as u64).map(|number| scope.spawn(move || worker(number))).collect();
        all.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err("a worker panicked".to_owned()))
        })
    })?;
    Ok(counts.iter().map(|count| count.load(Ordering::Relaxed)).min().unwrap_or_default())
}

type Way = (&'static str, fn(&Sandbox, &str, &mut Random) -> Result<(), String>);

const WAYS: [Way; 12] = [
    ("leaves", |sandbox, mark, random| {
        let code = i32::try_from(random.below(256)).map_err(text)?;
        is(sandbox.run(sh(mark, &format!("echo out; exit {code}"))), Ending::Exited(code))
    }),
    ("is ended by a signal", |sandbox, mark, _| {
        is(sandbox.run(sh(mark, "echo out; kill -SEGV $$")), Ending::Signaled(11))
    }),
    ("is not there", |sandbox, mark, _| {
        is(sandbox.run(["/nowhere/program", mark]), Ending::ExecFailed(libc::ENOENT))
    }),
    ("leaves children behind", |sandbox, mark, _| {
        is(sandbox.run(sh(mark, "(setsid sleep 60 &); echo out; exit 3")), Ending::Exited(3))
    }),
    ("has its time", |sandbox, mark, random| {
        let command = sh(mark, "exec sleep 60").timeout(moment(random));
        is(sandbox.run(command), Ending::Killed(9))
    }),
    ("is killed", |sandbox, mark, random| {
        let process = sandbox.start(sh(mark, "exec sleep 60")).map_err(text)?;
        std::thread::sleep(moment(random));
        process.kill();
        is(process.wait(), Ending::Killed(9))
    }),
    ("is asked to end", |sandbox, mark, random| {
        let mut process = sandbox.start(sh(mark, "exec sleep 60")).map_err(text)?;
        std::thread::sleep(moment(random));
        process.terminate(Duration::from_secs(30));
        is(process.wait(), Ending::Signaled(15))
    }),
    ("is killed by a handle", |sandbox, mark, random| {
        let process = sandbox.start(sh(mark, "exec sleep 60")).map_err(text)?;
        let (handle, moment) = (process.handle(), moment(random));
        let other = std::thread::spawn(move || {
            std::thread::sleep(moment);
            handle.signal(Signal::KILL);
        });
        let outcome = process.wait();
        other.join().map_err(|_panic| "a thread panicked")?;
        is(outcome, Ending::Killed(9))
    }),
    ("is dropped", |sandbox, mark, random| {
        let process = sandbox.start(sh(mark, "exec sleep 60")).map_err(text)?;
        std::thread::sleep(moment(random));
        drop(process);
        Ok(())
    }),
    ("loses its PID 1", |sandbox, mark, random| {
        let process = sandbox.start(sh(mark, "exec sleep 60")).map_err(text)?;
        std::thread::sleep(moment(random));
        let init = process.pidfd().and_then(world::pid_of).ok_or("the run has no PID 1")?;
        sys::kill(init, libc::SIGKILL).map_err(text)?;
        is(process.wait(), Ending::Killed(9))
    }),
    ("writes more than its cap", |sandbox, mark, _| {
        let command = sh(mark, "head -c 200000 /dev/zero; exit 4").output_bytes_max(1000);
        is(sandbox.run(command), Ending::Exited(4))
    }),
    ("does not read its input", |sandbox, mark, _| {
        let command = sh(mark, "exit 5").stdin(Stdin::Bytes(vec![b'x'; 200_000]));
        is(sandbox.run(command), Ending::Exited(5))
    }),
];

fn moment(random: &mut Random) -> Duration {
    Duration::from_micros(1 + random.below(MOMENTS_US))
}

fn sh(mark: &str, script: &str) -> Command {
    Command::new("/bin/sh").args(["-c", script, mark])
}

fn is(outcome: Result<ProcResult, postern::Error>, ending: Ending) -> Result<(), String> {
    let result = outcome.map_err(text)?;
    ensure(result.ending == ending, || format!("{}, not {ending}", result.reason()))
}
