//! Placement of memory, and ways to change or watch pages that a guest shares with the host.

use crate::condition::Argument::A4;
use crate::condition::Test::NotNull;
use crate::policies::{EINVAL, ENOSYS, EPERM, always, arg, when};
use crate::policy::Rule;

pub(super) const RULES: &[Rule] = &[
    // Placement among nodes.
    always("move_pages", EPERM, "tells where pages of a process lie, and moves them"),
    always("migrate_pages", EPERM, "moves all memory of a process"),
    always("mbind", EPERM, "placement is the host's choice"),
    always("set_mempolicy", EPERM, "placement is the host's choice"),
    always("set_mempolicy_home_node", ENOSYS, "placement is the host's choice"),
    when(
        "get_mempolicy",
        &[arg(A4, NotNull)],
        EPERM,
        "tells on which node a page lies; the plain question for one's own policy stays",
    ),
    // Stages of kernel exploits.
    always("userfaultfd", EPERM, "stops the kernel in the middle of a copy, as exploits want"),
    always("memfd_secret", ENOSYS, "memory that even the kernel does not map"),
    always("remap_file_pages", EPERM, "obsolete; mappings of a shape that nothing else has"),
    // The page cache is shared with the host: what changes it would change the host's files.
    always(
        "splice",
        EINVAL,
        "references to page-cache pages were written to more than once; callers \
            copy instead",
    ),
    always("tee", EINVAL, "as splice, from pipe to pipe"),
    always("vmsplice", EPERM, "gives pages to a pipe that go on changing"),
    always("cachestat", ENOSYS, "tells which pages of a shared file somebody else has read"),
];
