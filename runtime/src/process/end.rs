//! What is known of a run's end, as its records tell it; waits for nothing.

use std::time::Duration;

use postern_init::record::{Kind, Record};

use crate::error::{LaunchError, Phase};
use crate::launch;
use crate::plan::Plan;
use crate::result::{Ending, Usage};

/// How far a run's end has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Stage {
    #[default]
    Live,
    /// PID 1 is gone, and has told nothing yet, or not all is gone with it.
    InitOver,
    /// All of it is gone.
    Over,
    /// It was killed, not all of it is gone, and nobody waits any more.
    Unreaped,
}

impl Stage {
    /// Whether nothing more is waited for.
    pub(super) fn is_final(self) -> bool {
        matches!(self, Stage::Over | Stage::Unreaped)
    }
}

/// What is known of a run's end so far.
#[derive(Debug, Default)]
pub(super) struct End {
    pub(super) guest: Option<Ending>,
    pub(super) failure: Option<LaunchError>,
    pub(super) init_signal: Option<i32>,
    /// What PID 1 said when it began to wait for the host's inspection.
    pub(super) confined: Option<Record>,
    /// The time that was up before it had ended.
    pub(super) timed_out: Option<Duration>,
    pub(super) stage: Stage,
    pub(super) usage: Usage,
}

impl End {
    pub(super) fn learn(&mut self, plan: &Plan, record: &Record) {
        match record.kind {
            Kind::GuestEnded => {
                self.usage.set(record);
                self.guest = Some(match record.signal {
                    0 => Ending::Exited(record.code),
                    signal => Ending::Signaled(signal),
                });
            }
            Kind::ExecFailed => self.guest = Some(Ending::ExecFailed(record.errno)),
            Kind::Failed => self.failure = Some(launch::failure(plan, Phase::Run, record)),
            Kind::Reaped => {
                if self.guest.is_none() {
                    self.usage.set(record);
                }
                self.init_signal = (record.signal != 0).then_some(record.signal);
                // PID 1 left by itself without a word: it had lost its host, or its line.
                if self.guest.is_none() && self.init_signal.is_none() && self.failure.is_none() {
                    self.failure = Some(LaunchError::LauncherLost { during: Phase::Run });
                }
            }
            Kind::Confined => self.confined = Some(*record),
            Kind::Ready | Kind::Started | Kind::Terminal => {}
        }
    }

    /// How the run ended, once it has.
    pub(super) fn ending(&self) -> Ending {
        match (self.guest, self.init_signal) {
            (Some(ending), _) => ending,
            (None, Some(signal)) => Ending::Killed(signal),
            (None, None) if self.stage == Stage::Unreaped => Ending::Unreaped,
            (None, None) => Ending::LauncherLost,
        }
    }

    /// PID 1 tells the guest's end after it has ended and reaped all the rest. In a shared pid
    /// namespace it cannot, and the launcher's word is waited for.
    pub(super) fn is_told(&self, plan: &Plan) -> bool {
        plan.namespaces.pid && (self.guest.is_some() || self.failure.is_some())
    }
}
