//! Where a script's own arguments begin: behind `-c CODE`, which clap would take for an option like
//! any other. Reads no value.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::Command;

/// Puts `--` behind `-c CODE`, so that what follows is the script's even where it looks like an
/// option. `first` is where the verb's options begin; words without `-c CODE` come back as they were.
pub(super) fn fence(verb: &Command, first: usize, mut words: Vec<OsString>) -> Vec<OsString> {
    if let Some(at) = end_of_code(verb, first, &words) {
        words.insert(at, "--".into());
    }
    words
}

/// The place behind CODE.
fn end_of_code(verb: &Command, first: usize, words: &[OsString]) -> Option<usize> {
    verb.get_arguments().find(|argument| argument.get_short() == Some('c'))?;
    let mut at = first;
    loop {
        let word = words.get(at)?.as_bytes();
        at = match word {
            b"--" | b"-" => return None,
            b"-c" => return Some(at + 2).filter(|at| *at <= words.len()),
            [b'-', b'c', ..] => return Some(at + 1),
            [b'-', b'-', option @ ..] if takes_next_word(verb, option) => at + 2,
            [b'-', ..] => at + 1,
            // FILE, behind which clap itself looks for no option.
            _ => return None,
        };
    }
}

/// Whether the value of `--option` is the word behind it.
fn takes_next_word(verb: &Command, option: &[u8]) -> bool {
    let name = OsStr::from_bytes(option);
    let found = verb.get_arguments().find(|a| a.get_long().is_some_and(|long| name == long));
    found.is_some_and(|argument| argument.get_action().takes_values())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::fence;
    use crate::arguments::Arguments;

    #[test]
    fn what_follows_the_code_is_fenced_off() {
        let rows: [(&[&str], &[&str]); 12] = [
            (&["python", "-c", "x", "--json"], &["python", "-c", "x", "--", "--json"]),
            (&["python", "-cx", "--json"], &["python", "-cx", "--", "--json"]),
            (&["bash", "-c", "x"], &["bash", "-c", "x", "--"]),
            (&["python", "-c", "x", "--", "y"], &["python", "-c", "x", "--", "--", "y"]),
            (&["python", "--json", "-c", "x"], &["python", "--json", "-c", "x", "--"]),
            (
                &["python", "--timeout", "-c", "-c", "x"],
                &["python", "--timeout", "-c", "-c", "x", "--"],
            ),
            (&["python", "--env=A=b", "-c", "x"], &["python", "--env=A=b", "-c", "x", "--"]),
            (&["python", "job.py", "-c", "x"], &["python", "job.py", "-c", "x"]),
            (&["python", "-", "-c", "x"], &["python", "-", "-c", "x"]),
            (&["python", "--", "-c", "x"], &["python", "--", "-c", "x"]),
            (&["python", "-c"], &["python", "-c"]),
            (&["run", "-c", "x"], &["run", "-c", "x"]),
        ];
        let words = |row: &[&str]| {
            std::iter::once("postern").chain(row.iter().copied()).map(Into::into).collect()
        };
        for (given, fenced) in rows {
            let expected: Vec<std::ffi::OsString> = words(fenced);
            let definition = Arguments::command();
            let verb = definition.find_subcommand(given[0]).unwrap();
            assert_eq!(fence(verb, 2, words(given)), expected);
        }
    }
}
