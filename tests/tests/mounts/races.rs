//! Somebody exchanges what is bound, or what is mounted on, while sandboxes are built: each of them
//! shows what its plan says, or is not built, and the host is as before.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use postern::plan::MountOp;
use postern::profile::{Bind, Workspace};
use postern::{Error, Sandbox, SandboxProfile};
use postern_tests::{Scratch, Watch, ask, install};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use crate::{canary, stage};

/// How many sandboxes are built; a short test is a sample.
fn launches() -> usize {
    if std::env::var_os("POSTERN_LONG").is_some() { 1000 } else { 120 }
}

/// Exchanges two entries over and over while `act` runs.
fn while_exchanging(one: &Path, other: &Path, act: impl FnOnce()) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
                // About a tenth of what a launch takes.
                std::thread::sleep(std::time::Duration::from_micros(300));
            }
        });
        // Also when it fails, or the other would go on.
        let over = Over(&over);
        act();
        drop(over);
    });
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What became of many launches.
#[derive(Debug, Default)]
struct Tally {
    built: usize,
    refused: usize,
    failed: usize,
}

#[test]
fn a_source_that_is_exchanged_is_the_planned_one_or_none() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    scratch.file("source/name", b"source", 0o644);
    scratch.file("canary/name", b"canary", 0o644);
    let (source, link) = (scratch.path().join("source"), scratch.path().join("link"));
    symlink("canary", &link).unwrap();
    let mut tally = Tally::default();
    while_exchanging(&source, &link, || {
        for _ in 0..launches() {
            let bind = Bind::new(&source, "/srv/source");
            let profile = SandboxProfile::builder().required_ro_binds([bind]).build().unwrap();
            match Sandbox::builder(profile).build() {
                Ok(sandbox) => {
                    tally.built += 1;
                    install(&sandbox);
                    let planned = sandbox.plan().template.iter().find_map(|op| {
                        let MountOp::Bind { source, target, .. } = op else { return None };
                        (**target == *c"/srv/source").then(|| source.path.file_name())?
                    });
                    let planned = planned.unwrap().to_str().unwrap();
                    let file = "/srv/source/name";
                    assert_eq!(ask(&sandbox, &["read", file])[file], json!(planned));
                }
                // It is gone for a moment between the look at a link and at what it leads to.
                Err(Error::Refused(_)) => tally.refused += 1,
                Err(Error::Launch(error)) => {
                    tally.failed += 1;
                    let words = error.to_string();
                    let known = ["open the source of a bind", "find the source of a bind"];
                    assert!(known.iter().any(|known| words.contains(known)), "{words}");
                }
                Err(other) => panic!("{other}"),
            }
        }
    });
    assert!(tally.built > 0 && tally.failed > 0, "nothing was met: {tally:?}");
}

/// One run of the workspace's guest goes on renaming while another sandbox is built on it.
#[test]
fn a_target_that_is_exchanged_leads_nowhere_else() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    scratch.file("canary/inner/file", b"untouched", 0o644);
    let workspace = scratch.directory("job", 0o777);
    stage::open(&workspace);
    fs::create_dir_all(workspace.join("place/inner")).unwrap();
    symlink(scratch.path().join("canary"), workspace.join("link")).unwrap();
    let before = canary(&scratch.path().join("canary"));
    let mut tally = Tally::default();
    while_exchanging(&workspace.join("place"), &workspace.join("link"), || {
        for number in 0..launches() {
            let target =
                if number % 2 == 0 { "/workspace/place/inner" } else { "/workspace/place" };
            let text = format!(
                "mounts = [{{ tmpfs = {{ target = '{target}' }} }},\n\
                 {{ dir = {{ target = '{target}/made' }} }},\n\
                 {{ file = {{ target = '{target}/file', contents = 'x' }} }}]"
            );
            let mut profile = SandboxProfile::from_toml_str(&text).unwrap();
            let path = workspace.clone();
            profile.workspace = Workspace::Directory { path, access: Default::default() };
            match Sandbox::builder(profile).build() {
                Ok(_) => tally.built += 1,
                Err(Error::Refused(_)) => tally.refused += 1,
                Err(Error::Launch(_)) => tally.failed += 1,
                Err(other) => panic!("{other}"),
            }
        }
    });
    assert_eq!(canary(&scratch.path().join("canary")), before, "{tally:?}");
    assert!(tally.built > 0 && tally.refused + tally.failed > 0, "nothing was met: {tally:?}");
    for name in ["place", "link"] {
        let inner = workspace.join(name).join("inner");
        let made = ["made", "file"].map(|made| inner.parent().unwrap().join(made).exists());
        assert_eq!(made, [false, false], "{name}: something was made beneath the mount");
    }
}
