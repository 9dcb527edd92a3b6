//! How runs, launchers and hosts end, and what must be left of them: nothing.

mod children;
mod crowd;
mod kills;
mod many;
mod mortal;
mod random;
mod size;
mod soak;
mod stops;

use crate::Scenario;

/// Every scenario about endings.
pub(crate) const ALL: [Scenario; 21] = [
    ("kills", kills::kills),
    ("victim", kills::victim),
    ("launcher-killed-with-directory", stops::launcher_killed_with_directory),
    ("launcher-killed-with-workspace", stops::launcher_killed_with_workspace),
    ("launcher-stopped", stops::launcher_stopped),
    ("process-dropped", stops::process_dropped),
    ("sandbox-dropped", stops::sandbox_dropped),
    ("time-is-up", stops::time_is_up),
    ("mortal", mortal::mortal),
    ("forked", children::forked),
    ("children-stolen", children::stolen),
    ("children-ignored", children::ignored),
    ("thread-ends", children::thread_ends),
    ("at-once", crowd::at_once),
    ("few-descriptors", crowd::few_descriptors),
    ("soak", soak::soak),
    ("threads", many::threads),
    ("many-runs", many::many_runs),
    ("many-sandboxes", many::many_sandboxes),
    ("big-host", size::big_host),
    ("timed", size::timed),
];

/// The argument at `index` as a number.
fn number(arguments: &[String], index: usize) -> Result<usize, String> {
    let word = arguments.get(index).ok_or_else(|| format!("argument {index} is missing"))?;
    word.parse().map_err(|error| format!("argument {index}: {error}"))
}
