//! The system call filter: policies as data, an assembler and a simulator; it makes no system call
//! and installs nothing.
//!
//! A [`Policy`] is a table of [`Rule`]s by call name, each with the reason it exists, under
//! three [`Guards`] that hold whatever the table says: calls of another ABI, x32 calls, and
//! numbers nobody has reviewed. [`Policy::assemble`] turns it into a [`Program`], the bytes that
//! `seccomp(2)` takes; [`Policy::evaluate`] answers from the table itself and [`simulate()`] runs the
//! bytes, so that the two can be compared.
//!
//! ```
//! use postern_seccomp::{Arch, Level, program};
//!
//! let filter = program(Level::Default, Arch::X86_64)?.ok_or("no filter")?;
//! assert_eq!(filter.as_bytes().len(), filter.len() * 8);
//! assert!(program(Level::Off, Arch::X86_64)?.is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`UserPolicy`] is somebody's own, in the JSON of the crate `seccompiler`, to be installed
//! beside a level's; it can only tighten.
//!
//! The rest of the sandbox must hold without the filter: a default-allow list is the second wall
//! behind namespaces and dropped capabilities, and it says nothing about memory that a pointer
//! argument names.

mod action;
mod arch;
mod assemble;
mod call;
mod condition;
mod error;
mod level;
mod policies;
mod policy;
mod program;
mod simulate;
mod table;
mod user;

pub use action::{Action, Errno};
pub use arch::Arch;
pub use call::Call;
pub use condition::{Argument, Condition, Order, Test};
pub use error::Error;
pub use level::{Level, UnknownLevel};
pub use policy::{Because, Guard, Guards, Policy, Rule, Verdict};
pub use program::{Digest, Instruction, Program};
pub use simulate::{Fault, simulate};
pub use user::{UserBecause, UserPolicy, UserPolicyError, UserRule, UserVerdict};

/// The filter program of `level` for `arch`, or `None` for [`Level::Off`].
///
/// Equal arguments give equal bytes.
///
/// # Errors
///
/// [`Error::UnknownCall`] or [`Error::ProgramTooLong`] if the policy itself is wrong, which the
/// tests of this crate rule out for every level and architecture it has.
pub fn program(level: Level, arch: Arch) -> Result<Option<Program>, Error> {
    level.policy(arch).map(|policy| policy.assemble()).transpose()
}
