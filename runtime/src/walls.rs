//! Walls of the default profile, as data for a front end that builds a root of its own: what `postern
//! bwrap --hardened` adds. Builds none of them.

use crate::launch::encode::number;
use crate::plan::{self, MASK_DIR};

/// What a masked part of `/proc` is, and so what can cover it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Masked {
    /// A file.
    File,
    /// A directory.
    Directory,
}

/// The resource limits that are set without a word: `RLIMIT_*` and the limit, soft and hard.
#[must_use]
pub fn limits() -> Vec<(u32, u64)> {
    plan::limits_by_default().map(|(resource, limit)| (number(resource), limit)).collect()
}

/// What is masked in `/proc`, by its path there; not all of it is on every kernel.
pub fn proc_masks() -> impl Iterator<Item = (&'static str, Masked)> {
    let roots = plan::ROOTS_ALONE.into_iter().map(|path| (path, Masked::File));
    let leaks = plan::LEAKS.into_iter().map(|(path, cover)| {
        let masked = if cover == MASK_DIR { Masked::Directory } else { Masked::File };
        (path, masked)
    });
    roots.chain(leaks).filter_map(|(path, kind)| Some((path.strip_prefix("/proc/")?, kind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaks_is_masked_as_what_it_is() {
        let masks: Vec<_> = proc_masks().collect();
        assert!(masks.contains(&("kallsyms", Masked::File)));
        assert!(masks.contains(&("kcore", Masked::File)));
        assert!(masks.contains(&("bus", Masked::Directory)));
    }

    #[test]
    fn limits_are_those_of_the_default_profile() {
        const RLIMIT_NOFILE: u32 = 7;
        let nofile = crate::SandboxProfile::default().limits.nofile;
        assert!(limits().contains(&(RLIMIT_NOFILE, nofile)));
    }
}
