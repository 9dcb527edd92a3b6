//! Many runs at once, hosts that have too little of something, and what crashed ones leave.

mod exhaustion;
mod launchers;
mod leftovers;

use crate::Scenario;

/// Every scenario about many runs.
pub(crate) const ALL: [Scenario; 5] = [
    ("descriptor-sweep", exhaustion::descriptor_sweep),
    ("process-sweep", exhaustion::process_sweep),
    ("launchers", launchers::several),
    ("leftovers", leftovers::leftovers),
    ("leaseholder", leftovers::leaseholder),
];
