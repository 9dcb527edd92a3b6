//! The calls about processors; decides nothing.
//!
//! # Safety
//! As in `crate::sys`: pointers derive from references that outlive the call.

use postern_init::arch::nr;
use postern_init::sys::Result;

use super::MASK_WORDS;
use crate::sys::{at, at_mut, call};

/// `sched_getaffinity(2)` of the calling thread.
///
/// # Errors
/// As the kernel says: `EINVAL` when it has more processors than the mask holds.
pub(crate) fn processors(mask: &mut [u64; MASK_WORDS]) -> Result<()> {
    call(nr::SCHED_GETAFFINITY, [0, size_of_val(mask), at_mut(mask), 0, 0, 0]).map(drop)
}

/// `sched_setaffinity(2)` of the calling thread.
///
/// # Errors
/// As the kernel says.
pub(crate) fn set_processors(mask: &[u64; MASK_WORDS]) -> Result<()> {
    call(nr::SCHED_SETAFFINITY, [0, size_of_val(mask), at(mask), 0, 0, 0]).map(drop)
}

/// `getcpu(2)`: the number of the processor.
///
/// # Errors
/// As the kernel says.
pub(crate) fn current_processor() -> Result<u32> {
    let mut number = 0u32;
    call(nr::GETCPU, [at_mut(&mut number), 0, 0, 0, 0, 0])?;
    Ok(number)
}
