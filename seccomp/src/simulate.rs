//! An interpreter for filter programs, for tests and fuzzing; a program that the kernel would
//! refuse to load gets a [`Fault`] only if the faulty instruction is reached.
//!
//! It knows the instructions that filter compilers emit, which are also those that the kernel's
//! own emulation for its per-call cache knows.

use core::fmt;

use crate::call::Call;
use crate::program::{Instruction, Program};

/// Why a program has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// An operation outside the known set.
    UnknownInstruction {
        /// The index of the instruction.
        at: usize,
        /// Its operation.
        code: u16,
    },
    /// A load that is not an aligned word inside `struct seccomp_data`.
    BadLoad {
        /// The index of the instruction.
        at: usize,
        /// The byte offset it asks for.
        offset: u32,
    },
    /// Control left the program.
    PastEnd {
        /// The index that has no instruction.
        at: usize,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownInstruction { at, code } => {
                write!(f, "instruction {at}: unknown operation {code:#04x}")
            }
            Self::BadLoad { at, offset } => write!(f, "instruction {at}: load at {offset}"),
            Self::PastEnd { at } => write!(f, "no instruction {at}"),
        }
    }
}

impl std::error::Error for Fault {}

/// Runs a program on a call and gives the `SECCOMP_RET_*` word it answers.
///
/// Ends for every program: jumps only go forward.
///
/// # Errors
///
/// A [`Fault`] where the program cannot go on.
pub fn simulate(program: &Program, call: &Call) -> Result<u32, Fault> {
    let mut at = 0;
    let mut accumulator = 0;
    loop {
        let Instruction { code, jt, jf, k } =
            program.instruction(at).ok_or(Fault::PastEnd { at })?;
        let choose = |test: bool| usize::from(if test { jt } else { jf });
        let skip = match code {
            Instruction::LOAD => {
                accumulator = call.word(k).ok_or(Fault::BadLoad { at, offset: k })?;
                0
            }
            Instruction::AND => {
                accumulator &= k;
                0
            }
            Instruction::JUMP => usize::try_from(k).unwrap_or(usize::MAX),
            Instruction::JEQ => choose(accumulator == k),
            Instruction::JGT => choose(accumulator > k),
            Instruction::JGE => choose(accumulator >= k),
            Instruction::JSET => choose(accumulator & k != 0),
            Instruction::RETURN => return Ok(k),
            _ => return Err(Fault::UnknownInstruction { at, code }),
        };
        at = at.saturating_add(1).saturating_add(skip);
    }
}
