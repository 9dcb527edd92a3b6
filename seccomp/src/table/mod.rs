//! Which number is which call on which architecture; nothing outside `arch.rs` reads it.

pub(crate) mod x86_64;
