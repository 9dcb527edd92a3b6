//! What of an attestation is otherwise than the plan: one rule for each thing, by name. Reads
//! nothing.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use postern_seccomp::Level;

use super::mounts::{FLAGS, is_beneath};
use super::{Attestation, AttestedMount};
use crate::error::Violation;
use crate::launch::attributes::{NODEV, NOEXEC, NOSUID, RDONLY, attributes};
use crate::plan::{KernelId, MountOp, Plan};

/// What a plan does not say.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    /// The guest's ids as the host's kernel has them.
    pub(crate) kernel_uid: u32,
    pub(crate) kernel_gid: u32,
    /// Filters around the service, which its runs are under too; `None`: not known.
    pub(crate) outer_filters: Option<u32>,
    /// Whether this host has keyrings at all.
    pub(crate) has_keyrings: bool,
    /// Whether there is such a file on the host: what is not there is not masked in a run.
    pub(crate) exists: fn(&Path) -> bool,
}

/// Whether a path is another or lies within it.
fn is_within(path: &[u8], above: &[u8]) -> bool {
    above == b"/" || path == above || is_beneath(path, above)
}

/// Every difference.
pub(crate) fn judge(found: &Attestation, plan: &Plan, expected: &Expected) -> Vec<Violation> {
    let mut findings = Findings::default();
    ids(&mut findings, found, plan, expected);
    privileges(&mut findings, found);
    filters(&mut findings, found, plan.seccomp, expected);
    namespaces(&mut findings, found, plan);
    process(&mut findings, found, plan, expected);
    limits(&mut findings, found, plan);
    mounts(&mut findings, found, plan, expected);
    findings.violations
}

/// Collects what is otherwise than expected.
#[derive(Default)]
struct Findings {
    violations: Vec<Violation>,
}

impl Findings {
    fn expect<T: PartialEq + core::fmt::Debug>(
        &mut self,
        what: &'static str,
        found: &T,
        wanted: &T,
    ) {
        if found != wanted {
            self.differ(what, format!("{found:?}"), format!("{wanted:?}"));
        }
    }

    fn differ(&mut self, what: &'static str, found: String, expected: String) {
        self.violations.push(Violation { what, expected, found });
    }
}

fn ids(findings: &mut Findings, found: &Attestation, plan: &Plan, expected: &Expected) {
    let (uid, gid) = (expected.kernel_uid, expected.kernel_gid);
    findings.expect("the uids of PID 1", &found.uids, &[uid; 4]);
    findings.expect("the gids of PID 1", &found.gids, &[gid; 4]);
    let shared = &plan.identity.shared_groups;
    let is_foreign = |group: &u32| *group != gid && !shared.contains(group);
    let foreign: Vec<u32> = found.groups.iter().copied().filter(is_foreign).collect();
    findings.expect("the list of foreign groups", &foreign, &Vec::new());
    let rows = [
        ("uid_map", &found.uid_map, [plan.identity.guest_uid, uid, 1]),
        ("gid_map", &found.gid_map, [plan.identity.guest_gid, gid, 1]),
    ];
    for (name, map, line) in rows {
        findings.expect(name, map, &vec![line]);
    }
    let is_own = matches!(plan.identity.kernel_uid, KernelId::Own(_));
    if uid == 0 && !is_own {
        findings.differ("the uids of PID 1", "root's".to_owned(), "not root's".to_owned());
    }
}

fn privileges(findings: &mut Findings, found: &Attestation) {
    /// As the launcher sets them.
    const SECUREBITS: u32 = 0xef;
    let sets = [
        ("the inheritable set", found.capabilities.inheritable),
        ("the permitted set", found.capabilities.permitted),
        ("the effective set", found.capabilities.effective),
        ("the bounding set", found.capabilities.bounding),
        ("the ambient set", found.capabilities.ambient),
    ];
    for (what, set) in sets {
        findings.expect(what, &set, &0);
    }
    findings.expect("the securebits", &found.securebits, &SECUREBITS);
    findings.expect("no_new_privs", &found.no_new_privs, &Some(true));
}

fn filters(findings: &mut Findings, found: &Attestation, level: Level, expected: &Expected) {
    const SECCOMP_MODE_FILTER: u32 = 2;
    if level == Level::Off {
        return;
    }
    findings.expect("the seccomp mode", &found.seccomp_mode, &Some(SECCOMP_MODE_FILTER));
    if let (Some(outer), Some(all)) = (expected.outer_filters, found.seccomp_filters) {
        findings.expect("the number of seccomp filters", &all, &outer.saturating_add(1));
    }
}

fn namespaces(findings: &mut Findings, found: &Attestation, plan: &Plan) {
    let own = plan.namespaces.named().chain([("user", true), ("mnt", true)]);
    for (name, is_own) in own {
        let namespace = found.namespaces.iter().find(|namespace| namespace.name == name);
        let is_shared = namespace.and_then(|namespace| namespace.is_shared);
        // A pid namespace that is not the run's own is the launcher's.
        let wanted = if name == "pid" { Some(false) } else { Some(!is_own) };
        if is_shared.is_some() && is_shared != wanted {
            let word = |shared| if shared == Some(true) { "the service's" } else { "another" };
            findings.differ(name, word(is_shared).to_owned(), word(wanted).to_owned());
        }
    }
}

fn process(findings: &mut Findings, found: &Attestation, plan: &Plan, expected: &Expected) {
    /// stdin, stdout and stderr, the status line, the host's pidfd.
    const DESCRIPTORS: [i32; 5] = [0, 1, 2, 3, 4];
    if plan.landlock.abi().is_some() {
        findings.expect("whether a Landlock domain holds", &found.landlock, &true);
    }
    if expected.has_keyrings {
        findings.expect("whether the session keyring is closed", &found.keyring_closed, &true);
    }
    findings.expect("whether PID 1 can be looked into", &found.dumpable, &false);
    if found.oom_score_adj < plan.oom_score_adj {
        let wanted = format!("{} or more", plan.oom_score_adj);
        findings.differ("the oom score", found.oom_score_adj.to_string(), wanted);
    }
    let numbers: Vec<_> = found.descriptors.iter().map(|descriptor| descriptor.number).collect();
    findings.expect("the list of descriptors", &numbers, &DESCRIPTORS.to_vec());
}

fn limits(findings: &mut Findings, found: &Attestation, plan: &Plan) {
    for planned in &plan.rlimits {
        let name = planned.resource.to_string();
        let limit = found.rlimits.iter().find(|limit| limit.resource == name);
        let wanted = (Some(planned.limit), Some(planned.limit));
        let limit = limit.map_or((None, None), |limit| (limit.soft, limit.hard));
        if limit != wanted {
            let found = format!("{name} {limit:?}");
            findings.differ("a resource limit", found, format!("{wanted:?}"));
        }
    }
}

/// A mount that the plan makes, by the last operation on its target.
struct Planned {
    flags: u64,
    /// The file system; `None` where that is the host's choice.
    file_system: Option<&'static str>,
    /// Whether a host's mounts beneath come along.
    is_tree: bool,
    /// Only where there is something to mount on.
    is_optional: bool,
}

impl Planned {
    const fn ours(flags: u64, file_system: &'static str) -> Planned {
        Planned { flags, file_system: Some(file_system), is_tree: false, is_optional: false }
    }
}

fn mounts(findings: &mut Findings, found: &Attestation, plan: &Plan, expected: &Expected) {
    let planned = planned(plan);
    let shown: BTreeMap<&[u8], &AttestedMount> =
        found.mounts.iter().map(|mount| (mount.target.as_os_str().as_bytes(), mount)).collect();
    for (target, wanted) in &planned {
        let path = Path::new(OsStr::from_bytes(target));
        match shown.get(target) {
            Some(mount) => compare(findings, mount, wanted),
            None if wanted.is_optional && !(expected.exists)(path) => {}
            None => {
                let target = path.display().to_string();
                findings.differ("a mount", format!("missing: {target}"), "there".to_owned());
            }
        }
    }
    for (path, mount) in shown {
        if planned.contains_key(path) {
            continue;
        }
        let mut above = mount.target.ancestors().skip(1).map(|above| above.as_os_str().as_bytes());
        match above.find_map(|above| planned.get(above)) {
            // What a bind of the host's brought along: no weaker than what it lies in.
            Some(above) if above.is_tree => {
                compare(findings, mount, &Planned { file_system: None, ..*above });
            }
            Some(_) | None => {
                let target = mount.target.display().to_string();
                findings.differ("a mount", target, "not there".to_owned());
            }
        }
    }
}

fn compare(findings: &mut Findings, mount: &AttestedMount, wanted: &Planned) {
    let target = mount.target.display();
    let missing: Vec<_> = FLAGS
        .iter()
        .filter(|(name, bit)| wanted.flags & bit != 0 && !mount.flags.contains(name))
        .map(|flag| flag.0)
        .collect();
    if !missing.is_empty() {
        let found = format!("{target} {}", mount.flags.join(","));
        findings.differ("a mount", found, format!("also {}", missing.join(",")));
    }
    if wanted.file_system.is_some_and(|kind| kind != mount.file_system) {
        let found = format!("{target} of {}", mount.file_system);
        findings.differ("a mount", found, wanted.file_system.unwrap_or_default().to_owned());
    }
}

/// What a path of the plan leads to once all operations are done.
fn planned(plan: &Plan) -> BTreeMap<&[u8], Planned> {
    let mut all = BTreeMap::new();
    for operation in plan.template.iter().chain(&plan.run) {
        learn(&mut all, operation);
    }
    all
}

fn learn<'a>(all: &mut BTreeMap<&'a [u8], Planned>, operation: &'a MountOp) {
    let (target, file_system, is_tree) = match operation {
        MountOp::Root { .. } => (&b"/"[..], Some("tmpfs"), false),
        MountOp::HostRoot => (&b"/"[..], None, true),
        MountOp::Bind { target, .. } => (target.to_bytes(), None, true),
        MountOp::Tmpfs { target, .. } => (target.to_bytes(), Some("tmpfs"), false),
        MountOp::Proc { target, .. } => (target.to_bytes(), Some("proc"), false),
        MountOp::Devpts { target, .. } => (target.to_bytes(), Some("devpts"), false),
        MountOp::RunDirectory { target, keep } => {
            let target = target.to_bytes();
            let kept = keep.as_deref().map(|keep| [target, b"/", keep.to_bytes()].concat());
            let is_kept = |other: &[u8]| kept.as_ref().is_some_and(|kept| is_within(other, kept));
            all.retain(|other, _| !is_within(other, target) || is_kept(other));
            let flags = attributes(operation).unwrap_or_default();
            all.insert(target, Planned::ours(flags, "tmpfs"));
            return;
        }
        MountOp::ReadOnly { target } => {
            if let Some(planned) = all.get_mut(target.to_bytes()) {
                planned.flags |= RDONLY;
            }
            return;
        }
        // A file or directory of ours, with the flags of its own mount.
        MountOp::Mask { target, .. } => {
            let flags = RDONLY | NOSUID | NODEV;
            let mask = Planned { is_optional: true, ..Planned::ours(flags, "tmpfs") };
            all.insert(target.to_bytes(), mask);
            return;
        }
        MountOp::ReadOnlySelf { target } => {
            let flags = RDONLY | NOSUID | NODEV | NOEXEC;
            let part = Planned { is_optional: true, ..Planned::ours(flags, "proc") };
            all.insert(target.to_bytes(), part);
            return;
        }
        MountOp::Dir { .. } | MountOp::File { .. } | MountOp::Symlink { .. } => return,
    };
    all.retain(|other, _| !is_within(other, target));
    let flags = attributes(operation).unwrap_or_default();
    all.insert(target, Planned { flags, file_system, is_tree, is_optional: false });
}

/// The mounts of a plan as a kernel would show them.
#[cfg(test)]
pub(super) fn planned_mounts(plan: &Plan) -> Vec<AttestedMount> {
    let mount = |(target, planned): (&[u8], Planned)| AttestedMount {
        target: OsStr::from_bytes(target).into(),
        file_system: planned.file_system.unwrap_or("ext4").to_owned(),
        flags: FLAGS.iter().filter(|flag| planned.flags & flag.1 != 0).map(|flag| flag.0).collect(),
    };
    planned(plan).into_iter().map(mount).collect()
}
