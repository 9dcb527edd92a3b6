//! A hatch: the one thing that a sandboxed program may ask of its host.
//!
//! A guest has no network and sees no file of the host. What it needs from there it gets through a
//! hatch: a socket in its own file system, behind which the host serves exactly what it chose to.
//! This crate has the contract, [`Hatch`], which needs no dependency, and with the feature `grpc`
//! the hatch that most want, [`GrpcHatch`]. It does not make sockets and does not know sandboxes:
//! the `postern` crate listens, puts the socket into the guest, and drops the [`Serving`] when the
//! run has ended.

mod contract;
#[cfg(feature = "grpc")]
mod grpc;
mod name;
mod run;
mod serving;

pub use contract::Hatch;
#[cfg(feature = "grpc")]
pub use grpc::{
    GrpcHatch, GrpcHatchBuilder, GrpcHatchError, HatchGroup, HatchService, MethodFault, RunContext,
};
pub use name::{HatchName, NameError};
pub use run::RunId;
pub use serving::Serving;
