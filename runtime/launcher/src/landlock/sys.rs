//! The three Landlock calls; decides nothing.
//!
//! # Safety
//! As in `crate::sys`: pointers derive from references that outlive the call.

use postern_init::arch::nr;
use postern_init::sys::{Fd, OwnedFd, Result};

use crate::sys::{arg, at, call, new_fd};

/// `landlock_create_ruleset(2)`.
///
/// # Errors
/// As the kernel says: `E2BIG` where it does not know scopes and some are asked for.
pub(super) fn create_ruleset(handled_files: u64, scoped: u64) -> Result<OwnedFd> {
    // struct landlock_ruleset_attr: handled_access_fs, handled_access_net, scoped. An older kernel
    // takes a longer struct whose rest is zero.
    let attributes: [u64; 3] = [handled_files, 0, scoped];
    let args = [at(&attributes), size_of_val(&attributes), 0, 0, 0, 0];
    new_fd(call(nr::LANDLOCK_CREATE_RULESET, args))
}

/// `landlock_add_rule(2)` for what lies beneath an open place, itself included.
///
/// # Errors
/// As the kernel says.
pub(super) fn add_rule(ruleset: Fd, rights: u64, place: Fd) -> Result<()> {
    const PATH_BENEATH: usize = 1;
    /// `struct landlock_path_beneath_attr`.
    #[repr(C, packed)]
    struct Beneath {
        rights: u64,
        place: i32,
    }
    let rule = Beneath { rights, place: place.0 };
    call(nr::LANDLOCK_ADD_RULE, [arg(ruleset), PATH_BENEATH, at(&rule), 0, 0, 0]).map(drop)
}

/// `landlock_restrict_self(2)`.
///
/// # Errors
/// As the kernel says: `E2BIG` beneath sixteen other domains.
pub(super) fn restrict_self(ruleset: Fd) -> Result<()> {
    call(nr::LANDLOCK_RESTRICT_SELF, [arg(ruleset), 0, 0, 0, 0, 0]).map(drop)
}
