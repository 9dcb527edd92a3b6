//! The whole suite once more on the other kinds of host. Nothing of its own is promised here.

use postern::plan::Tier;
use postern_tests::{Watch, as_container_root, as_user_with_subordinates};

use crate::fixture::tier;

/// Root drops capabilities and starts this program again; on other hosts there is nothing to drop,
/// and the runner that starts this program there offers that kind itself.
#[test]
fn every_row_holds_for_a_containers_root() {
    let _watch = Watch::begin();
    if tier() == Tier::Privileged {
        as_container_root(&["--skip", "container::", "--test-threads", "1"]);
    }
}

/// Root alone can say which subordinate ids somebody has.
#[test]
fn every_row_holds_for_a_user_with_subordinate_ids() {
    let _watch = Watch::begin();
    if tier() == Tier::Privileged {
        as_user_with_subordinates(&["--skip", "container::", "--test-threads", "1"]);
    }
}
