//! A launch that failed, as facts and as texts to paste; looks at nothing.

use std::path::Path;

use serde::Serialize;

use crate::error::{Cause, Error, Fix, LaunchError, StepFailure};
use crate::launch::ImageSource;

/// Why nothing could be launched, or what was launched was not as planned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Failure {
    /// The error as one sentence, without cause and fix, which have fields of their own.
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
            Error::Launch(error) => failure.launch(error, executable),
            Error::Unconfined(_) => failure.known(
                "unconfined",
                "it launches, and what stands is not what the profile promises",
                "see the findings that failed",
            ),
            Error::Probe(_) | Error::Command(_) | Error::Hatches(_) | Error::Busy(_) => failure,
        }
    }

    fn launch(self, error: &LaunchError, executable: &Path) -> Failure {
        match error {
            LaunchError::Step(step) => self.at(step, executable),
            LaunchError::Image { attempts, cause } => Failure {
                step: Some("execute the launcher"),
                call: Some("execveat"),
                errno: attempts.iter().find_map(|attempt| attempt.1.raw_os_error()),
                error: no_image(attempts),
                ..self
            }
            .because(cause.as_ref(), executable),
            LaunchError::Prepare { what, object, source } => Failure {
                step: Some(what),
                object: Some(object.display().to_string()).filter(|object| !object.is_empty()),
                errno: source.raw_os_error(),
                ..self
            }
            .because(error.cause().as_ref(), executable),
            LaunchError::MapTool { .. } => self.known(
                "map-tool",
                "the set-uid tool that writes subordinate ids into a map did not do it",
                "make it work for this user (newuidmap(1)), or name the service's own ids as \
                 host_uid and host_gid, which the guest then shares",
            ),
            LaunchError::NoFreeId { .. } => self.known(
                "no-free-id",
                "every id for sandboxes is leased or has processes",
                "end sandboxes that are no longer needed",
            ),
            LaunchError::Deadline { .. } => self.known(
                "deadline",
                "the launcher did not answer in time",
                "look for a mount that does not answer among the paths of the profile",
            ),
            LaunchError::LauncherLost { .. } => self.known(
                "launcher-lost",
                "the launcher was killed from outside",
                "look for what kills it: the kernel's out-of-memory killer, a supervisor",
            ),
            LaunchError::Filter(_) | LaunchError::Forked | LaunchError::WorkspaceLost => self,
        }
    }

    fn at(self, step: &StepFailure, executable: &Path) -> Failure {
        let without_cause = StepFailure {
            object: step.object.clone(),
            source: std::io::Error::from_raw_os_error(step.errno()),
            cause: None,
            ..*step
        };
        let failure = Failure {
            error: without_cause.to_string(),
            step: Some(step.step.what()),
            call: Some(step.step.call()),
            object: Some(step.object.clone()).filter(|object| !object.is_empty()),
            errno: Some(step.errno()),
            ..self
        };
        failure.because(step.cause.as_ref(), executable)
    }

    /// A cause of the table.
    fn because(self, cause: Option<&Cause>, executable: &Path) -> Failure {
        let Some(cause) = cause else { return self };
        let fixes = cause.fixes(executable);
        Failure { fixes, ..self.known(cause.name, cause.text, cause.fix) }
    }

    fn known(self, cause: &'static str, why: &'static str, fix: &'static str) -> Failure {
        Failure { cause: Some(cause), why: Some(why), fix: Some(fix), ..self }
    }
}

fn no_image(attempts: &[(ImageSource, std::io::Error)]) -> String {
    let attempts = attempts.iter().map(|(source, error)| format!("; {}: {error}", source.name()));
    let told: String = attempts.collect();
    format!("cannot start the launcher in any way{told}")
}
