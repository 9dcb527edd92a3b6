//! What is bound, and where: sources and targets that somebody has planted, or changes while a
//! sandbox is built, and the host's own mounts beneath and above them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test's own helpers fail the test"
)]

#[path = "mounts/planted.rs"]
mod planted;
#[path = "mounts/proc.rs"]
mod proc;
#[path = "mounts/races.rs"]
mod races;
#[path = "mounts/rootfs.rs"]
mod rootfs;
#[path = "mounts/sources.rs"]
mod sources;
#[path = "mounts/stage.rs"]
mod stage;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use postern::{Sandbox, SandboxProfile};

/// A sandbox that holds the probe in its owned workspace.
fn sandbox(profile: SandboxProfile) -> Sandbox {
    let sandbox = Sandbox::builder(profile).build().unwrap_or_else(|error| panic!("{error}"));
    postern_tests::install(&sandbox);
    sandbox
}

/// Everything beneath a directory of the host's that no sandbox may touch: kind, mode, owner, size
/// and the time of the last change of each file.
type Canary = BTreeMap<PathBuf, (u32, u32, u64, i64, i64)>;

fn canary(directory: &Path) -> Canary {
    let mut seen = Canary::new();
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        let found = fs::symlink_metadata(&path).unwrap();
        if found.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let facts = (found.mode(), found.uid(), found.size(), found.ctime(), found.ctime_nsec());
        seen.insert(path, facts);
    }
    seen
}
