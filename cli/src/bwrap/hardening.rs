//! What `--hardened` adds: the walls of the default profile that do not depend on its root.

use postern::seccomp::Level;
use postern::walls::{self, Masked};
use postern_launcher::direct::{self, Hardening};

use super::kept;
use super::say::Wrong;

/// The filter, the limits and the masks.
pub(super) fn walls() -> Result<Hardening<'static>, Wrong> {
    let failed = |error| Wrong::new(format!("--hardened: {error}"));
    let filter = Level::Default.native_program().map_err(failed)?;
    let masks = walls::proc_masks().map(|(path, kind)| {
        let kind = match kind {
            Masked::File => direct::Masked::File,
            Masked::Directory => direct::Masked::Directory,
        };
        (kept::text(path), kind)
    });
    Ok(Hardening {
        filter: filter.map_or(&[], |program| program.as_bytes()),
        limits: kept::list(walls::limits()),
        masks: kept::list(masks.collect()),
    })
}
