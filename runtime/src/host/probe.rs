//! Reads this machine into a [`Host`]; starts nothing, changes nothing, and asks no network file
//! system for anything new.

use core::fmt;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};
use rustix::process::{getegid, geteuid, getgroups, getrlimit};
use rustix::thread::capabilities;

use super::files::Looker;
use super::idmap::{parse_map, parse_subordinate};
use super::{Capabilities, FileFact, Host, IdRange, LandlockSupport, python, subordinate};
use crate::cgroup::CgroupSupport;
use crate::plan::{Resource, Rlimit};
use crate::profile::SandboxProfile;

/// Bytes of a page: fixed on x86_64, the one architecture that launches.
const PAGE_BYTES: u64 = 4096;

/// Why the machine could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProbeError {
    /// A system call about the service itself failed.
    Call {
        /// Its name.
        call: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A file about the service itself cannot be read.
    Read {
        /// The file.
        path: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A file about the service itself does not say what it should.
    Parse {
        /// The file.
        path: &'static str,
    },
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { call, source } => write!(f, "{call}: {source}"),
            Self::Read { path, source } => write!(f, "{path}: {source}"),
            Self::Parse { path } => write!(f, "{path} is not what proc(5) describes"),
        }
    }
}

impl core::error::Error for ProbeError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Call { source, .. } | Self::Read { source, .. } => Some(source),
            Self::Parse { .. } => None,
        }
    }
}

impl Host {
    /// Reads this machine, as far as `profile` has to do with it.
    ///
    /// Costs a few system calls and one `statx` per path component; walks no mount table and
    /// triggers no automount. Follows what leads to the guest's Python interpreter; for a
    /// virtual environment reads its `pyvenv.cfg`, and lists the installation that it was made
    /// from where the guest would not see that anyway. Facts can be out of date the moment they are read: the launcher
    /// looks again and refuses what has changed.
    ///
    /// # Errors
    ///
    /// [`ProbeError`] when the kernel does not tell the service about itself. What is wrong with
    /// a path of the profile is a fact, not an error.
    pub fn probe(profile: &SandboxProfile) -> Result<Self, ProbeError> {
        let call = |call| move |errno| ProbeError::Call { call, source: io::Error::from(errno) };
        let sets = capabilities(None).map_err(call("capget"))?;
        let groups = getgroups().map_err(call("getgroups"))?;
        let mut looker = Looker::default();
        let (subuid, subgid) = (subordinate_file("/etc/subuid"), subordinate_file("/etc/subgid"));
        let ranges =
            |text: &str| parse_subordinate(text).map(|(_, range)| range).collect::<Vec<_>>();
        let mut host = Self {
            capabilities: Capabilities::from_bits(sets.effective.bits()),
            uid: geteuid().as_raw(),
            gid: getegid().as_raw(),
            groups: groups.into_iter().map(|group| group.as_raw()).collect(),
            uids: id_map("/proc/self/uid_map")?,
            gids: id_map("/proc/self/gid_map")?,
            subordinate_uids: ranges(&subuid),
            subordinate_gids: ranges(&subgid),
            hard_limits: Resource::ALL.into_iter().filter_map(hard_limit).collect(),
            page_bytes: PAGE_BYTES,
            landlock: LandlockSupport::probe(),
            cgroup: match profile.cgroup.is_asked() {
                true => CgroupSupport::probe(&profile.cgroup),
                false => CgroupSupport::NotLooked,
            },
            files: files(profile, &mut looker),
            ..Self::default()
        };
        host.subordinate = subordinate::look(&host, &subuid, &subgid);
        python::look(profile, &mut looker, &mut host);
        Ok(host)
    }
}

/// The ids of the service's user namespace.
fn id_map(path: &'static str) -> Result<Vec<IdRange>, ProbeError> {
    let text = small_file(path)
        .map_err(|errno| ProbeError::Read { path, source: io::Error::from(errno) })?;
    parse_map(&text).ok_or(ProbeError::Parse { path })
}

/// Ids that are somebody's; a host without the file has given none away.
fn subordinate_file(path: &str) -> String {
    small_file(path).unwrap_or_default()
}

/// A file of a few lines, without asking for its size first.
pub(crate) fn small_file(path: &str) -> Result<String, Errno> {
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = Vec::with_capacity(4096);
    while read(&file, spare_capacity(&mut bytes))? > 0 {
        bytes.reserve(1024);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A hard limit that is not infinite.
fn hard_limit(resource: Resource) -> Option<Rlimit> {
    use rustix::process::Resource as Kernel;
    let kernel = match resource {
        Resource::Core => Kernel::Core,
        Resource::NoFile => Kernel::Nofile,
        Resource::FileSize => Kernel::Fsize,
        Resource::MemLock => Kernel::Memlock,
        Resource::SigPending => Kernel::Sigpending,
        Resource::MsgQueue => Kernel::Msgqueue,
        Resource::NProc => Kernel::Nproc,
        Resource::AddressSpace => Kernel::As,
        Resource::Stack => Kernel::Stack,
        Resource::Cpu => Kernel::Cpu,
    };
    getrlimit(kernel).maximum.map(|limit| Rlimit { resource, limit })
}

/// Every fact about files. Paths within a rootfs are resolved within it.
fn files(profile: &SandboxProfile, looker: &mut Looker) -> BTreeMap<PathBuf, FileFact> {
    let host = Path::new("/");
    let rootfs = profile.rootfs.as_deref().map(|rootfs| (rootfs, looker.look(host, rootfs)));
    let mut files = BTreeMap::new();
    for path in profile.paths_of_interest() {
        let fact = match &rootfs {
            Some((rootfs, FileFact::Found(found))) if path.starts_with(rootfs) => {
                let inside = path.strip_prefix(rootfs).unwrap_or(Path::new(""));
                looker.look(&found.canonical, &found.canonical.join(inside))
            }
            Some(_) | None => looker.look(host, &path),
        };
        if let FileFact::Found(found) = &fact
            && found.canonical != path
        {
            let direct = super::FoundFile { link: None, ..found.clone() };
            files.entry(found.canonical.clone()).or_insert(FileFact::Found(direct));
        }
        files.insert(path, fact);
    }
    files
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::host::{FileFact, FileKind, Host};
    use crate::profile::SandboxProfile;

    #[test]
    fn every_path_of_interest_becomes_a_fact() {
        let profile = SandboxProfile::builder()
            .venv("/nonexistent/venv")
            .ro_binds([("/usr", "/opt/usr")])
            .rw_binds([("/usr/bin", "/opt/usr/bin")])
            .cwd("/opt/usr/bin")
            .build()
            .unwrap();
        let host = Host::probe(&profile).unwrap();
        for path in profile.paths_of_interest() {
            assert!(host.file(&path).is_some(), "{}", path.display());
        }
        assert_eq!(host.file(Path::new("/nonexistent/venv/bin/python")), Some(&FileFact::Missing));
        let Some(FileFact::Found(usr)) = host.file(Path::new("/usr")) else { panic!("{host:?}") };
        assert_eq!(usr.kind, FileKind::Dir);
    }

    #[test]
    fn the_service_is_told_by_the_kernel() {
        let host = Host::probe(&SandboxProfile::default()).unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        let effective = u64::from_str_radix(&field("CapEff:")[0], 16).unwrap();
        assert_eq!(host.capabilities, crate::host::Capabilities::from_bits(effective));
        assert_eq!(host.uid.to_string(), field("Uid:")[1]);
        assert_eq!(host.gid.to_string(), field("Gid:")[1]);
        let groups: Vec<_> = host.groups.iter().map(u32::to_string).collect();
        assert_eq!(groups, field("Groups:"));
        assert!(!host.uids.is_empty() && !host.gids.is_empty());
    }
}
