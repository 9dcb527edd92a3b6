//! Where the service may make control groups, and with which controllers; makes none, moves nobody.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::{CgroupGap, Controller};
use crate::host::has_clone3;
use crate::profile::{Cgroup, CgroupService};

/// Whether the service may give a run a control group here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CgroupSupport {
    /// The profile asks for none, and nobody looked.
    #[default]
    NotLooked,
    /// In this group.
    Beneath {
        /// The group in which one for each sandbox is made.
        parent: PathBuf,
        /// What it is given.
        controllers: Vec<Controller>,
        /// Those that are not, and are in use by version 1.
        version_one: Vec<Controller>,
        /// The service must be moved out of it first.
        moves_service: bool,
    },
    /// Nowhere.
    Nowhere(CgroupGap),
}

/// What a search reads: replaced by a made-up tree in tests.
#[derive(Debug)]
pub(super) struct Sight {
    /// `/proc/self/cgroup`.
    pub(super) own: String,
    /// `/proc/self/mountinfo`.
    pub(super) mounts: String,
    /// `/proc/cgroups`.
    pub(super) version_one: String,
    /// A service manager owns every group that it has not delegated.
    pub(super) is_managed: bool,
    pub(super) pid: u32,
}

impl Sight {
    fn here() -> Self {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        Sight {
            own: text("/proc/self/cgroup"),
            mounts: text("/proc/self/mountinfo"),
            version_one: text("/proc/cgroups"),
            is_managed: Path::new("/run/systemd/system").exists(),
            pid: std::process::id(),
        }
    }
}

impl CgroupSupport {
    /// Looks, by a few small files and system calls.
    pub(crate) fn probe(wanted: &Cgroup) -> Self {
        if !has_clone3() {
            return Self::Nowhere(CgroupGap::NoClone3);
        }
        Self::seen(&Sight::here(), wanted)
    }

    pub(super) fn seen(sight: &Sight, wanted: &Cgroup) -> Self {
        look(sight, wanted).unwrap_or_else(Self::Nowhere)
    }
}

fn look(sight: &Sight, wanted: &Cgroup) -> Result<CgroupSupport, CgroupGap> {
    let (mount, own) = own(sight)?;
    holds_controllers(sight, &mount)?;
    let parent = match &wanted.parent {
        Some(named) => named.clone(),
        None => delegated(sight, &mount, &own, wanted.service)?,
    };
    let given = match fs::read_to_string(parent.join("cgroup.controllers")) {
        Ok(given) if parent.starts_with(&mount) => given,
        Ok(_) | Err(_) => return Err(CgroupGap::NoParent { parent }),
    };
    for file in ["", "cgroup.procs", "cgroup.subtree_control"] {
        may_write(&parent.join(file))?;
    }
    apart(&parent, &own)?;
    let holder = holder(sight, &parent)?;
    if holder
        .is_some_and(|holder| holder == Holder::Others || wanted.service != CgroupService::Move)
    {
        return Err(CgroupGap::ServiceInside { group: parent });
    }
    let is_given = |one: &Controller| given.split_ascii_whitespace().any(|word| word == one.name());
    let controllers: Vec<_> = Controller::ALL.into_iter().filter(is_given).collect();
    let version_one =
        Controller::ALL.into_iter().filter(|one| !is_given(one) && is_version_one(sight, *one));
    Ok(CgroupSupport::Beneath {
        parent,
        version_one: version_one.collect(),
        moves_service: holder.is_some(),
        controllers,
    })
}

/// Where the hierarchy is mounted, and the service's own group in it.
fn own(sight: &Sight) -> Result<(PathBuf, PathBuf), CgroupGap> {
    let mount = sight.mounts.lines().find_map(mount_point);
    let path = sight.own.lines().find_map(|line| line.strip_prefix("0::/"));
    let (Some(mount), Some(path)) = (mount, path) else {
        let has_version_one = sight.own.lines().any(|line| !line.starts_with("0:"));
        return Err(if has_version_one { CgroupGap::VersionOne } else { CgroupGap::NotMounted });
    };
    // A group outside of the namespace's root is shown with `..` and cannot be reached.
    let own = Path::new(path);
    match own.components().any(|part| part.as_os_str() == "..") {
        true => Err(CgroupGap::Hidden),
        false => Ok((mount.to_owned(), mount.join(own))),
    }
}

/// Without its controllers the hierarchy is one for a service manager's own book-keeping.
fn holds_controllers(sight: &Sight, mount: &Path) -> Result<(), CgroupGap> {
    let given = fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default();
    let is_given = |one: Controller| given.split_ascii_whitespace().any(|word| word == one.name());
    let mut controllers = Controller::ALL.into_iter();
    match controllers.all(|one| !is_given(one) && is_version_one(sight, one)) {
        true => Err(CgroupGap::VersionOne),
        false => Ok(()),
    }
}

/// Where a line of mountinfo has the version 2 hierarchy.
fn mount_point(line: &str) -> Option<&Path> {
    let (mount, file_system) = line.split_once(" - ")?;
    file_system.starts_with("cgroup2 ").then(|| mount.split(' ').nth(4).map(Path::new))?
}

/// The group above a leaf that the service is in, or its own where it may leave it or need not.
fn delegated(
    sight: &Sight,
    mount: &Path,
    own: &Path,
    service: CgroupService,
) -> Result<PathBuf, CgroupGap> {
    let above = own.parent().filter(|above| above.starts_with(mount));
    if let Some(above) = above.filter(|above| is_delegated(sight, above)) {
        return Ok(above.to_owned());
    }
    let is_marked = !sight.is_managed || is_delegated(sight, own) || own == mount;
    match (is_marked, service) {
        (true, CgroupService::Move) => Ok(own.to_owned()),
        (true, CgroupService::Stay) => {
            may_write(&own.join("cgroup.subtree_control"))?;
            Ok(own.to_owned())
        }
        (false, _) => Err(CgroupGap::NotDelegated { group: own.to_owned() }),
    }
}

/// What a service manager has delegated it marks; where there is none, what may be written to is
/// ours.
fn is_delegated(sight: &Sight, group: &Path) -> bool {
    if !sight.is_managed {
        return may_write(&group.join("cgroup.subtree_control")).is_ok()
            && may_write(group).is_ok();
    }
    let mut value = [0u8; 8];
    ["user.delegate", "trusted.delegate"].iter().any(|name| {
        rustix::fs::getxattr(group, *name, &mut value)
            .is_ok_and(|len| value.get(..len) == Some(b"1"))
    })
}

fn may_write(path: &Path) -> Result<(), CgroupGap> {
    accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)
        .map_err(|_errno| CgroupGap::NotWritable { path: path.to_owned() })
}

/// The kernel wants the right to write to `cgroup.procs` of the group above both.
fn apart(parent: &Path, own: &Path) -> Result<(), CgroupGap> {
    let above = own.ancestors().find(|above| parent.starts_with(above)).unwrap_or(Path::new("/"));
    may_write(&above.join("cgroup.procs"))
        .map_err(|_gap| CgroupGap::Apart { above: above.to_owned() })
}

/// Who is in a group that may have nobody in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    Service,
    Others,
}

fn holder(sight: &Sight, group: &Path) -> Result<Option<Holder>, CgroupGap> {
    // The root of the whole hierarchy is the one group that may hold processes and controllers both.
    if !group.join("cgroup.type").exists() {
        return Ok(None);
    }
    let members = fs::read(group.join("cgroup.procs"))
        .map_err(|_error| CgroupGap::NotWritable { path: group.join("cgroup.procs") })?;
    let own = sight.pid.to_string();
    let mut members = members.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(match (members.next(), members.next()) {
        (None, _) => None,
        (Some(only), None) if only == own.as_bytes() => Some(Holder::Service),
        (Some(_), _) => Some(Holder::Others),
    })
}

/// A controller that a version 1 hierarchy holds has a number other than 0 in `/proc/cgroups`.
fn is_version_one(sight: &Sight, controller: Controller) -> bool {
    let name = if controller == Controller::Io { "blkio" } else { controller.name() };
    let line = sight.version_one.lines().find(|line| line.split('\t').next() == Some(name));
    line.and_then(|line| line.split('\t').nth(1)).is_some_and(|hierarchy| hierarchy != "0")
}

#[cfg(test)]
mod tests;
