//! What can go wrong on the way from a level to a program; running a program has its own
//! [`Fault`](crate::Fault).

use core::fmt;

use crate::arch::Arch;
use crate::program::Program;

/// Why there is no filter program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// This build runs where the crate has no reviewed table of system calls.
    UnsupportedTarget {
        /// The operating system, as [`std::env::consts::OS`] names it.
        os: &'static str,
        /// The architecture, as [`std::env::consts::ARCH`] names it.
        arch: &'static str,
    },
    /// A rule names a call that the architecture's table does not have.
    UnknownCall {
        /// The name in the rule.
        call: &'static str,
        /// The architecture whose table was searched.
        arch: Arch,
    },
    /// The program would be longer than [`Program::MAX_LEN`], the kernel's limit.
    ProgramTooLong,
    /// The bytes are not a whole number of instructions between 1 and [`Program::MAX_LEN`].
    TornProgram {
        /// How many bytes were given.
        bytes: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnsupportedTarget { os, arch } => {
                write!(f, "no system call table for {arch} on {os}")
            }
            Self::UnknownCall { call, arch } => write!(f, "{arch} has no system call {call}"),
            Self::ProgramTooLong => {
                write!(f, "the filter needs more than {} instructions", Program::MAX_LEN)
            }
            Self::TornProgram { bytes } => {
                write!(f, "{bytes} bytes are not 1 to {} instructions of 8 bytes", Program::MAX_LEN)
            }
        }
    }
}

impl std::error::Error for Error {}
