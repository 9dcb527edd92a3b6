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
                _ if verb == "postern seccomp explain" => &["ptrace"],
                _ => &[],
            };
            words.extend(more.iter().map(Into::into));
            let taken = Arguments::read(words);
            assert!(taken.is_ok(), "{verb} {example}: {}", taken.unwrap_err());
        }
    }
}

/// By whichever way it is read.
#[test]
fn a_verb_alone_is_read_as_among_all() {
    let rows: [(&[&str], bool); 8] = [
        (&["run", "--timeout", "3", "--", "true", "--json"], true),
        (&["python", "--json", "-c", "x", "--json", "--", "-c"], true),
        (&["bash", "--shell=sh", "job", "-c"], true),
        (&["run", "--help"], false),
        (&["run", "--bogus"], false),
        (&["plan"], false),
        (&["--version"], false),
        (&[], false),
    ];
    for (line, is_alone) in rows {
        let words: Vec<OsString> =
            std::iter::once(&"postern").chain(line).map(Into::into).collect();
        let alone = Verb::read_alone(&words);
        assert_eq!(alone.is_some(), is_alone, "{line:?}");
        let Some(alone) = alone else { continue };
        let definition = Arguments::command();
        let fenced = tail::fence(definition.find_subcommand(line[0]).unwrap(), 2, words);
        let all = Arguments::try_parse_from(fenced).unwrap().verb;
        assert_eq!(format!("{alone:?}"), format!("{all:?}"));
    }
}
