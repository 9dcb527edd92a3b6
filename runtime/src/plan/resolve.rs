//! Puts a plan together from its parts; every decision is in one of them.

use std::ffi::CString;

use postern_seccomp::Level;

use super::mounts::{Mounts, mounts};
use super::text::c_string;
use super::{Identity, NamespaceSet, Plan, Tier, Warning, WhyShared};
use super::{cgroup, env, identity, landlock, limits};
use crate::error::Refusal;
use crate::host::{Capability, Host};
use crate::profile::{Field, Loopback, SandboxProfile, Sharing, Workspace, check};

/// What a sandbox needs beyond its profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wants {
    /// Whether runs are handed files or sockets of their own in `/run/postern`.
    pub run_directory: bool,
}

/// Decides everything about a launch.
///
/// Equal arguments give equal plans; nothing but them is looked at.
///
/// # Errors
///
/// The first rule that the profile breaks, by itself or on this host.
pub fn resolve(profile: &SandboxProfile, host: &Host) -> Result<Plan, Refusal> {
    resolve_with(profile, host, Wants::default())
}

/// As [`resolve`], for a sandbox that wants more than its profile says.
///
/// # Errors
///
/// As for [`resolve`].
pub fn resolve_with(profile: &SandboxProfile, host: &Host, wants: Wants) -> Result<Plan, Refusal> {
    check(profile)?;
    let identity = identity::identity(profile, host)?;
    let (identity, mounts) = with_mounts(profile, host, identity, wants)?;
    let namespaces = namespaces(profile);
    let ahead = ahead(namespaces, &identity, host);
    let operations = [mounts.template.as_slice(), mounts.run.as_slice()];
    let decided = cgroup::cgroup(&profile.cgroup, &host.cgroup)?;
    let landlock = landlock::landlock(profile.landlock, host.landlock, &operations)?;
    Ok(Plan {
        namespaces,
        ahead,
        template: mounts.template,
        run: mounts.run,
        hostname: hostname(profile)?,
        loopback: namespaces.net && profile.loopback == Loopback::Up,
        sysctls: limits::sysctls(profile, host, &identity, ahead),
        rlimits: limits::rlimits(profile, host),
        guest_rlimits: limits::guest_rlimits(profile, host),
        oom_score_adj: profile.oom_score_adj,
        cwd: c_string(Field::new("cwd"), &mounts.cwd)?,
        env: env::environment(profile, &mounts.workspace)?,
        cgroup: decided.cgroup,
        cgroup_gaps: decided.gaps,
        landlock,
        seccomp: profile.seccomp,
        seccomp_policy: profile.user_policy()?,
        python: mounts.python,
        warnings: warnings(profile, &identity, namespaces),
        identity,
    })
}

/// The mounts, and the identity that can use them: an environment's interpreter may be one that no
/// id but the service's own may run.
fn with_mounts(
    profile: &SandboxProfile,
    host: &Host,
    identity: Identity,
    wants: Wants,
) -> Result<(Identity, Mounts), Refusal> {
    let is_named = profile.host_uid.is_some() || profile.host_gid.is_some();
    match mounts(profile, host, &identity, wants) {
        Err(Refusal::VenvPythonForbidden { path, .. })
            if identity.tier == Tier::Subordinate && !is_named =>
        {
            let own = identity::own(profile, host, WhyShared::Needs { path })?;
            let mounts = mounts(profile, host, &own, wants)?;
            Ok((own, mounts))
        }
        Ok(mounts) => Ok((identity, mounts)),
        Err(refusal) => Err(refusal),
    }
}

/// The namespaces of a run's own.
fn namespaces(profile: &SandboxProfile) -> NamespaceSet {
    let is_own = |sharing| sharing == Sharing::Own;
    NamespaceSet {
        pid: is_own(profile.namespaces.pid),
        net: is_own(profile.namespaces.net),
        ipc: is_own(profile.namespaces.ipc),
        uts: is_own(profile.namespaces.uts),
        cgroup: is_own(profile.namespaces.cgroup),
    }
}

/// What the launcher makes one run ahead: ipc and uts, since their limits and name can be written
/// only from outside the run; net where the launcher may bring `lo` up in it.
fn ahead(own: NamespaceSet, identity: &Identity, host: &Host) -> NamespaceSet {
    let may_configure = match identity.tier {
        Tier::MapWriter | Tier::Subordinate | Tier::Unprivileged => true,
        Tier::Privileged => host.capabilities.has(Capability::NetAdmin),
    };
    NamespaceSet {
        pid: false,
        net: own.net && may_configure,
        ipc: own.ipc,
        uts: own.uts,
        cgroup: false,
    }
}

/// The hostname, where the run has one of its own.
fn hostname(profile: &SandboxProfile) -> Result<Option<CString>, Refusal> {
    match profile.namespaces.uts {
        Sharing::Own => c_string(Field::new("hostname"), &profile.hostname).map(Some),
        Sharing::Shared => Ok(None),
    }
}

/// What is weaker than the default promise.
fn warnings(profile: &SandboxProfile, identity: &Identity, own: NamespaceSet) -> Vec<Warning> {
    let mut warnings: Vec<_> = identity::warnings(identity).collect();
    if matches!(profile.workspace, Workspace::Directory { .. }) {
        warnings.push(Warning::UnboundedWorkspace);
    }
    if profile.seccomp == Level::Off {
        warnings.push(Warning::SeccompOff);
    }
    let shared = own.named().filter(|(_, is_own)| !is_own);
    warnings.extend(shared.map(|(name, _)| Warning::SharedNamespace(name)));
    warnings
}
