//! Launchers, sandboxes, processes and guests that are stopped, dropped or out of time.

use std::time::{Duration, Instant};

use postern::error::LaunchError;
use postern::{Command, Ending, Error, Process, Sandbox, SandboxProfile};

use crate::sys;
use crate::world::{self, Outcome, ensure, marker, sleeper, text};

/// A run whose launcher is lost ends within this.
const LOST: Duration = Duration::from_secs(1);

fn with_directory(timeout: Duration) -> Result<Sandbox, String> {
    let directory = world::open_directory("workspace")?;
    let profile = SandboxProfile::builder().workspace_directory(directory).build().map_err(text)?;
    Sandbox::builder(profile).launch_timeout(timeout).build().map_err(text)
}

/// A run that is known to have begun.
fn begun(sandbox: &Sandbox, mark: &str) -> Result<Process, String> {
    let process = sandbox.start(sleeper(mark)).map_err(text)?;
    world::until(LOST, "the guest's start", || !world::marked(mark).is_empty())?;
    Ok(process)
}

/// Kills the launcher under a live run; how long the run took to end.
fn lose_launcher(sandbox: &Sandbox) -> Result<Duration, String> {
    let mark = marker("lost");
    let process = begun(sandbox, &mark)?;
    let killed = Instant::now();
    sys::kill(world::launcher()?, libc::SIGKILL).map_err(text)?;
    let result = process.wait().map_err(text)?;
    let took = killed.elapsed();
    ensure(result.ending == Ending::LauncherLost, || format!("{:?}", result.ending))?;
    ensure(result.returncode() == 125, || format!("code {}", result.returncode()))?;
    ensure(took < LOST, || format!("the run ended after {took:?} only"))?;
    let left = world::marked(&mark);
    ensure(left.is_empty(), || format!("guests {left:?} outlived their launcher"))?;
    Ok(took)
}

pub(super) fn launcher_killed_with_directory(_: &[String]) -> Outcome {
    world::open_directory("workspace")?;
    let before = world::warm()?;
    let sandbox = with_directory(postern::LAUNCH_TIMEOUT)?;
    let took = lose_launcher(&sandbox)?;
    let next = sandbox.run(["/bin/true"]).map_err(|error| format!("the next run: {error}"))?;
    ensure(next.ok(), || format!("the next run: {:?}", next.ending))?;
    // Dead without a live run, it is noticed by the next one alone.
    let idle = world::launcher()?;
    sys::kill(idle, libc::SIGKILL).map_err(text)?;
    let is_dead = || world::task(idle).is_none_or(|task| task.state == 'Z');
    world::until(LOST, "the idle launcher's end", is_dead)?;
    let next = sandbox.run(["/bin/true"]).map_err(|error| format!("the run after it: {error}"))?;
    ensure(next.ok(), || format!("the run after it: {:?}", next.ending))?;
    drop(sandbox);
    before.compare()?;
    Ok(format!("the run ended {took:?} after its launcher, and the next ones work"))
}

pub(super) fn launcher_killed_with_workspace(_: &[String]) -> Outcome {
    let before = world::warm()?;
    let sandbox = world::sandbox()?;
    let took = lose_launcher(&sandbox)?;
    for which in ["the next run", "the run after it"] {
        let next = sandbox.run(["/bin/true"]);
        let lost = matches!(next, Err(Error::Launch(LaunchError::WorkspaceLost)));
        ensure(lost, || format!("{which}: {next:?}"))?;
    }
    drop(sandbox);
    before.compare()?;
    Ok(format!("the run ended {took:?} after its launcher, and the next ones say workspace_lost"))
}

pub(super) fn launcher_stopped(_: &[String]) -> Outcome {
    world::open_directory("workspace")?;
    let before = world::warm()?;
    let limit = Duration::from_secs(1);
    let sandbox = with_directory(limit)?;
    let stopped = world::launcher()?;
    sys::kill(stopped, libc::SIGSTOP).map_err(text)?;
    let start = Instant::now();
    let outcome = sandbox.run(["/bin/true"]);
    let took = start.elapsed();
    let deadline = matches!(outcome, Err(Error::Launch(LaunchError::Deadline { .. })));
    ensure(deadline, || format!("{outcome:?}"))?;
    ensure(took < limit + LOST, || format!("the deadline came after {took:?} only"))?;
    world::until(LOST, "the stopped launcher's end", || world::task(stopped).is_none())?;
    let next = sandbox.run(["/bin/true"]).map_err(text)?;
    ensure(next.ok(), || format!("the next run: {:?}", next.ending))?;
    drop(sandbox);
    before.compare()?;
    Ok(format!("a deadline of {limit:?} came after {took:?}"))
}

pub(super) fn process_dropped(_: &[String]) -> Outcome {
    let before = world::warm()?;
    let sandbox = world::sandbox()?;
    let with_launcher = world::Snapshot::take();
    let mark = marker("dropped");
    drop(begun(&sandbox, &mark)?);
    let took = world::until(LOST, "the guest's end", || world::marked(&mark).is_empty())?;
    with_launcher.compare()?;
    drop(sandbox);
    before.compare()?;
    Ok(format!("the guest was gone {took:?} after its handle"))
}

pub(super) fn sandbox_dropped(_: &[String]) -> Outcome {
    let before = world::warm()?;
    let sandbox = world::sandbox()?;
    let mark = marker("sandbox");
    let processes = [(); 3].map(|()| begun(&sandbox, &mark));
    let start = Instant::now();
    drop(sandbox);
    let took = start.elapsed();
    let left = world::marked(&mark);
    ensure(left.is_empty(), || format!("guests {left:?} outlived their sandbox"))?;
    for process in processes {
        let result = process?.wait().map_err(text)?;
        ensure(result.ending == Ending::LauncherLost, || format!("{:?}", result.ending))?;
    }
    before.compare()?;
    Ok(format!("three runs were gone {took:?} after the drop of their sandbox began"))
}

/// A guest that does what it can to stay: TERM ignored, two children in sessions of their own, one
/// of them twice removed, all holding stdout.
const STUBBORN: &str = "trap '' TERM HUP INT
echo partial
setsid sh -c 'trap \"\" TERM HUP; sleep 3600; exit 3' \"$0\" &
(setsid sh -c '(trap \"\" TERM HUP; sleep 3600; exit 3) & exit' \"$0\" &)
sleep 3600
exit 3";

pub(super) fn time_is_up(_: &[String]) -> Outcome {
    let before = world::warm()?;
    let sandbox = world::sandbox()?;
    let mark = marker("stubborn");
    let limit = Duration::from_secs(1);
    let command = Command::new("/bin/sh").args(["-c", STUBBORN, &mark]).timeout(limit);
    let start = Instant::now();
    let process = sandbox.start(command).map_err(text)?;
    // The shell and its two children: else nothing stubborn would be there.
    world::until(limit, "the guest's children", || world::marked(&mark).len() >= 3)?;
    let result = process.wait().map_err(text)?;
    let took = start.elapsed();
    ensure(result.timed_out, || format!("not timed out: {:?}", result.ending))?;
    ensure(result.stdout == b"partial\n", || format!("stdout {:?}", result.stdout_text()))?;
    ensure(took < limit + Duration::from_millis(1500), || format!("it took {took:?}"))?;
    let left = world::marked(&mark);
    ensure(left.is_empty(), || format!("guests {left:?} outlived their time"))?;
    drop(sandbox);
    before.compare()?;
    Ok(format!("a limit of {limit:?} was over after {took:?}"))
}
