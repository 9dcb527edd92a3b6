//! Runs as an embedding service makes them: source code, streams, endings, and the async twins.
//!
//! What holds for both ways of waiting is written once and tried by each. `POSTERN_LONG=1` runs the
//! long variants; `--nocapture` shows the figures.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test's own helpers fail the test"
)]

#[path = "runs/address_space.rs"]
mod address_space;
#[path = "runs/attack.rs"]
mod attack;
#[path = "runs/cancelled.rs"]
mod cancelled;
#[path = "runs/caps.rs"]
mod caps;
#[path = "runs/ceiling.rs"]
mod ceiling;
#[path = "runs/copied.rs"]
mod copied;
#[path = "runs/ending.rs"]
mod ending;
#[path = "runs/input.rs"]
mod input;
#[path = "runs/many.rs"]
mod many;
#[path = "runs/memory.rs"]
mod memory;
#[path = "runs/output.rs"]
mod output;
#[path = "runs/programs.rs"]
mod programs;
#[path = "runs/python.rs"]
mod python;
#[path = "runs/runtimes.rs"]
mod runtimes;
#[path = "runs/shells.rs"]
mod shells;
#[path = "runs/terminal.rs"]
mod terminal;
#[path = "runs/ways.rs"]
mod ways;

use std::sync::Once;
use std::time::Duration;

use postern::{Sandbox, SandboxProfile};
use postern_tests::Watch;

/// More than anything here takes on a busy machine: what is still there then hangs.
const HANG: Duration = Duration::from_secs(60);

/// Watches for what a test leaves. A first runtime makes what tokio keeps for ever; it is gone
/// before anybody watches.
fn begin() -> Watch {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| drop(ways::Way::CurrentThread.runtime()));
    Watch::begin()
}

fn sandbox() -> Sandbox {
    sandbox_of(SandboxProfile::default())
}

fn sandbox_of(profile: SandboxProfile) -> Sandbox {
    Sandbox::builder(profile).build().unwrap_or_else(|error| panic!("{error}"))
}

/// The first in the long variant, the second in the sample.
fn long_or<T>(long: T, sample: T) -> T {
    if std::env::var_os("POSTERN_LONG").is_some() { long } else { sample }
}

/// Shows a measured value.
#[expect(clippy::print_stdout, reason = "figures belong into a test's output")]
fn figure(text: impl std::fmt::Display) {
    println!("{text}");
}
