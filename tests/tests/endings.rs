//! How runs end, whoever ends first: the guest, its handle, the sandbox, the launcher or the host.
//!
//! Each row is a scenario of the host program in `src/bin/hostprog/endings`, which asserts by
//! itself that nothing is left. `POSTERN_LONG=1` runs the long variants.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test's own helpers start programs and fail the test"
)]

#[path = "endings/figures.rs"]
mod figures;
#[path = "endings/host.rs"]
mod host;
#[path = "endings/table/mod.rs"]
mod table;

use std::time::Duration;

use figures::{long_or, passes};

/// Scenarios by name: arguments of the long variant, arguments of the sample, seconds at the most.
macro_rules! endings {
    ($($name:ident: $scenario:literal $long:expr, $sample:expr, $seconds:literal;)*) => {$(
        #[test]
        fn $name() {
            passes($scenario, long_or(&$long, &$sample), Duration::from_secs($seconds));
        }
    )*};
}

endings! {
    a_killed_host_leaves_nothing: "kills" ["1000", "0"], ["50", "0"], 600;
    a_killed_launcher_is_replaced: "launcher-killed-with-directory" [], [], 20;
    a_killed_launcher_takes_an_owned_workspace_along: "launcher-killed-with-workspace" [], [], 20;
    a_stopped_launcher_is_killed: "launcher-stopped" [], [], 20;
    a_dropped_process_ends_its_guest: "process-dropped" [], [], 20;
    a_dropped_sandbox_ends_its_runs: "sandbox-dropped" [], [], 20;
    time_is_up_for_a_stubborn_guest: "time-is-up" [], [], 20;
    a_forked_copy_is_refused_and_harmless: "forked" [], [], 20;
    stolen_children_are_no_error: "children-stolen" [], [], 30;
    ignored_children_are_no_error: "children-ignored" [], [], 30;
    a_run_outlives_the_thread_that_started_it: "thread-ends" [], [], 20;
    many_threads_share_a_sandbox: "threads" ["64", "50"], ["64", "5"], 120;
    two_hundred_runs_start_at_once: "at-once" ["200", "10"], ["200", "5"], 120;
    few_descriptors_are_a_refusal: "few-descriptors" ["1"], ["1"], 60;
    few_descriptors_are_a_refusal_for_all: "few-descriptors" ["16"], ["8"], 120;
    every_end_leaves_nothing: "soak" ["20000", "0"], ["500", "0"], 900;
    many_runs_leave_nothing: "many-runs" ["10000"], ["1000"], 120;
    many_sandboxes_leave_nothing: "many-sandboxes" ["2000"], ["200"], 120;
    a_big_host_launches_as_fast: "big-host" ["2048", "200"], ["2048", "30"], 120;
}
