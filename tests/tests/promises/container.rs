//! The whole suite once more as a container's root. Nothing of its own is promised here.

use postern::plan::Tier;
use postern_tests::{Watch, as_container_root};

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
