//! What the sandbox promises, checked by a program that runs inside and by the host's own kernel.
//! Rows hold on three kinds of host: root, a container's root, and a user without privileges.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test's own helpers fail the test"
)]

#[path = "promises/container.rs"]
mod container;
#[path = "promises/fixture.rs"]
mod fixture;
#[path = "promises/gate.rs"]
mod gate;
#[path = "promises/identity.rs"]
mod identity;
#[path = "promises/kinds.rs"]
mod kinds;
#[path = "promises/landlock.rs"]
mod landlock;
#[path = "promises/network.rs"]
mod network;
#[path = "promises/ownership.rs"]
mod ownership;
#[path = "promises/process.rs"]
mod process;
#[path = "promises/programs.rs"]
mod programs;
#[path = "promises/python.rs"]
mod python;
#[path = "promises/quotas.rs"]
mod quotas;
#[path = "promises/refused.rs"]
mod refused;
#[path = "promises/seccomp.rs"]
mod seccomp;
#[path = "promises/streams.rs"]
mod streams;
#[path = "promises/world.rs"]
mod world;

use postern::{Sandbox, SandboxProfile};
use postern_tests::install;

/// A sandbox of the default profile that holds the probe.
fn default_sandbox() -> Sandbox {
    sandbox(SandboxProfile::default())
}

/// A sandbox that holds the probe in its owned workspace.
fn sandbox(profile: SandboxProfile) -> Sandbox {
    let sandbox = Sandbox::builder(profile).build().unwrap_or_else(|error| panic!("{error}"));
    install(&sandbox);
    sandbox
}
