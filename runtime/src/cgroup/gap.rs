//! Why a run cannot have a control group here, in words: the fact, why, and what to do.

use core::fmt;
use std::path::PathBuf;

use crate::error::Shown as _;

/// A controller of control groups, as far as one of ours is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Controller {
    /// Memory and swap, and who was killed for want of it.
    Memory,
    /// Numbers of processes.
    Pids,
    /// Processor time.
    Cpu,
    /// Disks.
    Io,
}

impl Controller {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Memory, Self::Pids, Self::Cpu, Self::Io];

    /// Its name in `cgroup.controllers`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
            Self::Io => "io",
        }
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a limit of the run as a whole cannot be held here.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CgroupGap {
    /// The machine has its controllers in control groups of version 1.
    VersionOne,
    /// No cgroup2 file system is mounted where the service sees it.
    NotMounted,
    /// The service's group lies outside of what its cgroup namespace shows.
    Hidden,
    /// The named parent is not a group that the service can look at.
    NoParent {
        /// What was named.
        parent: PathBuf,
    },
    /// Nobody gave the service a group to make others in.
    NotDelegated {
        /// The service's own group.
        group: PathBuf,
    },
    /// The service may not write to the group.
    NotWritable {
        /// The group, or the file of it.
        path: PathBuf,
    },
    /// The group holds processes, so that it gives no controller to groups beneath it.
    ServiceInside {
        /// The group.
        group: PathBuf,
    },
    /// The service is elsewhere, and may not move processes between there and the parent.
    Apart {
        /// The group above both.
        above: PathBuf,
    },
    /// The group is not given this controller.
    NoController {
        /// Which one.
        controller: Controller,
        /// The group.
        group: PathBuf,
        /// It is in use by version 1.
        is_version_one: bool,
    },
    /// The kernel keeps no such file for a group.
    NoFile {
        /// The file's name.
        file: &'static str,
    },
    /// clone3(2) is refused by a filter around the service.
    NoClone3,
}

impl CgroupGap {
    /// The reason without its paths.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::VersionOne => "this machine has its controllers in control groups of version 1",
            Self::NotMounted => "no cgroup2 file system is mounted here",
            Self::Hidden => "the service's control group is outside of its cgroup namespace",
            Self::NoParent { .. } => "the named parent is no control group of version 2",
            Self::NotDelegated { .. } => "no control group is delegated to the service",
            Self::NotWritable { .. } => "the service may not write to its control group",
            Self::ServiceInside { .. } => {
                "the service is itself in the delegated control group, and the kernel gives no \
                 controller to the children of a group with processes in it"
            }
            Self::Apart { .. } => {
                "the service is outside of the delegated control group, and may not move a process \
                 into it"
            }
            Self::NoController { is_version_one: true, .. } => {
                "the controller is in use by control groups of version 1"
            }
            Self::NoController { .. } => "the controller is not delegated with the control group",
            Self::NoFile { .. } => "the kernel was built, or started, without it",
            Self::NoClone3 => "clone3 is refused, by a seccomp filter around the service",
        }
    }

    /// What to do about it.
    #[must_use]
    pub const fn fix(&self) -> &'static str {
        match self {
            Self::VersionOne | Self::NoController { is_version_one: true, .. } => {
                "boot with systemd.unified_cgroup_hierarchy=1, or limit the service as a whole"
            }
            Self::NotMounted | Self::NotWritable { .. } => {
                "docker: --cgroupns=private with a writable /sys/fs/cgroup (--privileged, or -v \
                 /sys/fs/cgroup:/sys/fs/cgroup:rw with --cgroupns=host), or systemd: Delegate=yes"
            }
            Self::Hidden => "start the service in the cgroup namespace that its group is in",
            Self::NoParent { .. } => {
                "name a directory beneath /sys/fs/cgroup that the service may write to, or leave \
                 cgroup.parent out"
            }
            Self::NotDelegated { .. } => {
                "systemd unit: Delegate=yes and DelegateSubgroup=service, or by hand: systemd-run \
                 --user --scope -p Delegate=yes COMMAND with cgroup.service = \"move\" in the \
                 profile, or name a group as cgroup.parent"
            }
            Self::ServiceInside { .. } => {
                "cgroup.service = \"move\" in the profile, where the service is alone in the \
                 group, or systemd unit: DelegateSubgroup=service (systemd 254)"
            }
            Self::Apart { .. } => {
                "start the service in a leaf of the delegated group: DelegateSubgroup=service, or \
                 write its pid to cgroup.procs of a group beneath"
            }
            Self::NoController { .. } => {
                "systemd: Delegate=yes, or Delegate=cpu cpuset io memory pids (for user services \
                 in user@.service too), or write it to cgroup.subtree_control of every group above"
            }
            Self::NoFile { .. } => "another kernel, or leave the limit out of the profile",
            Self::NoClone3 => {
                "allow clone3 in the filter around the service (docker: --security-opt seccomp=...)"
            }
        }
    }
}

impl fmt::Display for CgroupGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())?;
        match self {
            Self::NoParent { parent: path }
            | Self::NotDelegated { group: path }
            | Self::NotWritable { path }
            | Self::ServiceInside { group: path }
            | Self::Apart { above: path } => write!(f, " ({})", path.shown()),
            Self::NoController { controller, group, .. } => {
                write!(f, " ({controller} in {})", group.shown())
            }
            Self::NoFile { file } => write!(f, " ({file})"),
            Self::VersionOne | Self::NotMounted | Self::Hidden | Self::NoClone3 => Ok(()),
        }
    }
}
