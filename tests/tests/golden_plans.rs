//! Whole plans against files, what holds for every plan, and every rule that refuses one.
//!
//! `plan/NAME.toml` is a profile and `plan/NAME.plan` its plan on a made-up host. Run with
//! `UPDATE_GOLDEN=1` to write the plans anew, and read the difference.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test's own helpers fail the test"
)]

#[path = "golden_plans/hosts.rs"]
mod hosts;
#[path = "golden_plans/invariants.rs"]
mod invariants;
#[path = "golden_plans/odd_hosts.rs"]
mod odd_hosts;
#[path = "golden_plans/python.rs"]
mod python;
#[path = "golden_plans/pythons.rs"]
mod pythons;
#[path = "golden_plans/refusals.rs"]
mod refusals;
#[path = "golden_plans/subordinate.rs"]
mod subordinate;

use std::path::PathBuf;

use hosts::Machine;
use postern::plan::{Plan, Wants, resolve_with};
use postern::profile::SandboxProfile;

/// A profile's name, the host it meets, and what else is wanted.
type Row = (&'static str, fn() -> Machine, Wants);

const NOTHING: Wants = Wants { run_directory: false };
const RUN_DIRECTORY: Wants = Wants { run_directory: true };

const ROWS: [Row; 31] = [
    ("beneath-tmp", hosts::with_models, NOTHING),
    ("bwrap-like", hosts::with_home, NOTHING),
    ("cgroup", hosts::with_groups, NOTHING),
    ("caller-workspace", hosts::with_job, NOTHING),
    ("default-container-root", hosts::container, NOTHING),
    ("default-root", hosts::debian, RUN_DIRECTORY),
    ("default-subordinate", hosts::with_subordinates, NOTHING),
    ("default-unprivileged", hosts::desktop, NOTHING),
    ("etc-none", hosts::debian, NOTHING),
    ("host-view", hosts::with_checkout, NOTHING),
    ("host-view-owned", hosts::with_checkout, RUN_DIRECTORY),
    ("limits", hosts::desktop, NOTHING),
    ("many-binds", hosts::with_models, NOTHING),
    ("merged-usr", hosts::fedora, NOTHING),
    ("over-a-link", hosts::with_models, NOTHING),
    ("private-tmp", hosts::with_models, NOTHING),
    ("proc-masked", hosts::debian, NOTHING),
    ("proc-minimal", hosts::debian, NOTHING),
    ("proc-none", hosts::debian, NOTHING),
    ("rootfs", hosts::with_rootfs, NOTHING),
    ("rootless-container", hosts::rootless, NOTHING),
    ("shared-network", hosts::with_checkout, NOTHING),
    ("own-workspace", hosts::with_own_checkout, NOTHING),
    ("stub-directory", hosts::with_stubs, RUN_DIRECTORY),
    ("stubs", hosts::with_stubs, NOTHING),
    ("unmerged-usr", hosts::unmerged, NOTHING),
    ("venv", pythons::with_venv, NOTHING),
    ("venv-alias", pythons::alias, NOTHING),
    ("venv-elsewhere", pythons::elsewhere, NOTHING),
    ("venv-shared-prefix", pythons::shared_prefix, NOTHING),
    ("workspace-mapped", hosts::with_job, NOTHING),
];

fn golden(name: &str, extension: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("plan");
    directory.join(name).with_extension(extension)
}

fn plan((name, machine, wants): Row) -> (SandboxProfile, Plan) {
    let profile = SandboxProfile::from_file(golden(name, "toml")).unwrap();
    let host = machine().facts(&profile);
    let plan = resolve_with(&profile, &host, wants);
    (profile, plan.unwrap_or_else(|refusal| panic!("{name}: {refusal}")))
}

#[test]
fn plans_are_the_golden_ones() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut different = Vec::new();
    for row in ROWS {
        let file = golden(row.0, "plan");
        let text = plan(row).1.to_string();
        if update {
            std::fs::write(&file, &text).unwrap();
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        let lines = expected.lines().zip(text.lines()).find(|(old, new)| old != new);
        if expected != text {
            different.push(format!("{}: {lines:?}", row.0));
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}

#[test]
fn every_golden_file_has_a_row() {
    let directory = golden("any", "toml").parent().unwrap().to_owned();
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let mut rows: Vec<_> = ROWS
        .iter()
        .flat_map(|(name, ..)| [format!("{name}.plan"), format!("{name}.toml")])
        .collect();
    rows.sort();
    assert_eq!(files, rows);
}

#[test]
fn invariants_hold_for_every_plan() {
    for row in ROWS {
        let (profile, plan) = plan(row);
        for (name, holds) in invariants::ALL {
            assert!(holds(&profile, &plan), "{}: {name}\n{plan}", row.0);
        }
    }
}

#[test]
fn equal_arguments_give_equal_plans() {
    for row in ROWS {
        assert_eq!(plan(row), plan(row), "{}", row.0);
    }
}
