//! The control group of a run: which limits this host can hold, and why it cannot hold the others.
//! Makes none.

use core::fmt;
use std::path::PathBuf;

use crate::cgroup::{CgroupGap, CgroupSupport, Controller};
use crate::error::Refusal;
use crate::profile::{self, CgroupNeed};

/// The control groups of a sandbox: one for itself beneath `parent`, and one in it for each run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    /// The group beneath which they are made.
    pub parent: PathBuf,
    /// Whether the service is moved to a leaf of it first.
    pub moves_service: bool,
    /// What the groups are given.
    pub controllers: Vec<Controller>,
    /// What each run's group is limited to.
    pub limits: Vec<CgroupLimit>,
    /// What a limit means that the kernel turns out to know no file for.
    pub need: CgroupNeed,
}

/// One limit of a run as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CgroupLimit {
    /// Of what.
    pub resource: CgroupResource,
    /// How much: bytes, processes, thousandths of a processor, or a weight.
    pub value: u64,
}

/// What a control group limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupResource {
    /// Bytes of memory.
    Memory,
    /// Bytes of swap.
    Swap,
    /// Processes and threads.
    Pids,
    /// Processor time.
    Cpu,
    /// Share of the processors.
    CpuWeight,
    /// Share of the disks.
    IoWeight,
}

impl CgroupResource {
    /// Every one, in the order of the profile's fields.
    pub const ALL: [Self; 6] =
        [Self::Memory, Self::Swap, Self::Pids, Self::Cpu, Self::CpuWeight, Self::IoWeight];

    /// Its key in the profile's table `cgroup`.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Memory => "memory_bytes",
            Self::Swap => "swap_bytes",
            Self::Pids => "pids",
            Self::Cpu => "cpu_millis",
            Self::CpuWeight => "cpu_weight",
            Self::IoWeight => "io_weight",
        }
    }

    /// What limits it.
    #[must_use]
    pub const fn controller(self) -> Controller {
        match self {
            Self::Memory | Self::Swap => Controller::Memory,
            Self::Pids => Controller::Pids,
            Self::Cpu | Self::CpuWeight => Controller::Cpu,
            Self::IoWeight => Controller::Io,
        }
    }

    /// What the profile asks for.
    #[must_use]
    pub const fn asked(self, profile: &profile::Cgroup) -> Option<u64> {
        match self {
            Self::Memory => profile.memory_bytes,
            Self::Swap if profile.memory_bytes.is_some() => Some(profile.swap_bytes),
            Self::Swap => None,
            Self::Pids => profile.pids,
            Self::Cpu => profile.cpu_millis,
            Self::CpuWeight => profile.cpu_weight,
            Self::IoWeight => profile.io_weight,
        }
    }
}

impl fmt::Display for CgroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Swap => "swap",
            Self::Pids => "processes",
            Self::Cpu => "processor time",
            Self::CpuWeight => "processor weight",
            Self::IoWeight => "disk weight",
        })
    }
}

/// What of the wish can be had.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Decided {
    pub(super) cgroup: Option<Cgroup>,
    pub(super) gaps: Vec<(CgroupLimit, CgroupGap)>,
}

/// Whether there is a group, and which limits it cannot hold.
pub(super) fn cgroup(wanted: &profile::Cgroup, found: &CgroupSupport) -> Result<Decided, Refusal> {
    let asked = CgroupResource::ALL
        .into_iter()
        .filter_map(|resource| Some(CgroupLimit { resource, value: resource.asked(wanted)? }));
    let (mut limits, mut gaps) = (Vec::new(), Vec::new());
    for limit in asked {
        match gap(limit.resource.controller(), found) {
            None => limits.push(limit),
            Some(gap) if wanted.need == CgroupNeed::Require => {
                return Err(Refusal::CgroupUnavailable { limit: limit.resource, gap });
            }
            Some(gap) => gaps.push((limit, gap)),
        }
    }
    let cgroup = match found {
        CgroupSupport::Beneath { parent, controllers, moves_service, .. } if !limits.is_empty() => {
            let needs_io = limits.iter().any(|limit| limit.resource == CgroupResource::IoWeight);
            // Those that are asked for, and those that count what a result tells.
            let is_used = |one: &&Controller| **one != Controller::Io || needs_io;
            Some(Cgroup {
                parent: parent.clone(),
                moves_service: *moves_service,
                controllers: controllers.iter().filter(is_used).copied().collect(),
                limits,
                need: wanted.need,
            })
        }
        CgroupSupport::Beneath { .. } | CgroupSupport::NotLooked | CgroupSupport::Nowhere(_) => {
            None
        }
    };
    Ok(Decided { cgroup, gaps })
}

fn gap(controller: Controller, found: &CgroupSupport) -> Option<CgroupGap> {
    match found {
        CgroupSupport::Beneath { controllers, .. } if controllers.contains(&controller) => None,
        CgroupSupport::Beneath { parent, version_one, .. } => Some(CgroupGap::NoController {
            controller,
            group: parent.clone(),
            is_version_one: version_one.contains(&controller),
        }),
        CgroupSupport::Nowhere(gap) => Some(gap.clone()),
        CgroupSupport::NotLooked => Some(CgroupGap::NotMounted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beneath(controllers: &[Controller]) -> CgroupSupport {
        CgroupSupport::Beneath {
            parent: "/sys/fs/cgroup/x".into(),
            controllers: controllers.to_vec(),
            version_one: vec![Controller::Cpu],
            moves_service: false,
        }
    }

    #[test]
    fn each_limit_is_held_or_says_why_not() {
        use CgroupResource::{Cpu, IoWeight, Memory, Pids, Swap};
        use Controller::{Io, Memory as M, Pids as P};
        let nowhere = CgroupSupport::Nowhere(CgroupGap::VersionOne);
        type Row<'a> = (&'a str, CgroupSupport, &'a [CgroupResource], &'a [CgroupResource]);
        let rows: [Row<'_>; 4] = [
            ("all", beneath(&Controller::ALL), &[Memory, Swap, Pids, Cpu, IoWeight], &[]),
            ("some", beneath(&[M, P]), &[Memory, Swap, Pids], &[Cpu, IoWeight]),
            ("one", beneath(&[Io]), &[IoWeight], &[Memory, Swap, Pids, Cpu]),
            ("none", nowhere, &[], &[Memory, Swap, Pids, Cpu, IoWeight]),
        ];
        let wanted = profile::Cgroup {
            memory_bytes: Some(1 << 26),
            pids: Some(9),
            cpu_millis: Some(500),
            io_weight: Some(50),
            ..profile::Cgroup::default()
        };
        for (name, found, held, missing) in rows {
            let decided = cgroup(&wanted, &found).unwrap();
            let limits = decided.cgroup.map(|cgroup| cgroup.limits).unwrap_or_default();
            let names: Vec<_> = limits.iter().map(|limit| limit.resource).collect();
            assert_eq!(names, held, "{name}");
            let gaps: Vec<_> = decided.gaps.iter().map(|(limit, _)| limit.resource).collect();
            assert_eq!(gaps, missing, "{name}");
            let required = profile::Cgroup { need: CgroupNeed::Require, ..wanted.clone() };
            let first = match cgroup(&required, &found) {
                Err(Refusal::CgroupUnavailable { limit, .. }) => Some(limit),
                Ok(_) | Err(_) => None,
            };
            assert_eq!(first, missing.first().copied(), "{name}");
        }
    }

    #[test]
    fn no_wish_is_no_group_and_disks_are_asked_for() {
        let found = beneath(&Controller::ALL);
        assert_eq!(cgroup(&profile::Cgroup::default(), &found), Ok(Decided::default()));
        let wanted = profile::Cgroup { pids: Some(9), ..profile::Cgroup::default() };
        let given = cgroup(&wanted, &found).unwrap().cgroup.unwrap().controllers;
        assert_eq!(given, [Controller::Memory, Controller::Pids, Controller::Cpu]);
    }
}
