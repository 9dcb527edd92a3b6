//! Which subordinate ids of the service's user a guest may have; leases none and runs no tool.

use super::{KernelId, MapToolPaths, WhyShared};
use crate::error::Refusal;
use crate::host::{Host, IdRange, MapTools};
use crate::profile::{Field, SandboxProfile};

/// Where the ranges come from.
const FILES: [&str; 2] = ["/etc/subuid", "/etc/subgid"];

/// Ids that sandboxes may have, and what puts them into a map.
pub(super) struct Offer {
    uids: IdRange,
    gids: IdRange,
    pub(super) tools: MapToolPaths,
}

/// The ids of one kind.
struct Ids<'a> {
    file: &'static str,
    granted: &'a [IdRange],
    /// What anybody has been given, the service's user included.
    everybodys: &'a [IdRange],
    held: &'a [IdRange],
    own: u32,
}

impl Ids<'_> {
    /// The largest range that is mapped here and nobody else's.
    fn range(&self) -> Result<IdRange, WhyShared> {
        let file = self.file;
        let mapped = |range: &&IdRange| self.held.iter().any(|held| held.holds(**range));
        let mut mapped = self.granted.iter().filter(mapped).peekable();
        if self.granted.is_empty() {
            return Err(WhyShared::NoRange { file });
        }
        if mapped.peek().is_none() {
            return Err(WhyShared::RangeUnmapped { file });
        }
        let clear = mapped.filter(|range| self.is_clear(**range));
        clear.copied().max_by_key(|range| range.count).ok_or(WhyShared::RangeTaken { file })
    }

    /// Every range of the user's is among everybody's once; one more is another's. The service's
    /// own id and root's are not to be given to a guest, whatever the file says.
    fn is_clear(&self, range: IdRange) -> bool {
        let overlapping =
            |ranges: &[IdRange]| ranges.iter().filter(|other| other.overlaps(range)).count();
        let one = |first| IdRange { first, count: 1 };
        overlapping(self.everybodys) <= overlapping(self.granted)
            && !range.overlaps(one(0))
            && !range.overlaps(one(self.own))
    }
}

/// What the host offers, or why it offers nothing.
pub(super) fn offer(host: &Host) -> Result<Offer, WhyShared> {
    let [subuid, subgid] = FILES;
    let uids = Ids {
        file: subuid,
        granted: &host.subordinate.uids,
        everybodys: &host.subordinate_uids,
        held: &host.uids,
        own: host.uid,
    };
    let gids = Ids {
        file: subgid,
        granted: &host.subordinate.gids,
        everybodys: &host.subordinate_gids,
        held: &host.gids,
        own: host.gid,
    };
    let (uids, gids) = (uids.range()?, gids.range()?);
    let tools = match &host.subordinate.tools {
        MapTools::Usable { newuidmap, newgidmap } => {
            MapToolPaths { newuidmap: newuidmap.clone(), newgidmap: newgidmap.clone() }
        }
        MapTools::NotLooked => return Err(WhyShared::ToolMissing { program: "newuidmap" }),
        MapTools::Missing { program } => return Err(WhyShared::ToolMissing { program }),
        MapTools::Powerless { path } => {
            return Err(WhyShared::ToolPowerless { path: path.clone() });
        }
        MapTools::NoNewPrivs => return Err(WhyShared::NoNewPrivs),
        MapTools::OtherGroup { primary } => {
            return Err(WhyShared::OtherGroup { primary: *primary });
        }
        MapTools::NoUser => return Err(WhyShared::NoUser),
    };
    Ok(Offer { uids, gids, tools })
}

/// The guest's uid and gid outside: what the profile names, or one lease for both, so that neither
/// range is used further than the other reaches.
pub(super) fn kernel_ids(
    profile: &SandboxProfile,
    host: &Host,
    offer: &Offer,
) -> Result<(KernelId, KernelId), Refusal> {
    let count = match (profile.host_uid, profile.host_gid) {
        (None, None) => offer.uids.count.min(offer.gids.count),
        (_, None) => offer.gids.count,
        (None, _) | (Some(_), Some(_)) => offer.uids.count,
    };
    let id = |name, wanted: Option<u32>, granted: &[IdRange], range: IdRange, own| match wanted {
        None => Ok(KernelId::Leased {
            first: range.first,
            last: range.first.saturating_add(count.saturating_sub(1)),
        }),
        Some(id) if granted.iter().any(|range| range.holds(IdRange { first: id, count: 1 })) => {
            Ok(KernelId::Fixed(id))
        }
        Some(id) => Err(Refusal::HostIdNotOwn { field: Field::new(name), id, own }),
    };
    let granted = &host.subordinate;
    Ok((
        id("host_uid", profile.host_uid, &granted.uids, offer.uids, host.uid)?,
        id("host_gid", profile.host_gid, &granted.gids, offer.gids, host.gid)?,
    ))
}
