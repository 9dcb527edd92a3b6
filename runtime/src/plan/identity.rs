//! Who the guest is, inside and outside; leases nothing and writes no map.

use std::path::PathBuf;

use super::{Identity, KernelId, Tier, Warning, WhyShared, subordinate};
use crate::error::Refusal;
use crate::host::{Capability, FileFact, FileKind, FoundFile, Host, IdRange};
use crate::profile::{
    BindAccess, Field, MountSpec, SandboxProfile, SharedGroups, SharedUid, Workspace,
    WorkspaceAccess, list_binds,
};

/// Ids for sandboxes, one each, in order of preference: far above every range that distributions
/// hand out, and for namespaces of 16-bit ids a gap in systemd's table of uses.
///
/// See <https://systemd.io/UIDS-GIDS/>.
const LEASABLE: [IdRange; 2] =
    [IdRange { first: 2_000_000_000, count: 65_536 }, IdRange { first: 60_514, count: 670 }];

/// What kind of host this is, by effective capabilities alone.
///
/// Uid 0 that cannot give the guest another id is refused: the guest would be root outside.
fn privileges(host: &Host) -> Result<Tier, Refusal> {
    let needed = [Capability::SetUid, Capability::SetGid, Capability::SetFcap];
    let has = |capability: &Capability| host.capabilities.has(*capability);
    let missing: Vec<_> = needed.into_iter().filter(|capability| !has(capability)).collect();
    match (missing.is_empty(), has(&Capability::SysAdmin)) {
        (true, true) => Ok(Tier::Privileged),
        (true, false) => Ok(Tier::MapWriter),
        (false, _) if host.uid == 0 => Err(Refusal::MissingCapabilities { missing }),
        (false, _) => Ok(Tier::Unprivileged),
    }
}

/// Every id of the sandbox.
pub(super) fn identity(profile: &SandboxProfile, host: &Host) -> Result<Identity, Refusal> {
    let tier = privileges(host)?;
    let (uid, gid) = match tier {
        Tier::Unprivileged | Tier::Subordinate => return without_privileges(profile, host),
        Tier::Privileged | Tier::MapWriter => (
            Wish {
                field: Field::new("host_uid"),
                wanted: profile.host_uid,
                held: &host.uids,
                taken: &host.subordinate_uids,
            },
            Wish {
                field: Field::new("host_gid"),
                wanted: profile.host_gid,
                held: &host.gids,
                taken: &host.subordinate_gids,
            },
        ),
    };
    let (uid, gid) = (kernel_id(&uid)?, kernel_id(&gid)?);
    let why = (uid == KernelId::Fixed(host.uid)).then_some(WhyShared::Named);
    refuse_shared(profile, why.as_ref())?;
    Ok(Identity { why_shared: why, ..ids(profile, tier, uid, gid) })
}

fn ids(profile: &SandboxProfile, tier: Tier, uid: KernelId, gid: KernelId) -> Identity {
    Identity {
        tier,
        guest_uid: profile.guest_uid.unwrap_or(0),
        guest_gid: profile.guest_gid.unwrap_or(0),
        kernel_uid: uid,
        kernel_gid: gid,
        shared_groups: Vec::new(),
        why_shared: None,
        map_tools: None,
    }
}

/// A service without capabilities: an id of its user's subordinate ones, or else its own.
fn without_privileges(profile: &SandboxProfile, host: &Host) -> Result<Identity, Refusal> {
    let is_own = |wanted: Option<u32>, own: u32| wanted.is_none_or(|wanted| wanted == own);
    let is_named = profile.host_uid.is_some() || profile.host_gid.is_some();
    let names_own = is_own(profile.host_uid, host.uid) && is_own(profile.host_gid, host.gid);
    if is_named && names_own {
        return own(profile, host, WhyShared::Named);
    }
    let offer = match subordinate::offer(host) {
        Ok(offer) => offer,
        Err(why) => {
            not_own(Field::new("host_uid"), profile.host_uid, host.uid)?;
            not_own(Field::new("host_gid"), profile.host_gid, host.gid)?;
            return own(profile, host, why);
        }
    };
    let (uid, gid) = subordinate::kernel_ids(profile, host, &offer)?;
    let distinct = ids(profile, Tier::Subordinate, uid, gid);
    match own_needed(profile, host, &distinct) {
        Some(path) if !is_named => own(profile, host, WhyShared::Needs { path }),
        Some(_) | None => Ok(Identity { map_tools: Some(offer.tools), ..distinct }),
    }
}

/// The service's own ids, which it shares with the guest.
pub(super) fn own(
    profile: &SandboxProfile,
    host: &Host,
    why: WhyShared,
) -> Result<Identity, Refusal> {
    refuse_shared(profile, Some(&why))?;
    let (uid, gid) = (KernelId::Own(host.uid), KernelId::Own(host.gid));
    let ids = ids(profile, Tier::Unprivileged, uid, gid);
    Ok(Identity { shared_groups: shared_groups(profile, host)?, why_shared: Some(why), ..ids })
}

fn refuse_shared(profile: &SandboxProfile, why: Option<&WhyShared>) -> Result<(), Refusal> {
    match (profile.shared_uid, why) {
        (SharedUid::Refuse, Some(why)) => Err(Refusal::SharedUid { why: why.clone() }),
        (SharedUid::Refuse | SharedUid::Report, _) => Ok(()),
    }
}

/// The first path of the profile that the service's own ids may use as the profile wants it used,
/// and those of `distinct` may not.
fn own_needed(profile: &SandboxProfile, host: &Host, distinct: &Identity) -> Option<PathBuf> {
    let own = ids(profile, Tier::Unprivileged, KernelId::Own(host.uid), KernelId::Own(host.gid));
    let binds = list_binds(profile).map(|bind| (bind.source, bind.access));
    let mounts = profile.mounts.iter().filter_map(|mount| match mount {
        MountSpec::Bind { source, access, .. } => Some((source.as_path(), *access)),
        MountSpec::Tmpfs { .. }
        | MountSpec::Dir { .. }
        | MountSpec::Symlink { .. }
        | MountSpec::File { .. } => None,
    });
    let workspace = match &profile.workspace {
        Workspace::Directory { path, access: WorkspaceAccess::AsIs | WorkspaceAccess::Mapped } => {
            Some((path.as_path(), BindAccess::ReadWrite))
        }
        Workspace::Directory { access: WorkspaceAccess::Shared, .. } | Workspace::Owned { .. } => {
            None
        }
    };
    let stubs = profile.stubs.iter().map(|path| (path.as_path(), BindAccess::ReadOnly));
    let mut used = workspace.into_iter().chain(stubs).chain(binds).chain(mounts);
    let found = used.find(|(path, access)| {
        let Some(FileFact::Found(found)) = host.file(path) else { return false };
        let search = u32::from(found.kind == FileKind::Dir);
        let wanted = match access {
            BindAccess::ReadOnly => 0o4 | search,
            BindAccess::ReadWrite => 0o6 | search,
        };
        permits(&own, host, found, wanted) && !permits(distinct, host, found, wanted)
    });
    found.map(|(path, _)| path.to_owned())
}

/// One id that the profile may name, and the ids to choose from.
struct Wish<'a> {
    field: Field,
    wanted: Option<u32>,
    held: &'a [IdRange],
    taken: &'a [IdRange],
}

/// The guest's id outside.
fn kernel_id(wish: &Wish<'_>) -> Result<KernelId, Refusal> {
    match wish.wanted {
        Some(id) => fixed(wish, id),
        None => leased(wish),
    }
}

/// A named id must exist in the service's user namespace.
fn fixed(wish: &Wish<'_>, id: u32) -> Result<KernelId, Refusal> {
    let one = IdRange { first: id, count: 1 };
    if wish.held.iter().any(|range| range.holds(one)) {
        Ok(KernelId::Fixed(id))
    } else {
        Err(Refusal::HostIdUnmapped { field: wish.field, id })
    }
}

/// The first range that exists here and is nobody's.
fn leased(wish: &Wish<'_>) -> Result<KernelId, Refusal> {
    LEASABLE
        .into_iter()
        .find(|range| {
            wish.held.iter().any(|held| held.holds(*range))
                && !wish.taken.iter().any(|taken| taken.overlaps(*range))
        })
        .map(|range| KernelId::Leased { first: range.first, last: range.first + range.count - 1 })
        .ok_or(Refusal::NoIdRange { field: wish.field })
}

/// A service without capabilities and without subordinate ids has no id but its own.
fn not_own(field: Field, wanted: Option<u32>, own: u32) -> Result<(), Refusal> {
    match wanted {
        Some(id) if id != own => Err(Refusal::HostIdNotOwn { field, id, own }),
        Some(_) | None => Ok(()),
    }
}

/// Groups that stay, since setgroups(2) is denied to a service without `CAP_SETGID`.
fn shared_groups(profile: &SandboxProfile, host: &Host) -> Result<Vec<u32>, Refusal> {
    let groups: Vec<u32> = host.groups.iter().copied().filter(|group| *group != host.gid).collect();
    match profile.shared_groups {
        SharedGroups::Refuse if !groups.is_empty() => Err(Refusal::SharedGroups { groups }),
        SharedGroups::Refuse | SharedGroups::Report => Ok(groups),
    }
}

/// What an id or group outside shares with the service.
pub(super) fn warnings(identity: &Identity) -> impl Iterator<Item = Warning> {
    let uid = identity.why_shared.as_ref().and_then(|_| known_uid(identity));
    let uid = uid.map(Warning::SharedUid);
    let groups = (!identity.shared_groups.is_empty())
        .then(|| Warning::SharedGroups(identity.shared_groups.clone()));
    uid.into_iter().chain(groups)
}

/// Whether permission bits let the guest's kernel ids do this to a file: 4 to read, 2 to write, 1
/// to execute or search. A leased id is nobody's, and its group too.
pub(super) fn permits(identity: &Identity, host: &Host, found: &FoundFile, wanted: u32) -> bool {
    let is = |id: KernelId, other: u32| match id {
        KernelId::Fixed(id) | KernelId::Own(id) => id == other,
        KernelId::Leased { .. } => false,
    };
    let in_group = is(identity.kernel_gid, found.gid)
        || (identity.tier == Tier::Unprivileged && host.groups.contains(&found.gid));
    let needed = if is(identity.kernel_uid, found.uid) {
        wanted << 6
    } else if in_group {
        wanted << 3
    } else {
        wanted
    };
    found.mode & needed == needed
}

/// The guest's kernel uid, where it is known before the launch.
pub(super) const fn known_uid(identity: &Identity) -> Option<u32> {
    match identity.kernel_uid {
        KernelId::Fixed(id) | KernelId::Own(id) => Some(id),
        KernelId::Leased { .. } => None,
    }
}
