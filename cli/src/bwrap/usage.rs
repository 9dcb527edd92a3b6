//! `--help` and `--version`, and the options for pages about all of the command.

use std::ffi::OsStr;

use clap::{Arg, ArgAction, Command};

use super::options::OPTIONS;

/// The bubblewrap whose behaviour this is; programs read the second word.
const BUBBLEWRAP: &str = "0.13.1";

/// All options, one a line.
pub(super) fn text(name: &OsStr) -> String {
    let mut text = format!("usage: {} [OPTIONS...] [--] COMMAND [ARGS...]\n\n", name.display());
    for spec in &OPTIONS {
        let synopsis = format!("{} {}", spec.name, spec.values);
        text.push_str(&format!("    {:<28} {}\n", synopsis.trim_end(), spec.help));
    }
    text
}

/// The name of the program that tools ask for, and ours.
pub(super) fn version() -> String {
    format!("bubblewrap {BUBBLEWRAP} (postern {})\n", env!("CARGO_PKG_VERSION"))
}

/// The verb with all options, for manual pages and completions: what it is read by knows none.
pub(crate) fn described(verb: Command) -> Command {
    verb.args(OPTIONS.iter().map(|spec| {
        let long = spec.name.trim_start_matches('-');
        let option = Arg::new(long).long(long).help(spec.help).num_args(spec.count);
        match spec.count {
            0 => option.action(ArgAction::SetTrue),
            _ => option.value_names(spec.values.split(' ')),
        }
    }))
}
