//! PID 1 of a sandbox, and the raw system calls it and the launcher are made of.
//!
//! No allocator, no libc and no panic path: what runs between the spawn of the launcher and the
//! guest's exec is this crate and `postern-launcher`, and nothing else.
#![no_std]
#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::integer_division,
    clippy::string_slice
)]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("postern-init knows the system calls of Linux on x86_64 only; others are untested");

pub mod arch;
pub mod process;
pub mod record;
pub mod step;
pub mod supervise;
pub mod sys;
