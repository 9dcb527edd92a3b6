//! Limits of a run as a whole, by a version 2 control group of its own; makes none.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Limits that hold for all processes of a run together; default none, and then no control group is
/// made.
///
/// With any of them each run has a group of its own, from its first process on, with
/// `memory.oom.group` set: a run that uses up its memory is killed as a whole. What needs which
/// kernel, and how a service is given the right to make groups, is in `docs/limits.md`; see also
/// [cgroups(7)](https://man7.org/linux/man-pages/man7/cgroups.7.html).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Cgroup {
    /// What to do where this host cannot hold one of these limits; default go on and report.
    pub need: CgroupNeed,
    /// The group beneath which groups are made, a directory of the host's cgroup2 file system;
    /// default found: the delegated group that the service is in a leaf of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<PathBuf>,
    /// Whether the service may be moved out of the way; default not.
    pub service: CgroupService,
    /// Bytes of memory of a run, its tmpfs files and page cache included (`memory.max`); default
    /// no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Bytes of swap of a run (`memory.swap.max`), where `memory_bytes` is set; default 0.
    pub swap_bytes: u64,
    /// Processes and threads of a run, its PID 1 included (`pids.max`); default no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<u64>,
    /// Thousandths of a processor that a run has at the most (`cpu.max`), so that 1500 is one and
    /// a half; default no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u64>,
    /// A run's share of the processors where they are scarce, 1 to 10000 (`cpu.weight`); default
    /// the kernel's 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_weight: Option<u64>,
    /// A run's share of the disks where they are scarce, 1 to 10000 (`io.weight`); default the
    /// kernel's 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_weight: Option<u64>,
}

impl Cgroup {
    /// Whether any limit is asked for.
    #[must_use]
    pub const fn is_asked(&self) -> bool {
        self.memory_bytes.is_some()
            || self.pids.is_some()
            || self.cpu_millis.is_some()
            || self.cpu_weight.is_some()
            || self.io_weight.is_some()
    }
}

/// What to do about a limit of the run as a whole that this host cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CgroupNeed {
    /// Go on with those that can be held; the report says which cannot, and why.
    #[default]
    Use,
    /// Refuse the launch.
    Require,
}

/// What to do about a service that is itself in the group that was delegated to it: the kernel
/// gives no controller to the children of a group that holds processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CgroupService {
    /// Leave it there; the limits are not available.
    #[default]
    Stay,
    /// Move the service's process, where it is the only one there, to a group `postern-service`
    /// beneath the delegated one, and leave it there.
    Move,
}
