//! What differs by processor: call numbers, the call instruction, and the child's entry.

mod x86_64;

pub use x86_64::*;
