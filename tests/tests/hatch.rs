//! Hatches from inside the sandbox: what stock clients get, what a guest cannot do to a socket, and
//! what is gone when the run is. The hatch's own limits are tested with the hatch.
//!
//! The clients are other people's programs, which `cargo xtask test` fetches.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's own helpers fail the test")]

#[path = "hatch/apart.rs"]
mod apart;
#[path = "hatch/clients.rs"]
mod clients;
#[path = "hatch/fixture.rs"]
mod fixture;
#[path = "hatch/lifetime.rs"]
mod lifetime;
#[path = "hatch/refused.rs"]
mod refused;
#[path = "hatch/service.rs"]
mod service;
#[path = "hatch/socket.rs"]
mod socket;
