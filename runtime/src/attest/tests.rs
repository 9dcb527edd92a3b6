//! One thing made wrong at a time: each must be named, and nothing else.

use super::judge::planned_mounts;
use super::*;
use crate::host::Host;
use crate::plan::{Landlock, NamespaceSet, Plan, resolve};
use crate::profile::SandboxProfile;

const UID: u32 = 2_000_000_007;

fn plan() -> Plan {
    let profile = SandboxProfile::default();
    let mut plan = resolve(&profile, &Host::probe(&profile).unwrap()).unwrap();
    plan.landlock = Landlock::Domain { abi: 6, rules: Vec::new() };
    plan.identity.shared_groups = vec![27];
    plan
}

fn expected() -> Expected {
    Expected {
        kernel_uid: UID,
        kernel_gid: UID,
        outer_filters: Some(1),
        has_keyrings: true,
        exists: |_| true,
    }
}

/// What the kernel says when everything is as planned.
fn good(plan: &Plan) -> Attestation {
    let namespace = |name| AttestedNamespace { name, inode: Some(1), is_shared: Some(false) };
    let limit = |limit: &crate::plan::Rlimit| AttestedRlimit {
        resource: limit.resource.to_string(),
        soft: Some(limit.limit),
        hard: Some(limit.limit),
    };
    let descriptor = |number| AttestedDescriptor { number, what: PathBuf::new() };
    Attestation {
        namespaces: ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"].map(namespace).into(),
        uids: [UID; 4],
        gids: [UID; 4],
        groups: vec![UID, 27],
        uid_map: vec![[65_534, UID, 1]],
        gid_map: vec![[65_534, UID, 1]],
        capabilities: AttestedCapabilities::default(),
        securebits: 0xef,
        no_new_privs: Some(true),
        seccomp_mode: Some(2),
        seccomp_filters: Some(2),
        landlock: true,
        keyring_closed: true,
        dumpable: false,
        oom_score_adj: 500,
        rlimits: plan.rlimits.iter().map(limit).collect(),
        mounts: planned_mounts(plan),
        descriptors: (0..5).map(descriptor).collect(),
    }
}

fn names(found: &Attestation, plan: &Plan) -> Vec<&'static str> {
    judge(found, plan, &expected()).iter().map(|violation| violation.what).collect()
}

fn at<'a>(found: &'a mut Attestation, target: &str) -> &'a mut AttestedMount {
    found.mounts.iter_mut().find(|mount| mount.target == Path::new(target)).unwrap()
}

type Row = (&'static str, fn(&mut Attestation));

#[test]
fn each_wall_that_is_not_as_planned_is_named() {
    let rows: [Row; 38] = [
        ("the uids of PID 1", |found| found.uids[0] = 0),
        ("the uids of PID 1", |found| found.uids[3] = 1),
        ("the gids of PID 1", |found| found.gids[2] = 0),
        ("the list of foreign groups", |found| found.groups.push(44)),
        ("uid_map", |found| found.uid_map.clear()),
        ("uid_map", |found| found.uid_map[0] = [65_534, 0, 1]),
        ("uid_map", |found| found.uid_map.push([0, 0, 1])),
        ("gid_map", |found| found.gid_map[0][2] = 2),
        ("the inheritable set", |found| found.capabilities.inheritable = 1),
        ("the permitted set", |found| found.capabilities.permitted = 1 << 21),
        ("the effective set", |found| found.capabilities.effective = 1 << 40),
        ("the bounding set", |found| found.capabilities.bounding = u64::MAX),
        ("the ambient set", |found| found.capabilities.ambient = 2),
        ("the securebits", |found| found.securebits = 0),
        ("the securebits", |found| found.securebits = 0xff),
        ("no_new_privs", |found| found.no_new_privs = Some(false)),
        ("no_new_privs", |found| found.no_new_privs = None),
        ("the seccomp mode", |found| found.seccomp_mode = Some(0)),
        ("the number of seccomp filters", |found| found.seccomp_filters = Some(1)),
        ("user", |found| found.namespaces[0].is_shared = Some(true)),
        ("mnt", |found| found.namespaces[1].is_shared = Some(true)),
        ("pid", |found| found.namespaces[2].is_shared = Some(true)),
        ("net", |found| found.namespaces[3].is_shared = Some(true)),
        ("ipc", |found| found.namespaces[4].is_shared = Some(true)),
        ("uts", |found| found.namespaces[5].is_shared = Some(true)),
        ("cgroup", |found| found.namespaces[6].is_shared = Some(true)),
        ("whether a Landlock domain holds", |found| found.landlock = false),
        ("whether the session keyring is closed", |found| found.keyring_closed = false),
        ("whether PID 1 can be looked into", |found| found.dumpable = true),
        ("the oom score", |found| found.oom_score_adj = 499),
        ("the list of descriptors", |found| found.descriptors[4].number = 5),
        ("the list of descriptors", |found| drop(found.descriptors.pop())),
        ("a resource limit", |found| found.rlimits[0].hard = None),
        ("a resource limit", |found| found.rlimits[1].soft = Some(1)),
        ("a mount", |found| at(found, "/").flags.retain(|flag| *flag != "ro")),
        ("a mount", |found| at(found, "/usr").flags.retain(|flag| *flag != "nosuid")),
        ("a mount", |found| at(found, "/proc").file_system = "tmpfs".to_owned()),
        ("a mount", |found| found.mounts.retain(|mount| !mount.target.ends_with("kcore"))),
    ];
    let plan = plan();
    assert_eq!(names(&good(&plan), &plan), [""; 0]);
    for (index, (name, spoil)) in rows.into_iter().enumerate() {
        let mut found = good(&plan);
        spoil(&mut found);
        assert_eq!(names(&found, &plan), [name], "row {index}");
    }
}

#[test]
fn what_lies_in_a_bind_is_no_weaker_than_the_bind() {
    let mount = |target: &str, flags: &[&'static str]| AttestedMount {
        target: target.into(),
        file_system: "ext4".to_owned(),
        flags: flags.to_vec(),
    };
    let rows = [
        (mount("/usr/share/x", &["ro", "nosuid", "nodev"]), true),
        (mount("/usr/share/x", &["ro", "nosuid", "nodev", "noexec"]), true),
        (mount("/usr/share/x", &["nosuid", "nodev"]), false),
        (mount("/usr/share/x", &["ro", "nodev"]), false),
        (mount("/workspace/x", &["ro", "nosuid", "nodev"]), false),
        (mount("/somewhere", &["ro", "nosuid", "nodev", "noexec"]), false),
    ];
    let plan = plan();
    for (extra, is_fine) in rows {
        let mut found = good(&plan);
        let text = format!("{extra:?}");
        found.mounts.push(extra);
        assert_eq!(names(&found, &plan).is_empty(), is_fine, "{text}");
    }
}

#[test]
fn what_a_plan_does_without_is_not_missed() {
    let mut plan = plan();
    plan.landlock = Landlock::Off;
    plan.seccomp = postern_seccomp::Level::Off;
    plan.namespaces = NamespaceSet { pid: false, net: false, ..plan.namespaces };
    let mut found = good(&plan);
    (found.landlock, found.seccomp_mode, found.seccomp_filters) = (false, Some(0), Some(0));
    found.namespaces[3].is_shared = Some(true);
    assert_eq!(names(&found, &plan), [""; 0]);
    // The launcher's pid namespace is never the service's.
    found.namespaces[2].is_shared = Some(true);
    assert_eq!(names(&found, &plan), ["pid"]);
}
