//! Processes: making one that shares memory until its exec, exec itself, and reaping.

mod sys;

pub use sys::{
    Ended, Parent, Pointers, Sharing, Start, execute, execute_file, install_filter, reap,
    spawn_guest, spawn_sharing, take_terminal, wait_any,
};
