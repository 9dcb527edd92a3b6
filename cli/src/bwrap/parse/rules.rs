//! Options that need others, or exclude them, once all have been read: one rule is one row.

use std::path::PathBuf;

use super::super::invocation::{Invocation, Wish};
use super::Caller;

pub(super) const LAYERS_WAIT: &str = "--overlay-src must be followed by another --overlay-src or one of \
                           --overlay, --tmp-overlay, or --ro-overlay";

/// Layers must have met their overlay.
pub(super) fn layers_are_taken(layers: &[PathBuf]) -> Result<(), String> {
    match layers.is_empty() {
        true => Ok(()),
        false => Err(LAYERS_WAIT.to_owned()),
    }
}

/// The first rule that is broken, in bwrap's order and words.
pub(super) fn ends_well(asked: &Invocation, caller: Caller) -> Result<(), String> {
    let spaces = &asked.namespaces;
    let wants_user = spaces.user == Wish::Yes;
    let tries_user = spaces.user == Wish::IfPossible;
    let joins_user = spaces.userns.is_some();
    let has_user = spaces.user != Wish::No || joins_user || !caller.is_root();
    let blocks = asked.userns_block_fd.is_some();
    let others_uid = asked.uid.is_some_and(|uid| uid != caller.uid);
    let others_gid = asked.gid.is_some_and(|gid| gid != caller.gid);
    let rules = [
        (blocks && !wants_user, "--userns-block-fd requires --unshare-user"),
        (blocks && asked.info_fd.is_none(), "--userns-block-fd requires --info-fd"),
        (joins_user && wants_user, "--userns is not compatible with --unshare-user"),
        (joins_user && tries_user, "--userns is not compatible with --unshare-user-try"),
        (spaces.disable_userns && !wants_user, "--disable-userns requires --unshare-user"),
        (
            spaces.disable_userns && blocks,
            "--disable-userns is not compatible with --userns-block-fd",
        ),
        (others_uid && !has_user, "Specifying --uid requires --unshare-user or --userns"),
        (others_gid && !has_user, "Specifying --gid requires --unshare-user or --userns"),
        (asked.hostname.is_some() && !spaces.uts, "Specifying --hostname requires --unshare-uts"),
        (asked.as_pid_1 && !spaces.pid, "Specifying --as-pid-1 requires --unshare-pid"),
        (
            asked.as_pid_1 && !asked.locks.is_empty(),
            "Specifying --as-pid-1 and --lock-file is not permitted",
        ),
    ];
    let broken = rules.iter().find(|(is_broken, _)| *is_broken);
    broken.map_or(Ok(()), |(_, words)| Err((*words).to_owned()))
}
