//! The subordinate ids of the service's user, and the setuid tools that put them into a map; runs
//! neither tool, and asks no other source of users than `/etc/passwd`.

use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, getxattr, stat, statvfs};
use rustix::thread::no_new_privs;

use super::idmap::parse_subordinate;
use super::probe::small_file;
use super::{Capability, Host, IdRange};

/// What the service's user has of [subuid(5)](https://man7.org/linux/man-pages/man5/subuid.5.html).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subordinate {
    /// Its uids.
    pub uids: Vec<IdRange>,
    /// Its gids.
    pub gids: Vec<IdRange>,
    /// What can write them into a map.
    pub tools: MapTools,
}

/// Whether [newuidmap(1)](https://man7.org/linux/man-pages/man1/newuidmap.1.html) and newgidmap(1)
/// can be used by this service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum MapTools {
    /// Not looked for: the user has no range, or the service needs none.
    #[default]
    NotLooked,
    /// Both are there and have the power that they need.
    Usable {
        /// Where newuidmap is.
        newuidmap: PathBuf,
        /// Where newgidmap is.
        newgidmap: PathBuf,
    },
    /// One is in none of the usual places.
    Missing {
        /// Its name.
        program: &'static str,
    },
    /// One is neither set-uid root nor has capabilities of its own, or its mount takes them away.
    Powerless {
        /// Where it is.
        path: PathBuf,
    },
    /// `no_new_privs` is set on the service: no program gives it anything.
    NoNewPrivs,
    /// The service's gid is not its user's primary one, which the tools insist on.
    OtherGroup {
        /// The primary gid.
        primary: u32,
    },
    /// The service's uid has no entry in `/etc/passwd`.
    NoUser,
}

/// Where the tools are looked for; never on `PATH`, which is the caller's.
const DIRECTORIES: [&str; 3] = ["/usr/bin", "/usr/local/bin", "/run/wrappers/bin"];

/// Everything that a service without capabilities has to know; nothing for another one.
pub(super) fn look(host: &Host, subuid: &str, subgid: &str) -> Subordinate {
    let needed = [Capability::SetUid, Capability::SetGid, Capability::SetFcap];
    let is_able = needed.iter().all(|capability| host.capabilities.has(*capability));
    if is_able || host.uid == 0 || (subuid.is_empty() && subgid.is_empty()) {
        return Subordinate::default();
    }
    let user = user(&small_file("/etc/passwd").unwrap_or_default(), host.uid);
    let name = user.as_ref().map(|user| user.0.as_str());
    let (uids, gids) = (owned_by(subuid, name, host.uid), owned_by(subgid, name, host.uid));
    let tools = match user {
        _ if uids.is_empty() && gids.is_empty() => MapTools::NotLooked,
        None => MapTools::NoUser,
        Some((_, primary)) if primary != host.gid => MapTools::OtherGroup { primary },
        Some(_) if no_new_privs().unwrap_or(false) => MapTools::NoNewPrivs,
        Some(_) => tools(&DIRECTORIES.map(Path::new)),
    };
    Subordinate { uids, gids, tools }
}

/// A user's name and primary gid, from the lines of `/etc/passwd`.
fn user(passwd: &str, uid: u32) -> Option<(String, u32)> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let (id, gid): (u32, u32) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        (id == uid).then(|| (name.to_owned(), gid))
    })
}

/// The ranges of one owner, who is named or numbered.
fn owned_by(text: &str, name: Option<&str>, uid: u32) -> Vec<IdRange> {
    let number = uid.to_string();
    let is_own = |owner: &str| Some(owner) == name || owner == number;
    parse_subordinate(text).filter(|(owner, _)| is_own(owner)).map(|(_, range)| range).collect()
}

fn tools(directories: &[&Path]) -> MapTools {
    let find = |program: &'static str| {
        let mut paths = directories.iter().map(|directory| directory.join(program));
        paths.find(|path| path.is_file()).ok_or(MapTools::Missing { program })
    };
    let able = |path: PathBuf| match has_power(&path) {
        true => Ok(path),
        false => Err(MapTools::Powerless { path }),
    };
    let both = || {
        let newuidmap = find("newuidmap").and_then(able)?;
        let newgidmap = find("newgidmap").and_then(able)?;
        Ok(MapTools::Usable { newuidmap, newgidmap })
    };
    both().unwrap_or_else(|reason| reason)
}

/// Set-uid root, or with file capabilities, on a mount that honours either.
fn has_power(path: &Path) -> bool {
    const SET_UID: u32 = 0o4000;
    let is_set_uid =
        stat(path).is_ok_and(|status| status.st_uid == 0 && status.st_mode & SET_UID != 0);
    let has_capabilities =
        || getxattr(path, "security.capability", &mut [0u8; 64]).is_ok_and(|length| length > 0);
    let is_honoured =
        statvfs(path).is_ok_and(|mount| !mount.f_flag.contains(StatVfsMountFlags::NOSUID));
    is_honoured && (is_set_uid || has_capabilities())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_told_by_name_or_number() {
        let text = "ada:100000:65536\n1000:300000:10\n100:400000:1\nadam:5:5\n";
        let range = |first, count| IdRange { first, count };
        let rows: [(Option<&str>, u32, &[IdRange]); 4] = [
            (Some("ada"), 1000, &[range(100_000, 65_536), range(300_000, 10)]),
            (Some("bob"), 1000, &[range(300_000, 10)]),
            (None, 100, &[range(400_000, 1)]),
            (Some("ad"), 10, &[]),
        ];
        for (name, uid, expected) in rows {
            assert_eq!(owned_by(text, name, uid), expected, "{name:?} {uid}");
        }
    }

    #[test]
    fn a_user_is_found_by_uid() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nada:x:1000:1001::/home/ada:/bin/sh\n";
        assert_eq!(user(passwd, 1000), Some(("ada".to_owned(), 1001)));
        assert_eq!(user(passwd, 1001), None);
    }

    #[test]
    fn a_tool_must_be_there_and_have_power() {
        let directory =
            std::env::temp_dir().join(format!("postern-map-tools-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let places = [directory.as_path()];
        assert_eq!(tools(&places), MapTools::Missing { program: "newuidmap" });
        let path = directory.join("newuidmap");
        std::fs::write(&path, "").unwrap();
        assert_eq!(tools(&places), MapTools::Powerless { path });
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
