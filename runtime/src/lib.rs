//! postern runs untrusted programs in a Linux sandbox that it builds itself with system calls.
//!
//! ```text
//!  profile + host ──▶ plan ──▶ launcher ──▶ PID 1 ──▶ program
//!  words   facts      pure     static image, one clone per run
//! ```
//!
//! A [`SandboxProfile`] says what is wanted; [`plan::resolve`] turns it into a [`plan::Plan`] that
//! can be printed and tested; a [`Sandbox`] carries it out and runs commands in it.

mod attest;
mod ceiling;
mod cgroup;
pub mod check;
mod command;
mod enforcement;
pub mod error;
#[cfg(doctest)]
mod guide;
mod hatches;
pub mod host;
mod launch;
pub mod plan;
mod process;
pub mod profile;
mod quota;
mod result;
mod run_directory;
mod sandbox;
mod script;
mod sys;
mod telemetry;
mod verify;
pub mod walls;
mod workspace;

pub use attest::{
    Attestation, AttestedCapabilities, AttestedDescriptor, AttestedMount, AttestedNamespace,
    AttestedRlimit,
};
pub use ceiling::Ceiling;
pub use cgroup::{CgroupGap, CgroupSupport, CgroupUsage, Controller, LimitHit};
pub use command::{Command, OUTPUT_BYTES_MAX, OutputCap, Stdin, WindowSize};
pub use enforcement::{Enforcement, LandlockUse};
pub use error::Error;
pub use launch::{ImageSource, LAUNCHER_VARIABLE, RUNTIME_DIRECTORY_VARIABLE};
/// What a guest may ask of its host: the contract, and with the feature `grpc` typed methods.
pub use postern_hatch as hatch;
/// The system-call filter: levels, policies of your own, and what they answer to a call.
pub use postern_seccomp as seccomp;
#[cfg(feature = "tokio")]
pub use process::tokio::AsyncProcess;
pub use process::{
    Chunk, LINE_BYTES_MAX, Line, Lines, Output, OutputStream, Process, ProcessHandle,
};
pub use profile::SandboxProfile;
pub use quota::{Quota, QuotaScope};
pub use result::{Ending, ProcResult, Usage};
/// The signals that [`Process::signal`] takes.
pub use rustix::process::Signal;
pub use sandbox::{LAUNCH_TIMEOUT, Sandbox, SandboxBuilder};
pub use telemetry::{AUDIT_LINE_BYTES_MAX, Audit, SandboxId};
pub use verify::available;
pub use workspace::WorkspaceDir;
