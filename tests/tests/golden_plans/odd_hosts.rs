//! Machines on which a profile is refused; none of them is this one.

use postern::host::{Capabilities, Capability, FileFact, IdRange};

use crate::hosts::{self, Machine, Owned};
use crate::pythons;

/// Whose null device is a file.
pub(crate) fn without_null() -> Machine {
    hosts::debian().file("/dev/null")
}

/// Without system directories.
pub(crate) fn without_usr() -> Machine {
    hosts::debian().fact("/usr", FileFact::Missing)
}

/// Root that may not map an id: as under `--cap-drop ALL`.
pub(crate) fn without_capabilities() -> Machine {
    hosts::container().with(|host| host.capabilities = Capabilities::of(&[Capability::SetUid]))
}

/// Root that is the only id there is.
pub(crate) fn single_id() -> Machine {
    hosts::debian().with(|host| host.uids = vec![IdRange { first: 0, count: 1 }])
}

/// A machine that has given both ranges of ids away.
pub(crate) fn ids_taken() -> Machine {
    hosts::debian().with(|host| host.subordinate_gids = vec![IdRange::ALL])
}

/// A desktop with a job directory of another user's.
pub(crate) fn desktop_with_job() -> Machine {
    hosts::desktop().dir_of("/srv/job", Owned { uid: 4000, gid: 44, mode: 0o755 })
}

/// A job directory of root's.
pub(crate) fn roots_job() -> Machine {
    hosts::debian().dir("/srv/job")
}

/// A job directory that its owner may not write to.
pub(crate) fn read_only_job() -> Machine {
    hosts::debian().dir_of("/srv/job", Owned { uid: 4000, gid: 4000, mode: 0o555 })
}

/// A job directory in which an earlier guest has made a link.
pub(crate) fn planted_job() -> Machine {
    let open = Owned { uid: 4000, gid: 4000, mode: 0o777 };
    hosts::debian().dir_of("/srv/job", open).dir("/srv/private").link(
        "/srv/job/data",
        "/srv/private",
        "/srv/private",
    )
}

/// A service that may not look where the interpreter is.
pub(crate) fn unreachable_python() -> Machine {
    pythons::alone().fact("/opt/tools", FileFact::Unreachable { errno: libc::EACCES })
}

/// A machine that nobody has looked at.
pub(crate) fn unprobed() -> Machine {
    hosts::debian().unprobed()
}
