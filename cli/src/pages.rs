//! Completions and manual pages, made from the definition of the command line.

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::arguments::{Arguments, CompletionsVerb, ManVerb};
use crate::bwrap;
use crate::failure::Failure;
use crate::profile::write_out;

/// Prints a completion script.
pub(crate) fn completions(verb: &CompletionsVerb) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(verb.shell, &mut described(), "postern", &mut script);
    write_out(&script)?;
    Ok(0)
}

/// Prints the manual page of the whole, or writes every page into a directory.
pub(crate) fn man(verb: &ManVerb) -> Result<u8, Failure> {
    // Built, so that each verb knows its whole name.
    let mut command = described().disable_help_subcommand(true);
    command.build();
    match &verb.out {
        None => write_out(&page(&command)?)?,
        Some(directory) => write_pages(&command, directory)?,
    }
    Ok(0)
}

/// The command line with what one of its verbs reads for itself.
fn described() -> Command {
    Arguments::command().mut_subcommand("bwrap", bwrap::described)
}

fn page(command: &Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    let rendered = Man::new(command.clone()).render(&mut page);
    rendered.map_err(|source| Failure::Stream { what: "make a manual page", source })?;
    Ok(page)
}

fn write_pages(command: &Command, directory: &Path) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = directory.join(format!("{name}.1"));
    let page = page(command)?;
    std::fs::write(&path, page).map_err(|source| Failure::File { what: "write", path, source })?;
    command.get_subcommands().try_for_each(|verb| write_pages(verb, directory))
}
