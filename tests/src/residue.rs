//! What a test leaves on the host: nothing. Counts what the kernel shows, and asks no library.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::host::{children, soon};
use crate::scratch;

/// What there is of each kind of thing that a sandbox could leave behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Residue {
    /// Open descriptors of this process: number and target, but for the launcher's image.
    descriptors: BTreeSet<String>,
    /// Child processes of this process, zombies included.
    children: Vec<i32>,
    /// Mounts that this process sees.
    mounts: usize,
    /// Lease files, where the runtime directory is this program's own.
    leases: BTreeSet<String>,
    /// Files of this process in the directory for temporary ones.
    files: BTreeSet<String>,
}

impl Residue {
    /// What there is now.
    pub fn snapshot() -> Residue {
        let own = i32::try_from(std::process::id()).unwrap();
        Residue {
            descriptors: descriptors(),
            children: children(own),
            mounts: fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count(),
            leases: leases(),
            files: scratch::names(),
        }
    }
}

fn descriptors() -> BTreeSet<String> {
    let entries = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let named = entries.filter_map(|entry| {
        // The descriptor of the listing itself is gone by now.
        let target = fs::read_link(entry.path()).ok()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let target = target.display().to_string();
        // The image is made once a process and stays, for the next sandbox.
        let kept = target.starts_with("/memfd:postern-launcher") || target.ends_with("/fd");
        (!kept).then(|| format!("{name} {target}"))
    });
    named.collect()
}

/// In a runtime directory of this program's own alone: in the machine's, other programs come and go.
fn leases() -> BTreeSet<String> {
    let root = std::env::var_os(postern::RUNTIME_DIRECTORY_VARIABLE);
    let ids = root.map(|root| Path::new(&root).join("ids"));
    let entries = ids.and_then(|ids| fs::read_dir(ids).ok()).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Keeps other watched tests of this process away, and fails the test when it is dropped and
/// anything is there that was not there before, or the other way round.
#[derive(Debug)]
pub struct Watch {
    before: Residue,
    _turn: MutexGuard<'static, ()>,
}

impl Watch {
    /// Begins; must be the first thing of a test, so that it is the last to go.
    #[must_use = "the watch ends where it is dropped"]
    pub fn begin() -> Watch {
        // A failed test poisons nothing that another one uses.
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        Watch { before: Residue::snapshot(), _turn: turn }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // A killed run is not waited for, so that its end may come a moment later.
        let same = || Some(()).filter(|()| Residue::snapshot() == self.before);
        if soon(same).is_none() {
            assert_eq!(Residue::snapshot(), self.before, "left behind");
        }
    }
}
