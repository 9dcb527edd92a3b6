//! Made-up machines, written down as facts; none of them is this one.

use std::path::{Path, PathBuf};

use postern::host::{
    Capabilities, Capability, FileFact, FileKind, FoundFile, Host, IdRange, LandlockSupport,
    MapTools, Subordinate,
};
use postern::plan::{Resource, Rlimit};
use postern::profile::SandboxProfile;
use postern::{CgroupSupport, Controller};

/// A machine that is being written down.
pub(crate) struct Machine {
    host: Host,
    is_probed: bool,
}

/// Owner and permission bits.
#[derive(Clone, Copy)]
pub(crate) struct Owned {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mode: u32,
}

/// Root's, readable by everybody.
const ROOTS: Owned = Owned { uid: 0, gid: 0, mode: 0o755 };

impl Machine {
    /// A service with every id of the initial user namespace, and the usual device nodes.
    fn new(uid: u32, groups: &[u32], capabilities: Capabilities) -> Self {
        let host = Host {
            capabilities,
            uid,
            gid: uid,
            groups: groups.to_vec(),
            uids: vec![IdRange::ALL],
            gids: vec![IdRange::ALL],
            subordinate_uids: vec![IdRange { first: 100_000, count: 65_536 }],
            subordinate_gids: vec![IdRange { first: 100_000, count: 65_536 }],
            page_bytes: 4096,
            landlock: LandlockSupport::Abi(6),
            ..Host::default()
        };
        let devices = [("null", 3), ("zero", 5), ("full", 7), ("random", 8), ("urandom", 9)];
        let machine = Self { host, is_probed: true }.device("/dev/tty", 5, 0);
        devices.into_iter().fold(machine, |machine, (name, minor)| {
            machine.device(&format!("/dev/{name}"), 1, minor)
        })
    }

    /// Adds or replaces a fact.
    pub(crate) fn fact(mut self, path: &str, fact: FileFact) -> Self {
        self.host.files.insert(PathBuf::from(path), fact);
        self
    }

    fn found(self, path: &str, found: FoundFile) -> Self {
        self.fact(path, FileFact::Found(found))
    }

    /// The next file, with numbers of its own.
    fn file_of(&self, path: &str, kind: FileKind, owned: Owned) -> FoundFile {
        FoundFile {
            kind,
            canonical: PathBuf::from(path),
            link: None,
            dev: 2049,
            ino: 1000 + u64::try_from(self.host.files.len()).unwrap(),
            mode: owned.mode,
            uid: owned.uid,
            gid: owned.gid,
        }
    }

    fn device(self, path: &str, major: u32, minor: u32) -> Self {
        let kind = FileKind::CharDevice { rdev: libc::makedev(major, minor) };
        let found = self.file_of(path, kind, Owned { mode: 0o666, ..ROOTS });
        self.found(path, found)
    }

    pub(crate) fn dir(self, path: &str) -> Self {
        self.dir_of(path, ROOTS)
    }

    pub(crate) fn dir_of(self, path: &str, owned: Owned) -> Self {
        let found = self.file_of(path, FileKind::Dir, owned);
        self.found(path, found)
    }

    pub(crate) fn file(self, path: &str) -> Self {
        self.file_with(path, 0o644)
    }

    pub(crate) fn file_with(self, path: &str, mode: u32) -> Self {
        let found = self.file_of(path, FileKind::Regular, Owned { mode, ..ROOTS });
        self.found(path, found)
    }

    /// A link that says `to` and in the end leads to `canonical`, which is there already.
    pub(crate) fn link(self, path: &str, to: &str, canonical: &str) -> Self {
        let Some(FileFact::Found(end)) = self.host.file(Path::new(canonical)) else {
            panic!("{canonical} is not there")
        };
        let link = Some(PathBuf::from(to));
        let found = FoundFile { link, ..end.clone() };
        self.found(path, found)
    }

    /// Directories below another one that are linked from its parent, as `/bin` is to `/usr/bin`.
    fn merged(self, base: &str) -> Self {
        let machine = self.dir(&format!("{base}/usr"));
        ["bin", "sbin", "lib", "lib64"].into_iter().fold(machine, |machine, name| {
            let inside = format!("{base}/usr/{name}");
            machine.dir(&inside).link(&format!("{base}/{name}"), &format!("usr/{name}"), &inside)
        })
    }

    /// The names in a directory, each of which has a fact or needs none.
    pub(crate) fn listing(self, path: &str, names: &[&str]) -> Self {
        let names = names.iter().map(Into::into).collect();
        self.with(|host| drop(host.listings.insert(path.into(), names)))
    }

    /// Forgets one file.
    pub(crate) fn without(self, path: &str) -> Self {
        self.fact(path, FileFact::Missing)
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Host)) -> Self {
        change(&mut self.host);
        self
    }

    /// Forgets every file.
    pub(crate) fn unprobed(mut self) -> Self {
        self.host.files.clear();
        self.is_probed = false;
        self
    }

    /// The facts for one profile: what it is interested in and is not there is missing.
    pub(crate) fn facts(mut self, profile: &SandboxProfile) -> Host {
        for path in profile.paths_of_interest().into_iter().filter(|_| self.is_probed) {
            self.host.files.entry(path).or_insert(FileFact::Missing);
        }
        self.host
    }
}

/// What Debian has in `/etc`.
fn debian_etc(machine: Machine) -> Machine {
    machine
        .file("/usr/share/zoneinfo/Europe/Berlin")
        .file("/usr/lib/os-release")
        .link(
            "/etc/localtime",
            "/usr/share/zoneinfo/Europe/Berlin",
            "/usr/share/zoneinfo/Europe/Berlin",
        )
        .link("/etc/os-release", "../usr/lib/os-release", "/usr/lib/os-release")
        .file("/etc/ld.so.cache")
        .file("/etc/timezone")
        .dir("/etc/alternatives")
        .dir("/etc/ssl/certs")
        .file("/etc/ssl/openssl.cnf")
        .file("/etc/services")
        .file("/etc/protocols")
        .file("/etc/mime.types")
        .dir("/etc/fonts")
}

/// What of `/proc` is root's alone.
fn closed_proc(machine: Machine) -> Machine {
    let closed = Owned { mode: 0o400, ..ROOTS };
    ["kmsg", "kpageflags", "slabinfo"].into_iter().fold(machine, |machine, name| {
        let path = format!("/proc/{name}");
        let found = machine.file_of(&path, FileKind::Regular, closed);
        machine.found(&path, found)
    })
}

/// Debian on bare metal, the service being root.
pub(crate) fn debian() -> Machine {
    closed_proc(debian_etc(Machine::new(0, &[], Capabilities::ALL).merged("")))
}

/// The same, the service being an ordinary user in two groups of the desktop.
pub(crate) fn desktop() -> Machine {
    debian_etc(Machine::new(1000, &[1000, 27, 44], Capabilities::NONE).merged(""))
        .with(|host| host.hard_limits = vec![Rlimit { resource: Resource::NoFile, limit: 512 }])
}

/// The desktop where the user has subordinate ids and the tools for them.
pub(crate) fn with_subordinates() -> Machine {
    let range = IdRange { first: 100_000, count: 65_536 };
    let tools = MapTools::Usable {
        newuidmap: "/usr/bin/newuidmap".into(),
        newgidmap: "/usr/bin/newgidmap".into(),
    };
    let subordinate = Subordinate { uids: vec![range], gids: vec![range], tools };
    desktop().with(|host| host.subordinate = subordinate)
}

/// The same with a checkout that is the user's alone.
pub(crate) fn with_own_checkout() -> Machine {
    let own = Owned { uid: 1000, gid: 1000, mode: 0o755 };
    with_subordinates().dir_of("/srv/job", own)
}

/// A container engine's root: it may change ids but not mount.
pub(crate) fn container() -> Machine {
    let kept = [Capability::SetUid, Capability::SetGid, Capability::SetFcap, Capability::Fowner];
    debian_etc(Machine::new(0, &[], Capabilities::of(&kept)).merged(""))
}

/// A rootless container: as [`container`], with 65536 ids in all, on a kernel without Landlock.
pub(crate) fn rootless() -> Machine {
    container().with(|host| {
        host.uids = vec![IdRange { first: 0, count: 1 }, IdRange { first: 1, count: 65_536 }];
        host.gids.clone_from(&host.uids);
        host.subordinate_uids.clear();
        host.subordinate_gids.clear();
        host.landlock = LandlockSupport::Missing;
    })
}

/// A service in a leaf of a delegated control group, which is given no `io`.
pub(crate) fn with_groups() -> Machine {
    debian().with(|host| {
        host.cgroup = CgroupSupport::Beneath {
            parent: "/sys/fs/cgroup/system.slice/runner.service".into(),
            controllers: vec![Controller::Memory, Controller::Pids, Controller::Cpu],
            version_one: Vec::new(),
            moves_service: false,
        };
    })
}

/// Fedora: other places for certificates, one of them a link to another; lib64 beside lib.
pub(crate) fn fedora() -> Machine {
    let bundle = "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem";
    Machine::new(0, &[], Capabilities::ALL)
        .merged("")
        .file("/etc/ld.so.cache")
        .file("/usr/lib/os-release")
        .link("/etc/os-release", "../usr/lib/os-release", "/usr/lib/os-release")
        .dir("/etc/alternatives")
        .dir("/etc/crypto-policies")
        .dir("/etc/pki/tls/certs")
        .dir("/etc/pki/ca-trust/extracted")
        .file(bundle)
        .link("/etc/pki/tls/cert.pem", bundle, bundle)
        .file("/etc/pki/tls/openssl.cnf")
        .link("/etc/ssl/certs", "../pki/tls/certs", "/etc/pki/tls/certs")
        .file_with("/etc/services", 0o640)
}

/// An old Debian, whose `/bin` is not `/usr/bin`, and whose `/lib64` leads elsewhere.
pub(crate) fn unmerged() -> Machine {
    let machine = Machine::new(0, &[], Capabilities::ALL)
        .dir("/usr")
        .dir("/bin")
        .dir("/sbin")
        .dir("/lib")
        .dir("/opt/lib64")
        .link("/lib64", "opt/lib64", "/opt/lib64");
    debian_etc(machine)
}

/// Debian with an unpacked image whose `/lib64` is an absolute link within itself.
pub(crate) fn with_rootfs() -> Machine {
    let root = "/opt/guest-root";
    debian()
        .dir(root)
        .merged(root)
        .link("/opt/guest-root/lib64", "/usr/lib64", "/opt/guest-root/usr/lib64")
        .file("/opt/guest-root/etc/ld.so.cache")
        .file("/opt/guest-root/usr/lib/os-release")
        .link(
            "/opt/guest-root/etc/os-release",
            "../usr/lib/os-release",
            "/opt/guest-root/usr/lib/os-release",
        )
        .file("/opt/guest-root/usr/share/zoneinfo/Etc/UTC")
        .link(
            "/opt/guest-root/etc/localtime",
            "/usr/share/zoneinfo/Etc/UTC",
            "/opt/guest-root/usr/share/zoneinfo/Etc/UTC",
        )
}

/// Debian with forty model directories.
pub(crate) fn with_models() -> Machine {
    (0..40).fold(debian(), |machine, number| machine.dir(&format!("/srv/models/{number}")))
}

/// A desktop with a checkout, whose resolver's file is a link into `/run`.
pub(crate) fn with_checkout() -> Machine {
    let stub = "/run/systemd/resolve/stub-resolv.conf";
    desktop()
        .dir("/proc")
        .dir("/dev")
        .dir("/run")
        .dir_of("/tmp", Owned { uid: 0, gid: 0, mode: 0o1777 })
        .file(stub)
        .link("/etc/resolv.conf", "../run/systemd/resolve/stub-resolv.conf", stub)
        .dir_of("/home/ada/project", Owned { uid: 1000, gid: 1000, mode: 0o700 })
        .dir_of("/home/ada/.cache", Owned { uid: 1000, gid: 1000, mode: 0o700 })
}

/// A desktop with what a bubblewrap line of an agent names.
pub(crate) fn with_home() -> Machine {
    let own = Owned { uid: 1000, gid: 1000, mode: 0o755 };
    desktop()
        .dir_of("/home/ada", own)
        .dir_of("/home/ada/project", own)
        .dir_of("/home/ada/project/.git", own)
        .dir("/usr/share/git")
        .file("/etc/gitconfig")
}

/// Debian with a job directory that belongs to uid 4000.
pub(crate) fn with_job() -> Machine {
    debian().dir_of("/srv/job", Owned { uid: 4000, gid: 4000, mode: 0o750 })
}

/// Debian with generated Python modules.
pub(crate) fn with_stubs() -> Machine {
    debian().file("/srv/stubs/greeter_pb2.py").dir("/srv/stubs/greeter").dir("/srv/modules")
}
