//! The host whose launch is disturbed: builds a sandbox, runs three times, and tells what it met.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use postern::error::LaunchError;
use postern::{Ending, Error, ImageSource, ProcResult, Sandbox};

use crate::world::{self, Snapshot};
use crate::{filter, sys};

/// What a host tells when nothing fails: a stage for the build and one for each run.
pub(super) const UNDISTURBED: &str = "built / ok / ok / ok";

/// Runs under a listener, writes what it met to `tell`, and leaves.
pub(super) fn be_host(tell: OwnedFd) -> ! {
    let before = Snapshot::take();
    let told = match filter::listen() {
        Ok(listener) => {
            // The supervisor has its own copy before it answers the first call, which is this.
            drop(listener);
            let met = launch();
            match before.compare() {
                Ok(()) => met,
                Err(left) => format!("{met}; LEFT {left}"),
            }
        }
        Err(error) => format!("no listener: {error}"),
    };
    let written = File::from(tell).write_all(told.as_bytes());
    sys::leave(i32::from(written.is_err()));
}

fn launch() -> String {
    let sandbox = match world::default_builder().build() {
        Ok(sandbox) => sandbox,
        Err(error) => return describe(&error),
    };
    let runs = [(); 3].map(|()| run(&sandbox));
    drop(sandbox);
    format!("built / {}", runs.join(" / "))
}

fn run(sandbox: &Sandbox) -> String {
    match sandbox.run(["/bin/true"]) {
        Ok(result) => ended(&result),
        Err(error) => describe(&error),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "any other ending is shown whole")]
fn ended(result: &ProcResult) -> String {
    let held = &result.enforcement;
    match result.ending {
        Ending::Exited(0) if held.launcher != ImageSource::Memfd => "fallback image".to_owned(),
        Ending::Exited(0) => match held.fallbacks.as_slice() {
            [] => "ok".to_owned(),
            [first, ..] => format!("fallback {first}"),
        },
        Ending::LauncherLost => "lost".to_owned(),
        Ending::ExecFailed(errno) => format!("exec {errno}"),
        other => format!("{other:?}"),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "any other error is shown whole")]
fn describe(error: &Error) -> String {
    let whole = error.to_string();
    match error {
        Error::Launch(LaunchError::Step(failure)) => {
            let said = [failure.step.what(), failure.step.call(), &failure.source.to_string()];
            match said.iter().all(|word| whole.contains(word)) {
                true => format!("step {} {:?}", failure.errno(), failure.step),
                false => format!("bad text {whole:?}"),
            }
        }
        Error::Launch(LaunchError::Image { .. }) => "image".to_owned(),
        Error::Launch(LaunchError::LauncherLost { .. }) => "lost".to_owned(),
        Error::Launch(LaunchError::WorkspaceLost) => "workspace-lost".to_owned(),
        Error::Unconfined(_) => "unconfined".to_owned(),
        other => format!("{other:?}"),
    }
}
