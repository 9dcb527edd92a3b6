//! From before the guest's first instruction to the end of the run, however that comes; and then
//! nothing of the hatch is left.

use std::fs;
use std::time::{Duration, Instant};

use postern::{Command, Ending, Process, Sandbox, Stdin};
use postern_tests::Residue;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::fixture::{
    GONE_WITHIN, GREETER, HANG, begin, figure, greeting, hatch, profile, python, run, with_grpcio,
    within,
};
use crate::service::Waiting;

fn sandbox() -> Sandbox {
    Sandbox::builder(profile().build().unwrap()).build().unwrap_or_else(|error| panic!("{error}"))
}

/// Connects, which is the first thing that it does, and says whether that worked.
fn connecting() -> Command {
    Command::new(GREETER).arg("connect").timeout(HANG)
}

/// Has a call of each kind underway that never ends, says so, and waits.
fn sleeping() -> Command {
    Command::new(GREETER).arg("sleep").stdin(Stdin::Piped)
}

/// As [`sleeping`], with nobody at its input.
fn sleeping_for_ever() -> Command {
    Command::new(GREETER).args(["sleep", "for", "ever"]).timeout(HANG)
}

/// A hatch is there from the start: a guest that connects as its first act is never too early.
#[test]
fn the_hatch_is_there_before_the_guest() {
    let _watch = begin();
    let (hatch, _) = hatch();
    let sandbox = Sandbox::builder(profile().build().unwrap()).hatch(hatch).build().unwrap();
    for _ in 0..200 {
        let process = sandbox.start(connecting()).unwrap();
        let expected = format!("hello, ada of {}\n", process.id());
        let result = process.wait().unwrap();
        assert!(result.ok(), "{:?}: {}", result.ending, result.stderr_text());
        assert_eq!(result.stdout_text(), expected);
    }
}

/// Starts a guest with calls that never end, and waits until their handlers wait.
fn started(sandbox: &Sandbox, command: Command, waiting: &Waiting) -> Process {
    let mut process = sandbox.start(command).unwrap();
    let line = process.lines().next().unwrap().unwrap();
    assert_eq!(line.text(), "sleeping");
    within(HANG, "both handlers wait", || waiting.of(process.id()) == 2);
    process
}

/// What there is once nothing changes any more.
fn settled() -> Residue {
    loop {
        let before = Residue::snapshot();
        std::thread::sleep(Duration::from_millis(50));
        if Residue::snapshot() == before {
            return before;
        }
    }
}

/// The directories of runs, sockets and all, that are in the exchange: a directory that this process
/// has open and that has no path on the host.
fn run_directories() -> usize {
    let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let entries = open.filter_map(|entry| fs::read_dir(entry.path()).ok()).flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("run-")).count()
}

/// How a run may end in the middle of its calls.
type End = (&'static str, fn() -> Command, fn(Process));

const ENDS: [End; 6] = [
    ("the guest leaves", sleeping, |mut process| {
        process.close_stdin();
        assert!(process.wait().unwrap().ok());
    }),
    ("killed", sleeping_for_ever, |process| {
        process.kill();
        assert_eq!(process.wait().unwrap().ending, Ending::Killed(9));
    }),
    ("terminated", sleeping_for_ever, |mut process| {
        process.terminate(Duration::ZERO);
        assert!(process.wait().unwrap().terminated);
    }),
    ("timed out", sleeping_for_ever, |process| {
        let result = process.communicate(Duration::from_millis(50), None).unwrap();
        assert!(result.timed_out);
    }),
    ("dropped", sleeping_for_ever, drop),
    ("killed by its handle, and dropped", sleeping_for_ever, |process| {
        process.handle().kill();
        drop(process);
    }),
];

/// Whatever ends a run drops its handlers, closes its listener and its connections, and takes its
/// files away.
#[test]
fn every_end_of_a_run_drops_its_handlers() {
    let _watch = begin();
    let sandbox = sandbox();
    let (hatch, waiting) = hatch();
    // What the hatch keeps beyond a run is there from the first one on.
    run(&sandbox, connecting().hatch(hatch.clone()));
    for (name, command, end) in ENDS {
        let before = settled();
        let process = started(&sandbox, command().hatch(hatch.clone()), &waiting);
        let id = process.id();
        assert_eq!(run_directories(), 1, "{name}");
        let start = Instant::now();
        end(process);
        within(GONE_WITHIN, name, || waiting.of(id) == 0);
        let dropped = start.elapsed();
        within(GONE_WITHIN, name, || Residue::snapshot() == before);
        figure(format!("{name}: handlers dropped after {dropped:?}"));
        assert_eq!(run_directories(), 0, "{name}");
    }
}

/// A run of one hatch ends, and that of another goes on.
#[test]
fn the_end_of_one_run_is_not_felt_by_another() {
    let _watch = begin();
    let sandbox = sandbox();
    let (hatch, waiting) = hatch();
    let first = started(&sandbox, sleeping().hatch(hatch.clone()), &waiting);
    let second = started(&sandbox, sleeping().hatch(hatch.clone()), &waiting);
    let (gone, kept) = (first.id(), second.id());
    first.kill();
    drop(first);
    within(GONE_WITHIN, "the first run's handlers dropped", || waiting.of(gone) == 0);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(waiting.of(kept), 2);
    drop(second);
}

fn runtimes() -> [(&'static str, Runtime); 2] {
    [
        ("one thread", Builder::new_current_thread().enable_all().build().unwrap()),
        ("two", Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()),
    ]
}

/// The service's own runtime can serve the hatch, and wait for the run, even on its only thread.
#[test]
fn a_service_may_serve_on_the_runtime_that_waits() {
    let _watch = begin();
    for (name, runtime) in runtimes() {
        runtime.block_on(async {
            let (builder, waiting) = greeting("hello");
            let hatch = builder.runtime(Handle::current()).build().unwrap();
            let sandbox = Sandbox::builder(profile().build().unwrap()).hatch(hatch).build();
            let sandbox = sandbox.unwrap();
            let result = sandbox.run_async(connecting()).await.unwrap();
            assert!(result.ok(), "{name}: {}", result.stderr_text());
            let mut process = sandbox.start_async(sleeping()).await.unwrap();
            assert_eq!(process.next_line().await.unwrap().unwrap().text(), "sleeping");
            let id = process.id();
            drop(process);
            let gone = async {
                while waiting.of(id) > 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::time::timeout(GONE_WITHIN, gone).await.unwrap();
        });
    }
}

/// A future of a run that is dropped in the middle of a call takes the handlers with it.
#[test]
fn a_dropped_future_drops_the_handlers() {
    let _watch = begin();
    for (name, runtime) in runtimes() {
        let sandbox = sandbox();
        let (builder, waiting) = greeting("hello");
        let hatch = builder.runtime(runtime.handle().clone()).build().unwrap();
        runtime.block_on(async {
            let run = sandbox.run_async(sleeping_for_ever().hatch(hatch));
            let seen = async {
                while waiting.all() < 2 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::select! {
                result = run => panic!("{name}: {:?}", result.unwrap().ending),
                () = seen => {}
            }
            let gone = async {
                while waiting.all() > 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::time::timeout(GONE_WITHIN, gone).await.unwrap();
        });
    }
}

/// A hatch has a socket of its own: the guest's streams are all its own too.
#[test]
fn stdin_and_stdout_stay_free() {
    let _watch = begin();
    let sandbox = with_grpcio();
    let (hatch, _) = hatch();
    let code = "import sys
hello = stub(grpc.insecure_channel(TARGET), 'SayHello')
for line in sys.stdin:
    print(hello(request(line.strip())).split(' of ')[0])
print('done', file=sys.stderr)";
    let stdin = Stdin::Bytes(b"eve\ndan\n".to_vec());
    let result = run(&sandbox, python(code).hatch(hatch).stdin(stdin));
    let found = (result.stdout_text(), result.stderr_text());
    assert_eq!(found, ("hello, eve\nhello, dan\n".into(), "done\n".into()));
}
