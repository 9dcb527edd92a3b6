//! Every span and event of this crate, by name: `docs/telemetry.md` lists them, and a test compares.
//! What somebody else can cause over and over has a rate; what is a guest's is below INFO.

use std::io;
use std::time::Duration;

use postern_hatch::RunId;
use tracing::Span;

use super::text::Word;
use super::{Rate, SandboxId};
use crate::ceiling::Ceiling;
use crate::enforcement::Enforcement;
use crate::error::{Error, Violation};
use crate::launch::ImageSource;
use crate::plan::Warning;
use crate::result::ProcResult;

pub(crate) fn building(sandbox: SandboxId) -> Span {
    tracing::info_span!(target: "postern", "sandbox.build", %sandbox)
}

pub(crate) fn sandbox_built(sandbox: SandboxId, held: &Enforcement, took: Duration) {
    tracing::info!(
        name: "sandbox.built",
        target: "postern",
        %sandbox,
        tier = ?held.tier,
        kernel_uid = held.kernel_uid,
        seccomp = %held.seccomp,
        landlock = %held.landlock,
        launcher = held.launcher.name(),
        took_us = micros(took),
        "sandbox built"
    );
}

/// Once a sandbox, and seldom where a service builds one for each of its jobs.
pub(crate) fn sandbox_weaker(sandbox: SandboxId, warnings: &[Warning]) {
    static RATE: Rate = Rate::new();
    if warnings.is_empty() {
        return;
    }
    let Some(unlogged) = RATE.turn() else { return };
    for warning in warnings {
        tracing::warn!(
            name: "sandbox.weaker",
            target: "postern",
            %sandbox,
            %warning,
            unlogged,
            "the sandbox is weaker than by default"
        );
    }
}

pub(crate) fn sandbox_not_built(sandbox: SandboxId, error: &Error) {
    tracing::debug!(
        name: "sandbox.not_built",
        target: "postern",
        %sandbox,
        %error,
        "no sandbox was built"
    );
}

pub(crate) fn sandbox_ended(sandbox: SandboxId) {
    tracing::info!(name: "sandbox.ended", target: "postern", %sandbox, "sandbox ended");
}

/// A wall that is not as planned is never somebody else's fault.
pub(crate) fn unconfined(sandbox: SandboxId, violations: &[Violation]) {
    for violation in violations {
        tracing::error!(
            name: "sandbox.unconfined",
            target: "postern",
            %sandbox,
            %violation,
            "a wall is not as planned; no program was run"
        );
    }
}

pub(crate) fn launcher_started(sandbox: SandboxId, image: ImageSource, kernel_uid: u32) {
    tracing::debug!(
        name: "launcher.started",
        target: "postern",
        %sandbox,
        image = image.name(),
        kernel_uid,
        "launcher started"
    );
}

pub(crate) fn launcher_lost(sandbox: SandboxId) {
    static RATE: Rate = Rate::new();
    let Some(unlogged) = RATE.turn() else { return };
    tracing::warn!(
        name: "launcher.lost",
        target: "postern",
        %sandbox,
        unlogged,
        "a launcher was lost, and its runs with it; the next run starts another"
    );
}

pub(crate) fn audit_lost(error: &io::Error, lost: u64) {
    static RATE: Rate = Rate::new();
    let Some(unlogged) = RATE.turn() else { return };
    tracing::warn!(
        name: "audit.lost",
        target: "postern",
        %error,
        lost,
        unlogged,
        "an audit record could not be written"
    );
}

pub(crate) fn run(sandbox: SandboxId, run: RunId, program: &Word<'_>) -> Span {
    tracing::debug_span!(target: "postern", "run", %sandbox, %run, %program)
}

pub(crate) fn run_queued(span: &Span, ceiling: &Ceiling) {
    tracing::debug!(
        name: "run.queued",
        target: "postern",
        parent: span,
        runs_max = ceiling.runs_max(),
        waiting = ceiling.waiting(),
        "waits for a place under the ceiling"
    );
}

pub(crate) fn run_sending(span: &Span) {
    tracing::trace!(name: "run.sending", target: "postern", parent: span, "the run is prepared");
}

pub(crate) fn run_sent(span: &Span) {
    tracing::trace!(name: "run.sent", target: "postern", parent: span, "the launcher has it");
}

pub(crate) fn run_attested(span: &Span) {
    tracing::trace!(
        name: "run.attested",
        target: "postern",
        parent: span,
        "the walls of the first run are as planned"
    );
}

pub(crate) fn run_started(span: &Span, queued: Duration) {
    let queued_us = micros(queued);
    tracing::debug!(name: "run.started", target: "postern", parent: span, queued_us, "started");
}

pub(crate) fn run_ended(span: &Span, result: &ProcResult) {
    tracing::debug!(
        name: "run.ended",
        target: "postern",
        parent: span,
        ending = ?result.ending,
        returncode = result.returncode(),
        timed_out = result.timed_out,
        terminated = result.terminated,
        truncated = result.truncated,
        wall_us = micros(result.usage.wall),
        user_us = micros(result.usage.user),
        system_us = micros(result.usage.system),
        peak_memory_kib = result.usage.peak_memory_kib,
        "ended"
    );
}

pub(crate) fn run_failed(span: &Span, error: &Error) {
    tracing::debug!(name: "run.failed", target: "postern", parent: span, %error, "failed");
}

pub(crate) fn run_dropped(span: &Span) {
    tracing::debug!(
        name: "run.dropped",
        target: "postern",
        parent: span,
        "its handle was dropped, and it killed, before its end was learnt"
    );
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
