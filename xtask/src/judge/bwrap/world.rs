//! The files that command lines are about, made anew for each call: what one call changes is no concern
//! of the next. Which calls there are is not known here.

use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use super::line::Names;
use crate::cache::{self, failure};
use crate::command::{program, succeed};
use crate::failure::Failure;
use crate::half::{Half, Place};
use crate::scratch::Scratch;

/// The directories that have names of their own.
const NAMED: [&str; 5] = ["app", "home", "project", "run", "tmp"];

/// A tree of files, and the probe that looks at it from inside.
#[derive(Debug)]
pub(super) struct World {
    tree: PathBuf,
    probe: PathBuf,
    /// Paths in the tree; directories end in a slash, and names may stand in them.
    entries: Vec<String>,
}

impl World {
    pub(super) fn new(stage: &Scratch, entries: Vec<String>) -> Result<Self, Failure> {
        let probe = stage.path().join("probe");
        if !probe.exists() {
            compile(&probe)?;
        }
        Ok(Self { tree: stage.path().join("tree"), probe, entries })
    }

    /// Makes the tree anew, as the place's user's.
    pub(super) fn renew(&self, place: &Place<'_>) -> Result<(), Failure> {
        if self.tree.exists() {
            cache::remove(&self.tree)?;
        }
        let (uid, gid) = ids(place);
        let own = |path: &Path| {
            chown(path, Some(uid), Some(gid)).map_err(|source| failure("give away", path, source))
        };
        let names = self.names(place);
        let make = |path: &Path| -> Result<(), Failure> {
            let missing: Vec<_> = path.ancestors().take_while(|one| !one.exists()).collect();
            for directory in missing.into_iter().rev() {
                fs::create_dir(directory).map_err(|source| failure("make", directory, source))?;
                own(directory)?;
            }
            Ok(())
        };
        make(&self.tree)?;
        for entry in &self.entries {
            let path = self.tree.join(names.fill(entry).trim_start_matches('/'));
            if entry.ends_with('/') {
                make(&path)?;
            } else {
                path.parent().map_or(Ok(()), make)?;
                File::create(&path).map_err(|source| failure("make", &path, source))?;
                own(&path)?;
            }
        }
        Ok(())
    }

    pub(super) fn names(&self, place: &Place<'_>) -> Names {
        let (uid, gid) = ids(place);
        let named = NAMED.map(|name| (name, self.tree.join(name).display().to_string()));
        let mut names = Names(named.to_vec());
        names.0.push(("tree", self.tree.display().to_string()));
        names.0.push(("probe", self.probe.display().to_string()));
        names.0.push(("uid", uid.to_string()));
        names.0.push(("gid", gid.to_string()));
        names
    }

    /// What `{fd:directory}` is.
    pub(super) fn directory(&self) -> PathBuf {
        self.tree.join("app/runtime")
    }
}

fn ids(place: &Place<'_>) -> (u32, u32) {
    match place.half() {
        Half::Unprivileged(user) => (user.uid, user.gid),
        Half::Root | Half::Caller => {
            (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
        }
    }
}

/// As the tests have it: static, for roots that hold nothing else.
fn compile(probe: &Path) -> Result<(), Failure> {
    let mut rustc = program("rustc");
    rustc.args(["tests/probe/main.rs", "--edition=2024", "--crate-name=probe", "--crate-type=bin"]);
    rustc.args(["-Ctarget-feature=+crt-static", "-Crelocation-model=static", "--cap-lints=allow"]);
    rustc.args(["-Copt-level=s", "-Cpanic=abort", "-Cstrip=symbols", "-o"]).arg(probe);
    succeed(&mut rustc)?;
    cache::allow(probe, 0o755)
}
