//! What a hostile guest sends, what it costs the host while it lasts, and what is left after it. The
//! host is another process; a second run is served meanwhile, and is timed.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::attacks::{ATTACKS, Attack};
pub(crate) use crate::host::HostProcess;
use crate::host::Usage;
use crate::support::{alone, client, hello, runtime};
use crate::watch::{descriptors_of, resident_kib, thread_of};

/// How long each attack goes on.
const TIME: Duration = Duration::from_millis(1500);

/// What no attack may make of the host: descriptors and memory above what it had.
const DESCRIPTORS_MAX: usize = 16 + 4;
const MEMORY_KIB_MAX: u64 = 160 * 1024;

/// For a call of the other run, the 99th percentile: a host that hangs would take for ever.
const LATENCY_MAX: Duration = Duration::from_millis(250);

/// Times calls of the other run, one after the other, until it is asked for the times.
struct Bystander {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

impl Bystander {
    fn start(path: &Path) -> Self {
        let (path, stop) = (path.to_owned(), Arc::new(AtomicBool::new(false)));
        let is_over = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            prefer(rustix::thread::gettid(), "chrt", &["--fifo", "--pid", "2"]);
            let mut times = Vec::new();
            runtime().block_on(async {
                let mut client = client(&path).await;
                while !is_over.load(Ordering::Relaxed) {
                    let start = Instant::now();
                    client.say_hello(hello("ada")).await.unwrap();
                    times.push(start.elapsed());
                    tokio::time::sleep(Duration::from_micros(500)).await;
                }
            });
            times
        });
        Self { stop, thread }
    }

    /// The median and the 99th percentile.
    fn stop(self) -> (Duration, Duration) {
        self.stop.store(true, Ordering::Relaxed);
        let mut times = self.thread.join().unwrap();
        times.sort();
        assert!(times.len() > 20, "{} calls", times.len());
        (times[times.len() / 2], times[times.len() * 99 / 100])
    }
}

/// Where the test may, has the scheduler prefer the bystander and the hatch to all else on this
/// machine.
fn prefer(thread: Pid, program: &str, arguments: &[&str]) {
    #[expect(clippy::disallowed_methods, reason = "there is no safe call for it")]
    let mut command = Command::new(program);
    let thread = thread.as_raw_pid().to_string();
    let output = command.args(arguments).arg(thread).output().unwrap();
    if !output.status.success() {
        println!("with the scheduler's delays: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Attacks from a thread that has one processor, and that where nobody else wants it: what an
/// attacker takes from the others by being busy is the scheduler's to divide, and is not what is
/// tried.
fn from_behind(attack: Attack, path: &Path, until: Instant) {
    let path = path.to_owned();
    let attacker = thread::spawn(move || {
        let own = rustix::thread::gettid().as_raw_pid().to_string();
        #[expect(clippy::disallowed_methods, reason = "there is no safe call for it")]
        let output = Command::new("chrt").args(["--idle", "--pid", "0", &own]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let (all, mut one) = (sched_getaffinity(None).unwrap(), CpuSet::new());
        one.set((0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap());
        sched_setaffinity(None, &one).unwrap();
        attack(&path, until);
    });
    attacker.join().unwrap();
}

/// The most that a process holds, sampled.
struct Peak {
    stop: Arc<AtomicBool>,
    most: Arc<(AtomicU64, AtomicU64)>,
    thread: JoinHandle<()>,
}

impl Peak {
    fn start(pid: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let most = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let (is_over, seen) = (Arc::clone(&stop), Arc::clone(&most));
        let thread = thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let descriptors = u64::try_from(descriptors_of(pid)).unwrap();
                seen.0.fetch_max(descriptors, Ordering::Relaxed);
                seen.1.fetch_max(resident_kib(pid), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(10));
            }
        });
        Self { stop, most, thread }
    }

    /// Descriptors, and resident KiB.
    fn stop(self) -> (usize, u64) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        let descriptors = self.most.0.load(Ordering::Relaxed);
        (usize::try_from(descriptors).unwrap(), self.most.1.load(Ordering::Relaxed))
    }
}

/// Attacks between two looks at a quiet host, since other machines come and go on this one.
const ATTACKS_BETWEEN: usize = 6;

fn quiet(path: &Path) -> (Duration, Duration) {
    let bystander = Bystander::start(path);
    thread::sleep(TIME);
    bystander.stop()
}

/// How often an attack is tried for a percentile that is a few times the quiet one: what else the
/// machine does can only add to it.
const TRIES: usize = 3;
const TIMES_QUIET: u32 = 3;

/// One attack on the host's first run; what it made of the host, and of the other run's calls.
fn attacked(host: &mut HostProcess, idle: &Usage, (name, attack): (&str, Attack)) -> Outcome {
    let before = host.settled(idle);
    let (bystander, peak) = (Bystander::start(&host.second), Peak::start(host.pid()));
    let (start, first) = (Instant::now(), host.first.clone());
    from_behind(attack, &first, start + TIME);
    thread::sleep((start + TIME).saturating_duration_since(Instant::now()));
    let took = start.elapsed();
    let ((most_descriptors, most_kib), (p50, p99)) = (peak.stop(), bystander.stop());
    let after = host.settled(idle);
    let mib = |kib: u64| kib / 1024;
    println!(
        "{name:<26} {:>4} {:>4} {:>4} {:>8} {:>6} {:>6} {:>5} % {:>11} {:>7}",
        before.descriptors,
        most_descriptors,
        after.descriptors,
        mib(before.resident_kib),
        mib(most_kib),
        mib(after.resident_kib),
        (after.ticks - before.ticks) * 1000 / u64::try_from(took.as_millis()).unwrap(),
        p50.as_micros(),
        p99.as_micros(),
    );
    let bounds = [
        // One more: the bystander's.
        (most_descriptors <= before.descriptors + 1 + DESCRIPTORS_MAX, "descriptors"),
        (after.descriptors == idle.descriptors, "descriptors left"),
        (most_kib <= before.resident_kib + MEMORY_KIB_MAX, "memory"),
        (after.alive == 0, "handlers left"),
        (after.panics == 0, "panics"),
        (p99 <= LATENCY_MAX, "the other run's p99"),
    ];
    host.is_well();
    let broken = bounds.into_iter().filter(|(is_so, _)| !is_so).map(|(_, what)| what);
    Outcome { p99, broken: broken.collect() }
}

struct Outcome {
    p99: Duration,
    broken: Vec<&'static str>,
}

#[test]
fn no_attack_holds_the_host_or_another_run() {
    let _alone = alone();
    let mut host = HostProcess::start();
    let idle = host.usage();
    host.is_well();
    prefer(thread_of(host.pid(), "postern-hatch"), "renice", &["--priority", "-15", "--pid"]);
    println!(
        "{:<26} {:>15} {:>23} {:>7}  p50, p99 of the other run, us",
        "", "descriptors", "resident MiB", "CPU"
    );
    let (mut faults, mut quiets, mut above) = (Vec::new(), Vec::new(), Vec::new());
    for (index, (name, attack)) in ATTACKS.into_iter().enumerate() {
        if index % ATTACKS_BETWEEN == 0 {
            let (p50, p99) = quiet(&host.second);
            println!("{:<26} {:>47} {:>11} {:>7}", "quiet", "", p50.as_micros(), p99.as_micros());
            quiets.push(p99);
            quiets.sort();
        }
        let most = quiets[quiets.len() / 2] * TIMES_QUIET;
        let mut is_within = false;
        for _ in 0..TRIES {
            let outcome = attacked(&mut host, &idle, (name, attack));
            faults.extend(outcome.broken.into_iter().map(|what| (name, what)));
            is_within = outcome.p99 <= most;
            if is_within {
                break;
            }
        }
        above.extend((!is_within).then_some(name));
    }
    println!("above {TIMES_QUIET} times quiet, {TRIES} times over: {above:?}");
    assert_eq!(faults, []);
    let first = host.first.clone();
    host.end_first();
    crate::support::within(
        Duration::from_millis(200),
        || std::os::unix::net::UnixStream::connect(&first).is_err(),
        "the attacked run has ended",
    );
}
