//! A compiled filter as the bytes the kernel takes, and its instructions; it does not run them.

use core::fmt;

use sha2::{Digest as _, Sha256};

use crate::error::Error;

/// One classic BPF instruction, the kernel's `struct sock_filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// The operation.
    pub code: u16,
    /// Instructions to skip when a test holds.
    pub jt: u8,
    /// Instructions to skip when it does not.
    pub jf: u8,
    /// The constant.
    pub k: u32,
}

impl Instruction {
    /// `A = word at k`.
    pub const LOAD: u16 = 0x20;
    /// `A = A & k`.
    pub const AND: u16 = 0x54;
    /// Skip `k` instructions.
    pub const JUMP: u16 = 0x05;
    /// Test `A == k`.
    pub const JEQ: u16 = 0x15;
    /// Test `A > k`, unsigned.
    pub const JGT: u16 = 0x25;
    /// Test `A >= k`, unsigned.
    pub const JGE: u16 = 0x35;
    /// Test `A & k != 0`.
    pub const JSET: u16 = 0x45;
    /// Answer `k`.
    pub const RETURN: u16 = 0x06;

    fn to_bytes(self) -> [u8; 8] {
        let [c0, c1] = self.code.to_le_bytes();
        let [k0, k1, k2, k3] = self.k.to_le_bytes();
        [c0, c1, self.jt, self.jf, k0, k1, k2, k3]
    }

    fn from_bytes([c0, c1, jt, jf, k0, k1, k2, k3]: [u8; 8]) -> Self {
        let code = u16::from_le_bytes([c0, c1]);
        Self { code, jt, jf, k: u32::from_le_bytes([k0, k1, k2, k3]) }
    }
}

/// A filter program in the layout of the kernel's `struct sock_filter[]`, little-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    instructions: Vec<[u8; 8]>,
}

impl Program {
    /// The most instructions the kernel takes (`BPF_MAXINSNS`).
    pub const MAX_LEN: usize = 4096;

    /// Takes a compiled program from elsewhere; what the instructions say is not looked at.
    ///
    /// # Errors
    ///
    /// [`Error::TornProgram`] if the bytes are not 1 to [`Program::MAX_LEN`] instructions.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        match bytes.as_chunks() {
            (whole, []) if (1..=Self::MAX_LEN).contains(&whole.len()) => {
                Ok(Self { instructions: whole.to_vec() })
            }
            _ => Err(Error::TornProgram { bytes: bytes.len() }),
        }
    }

    pub(crate) fn new(instructions: impl IntoIterator<Item = Instruction>) -> Self {
        Self { instructions: instructions.into_iter().map(Instruction::to_bytes).collect() }
    }

    /// The bytes for `sock_fprog.filter`.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.instructions.as_flattened()
    }

    /// The number of instructions, for `sock_fprog.len`.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "no constructor makes an empty program")]
    pub fn len(&self) -> usize {
        self.instructions.len()
    }

    /// The instruction at an index.
    #[must_use]
    pub fn instruction(&self, index: usize) -> Option<Instruction> {
        self.instructions.get(index).copied().map(Instruction::from_bytes)
    }

    /// SHA-256 of the bytes: equal programs have equal digests on every machine and version.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest(Sha256::digest(self.as_bytes()).into())
    }
}

/// The SHA-256 of a [`Program`]; `Display` gives 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
