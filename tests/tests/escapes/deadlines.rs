//! Section K, bounds of runs in number and time: bombs, storms, deadlines, kills.

use std::time::{Duration, Instant};

use postern::{Command, Ending};

use super::processes::{run, shell};
use crate::stage::Stage;
use crate::verdict::{Finding, held};

pub(crate) fn fork_bomb(stage: &Stage) -> Result<Finding, String> {
    let before = fork_latency();
    let script = ":(){ : | : & }; f() { f | f & }; ulimit -u; for i in 1 2 3; do f; done; sleep 1";
    let process = stage.sandbox.start(shell(script).timeout(Duration::from_secs(3)));
    let process = process.map_err(|error| error.to_string())?;
    std::thread::sleep(Duration::from_millis(500));
    let during = fork_latency();
    let result = process.wait().map_err(|error| error.to_string())?;
    let again = run(stage, Command::new("true"))?;
    let figures = format!("fork and exec on the host {before:?} before, {during:?} during");
    match again.ok() && during < before * 20 + Duration::from_millis(500) {
        true => held(format!(
            "RLIMIT_NPROC of the run's own namespace; {figures}; ended {:?}",
            result.ending
        )),
        false => Err(figures),
    }
}

/// The median of a few.
fn fork_latency() -> Duration {
    let mut all: Vec<_> = (0..7)
        .map(|_| {
            let start = Instant::now();
            crate::stage::program("true", &[]);
            start.elapsed()
        })
        .collect();
    all.sort();
    all[3]
}

/// Numbers of processes come from the whole machine's pool, which only a cgroup can divide.
pub(crate) fn exec_storm(stage: &Stage) -> Result<Finding, String> {
    let answer = postern_tests::ask(&stage.sandbox, &["fork", "5000"]);
    let made = answer["made"].as_i64().unwrap_or(i64::MAX);
    match made < 1024 {
        true => held(format!("at most {made} at a time by RLIMIT_NPROC, however many are made")),
        false => Err(answer.to_string()),
    }
}

pub(crate) fn deadline_holds(stage: &Stage) -> Result<Finding, String> {
    let script = "trap '' TERM INT HUP; (trap '' TERM; exec setsid sleep 300) & \
                  while :; do echo flood; done";
    let start = Instant::now();
    let result =
        run(stage, shell(script).timeout(Duration::from_millis(400)).output_bytes_max(1 << 16))?;
    let took = start.elapsed();
    match result.timed_out && took < Duration::from_secs(5) {
        true => held(format!("0.4 s asked for, the result after {took:?}, {:?}", result.ending)),
        false => Err(format!("{:?} after {took:?}", result.ending)),
    }
}

pub(crate) fn killed_twice(stage: &Stage) -> Result<Finding, String> {
    let mut endings = Vec::new();
    for pause_ms in [0, 1, 5, 50] {
        let process = stage.sandbox.start(shell("sleep 300")).map_err(|error| error.to_string())?;
        let handle = process.handle();
        let killer = std::thread::spawn({
            let handle = handle.clone();
            move || {
                std::thread::sleep(Duration::from_millis(pause_ms));
                handle.kill();
                handle.kill();
            }
        });
        let result = process.wait().map_err(|error| error.to_string())?;
        killer.join().unwrap();
        handle.kill();
        endings.push(result.ending);
    }
    let is_killed = |ending: &Ending| matches!(ending, Ending::Killed(9) | Ending::Signaled(9));
    match endings.iter().all(is_killed) {
        true => held(format!("by another thread, twice, and once more after the end: {endings:?}")),
        false => Err(format!("{endings:?}")),
    }
}

pub(crate) fn stopped_init(stage: &Stage) -> Result<Finding, String> {
    let sleeper = shell("sleep 300").timeout(Duration::from_millis(500));
    let process = stage.sandbox.start(sleeper).map_err(|error| error.to_string())?;
    let init = postern_tests::init_of(&process);
    let init = rustix::process::Pid::from_raw(init).ok_or("no pid")?;
    let stopped = rustix::process::kill_process(init, rustix::process::Signal::STOP);
    let start = Instant::now();
    let result = process.wait().map_err(|error| error.to_string())?;
    let took = start.elapsed();
    match result.timed_out && took < Duration::from_secs(5) {
        true => held(format!(
            "SIGSTOP from the host: {stopped:?}; the deadline of 0.5 s is met after {took:?}"
        )),
        false => Err(format!("{:?} after {took:?}", result.ending)),
    }
}
