//! A run's way in: its place under the ceiling, waited for in the blocking or the async way.

use std::time::Instant;

use super::Sandbox;
use super::live::Load;
use super::start::Attest;
use crate::ceiling::{Entry, Place, Waiting};
use crate::command::Command;
use crate::error::{Busy, Error};
use crate::telemetry::{Attendance, Chronicle, events};

/// What a started run keeps.
pub(super) fn attendance(chronicle: Chronicle, place: Option<Place>, load: Load) -> Attendance {
    events::run_started(&chronicle.span, chronicle.queued);
    Attendance { chronicle, place, load: Some(load) }
}

impl Sandbox {
    /// The run's place; `None` where there is no ceiling, or nothing but a look at the walls.
    pub(super) fn enter(
        &self,
        command: &Command,
        attest: Attest,
        chronicle: &mut Chronicle,
    ) -> Result<Option<Place>, Error> {
        match self.ask(command, attest, chronicle)? {
            Asked::Free => Ok(None),
            Asked::Placed(place) => Ok(Some(place)),
            Asked::Waits(waiting) => {
                let since = Instant::now();
                let place = waiting.wait();
                chronicle.queued = since.elapsed();
                Ok(Some(place?))
            }
        }
    }

    /// As [`Sandbox::enter`]; dropping the future gives up the turn.
    #[cfg(feature = "tokio")]
    pub(super) async fn enter_async(
        &self,
        command: &Command,
        chronicle: &mut Chronicle,
    ) -> Result<Option<Place>, Error> {
        match self.ask(command, Attest::No, chronicle)? {
            Asked::Free => Ok(None),
            Asked::Placed(place) => Ok(Some(place)),
            Asked::Waits(waiting) => {
                let since = Instant::now();
                let place: Result<Place, Busy> = match waiting.limit() {
                    None => Ok(waiting.await),
                    Some((until, late)) => {
                        let place = tokio::time::timeout_at(until.into(), waiting).await;
                        place.map_err(|_elapsed| late)
                    }
                };
                chronicle.queued = since.elapsed();
                Ok(Some(place?))
            }
        }
    }

    fn ask(&self, command: &Command, attest: Attest, chronicle: &Chronicle) -> Result<Asked, Busy> {
        // A look at the walls runs no program, and a service that is busy must be able to look.
        let ceiling = self.ceiling.as_ref().filter(|_| attest != Attest::Only);
        let Some(ceiling) = ceiling else { return Ok(Asked::Free) };
        Ok(match ceiling.enter(command.queue_timeout)? {
            Entry::Placed(place) => Asked::Placed(place),
            Entry::Waits(waiting) => {
                events::run_queued(&chronicle.span, ceiling);
                Asked::Waits(waiting)
            }
        })
    }
}

/// What came of asking for a place.
enum Asked {
    /// None is needed.
    Free,
    Placed(Place),
    Waits(Waiting),
}
