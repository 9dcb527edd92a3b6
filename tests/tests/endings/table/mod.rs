//! Every way for a run to end that we know of: within which time, with which verdict, with which
//! output, and with nothing left. Each row has a sandbox of its own.

mod asked;
mod hostile;
mod hosts;
mod itself;
mod outside;
mod sys;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use postern::{Command, Ending, Error, ProcResult, Process, Sandbox, SandboxProfile};
use postern_tests::{Watch, processes_with};
use rustix::fs::{AtFlags, Mode, chmodat};

use crate::figures::is_long;
use crate::host::turn;

/// What is done at once is done within this, on a busy machine too.
const AT_ONCE: Duration = Duration::from_secs(2);
/// A grace or a limit.
const SHORT: Duration = Duration::from_millis(300);
/// [`SHORT`] and [`AT_ONCE`].
const SHORTLY: Duration = Duration::from_millis(2300);
/// More than any row takes.
const HANG: Duration = Duration::from_secs(60);

/// One way for a run to end.
struct Row {
    name: String,
    /// What runs; the argument is a mark that all its processes bear.
    command: Box<dyn Fn(&str) -> Command>,
    act: Act,
    /// From the beginning of the act to its verdict.
    within: Duration,
    told: Told,
    /// Everything on stdout.
    stdout: Vec<u8>,
}

/// What brings the end about, and waits for it.
enum Act {
    /// Nobody does: it is run.
    Run,
    /// It is started, and has written its first line.
    Started(fn(Begun) -> Seen),
    /// It is not yet started.
    Sandbox(fn(Sandbox, Command) -> Seen),
    /// Its host is another process, which does this once the run has begun.
    Host(&'static str),
}

/// What a result says besides its ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flag {
    Terminated,
    TimedOut,
    Truncated,
}

/// What the caller is told.
enum Told {
    Result(Ending, &'static [Flag]),
    /// Why there was no run.
    Failed(fn(&Error) -> bool),
    /// Nothing, since nobody is there to be told: the run is gone.
    Gone,
}

/// A run that has written its first line.
struct Begun {
    sandbox: Sandbox,
    process: Process,
    /// What was read so far.
    stdout: Vec<u8>,
    since: Instant,
}

/// What came of it.
struct Seen {
    outcome: Option<Result<ProcResult, Error>>,
    stdout: Vec<u8>,
    /// When the verdict was there; `None`: now.
    took: Option<Duration>,
}

impl Seen {
    fn gone() -> Seen {
        Seen { outcome: None, stdout: Vec::new(), took: None }
    }

    fn of(outcome: Result<ProcResult, Error>) -> Seen {
        Seen { outcome: Some(outcome), stdout: Vec::new(), took: None }
    }
}

impl Begun {
    /// Starts the command and reads until its first line is there.
    fn new(sandbox: Sandbox, command: Command) -> Begun {
        let mut process = sandbox.start(command).unwrap();
        let mut stdout = Vec::new();
        while !stdout.contains(&b'\n') {
            let Some(chunk) = process.next_chunk().unwrap() else {
                panic!("no line but {stdout:?}, {:?}", process.wait());
            };
            stdout.extend(chunk.bytes);
        }
        Begun { sandbox, process, stdout, since: Instant::now() }
    }

    /// Waits for the result.
    fn wait(self) -> Seen {
        self.wait_and(|| {})
    }

    /// Waits for the result; then does something, before the sandbox is dropped.
    fn wait_and(self, act: impl FnOnce()) -> Seen {
        let outcome = Some(self.process.wait());
        let took = Some(self.since.elapsed());
        act();
        drop(self.sandbox);
        Seen { outcome, stdout: self.stdout, took }
    }

    /// Waits until the guest is in this state: `T` is stopped, `D` waits for a child of its vfork.
    fn in_state(self, state: char) -> Begun {
        let stat = format!("/proc/{}/stat", self.guest());
        while !std::fs::read_to_string(&stat).unwrap().contains(&format!(") {state} ")) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self
    }

    /// The host's number of PID 1.
    fn init(&self) -> i32 {
        postern_tests::init_of(&self.process)
    }

    /// The host's number of the guest.
    fn guest(&self) -> i32 {
        postern_tests::guest_of(self.init())
    }
}

fn row(
    name: impl Into<String>,
    command: impl Fn(&str) -> Command + 'static,
    act: Act,
    within: Duration,
    told: Told,
    stdout: &str,
) -> Row {
    let stdout = stdout.as_bytes().to_vec();
    Row { name: name.into(), command: Box::new(command), act, within, told, stdout }
}

/// A shell script that bears its mark.
fn sh(script: &'static str) -> impl Fn(&str) -> Command {
    move |mark| Command::new("/bin/sh").args(["-c", script, mark])
}

/// A shell script with a time limit.
fn sh_limited(script: &'static str) -> impl Fn(&str) -> Command {
    move |mark| sh(script)(mark).timeout(SHORT)
}

/// Python source code that bears its mark.
fn python(code: &'static str) -> impl Fn(&str) -> Command {
    move |mark| Command::python(code).arg(mark)
}

fn rows() -> Vec<Row> {
    let groups = [itself::rows(), asked::rows(), hostile::rows(), outside::rows(), hosts::rows()];
    groups.into_iter().flatten().collect()
}

/// A sandbox with programs that cannot be started in its workspace.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::builder(SandboxProfile::default()).build().unwrap();
    let workspace = sandbox.workspace().unwrap();
    let files: [(&str, &[u8], u32); 3] = [
        ("plain", b"#!/bin/sh\n", 0o644),
        ("garbage", b"\x01\x02\x03", 0o755),
        ("orphan", b"#!/nowhere/sh\n", 0o755),
    ];
    for (name, bytes, mode) in files {
        workspace.write(name, bytes).unwrap();
        chmodat(workspace, name, Mode::from_raw_mode(mode), AtFlags::empty()).unwrap();
    }
    sandbox
}

fn flags(result: &ProcResult) -> Vec<Flag> {
    let all = [
        (result.terminated, Flag::Terminated),
        (result.timed_out, Flag::TimedOut),
        (result.truncated, Flag::Truncated),
    ];
    all.into_iter().filter(|flag| flag.0).map(|flag| flag.1).collect()
}

fn is_as_told(row: &Row, outcome: Option<Result<ProcResult, Error>>, mut stdout: Vec<u8>) {
    let name = &row.name;
    match (&row.told, outcome) {
        (Told::Result(ending, expected), Some(Ok(result))) => {
            let found = (result.ending, flags(&result));
            let report = result.stderr_report();
            assert_eq!(found, (*ending, expected.to_vec()), "{name}: {report}");
            stdout.extend(result.stdout);
        }
        (Told::Failed(is_right), Some(Err(error))) => assert!(is_right(&error), "{name}: {error}"),
        (Told::Gone, None) => return,
        (_, other) => panic!("{name}: {other:?}"),
    }
    let shown = String::from_utf8_lossy(&stdout[..stdout.len().min(300)]).into_owned();
    assert!(stdout == row.stdout, "{name}: {} bytes of stdout: {shown}", stdout.len());
}

/// How long the row's end took.
fn ends(row: &Row) -> Duration {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let _watch = Watch::begin();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mark = format!("postern-ends-{}-{count}-", std::process::id());
    let (sandbox, command) = (sandbox(), (row.command)(&mark));
    let mut since = Instant::now();
    let seen = match row.act {
        Act::Run => Seen::of(sandbox.run(command)),
        Act::Sandbox(act) => act(sandbox, command),
        Act::Host(how) => {
            drop(sandbox);
            since = hosts::end(how, &mark);
            Seen::gone()
        }
        Act::Started(act) => {
            let begun = Begun::new(sandbox, command);
            since = begun.since;
            act(begun)
        }
    };
    // Of a run with a result nothing is there any more, of another soon.
    while !processes_with(&mark).is_empty() {
        let (left, name) = (processes_with(&mark), &row.name);
        let is_open = seen.outcome.is_none() && since.elapsed() < row.within;
        assert!(left.is_empty() || is_open, "{name}: {left:?} live on");
    }
    let took = seen.took.unwrap_or_else(|| since.elapsed());
    is_as_told(row, seen.outcome, seen.stdout);
    let (name, within) = (&row.name, row.within);
    assert!(took < within, "{name}: over after {took:?}, not within {within:?}");
    took
}

/// Keeps every processor busy meanwhile.
fn under_load<T>(act: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    let burn = || {
        while !over.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    };
    std::thread::scope(|scope| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        (0..processors).for_each(|_| drop(scope.spawn(burn)));
        // Also when a row fails, or the burners would never end.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        over.store(true, Ordering::Relaxed);
        outcome.unwrap_or_else(|failure| std::panic::resume_unwind(failure))
    })
}

#[test]
#[expect(clippy::print_stdout, reason = "figures belong into a test's output")]
fn every_run_ends_as_it_should() {
    let _turn = turn();
    // What the first use of a runtime makes stays.
    drop(asked::runtime());
    let rows = rows();
    assert!(rows.len() >= 40, "{} rows", rows.len());
    let mut worst = vec![Duration::ZERO; rows.len()];
    let rounds = if is_long() { 20 } else { 1 };
    let mut all = || {
        for _ in 0..rounds {
            for (row, worst) in rows.iter().zip(&mut worst) {
                *worst = ends(row).max(*worst);
            }
        }
    };
    if is_long() {
        under_load(all)
    } else {
        all()
    }
    for (row, worst) in rows.iter().zip(worst) {
        println!("{}: {worst:?} at most, of {:?}", row.name, row.within);
    }
    println!("{} rows, {rounds} times", rows.len());
}

/// What takes as long as a killed run may take; at once, since they only wait.
#[test]
#[expect(clippy::print_stdout, reason = "figures belong into a test's output")]
fn what_the_kernel_does_not_end_is_not_waited_for() {
    let _turn = turn();
    for row in outside::unreaped() {
        println!("{}: {:?}", row.name, ends(&row));
    }
}
