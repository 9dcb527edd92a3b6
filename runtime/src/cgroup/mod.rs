//! Version 2 control groups: where one may be made here, one for each run, what the kernel says of it
//! at the end, and its removal. Knows nothing of namespaces or plans of mounts.

mod find;
mod gap;
mod leftovers;
mod run;
mod tree;

pub use find::CgroupSupport;
pub use gap::{CgroupGap, Controller};
pub use run::{CgroupUsage, LimitHit};
pub(crate) use run::{Counts, RunGroup};
pub(crate) use tree::Tree;
