//! Resource and namespace limits: what the kernel says of a guest against the plan.

use postern_init::record::facts;

use super::evidence::{Guest, Init};
use super::finding::{Findings, Name, Status};
use super::text::bytes;
use crate::attest::limit_of;
use crate::enforcement::Enforcement;
use crate::host::Release;
use crate::launch::fact_names;
use crate::plan::{Plan, Resource, Tier};
use crate::profile::SandboxProfile;

/// What limits are judged by.
pub(super) struct Seen<'a> {
    pub(super) profile: &'a SandboxProfile,
    pub(super) plan: &'a Plan,
    pub(super) init: &'a Init,
    pub(super) guest: Option<&'a Guest>,
    pub(super) enforcement: &'a Enforcement,
    pub(super) release: Option<Release>,
}

/// Every limit of a run.
pub(super) fn say(findings: &mut Findings, seen: &Seen<'_>) {
    for (name, resource, unit, asked) in rows(seen.profile) {
        rlimit(findings, seen, (name, resource, unit), asked);
    }
    user_namespaces(findings, seen);
    inotify(findings, seen);
    ipc(findings, seen);
}

/// What a number counts.
#[derive(Clone, Copy)]
enum Unit {
    Bytes,
    Seconds,
    Count,
}

impl Unit {
    fn text(self, value: u64) -> String {
        match self {
            Self::Bytes => bytes(value),
            Self::Seconds => format!("{value} s"),
            Self::Count => value.to_string(),
        }
    }
}

/// Every resource, and what the profile asks for.
fn rows(profile: &SandboxProfile) -> [(Name, Resource, Unit, Option<u64>); 10] {
    use Unit::{Bytes, Count, Seconds};
    let limits = &profile.limits;
    [
        (Name::RlimitCore, Resource::Core, Bytes, Some(1)),
        (Name::RlimitNofile, Resource::NoFile, Count, Some(limits.nofile)),
        (Name::RlimitFsize, Resource::FileSize, Bytes, Some(limits.fsize_bytes)),
        (Name::RlimitMemlock, Resource::MemLock, Bytes, Some(limits.memlock_bytes)),
        (Name::RlimitSigpending, Resource::SigPending, Count, Some(limits.sigpending)),
        (Name::RlimitMsgqueue, Resource::MsgQueue, Bytes, Some(limits.msgqueue_bytes)),
        (Name::RlimitNproc, Resource::NProc, Count, limits.nproc),
        (Name::RlimitAs, Resource::AddressSpace, Bytes, limits.address_space_bytes),
        (Name::RlimitStack, Resource::Stack, Bytes, limits.stack_bytes),
        (Name::RlimitCpu, Resource::Cpu, Seconds, limits.cpu_seconds),
    ]
}

/// The guest's own limits where a guest was seen; PID 1's for those that it hands on.
fn found(seen: &Seen<'_>, resource: Resource) -> Option<Option<u64>> {
    let guest = seen.guest.and_then(|guest| guest.limits.as_ref());
    let is_inherited = seen.plan.rlimits.iter().any(|limit| limit.resource == resource);
    let limits = guest.or(seen.init.limits.as_ref().filter(|_| is_inherited));
    limits.map(|limits| {
        let [_, hard] = limit_of(limits, resource);
        hard
    })
}

fn rlimit(
    findings: &mut Findings,
    seen: &Seen<'_>,
    (name, resource, unit): (Name, Resource, Unit),
    asked: Option<u64>,
) {
    let text = |value| unit.text(value);
    let mut limits = seen.plan.guest_rlimits.iter().chain(&seen.plan.rlimits);
    let planned = limits.find(|limit| limit.resource == resource).map(|limit| limit.limit);
    let Some(planned) = planned else {
        return findings.say(name, Status::NotUsed, "unlimited, as the profile says");
    };
    match found(seen, resource) {
        None => findings.say(name, Status::Unknown, "no program ran that could be looked at"),
        Some(found) if found != Some(planned) => {
            let found = found.map_or("unlimited".to_owned(), text);
            findings.say(name, Status::Failed, format!("{found}, not {}", text(planned)));
        }
        Some(_) if resource == Resource::NProc => nproc(findings, seen, planned),
        Some(_) if resource == Resource::Core => {
            findings.say(name, Status::Enforced, "1 byte: no dump is written, no handler is run");
        }
        Some(_) => {
            let mut detail = text(planned);
            if let Some(asked) = asked.filter(|asked| *asked > planned) {
                let asked = text(asked);
                detail.push_str(&format!(": the service's own, below the profile's {asked}"));
            }
            findings.say(name, Status::Enforced, detail);
        }
    }
}

/// What the number of processes is counted by.
fn nproc(findings: &mut Findings, seen: &Seen<'_>, limit: u64) {
    let name = Name::RlimitNproc;
    let uid = seen.enforcement.kernel_uid;
    if uid == 0 {
        findings.explain(
            name,
            (Status::Weaker, format!("{limit}, and void: the guest's kernel uid is 0")),
            "the kernel never counts the processes of its uid 0",
            "give the guest another uid (profile: host_uid), or set TasksMax= for the service",
        );
    } else if seen.release.is_some_and(|release| release < Release::COUNTS_BY_NAMESPACE) {
        let counted = format!("{limit}, counted for all processes of kernel uid {uid}");
        match seen.enforcement.shared_uid {
            false => findings.say(name, Status::Enforced, format!("{counted}, this sandbox's own")),
            true => findings.explain(
                name,
                (Status::Weaker, format!("{counted}, the service's among them")),
                "before Linux 5.14 the kernel has one count for each uid",
                "Linux 5.14 or later, or a service that may give its guests another uid",
            ),
        }
    } else {
        findings.say(name, Status::Enforced, format!("{limit}, counted per run"));
    }
}

/// A setting as the program in the sandbox read it.
fn setting<'a>(seen: &Seen<'a>, name: &str) -> Option<&'a str> {
    seen.guest.and_then(|guest| guest.settings.get(name)).map(String::as_str)
}

fn user_namespaces(findings: &mut Findings, seen: &Seen<'_>) {
    let name = Name::LimitUserNamespaces;
    match setting(seen, "user/max_user_namespaces") {
        Some("0") => findings.say(name, Status::Enforced, "none can be made (0, as read inside)"),
        Some(other) => findings.say(name, Status::Failed, format!("{other}, not 0")),
        // Where the world's /proc does not show it, the step that writes it is still required.
        None => findings.say(name, Status::Enforced, "none can be made (a required step)"),
    }
}

fn has_fact(seen: &Seen<'_>, fact: u32) -> bool {
    fact_names(fact).iter().any(|name| seen.enforcement.fallbacks.contains(name))
}

fn inotify(findings: &mut Findings, seen: &Seen<'_>) {
    let name = Name::LimitInotify;
    if seen.plan.identity.tier == Tier::Privileged {
        let detail = "not lowered: they are the host's own, and a dedicated uid has its own count";
        findings.say(name, Status::NotUsed, detail);
    } else if has_fact(seen, facts::LAUNCHER_LIMITS_MISSING) {
        findings.explain(
            name,
            (Status::Weaker, "not lowered".to_owned()),
            "the launcher could not write user.max_inotify_instances or _watches",
            "make /proc/sys writable to the service's user namespaces (docker: --security-opt \
             systempaths=unconfined)",
        );
    } else {
        let detail = "128 instances, 65536 watches for all runs of a sandbox";
        findings.say(name, Status::Enforced, detail);
    }
}

fn ipc(findings: &mut Findings, seen: &Seen<'_>) {
    let name = Name::LimitIpc;
    let wanted =
        [("kernel/shmmni", "128"), ("kernel/msgmni", "32"), ("fs/mqueue/queues_max", "32")];
    let read = wanted.map(|(path, value)| (setting(seen, path), value));
    if !seen.plan.namespaces.ipc {
        findings.say(name, Status::NotUsed, "the service's ipc namespace is shared");
    } else if has_fact(seen, facts::IPC_LIMITS_MISSING)
        || read.iter().any(|(found, wanted)| found.is_some_and(|found| found != *wanted))
    {
        findings.explain(
            name,
            (Status::Weaker, "not lowered: the kernel's defaults hold".to_owned()),
            "the launcher could not write the limits of the run's ipc namespace",
            "make /proc/sys writable to the service's user namespaces (docker: --security-opt \
             systempaths=unconfined)",
        );
    } else {
        let how =
            if read.iter().any(|(found, _)| found.is_some()) { ", as read inside" } else { "" };
        let detail = format!("128 segments, 32 message queues of either kind{how}");
        findings.say(name, Status::Enforced, detail);
    }
}

#[cfg(test)]
mod tests {
    use procfs::FromRead;
    use procfs::process::Limits;

    use super::*;
    use crate::host::Host;
    use crate::plan::resolve;

    fn of(limits: &str, kernel_uid: u32, release: Release, name: Name) -> Option<Status> {
        let profile = SandboxProfile::default();
        let mut plan = resolve(&profile, &Host::probe(&profile).unwrap()).unwrap();
        // As a guest's would be: here PID 1 stands for both.
        plan.rlimits.append(&mut plan.guest_rlimits);
        let limits = Some(Limits::from_read(limits.as_bytes()).unwrap());
        let init = Init { status: None, limits, mounts: None, shared: None, loopback: None };
        let enforcement = Enforcement { kernel_uid, ..Enforcement::for_tests() };
        let mut findings = Findings::new();
        let seen = Seen {
            profile: &profile,
            plan: &plan,
            init: &init,
            guest: None,
            enforcement: &enforcement,
            release: Some(release),
        };
        say(&mut findings, &seen);
        findings.status_of(name)
    }

    #[test]
    fn a_limit_is_the_planned_one_and_counted_by_run() {
        let own = std::fs::read_to_string("/proc/self/limits").unwrap();
        let with = |what: &str, value: &str| -> String {
            let line = |line: &str| match line.strip_prefix(what) {
                Some(rest) => {
                    let unit = rest.split_ascii_whitespace().nth(2).unwrap_or_default();
                    format!("{what:26}{value:21}{value:21}{unit}\n")
                }
                None => format!("{line}\n"),
            };
            own.lines().map(line).collect()
        };
        let (files, processes) = ("Max open files", "Max processes");
        let (old, new) = (Release { major: 5, minor: 13 }, Release { major: 5, minor: 14 });
        let rows = [
            (with(files, "1024"), 7, new, Name::RlimitNofile, Status::Enforced),
            (with(files, "1023"), 7, new, Name::RlimitNofile, Status::Failed),
            (with(files, "1025"), 7, new, Name::RlimitNofile, Status::Failed),
            (with(files, "unlimited"), 7, new, Name::RlimitNofile, Status::Failed),
            (with(processes, "1024"), 7, new, Name::RlimitNproc, Status::Enforced),
            (with(processes, "1024"), 7, old, Name::RlimitNproc, Status::Weaker),
            (with(processes, "1024"), 0, new, Name::RlimitNproc, Status::Weaker),
            (with(processes, "9"), 7, new, Name::RlimitNproc, Status::Failed),
        ];
        for (limits, uid, release, name, status) in rows {
            let found = of(&limits, uid, release, name);
            assert_eq!(found, Some(status), "{name} uid {uid} {release:?}");
        }
    }
}
