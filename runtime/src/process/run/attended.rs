//! What a run is to its sandbox besides itself: its place under the ceiling and what is told of it.

use super::Run;
use crate::error::Error;
use crate::result::ProcResult;
use crate::telemetry::Attendance;

impl Run {
    /// Keeps its place, and is told of, from now on.
    pub(crate) fn attend(&mut self, attendance: Attendance) {
        self.attendance = Some(attendance);
    }

    /// Everything of it is gone: its place is another's.
    pub(super) fn give_place(&mut self) {
        if let Some(attendance) = &mut self.attendance {
            (attendance.place, attendance.load) = (None, None);
        }
    }

    /// What the run came to, once a turn has said that it is done; it is told of.
    pub(crate) fn conclude(&mut self) -> Result<ProcResult, Error> {
        let mut outcome = self.finish();
        if let Some(Attendance { chronicle, .. }) = &mut self.attendance {
            if let Ok(result) = &mut outcome {
                result.usage.queued = chronicle.queued;
            }
            chronicle.tell(outcome.as_ref());
        }
        outcome
    }
}
