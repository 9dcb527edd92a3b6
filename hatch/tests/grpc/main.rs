//! The gRPC hatch from outside: what clients of every kind get, and what hostile ones do not. No
//! sandbox takes part; a test of this package is a guest that connects to a socket.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test's own helpers fail the test, and its figures are printed"
)]

mod attacks;
mod building;
mod calls;
mod clients;
mod end;
mod host;
mod hostile;
mod http2;
mod limits;
mod mutations;
mod raw;
mod refused;
mod service;
mod support;
mod watch;
