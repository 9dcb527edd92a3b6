//! What the library tells while it works: spans and events of `tracing`, and the audit record. It
//! decides nothing, keeps no output of a guest, and costs a few loads where nobody listens.

mod audit;
mod chronicle;
pub(crate) mod events;
mod line;
mod rate;
mod text;

pub use audit::{AUDIT_LINE_BYTES_MAX, Audit};
pub(crate) use chronicle::{Attendance, Chronicle, Teller};
pub(crate) use rate::Rate;

use core::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// A sandbox, told apart from every other sandbox of this process in events and audit records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SandboxId(u64);

impl SandboxId {
    /// One that no other call in this process returns. They count up from one.
    pub(crate) fn next() -> SandboxId {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        SandboxId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for SandboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sandbox-{}", self.0)
    }
}
