//! Several launchers of one sandbox: one that is killed takes its own runs along, no others.

use std::time::Duration;

use postern::{Ending, Process, Sandbox, SandboxProfile};

use crate::sys;
use crate::world::{self, Outcome, ensure, text};

const LAUNCHERS: usize = 3;
const RUNS: usize = 12;

fn host_of(process: &Process) -> Result<i32, String> {
    let pidfd = process.pidfd().ok_or("no pidfd")?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&pidfd);
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).map_err(text)?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok());
    let task = pid.and_then(world::task).ok_or("PID 1 is gone")?;
    Ok(task.parent)
}

pub(super) fn several(_arguments: &[String]) -> Outcome {
    let before = world::warm()?;
    let directory = world::open_directory("shared")?;
    let profile =
        SandboxProfile::builder().workspace_directory(&directory).build().map_err(text)?;
    let sandbox = Sandbox::builder(profile).launchers(LAUNCHERS).build().map_err(text)?;
    ensure(sandbox.launchers() == LAUNCHERS, || format!("{} launchers", sandbox.launchers()))?;
    // An owned workspace belongs to one.
    let owner = world::default_builder().launchers(LAUNCHERS).build().map_err(text)?;
    ensure(owner.launchers() == 1, || format!("{} with one workspace", owner.launchers()))?;
    drop(owner);
    let mark = world::marker("launchers");
    let start = || sandbox.start(world::sleeper(&mark)).map_err(text);
    let runs = (0..RUNS).map(|_| start()).collect::<Result<Vec<_>, _>>()?;
    // Each has its share: the least busy one takes the next run.
    let hosts = runs.iter().map(host_of).collect::<Result<Vec<_>, _>>()?;
    let mut launchers = hosts.clone();
    launchers.sort_unstable();
    launchers.dedup();
    let shares = launchers.iter().map(|own| hosts.iter().filter(|host| *host == own).count());
    let shares: Vec<_> = shares.collect();
    ensure(shares == [RUNS / LAUNCHERS; LAUNCHERS], || format!("shares of {shares:?}"))?;
    // One kernel uid for all of them, as for all runs of a sandbox.
    let uids = runs.len();
    let lost = *launchers.first().ok_or("no launcher")?;
    sys::kill(lost, libc::SIGKILL).map_err(text)?;
    let mut ended = Vec::new();
    for (run, host) in runs.into_iter().zip(&hosts) {
        if *host != lost {
            run.kill();
        }
        let result = run.wait().map_err(text)?;
        let expected = if *host == lost { Ending::LauncherLost } else { Ending::Killed(9) };
        ensure(result.ending == expected, || format!("{:?}, not {expected:?}", result.ending))?;
        ended.push(result.enforcement.kernel_uid);
    }
    ended.dedup();
    ensure(ended.len() == 1, || format!("{uids} runs with kernel uids {ended:?}"))?;
    // The empty seat is the least busy one, and is taken.
    for _ in 0..2 * LAUNCHERS {
        let result = sandbox.run(["/bin/true"]).map_err(text)?;
        ensure(result.ok(), || format!("{:?}", result.ending))?;
        let uid = result.enforcement.kernel_uid;
        ensure(ended == [uid], || format!("kernel uid {uid} after {ended:?}"))?;
    }
    let alive = world::children().into_iter().filter(|child| child.state != 'Z').count();
    ensure(alive == LAUNCHERS, || format!("{alive} launchers after one was lost"))?;
    drop(sandbox);
    std::fs::remove_dir(&directory).map_err(text)?;
    let gone = || world::marked(&mark).is_empty();
    world::until(Duration::from_secs(5), "the last guest's end", gone)?;
    before.compare()?;
    Ok(format!("{RUNS} runs on {LAUNCHERS} launchers, one lost and replaced"))
}
