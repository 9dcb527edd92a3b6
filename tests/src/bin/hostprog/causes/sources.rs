//! Sources of a profile that are not what they were, or never were what they should be.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use postern::profile::{Bind, Workspace, WorkspaceAccess};
use postern::{Sandbox, SandboxProfile};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{describe, launch_with};
use crate::world::{self, Outcome, text};

/// A host thread and a launch meet by chance, and soon.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is bound; the directory above it is what changes.
const INNER: &str = "inner";

/// `vanishes`, `becomes-a-link` or `becomes-another`, then the words that are waited for.
pub(super) fn changes(arguments: &[String]) -> Outcome {
    let [kind, wanted] = arguments else { return Err("two arguments are needed".to_owned()) };
    let directory = world::open_directory("sources")?;
    let (source, other) = (directory.join("source"), directory.join("other"));
    std::fs::create_dir_all(source.join(INNER)).map_err(text)?;
    match kind.as_str() {
        "vanishes" => {}
        "becomes-a-link" => std::os::unix::fs::symlink("/usr", &other).map_err(text)?,
        "becomes-another" => std::fs::create_dir_all(other.join(INNER)).map_err(text)?,
        _ => return Err(format!("no such change: {kind:?}")),
    }
    let flags = match kind.as_str() {
        "vanishes" => RenameFlags::empty(),
        _ => RenameFlags::EXCHANGE,
    };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| change_often(&over, &source, &other, flags));
        let met = launch_until(&source, wanted);
        over.store(true, Ordering::Relaxed);
        met
    })
}

fn change_often(over: &AtomicBool, source: &Path, other: &Path, flags: RenameFlags) {
    let mut pair = [source, other];
    while !over.load(Ordering::Relaxed) {
        // Nobody else renames them; a failure would show as a test that finds nothing.
        renameat_with(CWD, pair[0], CWD, pair[1], flags).ok();
        pair.reverse();
        // About as long as a launch takes from the plan to the bind.
        std::thread::sleep(Duration::from_micros(1500));
    }
}

/// Launches until the error's text holds `wanted`.
fn launch_until(source: &Path, wanted: &str) -> Outcome {
    let start = Instant::now();
    let mut last = String::new();
    while start.elapsed() < PATIENCE {
        let bind = Bind::new(source.join(INNER), "/source");
        let profile = SandboxProfile::builder().required_ro_binds([bind]).build().map_err(text)?;
        match Sandbox::builder(profile).build() {
            Ok(_) => {}
            Err(error) => {
                last = describe(&error)?;
                if last.contains(wanted) {
                    return Ok(last);
                }
            }
        }
    }
    Err(format!("not met in {PATIENCE:?}; the last error was {last:?}"))
}

pub(super) fn workspace_file(_: &[String]) -> Outcome {
    let file = std::env::temp_dir().join("workspace");
    std::fs::write(&file, "not a directory").map_err(text)?;
    launch_with(SandboxProfile::builder().workspace_directory(file).build().map_err(text)?)
}

/// A caller's workspace on a file system that cannot be id-mapped; gone with this process's mounts.
pub(super) fn workspace_on_overlay(_: &[String]) -> Outcome {
    const OWNER: Option<u32> = Some(4321);
    super::hosts::enter_mount_namespace()?;
    let directory = std::env::temp_dir();
    let [lower, upper, work, place] =
        ["lower", "upper", "work", "place"].map(|n| directory.join(n));
    for path in [&lower, &upper, &work, &place] {
        std::fs::create_dir(path).map_err(text)?;
    }
    let options = [("lowerdir", &lower), ("upperdir", &upper), ("workdir", &work)];
    let options = options.map(|(name, path)| format!("{name}={}", path.display())).join(",");
    let options = std::ffi::CString::new(options).map_err(text)?;
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("overlay", &place, "overlay", flags, Some(options.as_c_str()))
        .map_err(text)?;
    std::os::unix::fs::chown(&place, OWNER, OWNER).map_err(text)?;
    let workspace = Workspace::Directory { path: place, access: WorkspaceAccess::Mapped };
    launch_with(SandboxProfile::builder().workspace(workspace).build().map_err(text)?)
}
