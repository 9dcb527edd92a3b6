//! Numbers that differ from run to run and can be had again.

/// A sequence of numbers.
pub(super) struct Random(u64);

impl Random {
    /// The sequence that begins so.
    pub(super) fn new(seed: u64) -> Random {
        Random(seed.max(1))
    }

    /// A seed that is given, or for 0 one that differs from run to run.
    pub(super) fn seed(given: usize) -> u64 {
        match given as u64 {
            0 => u64::from(std::process::id()) << 20 | 0x9e37,
            seed => seed,
        }
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.checked_rem(end).unwrap_or_default()
    }
}
