//! Namespaces, ids and privileges: what the kernel says of PID 1 against the plan.

use super::evidence::Init;
use super::finding::{Findings, Name, Status};
use crate::enforcement::{Enforcement, LandlockUse};
use crate::error::Violation;
use crate::plan::{KernelId, Plan};
use postern_seccomp::{Digest, Level};

/// Everything that a guest is, and is not allowed to be.
pub(super) fn say(findings: &mut Findings, plan: &Plan, init: &Init, enforcement: &Enforcement) {
    namespaces(findings, plan, init);
    kernel_uid(findings, plan, enforcement);
    groups(findings, init, enforcement);
    privileges(findings, init);
    securebits(findings, enforcement);
    filter(findings, plan, init, enforcement);
    landlock(findings, enforcement);
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
    if let Some(why) = &plan.identity.why_shared {
        return findings.explain(
            Name::KernelUid,
            (Status::Weaker, format!("shared_uid: {ids}; {uid} is the service's own")),
            why.to_string(),
            format!("{}; or run it as a user that owns nothing a guest must not reach", why.fix()),
        );
    }
    let detail = match plan.identity.kernel_uid {
        KernelId::Leased { .. } => format!("dedicated: {ids}, leased for this sandbox alone"),
        KernelId::Fixed(_) | KernelId::Own(_) => {
            format!("fixed: {ids}, as the profile's host_uid says")
        }
    };
    findings.say(Name::KernelUid, Status::Enforced, detail);
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
    match status.nonewprivs {
        Some(1) => findings.say(Name::NoNewPrivs, Status::Enforced, "set"),
        Some(_) => findings.say(Name::NoNewPrivs, Status::Failed, "not set"),
        None => findings.say(Name::NoNewPrivs, Status::Unknown, "this kernel does not show it"),
    }
}

/// That they are as planned is for `verify` to say.
fn securebits(findings: &mut Findings, enforcement: &Enforcement) {
    let Some(attestation) = &enforcement.attestation else { return };
    let bits = attestation.securebits;
    let detail = format!("locked ({bits:#x}): neither exec nor a change of uid gives a capability");
    findings.say(Name::Securebits, Status::Enforced, detail);
}

/// That the domain holds is for `verify` to say.
fn landlock(findings: &mut Findings, enforcement: &Enforcement) {
    let name = Name::Landlock;
    match enforcement.landlock {
        LandlockUse::Domain { abi } => {
            let parts = [(2, "files"), (3, "truncation"), (5, "ioctl on devices")];
            let later = [(6, "abstract sockets"), (6, "signals")];
            let (held, missing): (Vec<_>, Vec<_>) =
                parts.into_iter().chain(later).partition(|part| part.0 <= abi);
            let list = |parts: &[(u32, &'static str)]| {
                parts.iter().map(|part| part.1).collect::<Vec<_>>().join(", ")
            };
            let detail = format!("ABI {abi}: {}", list(&held));
            match missing.is_empty() {
                true => findings.say(name, Status::Enforced, detail),
                false => findings.explain(
                    name,
                    (Status::Weaker, format!("{detail}; not {}", list(&missing))),
                    "this kernel's Landlock does not know them",
                    "Linux 6.12 or later; to refuse less: landlock = { require = 6 } in the profile",
                ),
            }
        }
        LandlockUse::Off => findings.say(name, Status::NotUsed, "off, as the profile says"),
        LandlockUse::Unavailable(found) => findings.explain(
            name,
            (Status::Weaker, enforcement.landlock.to_string()),
            "mounts, capabilities and the filter hold as they do with it, and nothing behind them",
            found.fix(),
        ),
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
            "seccomp = \"default\" in the profile, or no such line",
        ),
        (_, Some(SECCOMP_MODE_FILTER)) => {
            let digest = |digest: Option<Digest>| digest.map(|digest| format!(", sha256 {digest}"));
            let own = digest(enforcement.seccomp_digest).unwrap_or_default();
            let policy = digest(enforcement.seccomp_policy_digest);
            let policy = policy.map(|words| format!("; the profile's own policy{words}"));
            let policy = policy.unwrap_or_default();
            findings.say(Name::Seccomp, Status::Enforced, format!("{level}{own}{policy}"));
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

/// Whether all is as planned, though the plan may be one without a filter.
pub(super) fn are_sound(violations: &[Violation]) -> bool {
    violations.iter().all(|violation| violation.what == "the seccomp level")
}

fn named(what: &str) -> Name {
    match what {
        "the uids of PID 1" | "the gids of PID 1" | "uid_map" | "gid_map" => Name::KernelUid,
        "the list of foreign groups" => Name::Groups,
        "the securebits" => Name::Securebits,
        "no_new_privs" => Name::NoNewPrivs,
        "the seccomp mode" | "the seccomp level" | "the number of seccomp filters" => Name::Seccomp,
        "whether a Landlock domain holds" => Name::Landlock,
        "user" => Name::NamespaceUser,
        "mnt" => Name::NamespaceMount,
        "pid" => Name::NamespacePid,
        "net" => Name::NamespaceNet,
        "ipc" => Name::NamespaceIpc,
        "uts" => Name::NamespaceUts,
        "cgroup" => Name::NamespaceCgroup,
        "a mount" => Name::Mounts,
        "the inheritable set"
        | "the permitted set"
        | "the effective set"
        | "the bounding set"
        | "the ambient set" => Name::Capabilities,
        // The process as a whole: its keyring, its descriptors, its limits, its score.
        _ => Name::Launch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_fails_the_finding_that_it_is_about() {
        let rows = [
            ("the uids of PID 1", Name::KernelUid),
            ("gid_map", Name::KernelUid),
            ("the list of foreign groups", Name::Groups),
            ("the bounding set", Name::Capabilities),
            ("no_new_privs", Name::NoNewPrivs),
            ("the securebits", Name::Securebits),
            ("whether a Landlock domain holds", Name::Landlock),
            ("a mount", Name::Mounts),
            ("the list of descriptors", Name::Launch),
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
