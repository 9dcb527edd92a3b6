//! Counts what guests were refused, and says so at a rate that they cannot raise.

use core::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};

use super::rate::Rate;
use crate::{HatchName, RunId};

/// Refused calls of one hatch.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    count: AtomicU64,
    rate: Rate,
}

impl Refusals {
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// One more. `what` must be fit for a log already.
    pub(super) fn add(&self, hatch: Option<&HatchName>, run: RunId, what: &dyn Display) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let Some(unlogged) = self.rate.turn() else { return };
        let hatch = hatch.map_or("", HatchName::as_str);
        tracing::warn!(
            name: "hatch.refused",
            target: "postern",
            hatch,
            %run,
            unlogged,
            "hatch refused: {what}"
        );
    }
}
