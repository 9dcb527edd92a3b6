//! Who the guest is, inside and outside; leases nothing and writes no map.

use super::{Identity, KernelId, Tier, Warning};
use crate::error::Refusal;
use crate::host::{Capability, FoundFile, Host, IdRange};
use crate::profile::{Field, SandboxProfile, SharedGroups};

/// Ids for sandboxes, one each, in order of preference: far above every range that distributions
/// hand out, and for namespaces of 16-bit ids a gap in systemd's table of uses.
///
/// See <https://systemd.io/UIDS-GIDS/>.
const LEASABLE: [IdRange; 2] =
    [IdRange { first: 2_000_000_000, count: 65_536 }, IdRange { first: 60_514, count: 670 }];

/// What kind of host this is, by effective capabilities alone.
///
/// Uid 0 that cannot give the guest another id is refused: the guest would be root outside.
pub(super) fn tier(host: &Host) -> Result<Tier, Refusal> {
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
    let tier = tier(host)?;
    Ok(Identity {
        tier,
        guest_uid: profile.guest_uid.unwrap_or(0),
        guest_gid: profile.guest_gid.unwrap_or(0),
        kernel_uid: kernel_id(&Wish {
            tier,
            field: Field::new("host_uid"),
            wanted: profile.host_uid,
            own: host.uid,
            held: &host.uids,
            taken: &host.subordinate_uids,
        })?,
        kernel_gid: kernel_id(&Wish {
            tier,
            field: Field::new("host_gid"),
            wanted: profile.host_gid,
            own: host.gid,
            held: &host.gids,
            taken: &host.subordinate_gids,
        })?,
        shared_groups: shared_groups(profile, host, tier)?,
    })
}

/// One id that the profile may name, and the ids to choose from.
struct Wish<'a> {
    tier: Tier,
    field: Field,
    wanted: Option<u32>,
    own: u32,
    held: &'a [IdRange],
    taken: &'a [IdRange],
}

/// The guest's id outside.
fn kernel_id(wish: &Wish<'_>) -> Result<KernelId, Refusal> {
    match (wish.tier, wish.wanted) {
        (Tier::Privileged | Tier::MapWriter, Some(id)) => fixed(wish, id),
        (Tier::Privileged | Tier::MapWriter, None) => leased(wish),
        (Tier::Unprivileged, wanted) => own(wish, wanted),
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

/// A service without capabilities has no id but its own.
fn own(wish: &Wish<'_>, wanted: Option<u32>) -> Result<KernelId, Refusal> {
    match wanted {
        Some(id) if id != wish.own => {
            Err(Refusal::HostIdNotOwn { field: wish.field, id, own: wish.own })
        }
        Some(_) | None => Ok(KernelId::Own(wish.own)),
    }
}

/// Groups that stay, since setgroups(2) is denied to a service without `CAP_SETGID`.
fn shared_groups(profile: &SandboxProfile, host: &Host, tier: Tier) -> Result<Vec<u32>, Refusal> {
    let groups: Vec<u32> = match tier {
        Tier::Privileged | Tier::MapWriter => Vec::new(),
        Tier::Unprivileged => {
            host.groups.iter().copied().filter(|group| *group != host.gid).collect()
        }
    };
    match profile.shared_groups {
        SharedGroups::Refuse if !groups.is_empty() => Err(Refusal::SharedGroups { groups }),
        SharedGroups::Refuse | SharedGroups::Report => Ok(groups),
    }
}

/// What an id or group outside shares with the service.
pub(super) fn warnings(identity: &Identity) -> impl Iterator<Item = Warning> {
    let uid = match identity.kernel_uid {
        KernelId::Own(uid) => Some(Warning::SharedUid(uid)),
        KernelId::Leased { .. } | KernelId::Fixed(_) => None,
    };
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
