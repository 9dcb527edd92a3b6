//! How a run comes to its end when its service wants it to, and what its result says of it, each
//! way.

use std::path::Path;
use std::time::{Duration, Instant};

use postern::{Ending, ProcResult, Signal};
use postern_tests::status;

use crate::ways::{Live, each_way, sh};
use crate::{HANG, begin, figure, long_or, sandbox};

/// Of a result: ending, code, signal, terminated, timed out.
type Told = (Ending, i32, Option<i32>, bool, bool);

fn told(result: &ProcResult) -> Told {
    let asked = (result.terminated, result.timed_out);
    (result.ending, result.returncode(), result.signal(), asked.0, asked.1)
}

/// A name, a script that says a line when it is ready, what is done then, what the result says.
type Row = (&'static str, &'static str, fn(&mut Live<'_>), Told);

const LIVES_ON: &str = "echo ready; while :; do sleep 0.05; done";
const TRAPS: &str = "trap 'exit 4' TERM; echo ready; while :; do sleep 0.05; done";
const IGNORES: &str = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
const COUNTS: &str = "trap 'n=$((n+1))' TERM; echo ready; for i in 1 2 3 4 5 6 7 8 9; do sleep 0.05; done; \
                      exit $n";
const GRACE: Duration = Duration::from_millis(300);

const ROWS: [Row; 12] = [
    ("nothing", "echo ready", |_| {}, (Ending::Exited(0), 0, None, false, false)),
    (
        "terminate",
        LIVES_ON,
        |live| live.terminate(HANG),
        (Ending::Signaled(15), 143, Some(15), true, false),
    ),
    (
        "terminate, trapped",
        TRAPS,
        |live| live.terminate(HANG),
        (Ending::Exited(4), 4, None, true, false),
    ),
    (
        "terminate, ignored",
        IGNORES,
        |live| live.terminate(GRACE),
        (Ending::Killed(9), 137, Some(9), true, false),
    ),
    (
        "terminate without grace",
        IGNORES,
        |live| live.terminate(Duration::ZERO),
        (Ending::Killed(9), 137, Some(9), true, false),
    ),
    (
        "terminate twice",
        COUNTS,
        |live| {
            live.terminate(HANG);
            std::thread::sleep(Duration::from_millis(150));
            live.terminate(Duration::ZERO);
        },
        (Ending::Exited(1), 1, None, true, false),
    ),
    (
        "terminate for ever",
        TRAPS,
        |live| live.terminate(Duration::MAX),
        (Ending::Exited(4), 4, None, true, false),
    ),
    ("kill", IGNORES, |live| live.kill(), (Ending::Killed(9), 137, Some(9), true, false)),
    (
        "terminate, then kill",
        IGNORES,
        |live| {
            live.terminate(HANG);
            live.kill();
        },
        (Ending::Killed(9), 137, Some(9), true, false),
    ),
    (
        "a signal",
        LIVES_ON,
        |live| live.signal(Signal::INT),
        (Ending::Signaled(2), 130, Some(2), false, false),
    ),
    (
        "kill by the handle",
        IGNORES,
        |live| live.handle().kill(),
        (Ending::Killed(9), 137, Some(9), true, false),
    ),
    (
        "a signal by the handle",
        TRAPS,
        |live| live.handle().signal(Signal::TERM),
        (Ending::Exited(4), 4, None, false, false),
    ),
];

#[test]
fn every_end_is_told() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        for (name, script, act, expected) in ROWS {
            let name = format!("{name}, {:?}", service.way);
            let mut live = service.start_sh(script);
            assert_eq!(live.line(), "ready");
            let begun = Instant::now();
            act(&mut live);
            let result = live.wait().unwrap();
            assert_eq!(told(&result), expected, "{name}");
            assert!(begun.elapsed() < HANG, "{name}");
            figure(format!("{name}: {:?}", begun.elapsed()));
        }
    });
}

/// A guest that has ended by itself stays as it ended, whatever is asked of it afterwards.
#[test]
fn a_run_that_is_over_stays_as_it_ended() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        let mut live = service.start_sh("exit 6");
        assert_eq!(live.next_chunk().unwrap(), None);
        let init = live.init();
        while Path::new(&format!("/proc/{init}")).exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        live.terminate(Duration::ZERO);
        live.kill();
        let expected = (Ending::Exited(6), 6, None, true, false);
        assert_eq!(told(&live.wait().unwrap()), expected, "{:?}", service.way);
    });
}

/// The request may come before there is a program that could take it.
#[test]
fn a_run_may_be_ended_as_soon_as_it_has_begun() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        for _ in 0..20 {
            let begun = Instant::now();
            let mut live = service.start_sh("exec sleep 1000");
            live.terminate(2 * HANG);
            let result = live.wait().unwrap();
            assert_eq!(result.ending, Ending::Signaled(15), "{:?}", service.way);
            assert!(begun.elapsed() < HANG, "{:?}", service.way);
        }
    });
}

#[test]
fn time_is_up_whatever_is_waited_for() {
    let _watch = begin();
    let expected = (Ending::Killed(9), 124, Some(9), false, true);
    each_way(&sandbox(), |service| {
        let timed = || sh("echo begun; sleep 1000").timeout(GRACE);
        let mut live = service.start(timed());
        assert_eq!(live.line(), "begun");
        assert_eq!(live.next_line().unwrap(), None);
        assert_eq!(told(&live.wait().unwrap()), expected);
        let result = service.start(timed()).communicate(HANG, None).unwrap();
        assert_eq!(told(&result), expected, "{:?}", service.way);
        let live = service.start_sh("echo begun; sleep 1000");
        let result = live.communicate(GRACE, 3).unwrap();
        let found = (told(&result), result.stdout_text(), result.truncated);
        assert_eq!(found, (expected, "beg".into(), true), "{:?}", service.way);
        assert_eq!(result.stderr_report(), "[postern] output truncated\n[postern] timed out");
    });
}

/// Output that was handed over is not in the result, and the rest is.
#[test]
fn the_result_holds_what_was_not_handed_over() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        let mut live = service.start_sh("echo one");
        while live.next_chunk().unwrap().is_some() {}
        let result = live.wait().unwrap();
        assert!(result.ok() && result.stdout.is_empty() && !result.truncated);
        let mut live = service.start_sh("echo one; sleep 0.2; echo two");
        assert_eq!(live.next_chunk().unwrap().unwrap().bytes, b"one\n");
        // Late, and nothing is lost by it.
        std::thread::sleep(Duration::from_millis(1500));
        assert_eq!(live.wait().unwrap().stdout_text(), "two\n", "{:?}", service.way);
    });
}

#[test]
fn another_thread_ends_a_run_that_is_waited_for() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        for (signal, expected) in [
            (Signal::TERM, (Ending::Signaled(15), 143, Some(15), false, false)),
            (Signal::KILL, (Ending::Killed(9), 137, Some(9), false, false)),
        ] {
            let mut live = service.start_sh(LIVES_ON);
            assert_eq!(live.line(), "ready");
            let handle = live.handle();
            let other = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                handle.signal(signal);
                handle
            });
            assert_eq!(told(&live.wait().unwrap()), expected, "{:?}", service.way);
            // Nothing is there any more.
            other.join().unwrap().kill();
        }
    });
}

#[test]
fn a_dropped_handle_ends_its_run_soon() {
    let _watch = begin();
    let rounds = long_or(500, 100);
    each_way(&sandbox(), |service| {
        let mut times: Vec<Duration> =
            (0..rounds).map(|_| dropped(service.start_sh(IGNORES))).collect();
        times.sort();
        let at = |percent| times[(times.len() - 1) * percent / 100];
        figure(format!(
            "dropped and gone, {:?}: p50 {:?}, p99 {:?}, max {:?}",
            service.way,
            at(50),
            at(99),
            at(100)
        ));
        assert!(at(100) < Duration::from_secs(5));
    });
}

/// How long everything in the run takes to be gone once nobody has it any more.
fn dropped(mut live: Live<'_>) -> Duration {
    assert_eq!(live.line(), "ready");
    let init = live.init();
    assert!(status(init).contains_key("State"));
    let begun = Instant::now();
    drop(live);
    let there = format!("/proc/{init}");
    while Path::new(&there).exists() && begun.elapsed() < HANG {
        std::thread::sleep(Duration::from_micros(100));
    }
    begun.elapsed()
}
