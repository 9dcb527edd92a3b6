//! bubblewrap's command line and behaviour, by the same mount and clone code as everything else.
//! What differs from it is written down in docs/bwrap.md, and nowhere else.

mod descriptors;
mod environment;
mod hardening;
mod invocation;
mod kept;
mod launch;
mod monitor;
mod namespaces;
mod operations;
mod options;
mod parse;
mod say;
mod sys;
mod usage;
mod values;
mod words;

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;

use descriptors::Files;
use parse::{Caller, Misread, Parsed, parse};
use say::{Level, Wrong, say};
pub(crate) use usage::described;

/// Status of everything that goes wrong before the program is started.
const FAILED: u8 = 1;

/// The words for the front end, and the name it was called by: `bwrap`, or the verb of ours, or this
/// very program from inside a sandbox, whose words then begin with an option.
pub(crate) fn is_asked(words: &[OsString]) -> Option<(OsString, Vec<OsString>)> {
    let called = words.first()?;
    let first = words.get(1).map_or(OsStr::new(""), OsString::as_os_str);
    let is_itself =
        called.to_str().is_some_and(|name| name.starts_with("/proc/") && name.ends_with("/exe"));
    let is_option = first.as_encoded_bytes().starts_with(b"-");
    if Path::new(called).file_name() == Some(OsStr::new("bwrap")) || is_itself && is_option {
        return Some((called.clone(), words.get(1..)?.to_vec()));
    }
    (first == "bwrap").then(|| {
        let mut name = called.clone();
        name.push(" bwrap");
        (name, words.get(2..).unwrap_or_default().to_vec())
    })
}

/// Does what the words say; the exit status.
pub(crate) fn main(name: &OsStr, words: Vec<OsString>) -> u8 {
    let caller =
        Caller { uid: rustix::process::getuid().as_raw(), gid: rustix::process::getgid().as_raw() };
    match parse(words, caller, &mut Files) {
        Ok(Parsed::Help) => print(&usage::text(name)),
        Ok(Parsed::Version) => print(&usage::version()),
        Ok(Parsed::Run(invocation)) => {
            let prefix = invocation.level_prefix;
            for warning in &invocation.warnings {
                say(Level::Warning, prefix, warning);
            }
            launch::launch(&invocation).unwrap_or_else(|wrong| {
                let Wrong { text, status } = wrong;
                say(Level::Error, prefix, &text);
                status
            })
        }
        Err(Misread::NoCommand) => {
            std::io::stderr().write_all(usage::text(name).as_bytes()).ok();
            FAILED
        }
        Err(Misread::Wrong { text, level_prefix }) => {
            say(Level::Error, level_prefix, &text);
            FAILED
        }
    }
}

fn print(text: &str) -> u8 {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => 0,
        Err(_) => FAILED,
    }
}
