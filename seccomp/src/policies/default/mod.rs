//! Level `default`: what a hostile guest could use and ordinary programs do without; what they
//! fall back from is answered as on a kernel that lacks it. One file for each kind of thing.

use crate::policy::Rule;

mod files;
mod kernel;
mod memory;
mod processes;
mod sockets;

/// All of it.
pub(super) const GROUPS: &[&[Rule]] = &[PROCESSES, KERNEL, MEMORY, FILES, SOCKETS];

pub(super) const PROCESSES: &[Rule] = processes::RULES;
pub(super) const KERNEL: &[Rule] = kernel::RULES;
pub(super) const MEMORY: &[Rule] = memory::RULES;
pub(super) const FILES: &[Rule] = files::RULES;
pub(super) const SOCKETS: &[Rule] = sockets::RULES;
