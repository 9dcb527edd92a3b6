//! Hosts that fork, that wait for any child, that wait for none, and whose threads end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use postern::error::LaunchError;
use postern::{Error, Sandbox};

use crate::sys::{self, Fork};
use crate::world::{self, Outcome, ensure, marker, sleeper, text};

/// Rounds of building and running while something else looks at the children.
const ROUNDS: usize = 20;

fn build_and_run() -> Result<(), String> {
    let sandbox = world::sandbox()?;
    sandbox.verify().map_err(text)?;
    let result = sandbox.run(["/bin/sh", "-c", "echo here; exit 7"]).map_err(text)?;
    ensure(result.returncode() == 7, || format!("{:?}", result.ending))?;
    ensure(result.stdout == b"here\n", || format!("{:?}", result.stdout_text()))
}

/// Returns the code that the forked child leaves with.
fn in_the_child(sandbox: Sandbox) -> i32 {
    let used = sandbox.run(["/bin/true"]);
    let refused = matches!(used, Err(Error::Launch(LaunchError::Forked)));
    let verified = sandbox.verify();
    let refused_too = matches!(verified, Err(Error::Launch(LaunchError::Forked)));
    drop(sandbox);
    // One of its own is built and used as by any process.
    let own = build_and_run();
    i32::from(!refused) | i32::from(!refused_too) << 1 | i32::from(own.is_err()) << 2
}

pub(super) fn forked(_: &[String]) -> Outcome {
    let before = world::warm()?;
    let sandbox = world::sandbox()?;
    let mark = marker("forked");
    let process = sandbox.start(sleeper(&mark)).map_err(text)?;
    world::until(Duration::from_secs(1), "the guest's start", || !world::marked(&mark).is_empty())?;
    let child = match sys::fork().map_err(text)? {
        Fork::Child => {
            let code = in_the_child(sandbox);
            sys::leave(code);
        }
        Fork::Parent(child) => child,
    };
    let (ended, status) = sys::wait_any(0).map_err(text)?.unwrap_or_default();
    ensure((ended, status) == (child, 0), || format!("the child's status {status:#x}"))?;
    let live = world::marked(&mark);
    ensure(!live.is_empty(), || "the child ended its parent's run".to_owned())?;
    let result = sandbox.run(["/bin/true"]).map_err(text)?;
    ensure(result.ok(), || format!("the parent's next run: {:?}", result.ending))?;
    drop(process);
    drop(sandbox);
    before.compare()?;
    Ok("the child was refused, and its parent's runs went on".to_owned())
}

pub(super) fn stolen(_: &[String]) -> Outcome {
    let before = world::warm()?;
    let (over, taken) = (AtomicBool::new(false), AtomicUsize::new(0));
    let thief = || {
        while !over.load(Ordering::Relaxed) {
            match sys::wait_any(0) {
                Ok(_) => taken.fetch_add(1, Ordering::Relaxed),
                // No child at the moment.
                Err(_) => 0,
            };
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(thief);
        let outcome = (0..ROUNDS).try_for_each(|_| build_and_run());
        over.store(true, Ordering::Relaxed);
        outcome
    })?;
    before.compare()?;
    let taken = taken.load(Ordering::Relaxed);
    ensure(taken > 0, || "no child was stolen, so that nothing is shown".to_owned())?;
    Ok(format!("{taken} of {ROUNDS} launchers were waited for by somebody else"))
}

pub(super) fn ignored(_: &[String]) -> Outcome {
    sys::ignore_children();
    let before = world::warm()?;
    (0..ROUNDS).try_for_each(|_| build_and_run())?;
    before.compare()?;
    Ok(format!("{ROUNDS} sandboxes with SIGCHLD ignored"))
}

pub(super) fn thread_ends(_: &[String]) -> Outcome {
    let before = world::warm()?;
    let start = || {
        let sandbox = world::sandbox()?;
        let line = ["/bin/sh", "-c", "sleep 0.3; echo still here"];
        let process = sandbox.start(line).map_err(text)?;
        Ok::<_, String>((sandbox, process))
    };
    let thread = std::thread::spawn(start);
    let (sandbox, process) =
        thread.join().unwrap_or_else(|_| Err("the thread panicked".to_owned()))?;
    let result = process.wait().map_err(text)?;
    ensure(result.stdout == b"still here\n", || format!("{:?}", result.ending))?;
    let next = sandbox.run(["/bin/true"]).map_err(text)?;
    ensure(next.ok(), || format!("the next run: {:?}", next.ending))?;
    drop(sandbox);
    before.compare()?;
    Ok("a run and its launcher outlive the thread that started them".to_owned())
}
