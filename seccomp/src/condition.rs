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
    /// All six, in order.
    pub const ALL: [Self; 6] = [Self::A0, Self::A1, Self::A2, Self::A3, Self::A4, Self::A5];

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

    /// The argument at a position, from 0.
    #[must_use]
    pub fn at(index: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|argument| argument.index() == index)
    }
}

/// How a value stands to another one, both unsigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the variants are the four orders by their names")]
pub enum Order {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Order {
    /// Whether `value` stands so to `other`.
    const fn holds(self, value: u64, other: u64) -> bool {
        match self {
            Self::Less => value < other,
            Self::LessOrEqual => value <= other,
            Self::Greater => value > other,
            Self::GreaterOrEqual => value >= other,
        }
    }

    const fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

/// A test on an argument.
///
/// The 32-bit tests look at the low half, because the kernel reads these arguments as `int`,
/// `unsigned int`, `umode_t` or the low half of a flag word: compared in full, a value with a high
/// bit set would pass the filter and still mean the same to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Test {
    /// The low 32 bits equal this.
    Is(u32),
    /// The low 32 bits do not equal this.
    IsNot(u32),
    /// At least one of these bits is set in the low 32 bits.
    HasAny(u32),
    /// Of the low 32 bits, those of the mask are these.
    MaskedIs {
        /// The bits that are looked at.
        mask: u32,
        /// What they must be.
        value: u32,
    },
    /// Of the low 32 bits, those of the mask are not these.
    MaskedIsNot {
        /// The bits that are looked at.
        mask: u32,
        /// What they must not be.
        value: u32,
    },
    /// The low 32 bits stand so to this.
    Low(Order, u32),
    /// Any of the 64 bits is set: a pointer that is not null.
    NotNull,
    /// All 64 bits equal this.
    FullIs(u64),
    /// The 64 bits do not equal this.
    FullIsNot(u64),
    /// Of the 64 bits, those of the mask are these.
    FullMaskedIs {
        /// The bits that are looked at.
        mask: u64,
        /// What they must be.
        value: u64,
    },
    /// The 64 bits stand so to this.
    Full(Order, u64),
}

impl Test {
    /// Whether a register with this content passes.
    #[must_use]
    pub const fn holds(self, full: u64) -> bool {
        let low = full & 0xffff_ffff;
        match self {
            Self::Is(value) => low == value as u64,
            Self::IsNot(value) => low != value as u64,
            Self::HasAny(mask) => low & mask as u64 != 0,
            Self::MaskedIs { mask, value } => low & mask as u64 == value as u64,
            Self::MaskedIsNot { mask, value } => low & mask as u64 != value as u64,
            Self::Low(order, value) => order.holds(low, value as u64),
            Self::NotNull => full != 0,
            Self::FullIs(value) => full == value,
            Self::FullIsNot(value) => full != value,
            Self::FullMaskedIs { mask, value } => full & mask == value,
            Self::Full(order, value) => order.holds(full, value),
        }
    }
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
        self.test.holds(match self.argument {
            Argument::A0 => a0,
            Argument::A1 => a1,
            Argument::A2 => a2,
            Argument::A3 => a3,
            Argument::A4 => a4,
            Argument::A5 => a5,
        })
    }
}

/// The 64-bit tests say so, the 32-bit ones do not.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let argument = self.argument.index();
        match self.test {
            Test::Is(value) => write!(f, "arg{argument} == {value:#x}"),
            Test::IsNot(value) => write!(f, "arg{argument} != {value:#x}"),
            Test::HasAny(mask) => write!(f, "arg{argument} & {mask:#x} != 0"),
            Test::MaskedIs { mask, value } => write!(f, "arg{argument} & {mask:#x} == {value:#x}"),
            Test::MaskedIsNot { mask, value } => {
                write!(f, "arg{argument} & {mask:#x} != {value:#x}")
            }
            Test::Low(order, value) => write!(f, "arg{argument} {} {value:#x}", order.sign()),
            Test::NotNull => write!(f, "arg{argument} != NULL"),
            Test::FullIs(value) => write!(f, "(64-bit) arg{argument} == {value:#x}"),
            Test::FullIsNot(value) => write!(f, "(64-bit) arg{argument} != {value:#x}"),
            Test::FullMaskedIs { mask, value } => {
                write!(f, "(64-bit) arg{argument} & {mask:#x} == {value:#x}")
            }
            Test::Full(order, value) => {
                write!(f, "(64-bit) arg{argument} {} {value:#x}", order.sign())
            }
        }
    }
}
