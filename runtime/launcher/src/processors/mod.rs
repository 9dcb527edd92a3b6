//! Where the launcher runs: it leaves its processor to a process it has just made. Limits nothing.

mod sys;

use postern_init::sys::Result;

/// Words of the largest mask that is understood: 1,024 processors.
pub(crate) const MASK_WORDS: usize = 16;

/// The processors that the launcher may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Processors {
    mask: [u64; MASK_WORDS],
}

impl Processors {
    /// Those of the calling process; none where there is nothing to choose from.
    pub(crate) fn of_launcher() -> Option<Processors> {
        let mut mask = [0; MASK_WORDS];
        sys::processors(&mut mask).ok()?;
        let count = mask.iter().fold(0u32, |count, word| count.saturating_add(word.count_ones()));
        (count > 1).then_some(Processors { mask })
    }

    /// Moves the launcher to another processor; true: it is now kept off one, until
    /// [`Processors::roam`].
    ///
    /// A kernel leaves a new process on its maker's processor until the maker sleeps, though
    /// another is idle. Whoever goes aside loses some microseconds; the other gains all the time
    /// that the launcher is at work. That it cannot go is no failure.
    pub(crate) fn step_aside(&self) -> bool {
        let Ok(here) = sys::current_processor() else { return false };
        let mut others = self.mask;
        let bit = 1u64 << (here & 63);
        if let Some(word) = usize::try_from(here >> 6).ok().and_then(|at| others.get_mut(at)) {
            *word &= !bit;
        }
        sys::set_processors(&others).is_ok()
    }

    /// Lets the launcher, and so every process it makes, run anywhere again.
    pub(crate) fn roam(&self) -> Result<()> {
        sys::set_processors(&self.mask)
    }
}
