//! The directories that the library is handed: opened by whoever may, in the order of their
//! operations; which they are is the plan's.

use core::ffi::CStr;

use postern_init::record::facts;
use postern_init::step::Step;
use postern_init::supervise::Failure;
use postern_init::sys::{Errno, Fd, O_DIRECTORY, OwnedFd, open_at};

use super::owner::{OwnerMap, user_namespace};
use super::sys::{self, Reach, Resolve, clone_tree, open_resolved};
use crate::wire::{EXPORT, EXPORT_AS_OWN, MALFORMED, Setup};

/// How many directories the host may be handed.
pub(crate) const EXPORTS_MAX: usize = 4;

/// Where the directories for the host are, in the order of their operations, and how each is
/// reached.
pub(crate) type Exports<'a> = [Option<(&'a CStr, u64)>; EXPORTS_MAX];

/// The directories for the host, each in the place of its operation.
pub(crate) type Opened = [Option<OwnedFd>; EXPORTS_MAX];

/// Opens those that the host reaches as what they are, as the ids that own them: the launcher may
/// have no right over other files.
pub(crate) fn open_exports(exports: &Exports<'_>, opened: &mut Opened) -> Result<(), Failure> {
    for (slot, export) in opened.iter_mut().zip(exports) {
        if let Some((target, EXPORT)) = export {
            *slot = Some(open_export(target).map_err(Failure::at(Step::Export))?);
        }
    }
    Ok(())
}

fn open_export(target: &CStr) -> Result<OwnedFd, Errno> {
    open_resolved(Fd::CWD, target, O_DIRECTORY, Resolve::BeneathNoSymlinks)
}

/// Opens those on which what is the guest's is to be the service's own, before the launcher becomes
/// somebody who is neither; [`facts`] about them.
pub(crate) fn open_own_exports(
    setup: &Setup<'_>,
    exports: &Exports<'_>,
    opened: &mut Opened,
) -> Result<u32, Failure> {
    let mut found = 0;
    for (slot, export) in opened.iter_mut().zip(exports) {
        if let Some((target, EXPORT_AS_OWN)) = export {
            let (directory, fact) =
                open_as_own(setup, target).map_err(Failure::at(Step::Export))?;
            *slot = Some(directory);
            found |= fact;
        }
    }
    Ok(found)
}

/// The service is 0 in the launcher's user namespace. A tmpfs can be id-mapped from Linux 6.3 on;
/// before, the service's group has the directory.
fn open_as_own(setup: &Setup<'_>, target: &CStr) -> Result<(OwnedFd, u32), Errno> {
    const SERVICE: u32 = 0;
    const OPEN_TO_GROUP: u32 = 0o2770;
    let tree = clone_tree(Fd::CWD, target)?;
    let map = OwnerMap { uid: setup.service_uid_map, gid: setup.service_gid_map };
    let service = user_namespace(map)?;
    match sys::map_ids(tree.fd(), Reach::Tree, service.fd()) {
        Ok(()) => Ok((open_at(tree.fd(), c".", O_DIRECTORY, 0)?, 0)),
        Err(Errno::EINVAL | Errno::ENOSYS) => {
            sys::set_owner_and_mode(target, setup.launcher_uid, SERVICE, OPEN_TO_GROUP)?;
            Ok((open_export(target)?, facts::WORKSPACE_BY_GROUP))
        }
        Err(errno) => Err(errno),
    }
}

/// Remembers one; how many there can be is fixed.
pub(super) fn keep<'a>(
    target: &'a CStr,
    export: u64,
    exports: &mut Exports<'a>,
) -> Result<(), (Step, Errno)> {
    match exports.iter_mut().find(|slot| slot.is_none()) {
        Some(slot) => {
            *slot = Some((target, export));
            Ok(())
        }
        None => Err((Step::Export, MALFORMED)),
    }
}
