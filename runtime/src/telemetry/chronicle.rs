//! What is told of one run from its request to its end: its span, and once, in its audit record, its
//! outcome. Whoever holds the run holds this; it ends no run and waits for none.

use std::ffi::CString;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use postern_hatch::RunId;
use tracing::Span;

use super::line::{self, How, Record, Used, Walls};
use super::text::Word;
use super::{Audit, SandboxId, events};
use crate::ceiling::Place;
use crate::command::Checked;
use crate::enforcement::Enforcement;
use crate::error::Error;
use crate::result::ProcResult;
use crate::sandbox::{Attest, Load};

/// Who tells of a sandbox; dropped with it, which is told too.
#[derive(Debug)]
pub(crate) struct Teller {
    pub(crate) sandbox: SandboxId,
    host: u32,
    audit: Option<Audit>,
}

impl Teller {
    pub(crate) fn new(sandbox: SandboxId, audit: Option<Audit>) -> Teller {
        Teller { sandbox, host: std::process::id(), audit }
    }

    /// Begins to tell of a run. One that is only looked at runs no program, and has no record.
    pub(crate) fn begin(&self, run: RunId, command: &Checked, attest: Attest) -> Chronicle {
        let program = Word::of(command.arguments.first());
        let audit = self.audit.as_ref().filter(|_| attest != Attest::Only);
        let entry = |audit: &Audit| Entry {
            audit: audit.clone(),
            began: SystemTime::now(),
            arguments: command.arguments.clone(),
            hatches: command.hatches.len(),
        };
        Chronicle {
            host: self.host,
            sandbox: self.sandbox,
            run,
            span: events::run(self.sandbox, run, &program),
            queued: Duration::ZERO,
            entry: audit.map(entry).map(Box::new),
            is_told: false,
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        if self.host == std::process::id() {
            events::sandbox_ended(self.sandbox);
        }
    }
}

/// The audit record of a run that has not ended.
#[derive(Debug)]
struct Entry {
    audit: Audit,
    began: SystemTime,
    arguments: Vec<CString>,
    hatches: usize,
}

/// One run's.
#[derive(Debug)]
pub(crate) struct Chronicle {
    /// This process, when it began: a forked copy tells nothing.
    host: u32,
    sandbox: SandboxId,
    run: RunId,
    pub(crate) span: Span,
    /// How long it waited for its place.
    pub(crate) queued: Duration,
    entry: Option<Box<Entry>>,
    /// Its outcome was told.
    is_told: bool,
}

impl Chronicle {
    pub(crate) const fn run(&self) -> RunId {
        self.run
    }

    /// Tells the outcome; of two the first counts.
    pub(crate) fn tell(&mut self, outcome: Result<&ProcResult, &Error>) {
        if std::mem::replace(&mut self.is_told, true) {
            return;
        }
        match outcome {
            Ok(result) => events::run_ended(&self.span, result),
            Err(error) => events::run_failed(&self.span, error),
        }
        self.record(outcome.ok(), outcome.err());
    }

    /// Tells a failure to start, and gives back what came of it.
    pub(crate) fn told<T>(&mut self, started: Result<T, Error>) -> Result<T, Error> {
        started.inspect_err(|error| self.tell(Err(error)))
    }

    fn record(&mut self, result: Option<&ProcResult>, error: Option<&Error>) {
        let Some(entry) = self.entry.take() else { return };
        let (argv, argv_cut) = line::arguments(&entry.arguments);
        let ending = match (result, error) {
            (Some(result), _) => result.ending.into(),
            (None, Some(_)) => How::Failed,
            (None, None) => How::Dropped,
        };
        let line = line::line(&Record {
            version: 1,
            time: line::rfc3339(entry.began),
            host_pid: self.host,
            sandbox: self.sandbox.to_string(),
            run: self.run.to_string(),
            argv: &argv,
            argv_cut,
            hatches: entry.hatches,
            ending,
            returncode: result.map(ProcResult::returncode),
            timed_out: result.is_some_and(|result| result.timed_out),
            terminated: result.is_some_and(|result| result.terminated),
            truncated: result.is_some_and(|result| result.truncated),
            oom: result.and_then(|result| line::known(result.oom)),
            pids_limit: result.and_then(|result| line::known(result.pids_limit)),
            error: error.map(|error| line::error(&error.to_string())),
            queued_ms: line::milliseconds(self.queued),
            usage: result.map(used),
            enforcement: result.map(|result| walls(&result.enforcement)),
        });
        entry.audit.write(&line);
    }
}

impl Drop for Chronicle {
    fn drop(&mut self) {
        if !self.is_told && self.host == std::process::id() {
            events::run_dropped(&self.span);
            self.record(None, None);
        }
    }
}

fn used(result: &ProcResult) -> Used {
    let usage = &result.usage;
    Used {
        wall_ms: line::milliseconds(usage.wall),
        user_ms: line::milliseconds(usage.user),
        system_ms: line::milliseconds(usage.system),
        peak_memory_kib: usage.peak_memory_kib,
    }
}

fn walls(held: &Arc<Enforcement>) -> Walls {
    Walls {
        tier: line::tier(held.tier),
        kernel_uid: held.kernel_uid,
        shared_uid: held.shared_uid,
        seccomp: held.seccomp.to_string(),
        seccomp_digest: held.seccomp_digest.map(|digest| digest.to_string()),
        landlock_abi: held.landlock.abi(),
        warnings: held.warnings.iter().map(line::warning).collect(),
    }
}

/// What a run is to its sandbox: told of until its end, in its place until everything of it is gone.
#[derive(Debug)]
pub(crate) struct Attendance {
    pub(crate) chronicle: Chronicle,
    pub(crate) place: Option<Place>,
    /// Counts it as one of its launcher's.
    pub(crate) load: Option<Load>,
}
