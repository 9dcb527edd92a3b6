//! Tests on one argument register; none of them can look behind a pointer.

use core::fmt;

/// Which argument register a condition reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the variants are the six registers in order")]
pub enum Argument {
    A0,
    A1,
    A2,
    A3,
    A4,
    A5,
}

impl Argument {
    /// The position among the arguments, from 0.
    #[must_use]
    pub const fn index(self) -> u8 {
        match self {
            Self::A0 => 0,
            Self::A1 => 1,
            Self::A2 => 2,
            Self::A3 => 3,
            Self::A4 => 4,
            Self::A5 => 5,
        }
    }
}

/// A test on an argument.
///
/// The integer tests look at the low 32 bits, because the kernel reads these arguments as `int`,
/// `unsigned int` or the low half of a flag word: compared in full, a value with a high bit set
/// would pass the filter and still mean the same to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Test {
    /// The low 32 bits equal this.
    Is(u32),
    /// The low 32 bits do not equal this.
    IsNot(u32),
    /// At least one of these bits is set in the low 32 bits.
    HasAny(u32),
    /// Any of the 64 bits is set: a pointer that is not null.
    NotNull,
}

/// A [`Test`] on an [`Argument`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Condition {
    /// The register.
    pub argument: Argument,
    /// The test on it.
    pub test: Test,
}

impl Condition {
    /// Whether these arguments pass.
    #[must_use]
    pub fn holds(&self, arguments: &[u64; 6]) -> bool {
        let [a0, a1, a2, a3, a4, a5] = *arguments;
        let full = match self.argument {
            Argument::A0 => a0,
            Argument::A1 => a1,
            Argument::A2 => a2,
            Argument::A3 => a3,
            Argument::A4 => a4,
            Argument::A5 => a5,
        };
        let low = full & u64::from(u32::MAX);
        match self.test {
            Test::Is(value) => low == u64::from(value),
            Test::IsNot(value) => low != u64::from(value),
            Test::HasAny(mask) => low & u64::from(mask) != 0,
            Test::NotNull => full != 0,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let argument = self.argument.index();
        match self.test {
            Test::Is(value) => write!(f, "arg{argument} == {value:#x}"),
            Test::IsNot(value) => write!(f, "arg{argument} != {value:#x}"),
            Test::HasAny(mask) => write!(f, "arg{argument} & {mask:#x} != 0"),
            Test::NotNull => write!(f, "arg{argument} != NULL"),
        }
    }
}
