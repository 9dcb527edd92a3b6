//! What the test programs share: the probe, a look from the host's side, and proof that nothing is
//! left. It promises nothing itself.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test's own helpers fail the test"
)]

mod host;
mod plan;
mod probe;
mod residue;
mod scratch;
mod table;

pub use host::{
    SUBORDINATE_IDS, SUBORDINATE_USER, as_container_root, as_user_with_subordinates, children,
    descriptors, guest_of, init_of, memory_holds, namespaces, pid_of, processes_with, status,
};
pub use plan::{Mount, mounts_in, mounts_of, workspace_in};
pub use probe::{Held, PROBE, PROBE_PATH, ask, command, hold, install, run, try_hold};
pub use residue::{Residue, Watch};
pub use scratch::Scratch;
pub use table::{Row, check, differences};
