//! Namespaces, ids and privileges: what the kernel says of PID 1 against the plan.

use super::evidence::Init;
use super::finding::{Findings, Name, Status};
use crate::enforcement::Enforcement;
use crate::error::Violation;
use crate::plan::{KernelId, Plan};
use postern_seccomp::Level;

/// Everything that a guest is, and is not allowed to be.
pub(super) fn say(findings: &mut Findings, plan: &Plan, init: &Init, enforcement: &Enforcement) {
    namespaces(findings, plan, init);
    kernel_uid(findings, plan, enforcement);
    groups(findings, init, enforcement);
    privileges(findings, init);
    filter(findings, plan, init, enforcement);
}

fn namespaces(findings: &mut Findings, plan: &Plan, init: &Init) {
    let set = plan.namespaces;
    let rows = [
        (Name::NamespaceUser, true),
        (Name::NamespaceMount, true),
        (Name::NamespacePid, set.pid),
        (Name::NamespaceNet, set.net),
        (Name::NamespaceIpc, set.ipc),
        (Name::NamespaceUts, set.uts),
        (Name::NamespaceCgroup, set.cgroup),
    ];
    let Some(shared) = init.shared else {
        for (name, _) in rows {
            findings.say(name, Status::Unknown, "the kernel does not show PID 1's namespaces");
        }
        return;
    };
    for ((name, own), (_, shared)) in rows.into_iter().zip(shared) {
        match (own, shared) {
            (true, Some(false)) => findings.say(name, Status::Enforced, "the run's own"),
            (true, Some(true)) => findings.say(name, Status::Failed, "the service's own"),
            (false, Some(true)) => {
                findings.say(name, Status::NotUsed, "the service's, as the profile says");
            }
            (false, Some(false)) => {
                findings.say(name, Status::NotUsed, "the launcher's, as the profile says");
            }
            (_, None) => findings.say(name, Status::Unknown, "this kernel does not show one"),
        }
    }
}

fn kernel_uid(findings: &mut Findings, plan: &Plan, enforcement: &Enforcement) {
    let (uid, gid) = (enforcement.kernel_uid, enforcement.kernel_gid);
    let (inside, group) = (plan.identity.guest_uid, plan.identity.guest_gid);
    let ids = format!("{uid}:{gid} outside, {inside}:{group} inside");
    match plan.identity.kernel_uid {
        KernelId::Leased { .. } => {
            let detail = format!("dedicated: {ids}, leased for this sandbox alone");
            findings.say(Name::KernelUid, Status::Enforced, detail);
        }
        KernelId::Fixed(_) => {
            let detail = format!("fixed: {ids}, as the profile's host_uid says");
            findings.say(Name::KernelUid, Status::Enforced, detail);
        }
        KernelId::Own(_) => findings.explain(
            Name::KernelUid,
            (Status::Weaker, format!("shared_uid: {ids}; {uid} is the service's own")),
            "the service has no right to another id: it lacks CAP_SETUID, CAP_SETGID or CAP_SETFCAP",
            "run it with them (systemd: AmbientCapabilities=CAP_SETUID CAP_SETGID CAP_SETFCAP), or \
             as a user that owns nothing a guest must not reach",
        ),
    }
}

fn groups(findings: &mut Findings, init: &Init, enforcement: &Enforcement) {
    let Some(status) = &init.status else { return };
    let is_foreign = |group: &&u32| **group != enforcement.kernel_gid;
    let kept: Vec<_> = status.groups.iter().filter(is_foreign).collect();
    match kept.is_empty() {
        true => findings.say(Name::Groups, Status::Enforced, "none of the service's is kept"),
        false => findings.explain(
            Name::Groups,
            (Status::Weaker, format!("the guest keeps {kept:?}, and can open what they can")),
            "setgroups(2) is denied to a service without CAP_SETGID",
            "start the service without them (systemd: SupplementaryGroups= with nothing after it; \
             or setpriv --clear-groups), or refuse such hosts (profile: shared_groups = \
             \"refuse\")",
        ),
    }
}

fn privileges(findings: &mut Findings, init: &Init) {
    let Some(status) = &init.status else { return };
    let sets = [
        ("inheritable", Some(status.capinh)),
        ("permitted", Some(status.capprm)),
        ("effective", Some(status.capeff)),
        ("bounding", status.capbnd),
        ("ambient", status.capamb),
    ];
    let held: Vec<_> = sets.iter().filter(|set| set.1 != Some(0)).map(|set| set.0).collect();
    match held.is_empty() {
        true => findings.say(Name::Capabilities, Status::Enforced, "all five sets are empty"),
        false => {
            let detail = format!("not empty: {}", held.join(", "));
            findings.say(Name::Capabilities, Status::Failed, detail);
        }
    }
    // The kernel shows securebits to the process alone; the step that sets them is no optional one.
    let detail = "locked: neither exec nor a change of uid gives a capability (a required step)";
    findings.say(Name::Securebits, Status::Enforced, detail);
    match status.nonewprivs {
        Some(1) => findings.say(Name::NoNewPrivs, Status::Enforced, "set"),
        Some(_) => findings.say(Name::NoNewPrivs, Status::Failed, "not set"),
        None => findings.say(Name::NoNewPrivs, Status::Unknown, "this kernel does not show it"),
    }
}

fn filter(findings: &mut Findings, plan: &Plan, init: &Init, enforcement: &Enforcement) {
    const SECCOMP_MODE_FILTER: u32 = 2;
    let level = plan.seccomp;
    let mode = init.status.as_ref().and_then(|status| status.seccomp);
    match (level, mode) {
        (Level::Off, _) => findings.explain(
            Name::Seccomp,
            (Status::Failed, "off: guests reach every system call".to_owned()),
            "the profile says seccomp = \"off\"",
            "seccomp = \"compat\" in the profile, or no such line",
        ),
        (_, Some(SECCOMP_MODE_FILTER)) => {
            let digest = enforcement.seccomp_digest;
            findings.say(Name::Seccomp, Status::Enforced, format!("{level}, digest {digest:016x}"));
        }
        (_, Some(mode)) => {
            findings.say(
                Name::Seccomp,
                Status::Failed,
                format!("mode {mode}, where 2 is a filter"),
            );
        }
        (_, None) => findings.say(Name::Seccomp, Status::Unknown, "this kernel does not show it"),
    }
}

/// What `verify` found, under the finding it belongs to.
pub(super) fn violations(findings: &mut Findings, violations: &[Violation]) {
    for violation in violations {
        let name = named(violation.what);
        if findings.status_of(name) != Some(Status::Failed) {
            findings.say(name, Status::Failed, violation.to_string());
        }
    }
}

fn named(what: &str) -> Name {
    match what {
        "a uid of PID 1" | "a gid of PID 1" | "uid_map" | "gid_map" => Name::KernelUid,
        "the list of foreign groups" => Name::Groups,
        "no_new_privs" => Name::NoNewPrivs,
        "the seccomp mode" | "the seccomp level" => Name::Seccomp,
        "user" => Name::NamespaceUser,
        "mnt" => Name::NamespaceMount,
        "pid" => Name::NamespacePid,
        "net" => Name::NamespaceNet,
        "ipc" => Name::NamespaceIpc,
        "uts" => Name::NamespaceUts,
        "cgroup" => Name::NamespaceCgroup,
        // The five sets are all that is left.
        _ => Name::Capabilities,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_fails_the_finding_that_it_is_about() {
        let rows = [
            ("a uid of PID 1", Name::KernelUid),
            ("gid_map", Name::KernelUid),
            ("the list of foreign groups", Name::Groups),
            ("the bounding set", Name::Capabilities),
            ("no_new_privs", Name::NoNewPrivs),
            ("the seccomp mode", Name::Seccomp),
            ("user", Name::NamespaceUser),
            ("mnt", Name::NamespaceMount),
            ("cgroup", Name::NamespaceCgroup),
        ];
        for (what, name) in rows {
            let mut findings = Findings::new();
            findings.say(name, Status::Enforced, "so far");
            let violation = Violation { what, expected: "a".into(), found: "b".into() };
            violations(&mut findings, &[violation]);
            assert_eq!(findings.status_of(name), Some(Status::Failed), "{what}");
            assert!(findings.any_failed(), "{what}");
        }
    }
}
