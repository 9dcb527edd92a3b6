//! Runs of several sandboxes under one ceiling: no more at once, in their turn, and a place for each
//! in the end, however the one before ended.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use postern::error::Busy;
use postern::{Ceiling, Command, Ending, Error, Process, Sandbox, SandboxProfile};

use crate::ways::{Way, each_way, sh};
use crate::{HANG, begin, figure};

fn beneath(ceiling: &Ceiling) -> Sandbox {
    Sandbox::builder(SandboxProfile::default()).ceiling(ceiling.clone()).build().unwrap()
}

fn none_is_taken(ceiling: &Ceiling) {
    assert_eq!((ceiling.running(), ceiling.waiting()), (0, 0));
}

/// Two sandboxes, four places, forty threads: never more than four runs, and all of them work.
#[test]
fn sandboxes_share_their_places() {
    const PLACES: u32 = 4;
    let _watch = begin();
    let ceiling = Ceiling::new(PLACES);
    let sandboxes = [beneath(&ceiling), beneath(&ceiling)];
    let (now, most) = (AtomicU32::new(0), AtomicU32::new(0));
    let queued = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for number in 0..40 {
            let sandbox = &sandboxes[number % 2];
            let (now, most, queued) = (&now, &most, &queued);
            scope.spawn(move || {
                let process = sandbox.start(sh("sleep 0.02")).unwrap();
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(10));
                // Before the end is known, and its place another's.
                now.fetch_sub(1, Ordering::SeqCst);
                let result = process.wait().unwrap();
                assert!(result.ok(), "{:?}", result.ending);
                queued.lock().unwrap().push(result.usage.queued);
            });
        }
    });
    let queued = queued.into_inner().unwrap();
    let waited = queued.iter().filter(|time| !time.is_zero()).count();
    assert!(most.into_inner() <= PLACES);
    // All but those who found a place when they came.
    assert!(waited >= 30, "{waited} of 40 say that they waited");
    figure(format_args!("the last of 40 waited {:?}", queued.iter().max().unwrap()));
    none_is_taken(&ceiling);
}

/// What a run's end may be, and that its place is another's afterwards.
#[test]
fn every_ending_gives_its_place_back() {
    type End = fn(Process);
    let rows: [(&str, &str, End); 6] = [
        ("its own", "exit 3", |process| drop(process.wait().unwrap())),
        ("a kill", "sleep 100", |process| {
            process.kill();
            drop(process.wait().unwrap());
        }),
        ("a dropped handle", "sleep 100", drop),
        ("its time", "sleep 100", |process| {
            drop(process.communicate(Duration::from_millis(20), None).unwrap());
        }),
        ("a panic", "sleep 100", |process| {
            let panicking = move || {
                let _process = process;
                std::panic::resume_unwind(Box::new(()));
            };
            let panicking = std::panic::AssertUnwindSafe(panicking);
            std::panic::catch_unwind(panicking).unwrap_err();
        }),
        ("its output alone", "echo x", |mut process| {
            while process.next_chunk().unwrap().is_some() {}
            drop(process);
        }),
    ];
    let _watch = begin();
    let ceiling = Ceiling::new(1).queue_timeout(HANG);
    let sandbox = beneath(&ceiling);
    for (name, script, end) in rows {
        let process = sandbox.start(sh(script)).unwrap();
        assert_eq!(ceiling.running(), 1, "{name}");
        end(process);
        none_is_taken(&ceiling);
    }
    // What is never started takes none for long.
    for command in [Command::new("/nonexistent"), Command::new("true").cwd("/nonexistent")] {
        drop(sandbox.run(command));
        none_is_taken(&ceiling);
    }
    sandbox.run(Command::new("true").cwd("relative")).unwrap_err();
    none_is_taken(&ceiling);
}

/// An async handle outlives the result: its place is another's from the run's end on.
#[test]
fn a_handle_whose_run_is_over_holds_no_place() {
    let _watch = begin();
    let ceiling = Ceiling::new(1);
    let sandbox = beneath(&ceiling);
    let runtime = Way::CurrentThread.runtime().unwrap();
    runtime.block_on(async {
        let mut process = sandbox.start_async(sh("exit 3")).await.unwrap();
        assert_eq!(ceiling.running(), 1);
        assert_eq!(process.wait().await.unwrap().ending, Ending::Exited(3));
        none_is_taken(&ceiling);
        drop(process);
    });
}

#[test]
fn who_does_not_wait_is_told_that_all_are_taken() {
    let ms = Duration::from_millis;
    let _watch = begin();
    let ceiling = Ceiling::new(1).waiting_max(0).queue_timeout(HANG);
    let holder = beneath(&ceiling);
    let patient = beneath(&ceiling.clone().waiting_max(5).queue_timeout(ms(30)));
    let held = holder.start(sh("sleep 100")).unwrap();
    let runs_max = 1;
    each_way(&holder, |service| {
        let refused = service.run(sh("true")).unwrap_err().to_string();
        let expected = Busy::QueueFull { runs_max, waiting_max: 0 }.to_string();
        assert_eq!(refused, expected, "{:?}", service.way);
    });
    each_way(&patient, |service| {
        for (timeout, expected) in [
            (None, Busy::QueueTimeout { runs_max, after: ms(30) }),
            (Some(ms(10)), Busy::QueueTimeout { runs_max, after: ms(10) }),
            (Some(Duration::ZERO), Busy::NoPlace { runs_max }),
        ] {
            let command = sh("true");
            let command = timeout.map_or(command.clone(), |time| command.queue_timeout(time));
            let began = Instant::now();
            let refused = service.run(command).unwrap_err().to_string();
            assert_eq!(refused, expected.to_string(), "{:?}", service.way);
            assert!(began.elapsed() < HANG, "{:?}", began.elapsed());
        }
    });
    assert!(matches!(patient.run(sh("true")), Err(Error::Busy(Busy::QueueTimeout { .. }))));
    // A look at the walls is no run.
    patient.verify().unwrap();
    // The time in the queue is not the run's.
    let (waited, result) = std::thread::scope(|scope| {
        let command = sh("sleep 0.2").queue_timeout(HANG).timeout(ms(3000));
        let waiting = scope.spawn(|| patient.run(command).unwrap());
        while ceiling.waiting() == 0 {
            std::thread::sleep(ms(1));
        }
        let began = Instant::now();
        std::thread::sleep(ms(300));
        let waited = began.elapsed();
        held.kill();
        held.wait().unwrap();
        (waited, waiting.join().unwrap())
    });
    assert_eq!(result.ending, Ending::Exited(0));
    let (queued, wall) = (result.usage.queued, result.usage.wall);
    assert!(queued >= waited, "{queued:?} in the queue, which was held for {waited:?}");
    assert!(wall >= ms(200), "{wall:?}");
    none_is_taken(&ceiling);
}

/// Dropped futures leave the queue, and those behind them go on.
#[test]
fn a_dropped_future_keeps_nobody_waiting() {
    let _watch = begin();
    let ceiling = Ceiling::new(1);
    let sandbox = std::sync::Arc::new(beneath(&ceiling));
    for way in [Way::CurrentThread, Way::MultiThread] {
        let runtime = way.runtime().unwrap();
        let held = sandbox.start(sh("sleep 100")).unwrap();
        runtime.block_on(async {
            let spawn = |_| {
                let sandbox = std::sync::Arc::clone(&sandbox);
                tokio::spawn(async move { sandbox.run_async(sh("true")).await })
            };
            let mut tasks: Vec<_> = (0..20).map(spawn).collect();
            while ceiling.waiting() < 20 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            for task in tasks.iter().step_by(3) {
                task.abort();
            }
            let left = tasks.split_off(0);
            // The first in the queue is one of those that have gone.
            drop(held);
            for (at, task) in left.into_iter().enumerate() {
                let ended = tokio::time::timeout(HANG, task).await.expect("a place in time");
                match at % 3 {
                    0 => assert!(ended.unwrap_err().is_cancelled()),
                    _ => assert!(ended.unwrap().unwrap().ok()),
                }
            }
        });
        none_is_taken(&ceiling);
    }
}
