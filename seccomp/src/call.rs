//! One system call as a filter sees it; never the memory that its arguments point to.

use crate::arch::Arch;

/// The bit that marks an x32 call; such calls carry the native architecture value.
pub(crate) const X32_BIT: u32 = 0x4000_0000;

/// The number -1: what a tracer sets to skip a call, and no call of any table.
pub(crate) const SKIPPED: u32 = u32::MAX;

/// A system call: the fields of the kernel's `struct seccomp_data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// The call number, read as unsigned.
    pub number: u32,
    /// The `AUDIT_ARCH_*` value of the ABI the call came through.
    pub arch: u32,
    /// Where the calling code is.
    pub instruction_pointer: u64,
    /// The six argument registers in full.
    pub arguments: [u64; 6],
}

impl Call {
    /// A call through the native ABI of `arch`.
    #[must_use]
    pub const fn native(arch: Arch, number: u32, arguments: [u64; 6]) -> Self {
        Self { number, arch: arch.audit(), instruction_pointer: 0, arguments }
    }

    /// The 32-bit word at a byte offset of `struct seccomp_data`.
    pub(crate) fn word(&self, offset: u32) -> Option<u32> {
        if !offset.is_multiple_of(4) {
            return None;
        }
        let wide = core::iter::once(self.instruction_pointer).chain(self.arguments);
        let mut words = [self.number, self.arch].into_iter().chain(wide.flat_map(halves));
        words.nth(usize::try_from(offset / 4).ok()?)
    }
}

/// The low and the high half, in the order in which they lie in memory.
pub(crate) fn halves(value: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
    [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])]
}
