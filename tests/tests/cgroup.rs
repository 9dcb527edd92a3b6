//! Limits of a run as a whole, by a control group of its own: held where the service is in a leaf of
//! a delegated version 2 group, and refused in plain words where it is not.
//!
//! `POSTERN_TEST_CGROUP_DIR` names such a group, as in the guests of `cargo xtask vm`; without it each
//! test asks for the refusal.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's own helpers fail the test")]

#[path = "cgroup/crashed.rs"]
mod crashed;
#[path = "cgroup/held.rs"]
mod held;
#[path = "cgroup/refused.rs"]
mod refused;
#[path = "cgroup/stage.rs"]
mod stage;

/// Each test, here or refused, with the stage to itself or shared with others.
macro_rules! rows {
    ($($name:ident: $turn:ident $test:path;)*) => {$(
        #[test]
        fn $name() {
            let _turn = stage::$turn();
            match stage::Stage::here() {
                Some(stage) => $test(&stage),
                None => refused::here(),
            }
        }
    )*};
}

rows! {
    memory_that_is_used_up_ends_the_whole_run: shared held::out_of_memory;
    a_kill_is_not_taken_for_want_of_memory: shared held::killed_otherwise;
    a_full_tmpfs_is_memory: shared held::full_tmpfs;
    every_limit_stands_in_the_kernel: shared held::limits_stand;
    too_many_processes_are_told: shared held::too_many_processes;
    a_share_of_a_processor_is_no_more: shared held::throttled;
    a_killed_group_is_a_killed_run: shared held::killed_group;
    a_run_sees_nothing_of_its_group: shared held::sees_nothing;
    nothing_is_left: shared held::nothing_left;
    many_at_once_have_one_each: shared held::many_at_once;
    the_check_says_what_holds: shared held::checked;
    a_long_request_finds_its_group: shared held::long_request;
    shared_namespaces_change_nothing: shared held::shared_namespaces;
    a_containers_root_has_it_too: shared held::container_root;
    no_limit_is_no_group: shared held::no_group;
    what_a_crashed_service_left_is_removed: alone crashed::leftovers;
    a_killed_service_leaves_nothing_for_long: shared crashed::killed_service;
    a_service_that_may_be_moved_is: shared crashed::moved_service;
    a_service_in_the_way_is_told: shared refused::in_the_way;
    a_limit_that_is_required_is_refused: shared refused::required;
    a_service_that_is_cut_off_is_told_why: alone refused::cut_off;
    the_command_tells: shared refused::command;
}
