//! Long and short variants of scenarios that pass or fail as a whole; knows no scenario.

use std::time::Duration;

use crate::host::outcome;

/// Set for the long variants.
const LONG: &str = "POSTERN_LONG";

/// The first in the long variant, the second in the sample.
pub(crate) fn long_or<'a>(long: &'a [&'a str], sample: &'a [&'a str]) -> &'a [&'a str] {
    if is_long() { long } else { sample }
}

/// Whether the long variants are asked for.
pub(crate) fn is_long() -> bool {
    std::env::var_os(LONG).is_some()
}

/// Fails unless the scenario passes; its figures are shown by `--nocapture`.
#[expect(clippy::print_stdout, reason = "figures belong into a test's output")]
pub(crate) fn passes(scenario: &str, arguments: &[&str], limit: Duration) {
    match outcome(scenario, arguments, limit) {
        Ok(figures) => println!("{scenario}: {figures}"),
        Err(wrong) => panic!("{scenario} {arguments:?}: {wrong}"),
    }
}
