//! Names what a failed step was about, from the plan: the launcher reports a place in a list only.

use std::ffi::CStr;

use postern_init::step::Step;

use crate::error::Phase;
use crate::plan::{Landlock, MountOp, Plan, Rlimit};

/// The object of a step, in words; empty where the step says it all.
pub(super) fn of(plan: &Plan, phase: Phase, step: Step, index: u32) -> String {
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    let limit = |list: &[Rlimit]| list.get(index).map(|limit| format!("{:?}", limit.resource));
    let found = if matches!(step, Step::LauncherLimits | Step::AheadLimits | Step::RunLimits) {
        plan.sysctls.get(index).map(|sysctl| lossy(&sysctl.path))
    } else if step == Step::Rlimit {
        limit(&plan.rlimits)
    } else if step == Step::GuestRlimit {
        limit(&plan.guest_rlimits)
    } else if matches!(step, Step::LandlockPlace | Step::LandlockRule) {
        rule(plan, index)
    } else if step == Step::WorkingDirectory {
        Some(lossy(&plan.cwd))
    } else {
        match phase {
            Phase::Spawn => None,
            Phase::Template => plan.template.get(index).map(operation),
            Phase::Run => plan.run.get(index).map(operation),
        }
    };
    found.unwrap_or_default()
}

fn rule(plan: &Plan, index: usize) -> Option<String> {
    match &plan.landlock {
        Landlock::Domain { rules, .. } => rules.get(index).map(|rule| lossy(&rule.target)),
        Landlock::Off | Landlock::Unavailable(_) => None,
    }
}

fn operation(operation: &MountOp) -> String {
    match operation {
        MountOp::Root { .. } | MountOp::HostRoot => "/".to_owned(),
        MountOp::Bind { source, target, .. } => {
            format!("{} at {}", source.path.display(), lossy(target))
        }
        MountOp::Dir { target, .. }
        | MountOp::File { target, .. }
        | MountOp::Symlink { target, .. }
        | MountOp::Tmpfs { target, .. }
        | MountOp::Proc { target, .. }
        | MountOp::Devpts { target, .. }
        | MountOp::Mask { target, .. }
        | MountOp::ReadOnly { target }
        | MountOp::ReadOnlySelf { target }
        | MountOp::RunDirectory { target, .. } => lossy(target),
    }
}

fn lossy(text: &CStr) -> String {
    text.to_string_lossy().into_owned()
}
