//! A launch that failed, as facts and as texts to paste; looks at nothing.

use std::path::Path;

use serde::Serialize;

use crate::error::{Cause, Error, Fix, LaunchError, StepFailure};

/// Why nothing could be launched, or what was launched was not as planned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Failure {
    /// The error as one sentence, as a launch would print it.
    pub error: String,
    /// What could not be done: the step of a launch; `None` where no step is to blame.
    pub step: Option<&'static str>,
    /// The system call of that step.
    pub call: Option<&'static str>,
    /// What it was about: a path, a limit, a field of the profile.
    pub object: Option<String>,
    /// What the kernel said.
    pub errno: Option<i32>,
    /// The name of the likely cause, or of the rule that refused the profile.
    pub cause: Option<&'static str>,
    /// What is the matter, where a cause is known.
    pub why: Option<&'static str>,
    /// What to do, in one sentence, where a cause is known.
    pub fix: Option<&'static str>,
    /// What to paste. Each is one way, in the place it is for.
    pub fixes: Vec<Fix>,
}

impl Failure {
    pub(super) fn new(error: &Error, executable: &Path) -> Failure {
        let failure = Failure { error: error.to_string(), ..Failure::default() };
        match error {
            Error::Refused(refusal) => Failure {
                object: Some(refusal.field().to_string()),
                cause: Some(refusal.rule()),
                fixes: refusal.fixes(),
                ..failure
            },
            Error::Launch(LaunchError::Step(step)) => failure.at(step, executable),
            Error::Launch(LaunchError::Image { attempts, cause }) => Failure {
                step: Some("execute the launcher"),
                call: Some("execveat"),
                errno: attempts.iter().find_map(|attempt| attempt.1.raw_os_error()),
                ..failure
            }
            .because(cause.as_ref(), executable),
            Error::Launch(LaunchError::Prepare { what, object, source }) => Failure {
                step: Some(what),
                object: Some(object.display().to_string()).filter(|object| !object.is_empty()),
                errno: source.raw_os_error(),
                ..failure
            },
            Error::Launch(
                LaunchError::NoFreeId { .. }
                | LaunchError::Filter(_)
                | LaunchError::Deadline { .. }
                | LaunchError::Unreaped { .. }
                | LaunchError::LauncherLost { .. }
                | LaunchError::Forked
                | LaunchError::WorkspaceLost,
            )
            | Error::Probe(_)
            | Error::Command(_)
            | Error::Unconfined(_) => failure,
        }
    }

    fn at(self, step: &StepFailure, executable: &Path) -> Failure {
        let failure = Failure {
            step: Some(step.step.what()),
            call: Some(step.step.call()),
            object: Some(step.object.clone()).filter(|object| !object.is_empty()),
            errno: Some(step.errno()),
            ..self
        };
        failure.because(step.cause.as_ref(), executable)
    }

    fn because(self, cause: Option<&Cause>, executable: &Path) -> Failure {
        Failure {
            cause: cause.map(|cause| cause.name),
            why: cause.map(|cause| cause.text),
            fix: cause.map(|cause| cause.fix),
            fixes: cause.map(|cause| cause.fixes(executable)).unwrap_or_default(),
            ..self
        }
    }
}
