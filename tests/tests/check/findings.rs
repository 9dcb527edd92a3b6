//! Each finding against the kernel: a run of the same profile is looked at from the host, or asked
//! by the probe, and the wall stands there if and only if the check says so.

use std::collections::BTreeMap;

use postern::check::{self, Name, Report, Status};
use postern::host::{Capability, Host};
use postern::profile::{Bind, Loopback, ProcKind, Root, Sharing};
use postern::{Command, Sandbox, SandboxProfile};
use postern_seccomp::Level;
use postern_tests::{
    Held, Mount, Scratch, Watch, as_container_root, hold, install, mounts_of, namespaces, run,
    status, workspace_in,
};
use serde_json::{Value, json};

/// What a run of a profile is, by the kernel's word and the probe's.
struct Seen {
    profile: SandboxProfile,
    status: BTreeMap<String, String>,
    /// The guest's, the launcher's and this process's.
    namespaces: [BTreeMap<String, String>; 3],
    mounts: Vec<(Mount, Vec<String>)>,
    capabilities: Value,
    rlimits: Value,
    loopback: Value,
    settings: Value,
}

const USERS: &str = "/proc/sys/user/max_user_namespaces";
const SEGMENTS: &str = "/proc/sys/kernel/shmmni";

impl Seen {
    fn of(profile: &SandboxProfile) -> Seen {
        let sandbox = Sandbox::builder(profile.clone()).build().unwrap();
        install(&sandbox);
        let probe = format!("{}/probe", workspace_in(sandbox.plan()).unwrap());
        let ask = |question: &[&str]| -> Value {
            let command = Command::new(&probe).args(question.iter().copied());
            serde_json::from_slice(&run(&sandbox, command).stdout).unwrap()
        };
        let held: Held = hold(&sandbox, Command::new(&probe).args(["hold", "identity"]));
        let own = i32::try_from(std::process::id()).unwrap();
        let launcher = status(held.init)["PPid"].parse().unwrap();
        let seen = Seen {
            profile: profile.clone(),
            status: status(held.guest),
            namespaces: [held.guest, launcher, own].map(namespaces),
            mounts: mounts_of(held.guest),
            capabilities: Value::Null,
            rlimits: Value::Null,
            loopback: Value::Null,
            settings: Value::Null,
        };
        // A shared pid namespace holds one run at a time.
        assert!(held.release().ok());
        Seen {
            capabilities: ask(&["capabilities"]),
            rlimits: ask(&["rlimits"]),
            loopback: ask(&["loopback"]),
            settings: ask(&["read", USERS, SEGMENTS]),
            ..seen
        }
    }

    fn has_own(&self, name: &str) -> Option<bool> {
        let [guest, launcher, own] = &self.namespaces;
        let other = if name == "pid" { launcher } else { own };
        Some(guest[name] != other[name])
    }

    /// A hard limit by its number, against what was asked for.
    fn is_limited(&self, number: usize, asked: Option<u64>) -> Option<bool> {
        let hard = u64::try_from(self.rlimits[number][1].as_i64()?).ok();
        Some(asked.is_some_and(|asked| hard.is_some_and(|hard| hard <= asked)))
    }

    fn has_status(&self, name: &str, value: &str) -> Option<bool> {
        Some(self.status[name] == value)
    }

    fn is_read_only(&self, target: &str) -> Option<bool> {
        let found = self.mounts.iter().rfind(|mount| mount.0.target == target)?;
        Some(found.0.read_only)
    }

    fn has_planned_proc(&self) -> bool {
        let found = self.mounts.iter().find(|mount| mount.0.target == "/proc");
        let is_read_only = found.filter(|mount| mount.0.kind == "proc");
        let is_read_only = is_read_only.map(|mount| mount.0.read_only);
        match self.profile.proc {
            ProcKind::None => is_read_only.is_none(),
            ProcKind::ReadOnly | ProcKind::Minimal => is_read_only == Some(true),
            ProcKind::Masked => is_read_only == Some(false),
        }
    }

    /// Whether a setting reads so inside; `None` where this world does not show it.
    fn reads(&self, path: &str, value: &str) -> Option<bool> {
        Some(self.settings[path].as_str()? == value)
    }

    /// Whether the wall stands; `None` where this cannot tell.
    #[expect(clippy::wildcard_enum_match_arm, reason = "of the rest the kernel has no word")]
    fn stands(&self, name: Name) -> Option<bool> {
        let limits = &self.profile.limits;
        let own_gid = self.status["Gid"].split(' ').next().unwrap().to_owned();
        let uid = rustix::process::getuid().as_raw().to_string();
        match name {
            Name::NamespaceUser => self.has_own("user"),
            Name::NamespaceMount => self.has_own("mnt"),
            Name::NamespacePid => self.has_own("pid"),
            Name::NamespaceNet => self.has_own("net"),
            Name::NamespaceIpc => self.has_own("ipc"),
            Name::NamespaceUts => self.has_own("uts"),
            Name::NamespaceCgroup => self.has_own("cgroup"),
            Name::KernelUid => Some(self.status["Uid"].split(' ').all(|id| id != uid)),
            Name::Groups => {
                let mut groups = self.status["Groups"].split_ascii_whitespace();
                Some(groups.all(|group| group == own_gid))
            }
            Name::Root => self.is_read_only("/"),
            Name::Mounts => {
                let nosuid = |mount: &(Mount, Vec<String>)| mount.1.iter().any(|o| o == "nosuid");
                Some(self.mounts.iter().all(nosuid))
            }
            Name::Proc => Some(self.has_planned_proc()),
            Name::Capabilities => {
                let sets = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
                Some(sets.iter().all(|set| self.status[*set] == "0000000000000000"))
            }
            Name::Securebits => Some(self.capabilities["securebits"] == json!(0xef)),
            Name::NoNewPrivs => self.has_status("NoNewPrivs", "1"),
            Name::Seccomp => self.has_status("Seccomp", "2"),
            Name::RlimitCpu => self.is_limited(0, limits.cpu_seconds),
            Name::RlimitFsize => self.is_limited(1, Some(limits.fsize_bytes)),
            Name::RlimitStack => self.is_limited(3, limits.stack_bytes),
            Name::RlimitCore => self.is_limited(4, Some(1)),
            Name::RlimitNproc => self.is_limited(6, limits.nproc),
            Name::RlimitNofile => self.is_limited(7, Some(limits.nofile)),
            Name::RlimitMemlock => self.is_limited(8, Some(limits.memlock_bytes)),
            Name::RlimitAs => self.is_limited(9, limits.address_space_bytes),
            Name::RlimitSigpending => self.is_limited(11, Some(limits.sigpending)),
            Name::RlimitMsgqueue => self.is_limited(12, Some(limits.msgqueue_bytes)),
            Name::LimitUserNamespaces => self.reads(USERS, "0\n"),
            Name::LimitIpc => self.reads(SEGMENTS, "128\n"),
            Name::Loopback => {
                Some(self.has_own("net")? && self.loopback["v4"].as_str() == Some("word"))
            }
            _ => None,
        }
    }
}

/// A name, and a change of the default profile.
type Row = (&'static str, fn(&mut SandboxProfile), &'static [(Name, Status)]);

/// The walls that the change knocks out, or puts up.
const ROWS: [Row; 14] = [
    ("default", |_| {}, &[(Name::Seccomp, Status::Enforced), (Name::RlimitAs, Status::NotUsed)]),
    ("no filter", |p| p.seccomp = Level::Off, &[(Name::Seccomp, Status::Failed)]),
    (
        "the service's network",
        |p| p.namespaces.net = Sharing::Shared,
        &[(Name::NamespaceNet, Status::NotUsed), (Name::Loopback, Status::NotUsed)],
    ),
    (
        "the service's ipc",
        |p| p.namespaces.ipc = Sharing::Shared,
        &[(Name::NamespaceIpc, Status::NotUsed), (Name::LimitIpc, Status::NotUsed)],
    ),
    (
        "the service's hostname",
        |p| p.namespaces.uts = Sharing::Shared,
        &[(Name::NamespaceUts, Status::NotUsed)],
    ),
    (
        "the service's control groups",
        |p| p.namespaces.cgroup = Sharing::Shared,
        &[(Name::NamespaceCgroup, Status::NotUsed)],
    ),
    (
        "the launcher's processes",
        |p| p.namespaces.pid = Sharing::Shared,
        &[(Name::NamespacePid, Status::NotUsed)],
    ),
    ("no loopback", |p| p.loopback = Loopback::Down, &[(Name::Loopback, Status::NotUsed)]),
    ("no procfs", |p| p.proc = ProcKind::None, &[(Name::Proc, Status::Enforced)]),
    ("processes only", |p| p.proc = ProcKind::Minimal, &[(Name::Proc, Status::Enforced)]),
    ("a writable procfs", |p| p.proc = ProcKind::Masked, &[(Name::Proc, Status::Enforced)]),
    ("the host's tree", |p| p.root = Root::HostView, &[(Name::Root, Status::Enforced)]),
    (
        "fewer limits",
        |p| (p.limits.nproc, p.limits.stack_bytes) = (None, None),
        &[(Name::RlimitNproc, Status::NotUsed), (Name::RlimitStack, Status::NotUsed)],
    ),
    (
        "more limits",
        |p| {
            (p.limits.address_space_bytes, p.limits.cpu_seconds) = (Some(1 << 32), Some(60));
            p.limits.nofile = 64;
        },
        &[(Name::RlimitAs, Status::Enforced), (Name::RlimitCpu, Status::Enforced)],
    ),
];

/// What of a report is not as the kernel has it.
fn differences(report: &Report, seen: &Seen) -> Vec<String> {
    let differs = |finding: &&check::Finding| {
        let stands = seen.stands(finding.name);
        stands.is_some_and(|stands| stands != (finding.status == Status::Enforced))
    };
    report.findings.iter().filter(differs).map(|finding| format!("{finding:?}")).collect()
}

#[test]
fn a_finding_says_enforced_where_the_wall_stands_and_nowhere_else() {
    let _watch = Watch::begin();
    let mut wrong = Vec::new();
    for (name, change, expected) in ROWS {
        let mut profile = SandboxProfile::default();
        change(&mut profile);
        let report = check::run(&profile);
        let seen = Seen::of(&profile);
        let told = differences(&report, &seen);
        wrong.extend(told.iter().map(|told| format!("{name}: the kernel differs: {told}")));
        for (finding, status) in expected {
            let found = report.findings.iter().find(|found| found.name == *finding).unwrap();
            if found.status != *status {
                wrong.push(format!("{name}: not {status:?}: {found:?}"));
            }
        }
        if report.ok != (profile.seccomp != Level::Off) {
            wrong.push(format!("{name}: ok is {}: {:?}", report.ok, report.failure));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_plain_host_leaves_no_finding_unknown() {
    let _watch = Watch::begin();
    let report = check::run(&SandboxProfile::default());
    let unknown: Vec<_> =
        report.findings.iter().filter(|finding| finding.status == Status::Unknown).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
    let explained = |finding: &&check::Finding| {
        let is_bad = matches!(finding.status, Status::Weaker | Status::Failed);
        is_bad && (finding.why.is_none() || finding.fix.is_none())
    };
    let bare: Vec<_> = report.findings.iter().filter(explained).collect();
    assert!(bare.is_empty(), "{bare:#?}");
}

#[test]
fn a_bind_that_the_profile_opens_is_no_mistake() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let directory = scratch.directory("with space", 0o777);
    let bind = Bind::new(&directory, "/data in");
    let profile = SandboxProfile::builder().rw_binds([bind]).build().unwrap();
    let report = check::run(&profile);
    let found = report.findings.iter().find(|found| found.name == Name::Mounts).unwrap();
    assert_eq!(found.status, Status::Enforced, "{found:?}");
    assert!(found.detail.contains("/data in"), "{found:?}");
}

#[test]
fn a_python_that_is_named_and_does_not_run_is_told() {
    let _watch = Watch::begin();
    let rows = [
        ("python3", Status::Enforced, "Python 3."),
        ("/usr/bin/no-such-python", Status::Weaker, "does not run"),
        ("/bin/false", Status::Weaker, "does not run"),
    ];
    for (python, status, words) in rows {
        let profile = SandboxProfile::builder().python(python).build().unwrap();
        let report = check::run(&profile);
        let found = report.findings.iter().find(|found| found.name == Name::Interpreter).unwrap();
        assert_eq!(found.status, status, "{found:?}");
        assert!(found.detail.contains(words), "{found:?}");
        assert!(report.ok, "{:?}", report.failure);
    }
}

/// Root drops capabilities and starts this program again; on other hosts there is nothing to drop.
#[test]
fn each_finding_holds_for_a_containers_root() {
    let _watch = Watch::begin();
    let host = Host::probe(&SandboxProfile::default()).unwrap();
    if host.capabilities.has(Capability::SysAdmin) {
        as_container_root(&["findings::a_", "--test-threads", "1"]);
    }
}
