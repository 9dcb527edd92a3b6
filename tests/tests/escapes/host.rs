//! What rows share when they look from the host: other sandboxes, the host program, the workspace
//! as the host sees it.

use std::os::fd::OwnedFd;
use std::time::Duration;

use postern::{Command, Sandbox, SandboxProfile};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
use serde_json::Value;

use crate::hostprog::{outcome, outcome_by};

/// Longer than any scenario takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// What a scenario of the host program tells.
pub(crate) fn hostprog(scenario: &str, arguments: &[&str]) -> Result<String, String> {
    outcome(scenario, arguments, LONG)
}

/// [`hostprog`], started by another program.
pub(crate) fn hostprog_by(
    starter: &str,
    its: &[&str],
    scenario: &str,
    arguments: &[&str],
) -> Result<String, String> {
    let starter = [&[starter], its].concat();
    outcome_by(&starter, scenario, arguments, LONG)
}

/// A sandbox, or why there is none.
pub(crate) fn build(profile: SandboxProfile) -> Result<Sandbox, String> {
    Sandbox::builder(profile).single_use(true).build().map_err(|error| error.to_string())
}

/// The probe's answer to a command in a sandbox of its own.
pub(crate) fn outcome_of(profile: SandboxProfile, command: Command) -> Result<Value, String> {
    let result = build(profile)?.run(command).map_err(|error| error.to_string())?;
    serde_json::from_slice(&result.stdout)
        .map_err(|error| format!("{error}: {:?}: {}", result.ending, result.stderr_text()))
}

/// What the host sees of a file in a workspace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    pub(crate) mode: u32,
}

/// Visits everything in an owned workspace that the host can look into.
pub(crate) fn walk_workspace(sandbox: &Sandbox, visit: &mut dyn FnMut(&str, Status)) {
    let workspace = sandbox.workspace().expect("an owned workspace");
    walk(open_directory(workspace, ".").expect("the workspace"), visit);
}

fn open_directory(at: impl std::os::fd::AsFd, name: &str) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, name, flags, Mode::empty()).ok()
}

fn walk(directory: OwnedFd, visit: &mut dyn FnMut(&str, Status)) {
    // By descriptor, so that no depth and no name matters; a stack and no recursion for the depth.
    let mut left = vec![directory];
    while let Some(directory) = left.pop() {
        for entry in Dir::read_from(&directory).expect("a directory").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if [".", ".."].contains(&&*name) {
                continue;
            }
            let Ok(found) = statat(&directory, &*name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let kind = FileType::from_raw_mode(found.st_mode);
            visit(&name, Status { mode: found.st_mode & 0o7777 });
            if kind == FileType::Directory && left.len() < 64 {
                left.extend(open_directory(&directory, &name));
            }
        }
    }
}
