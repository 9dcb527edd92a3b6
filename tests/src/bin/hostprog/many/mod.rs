//! Many runs at once, hosts that have too little of something, and what crashed ones leave.

mod exhaustion;
mod launchers;
mod leftovers;

use crate::Scenario;

/// Every scenario about many runs.
pub(crate) const ALL: [Scenario; 5] = [
    ("few-descriptors", exhaustion::few_descriptors),
    ("few-processes", exhaustion::few_processes),
    ("launchers", launchers::several),
    ("leftovers", leftovers::leftovers),
    ("leaseholder", leftovers::leaseholder),
];
