//! Why postern itself failed, in words and as facts; a program that ends badly is not one.

use std::io;
use std::path::{Path, PathBuf};

use postern::error::{Cause, CommandError, LaunchError, PythonError, Refusal};
use postern::profile::ProfileFileError;
use serde::Serialize;

use crate::say::Line;

/// Our own failure, as `env(1)`, `timeout(1)` and `docker run` have it.
pub(crate) const OWN_FAILURE: u8 = 125;
/// As a shell has it.
const NOT_FOUND: u8 = 127;
/// 128 and `SIGPIPE`, as for any program in a pipe.
const PIPE_CLOSED: u8 = 141;

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The words of the command line do not fit together; it says how.
    Usage(String),
    /// The library refused or failed.
    Sandbox(postern::Error),
    /// A profile file, or a profile that cannot be written as one.
    Profile(Box<ProfileFileError>),
    /// `--set` with what no profile can hold.
    Setting { key: String, source: Box<ProfileFileError> },
    /// A file or directory that an option names.
    File { what: &'static str, path: PathBuf, source: io::Error },
    /// Source code that is no file of a size that can be taken.
    Source { path: PathBuf, fact: String, fix: &'static str },
    /// A stream of ours.
    Stream { what: &'static str, source: io::Error },
    /// The program of a verb is not there, or cannot be started.
    Program { path: PathBuf, looked: Option<PathBuf>, source: io::Error },
    /// A signal asked for the end before the run had begun.
    Interrupted { signal: i32 },
}

impl From<postern::Error> for Failure {
    fn from(error: postern::Error) -> Failure {
        Failure::Sandbox(error)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Sandbox(refusal.into())
    }
}

impl From<ProfileFileError> for Failure {
    fn from(error: ProfileFileError) -> Failure {
        Failure::Profile(Box::new(error))
    }
}

/// A failure as JSON; what is not known of it has no key.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Facts {
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errno: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<CauseFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Debug, Serialize)]
struct CauseFacts {
    name: &'static str,
    text: &'static str,
}

impl Failure {
    /// The exit status.
    pub(crate) fn code(&self) -> u8 {
        if let Failure::Interrupted { signal } = self {
            return u8::try_from(128 + signal).unwrap_or(OWN_FAILURE);
        }
        if self.is_closed_pipe() {
            return PIPE_CLOSED;
        }
        let is_python_missing = matches!(
            self,
            Failure::Sandbox(postern::Error::Command(CommandError::Python(
                PythonError::Missing { .. }
            )))
        );
        // As for a program that the guest's exec does not find.
        if is_python_missing { NOT_FOUND } else { OWN_FAILURE }
    }

    /// The reader of our stdout has seen what it wanted.
    fn is_closed_pipe(&self) -> bool {
        matches!(self, Failure::Stream { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// For people, who know of a signal that they sent and of a pipe that they closed.
    pub(crate) fn lines(&self) -> Vec<Line> {
        if matches!(self, Failure::Interrupted { .. }) || self.is_closed_pipe() {
            return Vec::new();
        }
        let facts = self.facts();
        let cause = facts.cause.map(|cause| Line::Cause(cause.text.to_owned()));
        let fix = facts.fix.map(Line::Fix);
        std::iter::once(Line::Failure(facts.message)).chain(cause).chain(fix).collect()
    }

    /// For programs.
    pub(crate) fn facts(&self) -> Facts {
        let plain = |kind, message| Facts { kind, message, ..Facts::default() };
        match self {
            Failure::Usage(message) => plain("usage", message.clone()),
            Failure::Sandbox(error) => sandbox(error),
            Failure::Profile(error) => profile(error),
            Failure::Setting { key, source } => {
                let facts = profile(source);
                Facts { message: format!("--set {key}: {}", facts.message), ..facts }
            }
            Failure::File { what, path, source } => {
                let message = format!("cannot {what} {}: {source}", path.display());
                let object = Some(path.display().to_string());
                Facts { object, errno: source.raw_os_error(), ..plain("file", message) }
            }
            Failure::Source { path, fact, fix } => {
                let object = Some(path.display().to_string());
                let message = format!("{}: {fact}", path.display());
                Facts { object, fix: Some((*fix).to_owned()), ..plain("source", message) }
            }
            Failure::Program { path, looked, source } => {
                program(path, looked.as_deref(), source, plain("program", String::new()))
            }
            Failure::Interrupted { signal } => {
                plain("interrupted", format!("signal {signal} came before the run had begun"))
            }
            Failure::Stream { what, source } => {
                let message = format!("cannot {what}: {source}");
                Facts { errno: source.raw_os_error(), ..plain("stream", message) }
            }
        }
    }
}

/// Where it was looked for, when it was not there.
fn program(path: &Path, looked: Option<&Path>, source: &io::Error, plain: Facts) -> Facts {
    let errno = source.raw_os_error();
    let message = match looked.filter(|_| source.kind() == io::ErrorKind::NotFound) {
        Some(beside) => {
            format!("no {} in {}, nor in PATH", path.display(), beside.display())
        }
        None => format!("cannot start {}: {source}", path.display()),
    };
    let fix = "cargo install --path demo puts it beside postern; without an installation: cargo run \
               --release -p postern-demo";
    Facts { message, errno, fix: Some(fix.to_owned()), ..plain }
}

fn sandbox(error: &postern::Error) -> Facts {
    let message = error.to_string();
    let plain = |kind| Facts { kind, message: message.clone(), ..Facts::default() };
    match error {
        postern::Error::Refused(refusal) => refused(refusal),
        postern::Error::Probe(_) => plain("probe"),
        postern::Error::Command(error) => Facts { fix: script_fix(error), ..plain("command") },
        postern::Error::Launch(error) => launch(error, plain("launch")),
        postern::Error::Unconfined(_) => plain("unconfined"),
        postern::Error::Hatches(_) => plain("hatches"),
        postern::Error::Busy(_) => plain("busy"),
        // The library may come to know others.
        _ => plain("other"),
    }
}

/// A program in a zip file is the one kind of source with NUL bytes that people have.
fn script_fix(error: &CommandError) -> Option<String> {
    let words = "a zip application is not source code; show it to the guest with --ro-bind and \
                 start it with `postern run -- python3 FILE`";
    matches!(error, CommandError::NulInScript { .. }).then(|| words.to_owned())
}

/// The fact and the advice each on its own, where there is advice.
fn refused(refusal: &Refusal) -> Facts {
    let (whole, rule) = (refusal.to_string(), refusal.rule());
    let mark = format!(" [{rule}]");
    let words = whole.strip_suffix(&mark).unwrap_or(&whole);
    let (fact, advice) = match words.rsplit_once("; ") {
        Some((fact, advice)) => (fact, Some(advice.to_owned())),
        None => (words, None),
    };
    let fix = advice.map(|advice| match matches!(refusal, Refusal::WorkspaceNotWritable { .. }) {
        true => format!("{advice} (--workspace-access shared), which lets every local user write"),
        false => advice,
    });
    Facts {
        kind: "refused",
        message: format!("{fact}{mark}"),
        field: Some(refusal.field().to_string()),
        rule: Some(rule),
        fix,
        ..Facts::default()
    }
}

/// `cause` and `fix` get lines of their own, and so leave the sentence.
#[expect(clippy::wildcard_enum_match_arm, reason = "of the others the sentence says it all")]
fn launch(error: &LaunchError, plain: Facts) -> Facts {
    let with = |cause: &Option<Cause>, facts: Facts| match cause {
        None => facts,
        Some(cause) => {
            let end = format!("; {cause}");
            let message = facts.message.strip_suffix(&end).unwrap_or(&facts.message).to_owned();
            let named = CauseFacts { name: cause.name, text: cause.text };
            Facts { message, cause: Some(named), fix: Some(cause.fix.to_owned()), ..facts }
        }
    };
    match error {
        LaunchError::Step(failure) => {
            let object = Some(failure.object.clone()).filter(|object| !object.is_empty());
            let facts = Facts {
                phase: Some(failure.phase.to_string()),
                step: Some(failure.step.what()),
                call: Some(failure.step.call()),
                object,
                errno: Some(failure.errno()),
                ..plain
            };
            with(&failure.cause, facts)
        }
        LaunchError::Image { cause, .. } => with(cause, plain),
        LaunchError::Prepare { object, source, .. } => {
            let object = Some(object.display().to_string()).filter(|object| !object.is_empty());
            with(&error.cause(), Facts { object, errno: source.raw_os_error(), ..plain })
        }
        _ => plain,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all others are a fact and advice")]
fn profile(error: &ProfileFileError) -> Facts {
    match error {
        ProfileFileError::Refused { place, source } => {
            let facts = refused(source);
            Facts { message: format!("{place}{}", facts.message), ..facts }
        }
        // A parser's words are its own.
        ProfileFileError::Toml { .. } | ProfileFileError::Json { .. } => {
            Facts { kind: "profile", message: error.to_string(), ..Facts::default() }
        }
        _ => {
            let whole = error.to_string();
            let (fact, advice) = match whole.split_once("; ") {
                Some((fact, advice)) => (fact.to_owned(), Some(advice.to_owned())),
                None => (whole, None),
            };
            Facts { kind: "profile", message: fact, fix: advice, ..Facts::default() }
        }
    }
}
