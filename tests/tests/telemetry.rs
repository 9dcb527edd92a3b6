//! What the library tells of its runs: spans and events at their levels, and audit records.

#![expect(clippy::unwrap_used, reason = "a test's own helpers fail the test")]

#[path = "telemetry/audit.rs"]
mod audit;
#[path = "telemetry/events.rs"]
mod events;
#[path = "telemetry/listener.rs"]
mod listener;
