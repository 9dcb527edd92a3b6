//! Promises about the definition of the command line itself.

use clap::{ArgAction, Command};

use super::*;

#[test]
fn the_definition_is_consistent() {
    Arguments::command().debug_assert();
}

/// Every verb with its whole name.
fn verbs(command: &Command, name: &str) -> Vec<(String, Command)> {
    let below = command
        .get_subcommands()
        .flat_map(|verb| verbs(verb, &format!("{name} {}", verb.get_name())));
    std::iter::once((name.to_owned(), command.clone())).chain(below).collect()
}

#[test]
fn every_option_has_a_default_and_an_example() {
    let mut seen = 0;
    for (verb, command) in verbs(&Arguments::command(), "postern") {
        let shown = |action: &ArgAction| {
            !matches!(
                action,
                ArgAction::Help | ArgAction::HelpLong | ArgAction::HelpShort | ArgAction::Version
            )
        };
        for argument in command.get_arguments().filter(|a| shown(a.get_action())) {
            let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string);
            let help = help.unwrap_or_default();
            for part in ["[default: ", "[example: "] {
                assert!(help.contains(part), "{verb} {}: {part} {help:?}", argument.get_id());
            }
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen} options");
}

/// An example that a person would type in vain is worse than none.
#[test]
fn every_example_is_taken() {
    for (verb, command) in verbs(&Arguments::command(), "postern") {
        for argument in command.get_arguments() {
            let help = argument.get_long_help().map(ToString::to_string).unwrap_or_default();
            let Some((_, example)) = help.split_once("[example: ") else { continue };
            let example = example.strip_suffix(']').unwrap();
            let mut words: Vec<OsString> = verb.split(' ').map(Into::into).collect();
            words.extend(example.split(' ').map(Into::into));
            let more: &[&str] = match argument.get_id().as_str() {
                "workspace_access" => &["--workspace", "job"],
                "max_output" => &["--json"],
                _ => &[],
            };
            words.extend(more.iter().map(Into::into));
            let taken = Arguments::read(words);
            assert!(taken.is_ok(), "{verb} {example}: {}", taken.unwrap_err());
        }
    }
}
