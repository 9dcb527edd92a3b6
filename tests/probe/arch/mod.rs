//! Entries into the kernel that no library offers; judges nothing.

mod x86_64;

pub(crate) use x86_64::{calls_in_a_row, int80, vsyscall_time};
