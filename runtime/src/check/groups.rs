//! Limits of a run as a whole: what its control group holds it to, or why there is none.

use super::finding::{Findings, Name, Status};
use super::text::bytes;
use crate::cgroup::{CgroupGap, CgroupSupport};
use crate::enforcement::Enforcement;
use crate::plan::{CgroupLimit, CgroupResource, Plan};
use crate::profile::SandboxProfile;

/// What was launched, against what the profile asks for.
pub(super) fn say(
    findings: &mut Findings,
    profile: &SandboxProfile,
    plan: &Plan,
    enforcement: &Enforcement,
) {
    group(findings, profile, enforcement);
    let rows = [
        (Name::Memory, CgroupResource::Memory),
        (Name::Cpu, CgroupResource::Cpu),
        (Name::Pids, CgroupResource::Pids),
    ];
    let held = plan.cgroup.as_ref().map(|cgroup| &*cgroup.limits).unwrap_or_default();
    for (name, resource) in rows {
        let is_it = |limit: &&CgroupLimit| limit.resource == resource;
        let gaps = &enforcement.cgroup_gaps;
        if let Some((limit, gap)) = gaps.iter().find(|(limit, _)| limit.resource == resource) {
            missing(findings, name, &format!("not held: {}", words(*limit)), gap);
        } else if let Some(limit) = held.iter().find(is_it) {
            let swap = held.iter().find(|limit| limit.resource == CgroupResource::Swap);
            let swap = swap.filter(|_| resource == CgroupResource::Memory);
            let swap = swap.map_or(String::new(), |swap| format!(", {}", words(*swap)));
            let detail = format!("{}{swap} for each run", words(*limit));
            findings.say(name, Status::Enforced, detail);
        }
    }
}

fn group(findings: &mut Findings, profile: &SandboxProfile, enforcement: &Enforcement) {
    let name = Name::Cgroup;
    match (&enforcement.cgroup, enforcement.cgroup_gaps.first()) {
        (Some(own), _) => {
            let detail = format!("each run has one of its own in {}", own.display());
            findings.say(name, Status::Enforced, detail);
        }
        (None, Some((_, gap))) => missing(findings, name, "none for a run", gap),
        (None, None) => match CgroupSupport::probe(&profile.cgroup) {
            CgroupSupport::Beneath { parent, .. } => {
                let can = "none is asked for; each run could have one beneath";
                findings.say(name, Status::NotUsed, format!("{can} {}", parent.display()));
            }
            CgroupSupport::Nowhere(gap) => findings.explain(
                name,
                (Status::NotUsed, "none is asked for, and none could be had".to_owned()),
                gap.to_string(),
                gap.fix(),
            ),
            CgroupSupport::NotLooked => {}
        },
    }
}

fn missing(findings: &mut Findings, name: Name, detail: &str, gap: &CgroupGap) {
    findings.explain(name, (Status::Weaker, detail.to_owned()), gap.to_string(), gap.fix());
}

/// `64 MiB (memory.max)`.
fn words(limit: CgroupLimit) -> String {
    let value = match limit.resource {
        CgroupResource::Memory | CgroupResource::Swap => bytes(limit.value),
        CgroupResource::Cpu => {
            format!("{}.{} % of a processor", limit.value / 10, limit.value % 10)
        }
        CgroupResource::Pids | CgroupResource::CpuWeight | CgroupResource::IoWeight => {
            limit.value.to_string()
        }
    };
    format!("{value} ({})", limit.resource.file())
}
