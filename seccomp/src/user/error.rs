//! Why a user's policy is refused, one variant a rule; the rules themselves are in `super`.

use core::fmt;

use super::UserPolicy;
use crate::error::Error;
use crate::level::Level;
use crate::program::Program;

/// A rule that a [`UserPolicy`] breaks; [`UserPolicyError::rule`] names it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields of a variant are what its sentence names")]
pub enum UserPolicyError {
    /// The text is longer than [`UserPolicy::BYTES_MAX`].
    Size { bytes: usize },
    /// Not JSON of this shape: a slip, a missing or an unknown key, a key that comes twice.
    Syntax { message: String },
    /// Not exactly one filter.
    Filters { names: Vec<String> },
    /// An action that is not one of those that refuse or allow.
    Action { field: &'static str, found: String },
    /// Nothing is refused: both actions let calls through.
    RefusesNothing,
    /// Nothing is allowed: neither action lets calls through.
    RefusesAll,
    /// No call of this architecture.
    UnknownCall { index: usize, call: String, nearest: Vec<&'static str> },
    /// `args` without a condition.
    NoArguments { index: usize, call: &'static str },
    /// An argument that no call has.
    ArgumentIndex { index: usize, call: &'static str, argument: u64 },
    /// A `dword` that is compared with more than 32 bits.
    ArgumentValue { index: usize, call: &'static str, value: u64 },
    /// One rule without `args`, and another one, for the same call.
    Ambiguous { call: &'static str },
    /// The guest's program could not be started.
    RefusesExec,
    /// Calls are allowed that the level refuses.
    Loosens { level: Level, calls: Vec<&'static str> },
    /// No program the kernel would take.
    Program(Error),
}

impl UserPolicyError {
    /// The name of the rule, which never changes.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::Size { .. } => "policy-size",
            Self::Syntax { .. } => "policy-syntax",
            Self::Filters { .. } => "policy-filters",
            Self::Action { .. } => "policy-action",
            Self::RefusesNothing => "policy-refuses-nothing",
            Self::RefusesAll => "policy-refuses-all",
            Self::UnknownCall { .. } => "policy-unknown-call",
            Self::NoArguments { .. } => "policy-no-arguments",
            Self::ArgumentIndex { .. } => "policy-argument-index",
            Self::ArgumentValue { .. } => "policy-argument-value",
            Self::Ambiguous { .. } => "policy-ambiguous",
            Self::RefusesExec => "policy-refuses-exec",
            Self::Loosens { .. } => "policy-loosens",
            Self::Program(Error::ProgramTooLong) => "policy-too-long",
            Self::Program(_) => "policy-architecture",
        }
    }
}

impl fmt::Display for UserPolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { bytes } => {
                write!(f, "is {bytes} bytes long; at most {} are read", UserPolicy::BYTES_MAX)
            }
            Self::Syntax { message } => write!(f, "is no policy in JSON: {message}"),
            Self::Filters { names } => write!(
                f,
                "holds {} filters ({}); give exactly one, under any name",
                names.len(),
                names.join(", ")
            ),
            Self::Action { field, found } => write!(
                f,
                "{field} is {found}; the actions are \"allow\", {{\"errno\": 0 to 4095}}, \
                 \"trap\", \"kill_thread\" and \"kill_process\": one that only logs, or that asks \
                 a tracer, refuses nothing"
            ),
            Self::RefusesNothing => f.write_str(
                "lets every call through by both actions; a policy can only tighten: make \
                 match_action, for a list of refused calls, or mismatch_action, for a list of \
                 allowed ones, a refusal",
            ),
            Self::RefusesAll => f.write_str(
                "refuses calls by both actions, so that nothing could run; make one of them \
                 \"allow\"",
            ),
            Self::UnknownCall { index, call, nearest } => {
                write!(f, "filter[{index}]: no system call {call:?}")?;
                match nearest.as_slice() {
                    [] => Ok(()),
                    near => write!(f, "; did you mean {}?", near.join(", ")),
                }
            }
            Self::NoArguments { index, call } => write!(
                f,
                "filter[{index}]: {call} has args without a condition; leave args out for every \
                 call of it"
            ),
            Self::ArgumentIndex { index, call, argument } => write!(
                f,
                "filter[{index}]: {call} is asked for argument {argument}; they are 0 to 5"
            ),
            Self::ArgumentValue { index, call, value } => write!(
                f,
                "filter[{index}]: {call} compares a dword with {value:#x}, which has more than 32 \
                 bits; use a qword"
            ),
            Self::Ambiguous { call } => write!(
                f,
                "has one rule for {call} without args and another one for {call}; the first says \
                 it all: keep one of them"
            ),
            Self::RefusesExec => f.write_str(
                "refuses execve, without which no program can be started; it is installed just \
                 before that call",
            ),
            Self::Loosens { level, calls } => write!(
                f,
                "allows {}, which level {level} refuses with EPERM; a policy can only tighten: \
                 leave them out, or choose another level",
                calls.join(", ")
            ),
            Self::Program(Error::ProgramTooLong) => {
                write!(f, "needs more than {} instructions, the kernel's limit", Program::MAX_LEN)
            }
            Self::Program(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for UserPolicyError {}
