//! `postern check`: the library's report as text or JSON, and as an exit status. Judges nothing.

use std::fmt::Write as _;
use std::io::{self, IsTerminal};

use postern::check::{self, Finding, Name, Report, Status};
use postern::error::Fix;

use crate::arguments::CheckVerb;
use crate::failure::Failure;
use crate::profile::{profile, write_out};
use crate::say::Voice;

/// What the profile promises does not hold here.
const DOES_NOT_HOLD: u8 = 1;

/// Checks, and prints; the exit status.
pub(crate) fn check(verb: &CheckVerb) -> Result<u8, Failure> {
    let report = check::run(&profile(&verb.world)?);
    let words = match verb.json {
        true => serde_json::to_string(&report).map(|text| text + "\n").map_err(io::Error::other),
        false => {
            let voice = Voice::on(verb.world.color, io::stdout().is_terminal());
            text(&report, voice).map_err(io::Error::other)
        }
    };
    let words = words.map_err(|source| Failure::Stream { what: "word the report", source })?;
    write_out(words.as_bytes())?;
    Ok(if report.ok { 0 } else { DOES_NOT_HOLD })
}

/// A status as a word of its column.
fn status(voice: Voice, status: Status) -> String {
    let word = format!("{:STATUS_WIDTH$}", status.name());
    let colours = [(Status::Enforced, 32), (Status::Weaker, 33), (Status::Failed, 31)];
    let colour = colours.iter().find(|colour| colour.0 == status);
    let code = colour.map_or(2, |colour| colour.1);
    match voice {
        Voice::Plain => word,
        Voice::Coloured => format!("\x1b[{code}m{word}\x1b[0m"),
    }
}

/// The longest status.
const STATUS_WIDTH: usize = 8;

/// The longest name.
fn name_width() -> usize {
    Name::ALL.iter().map(|name| name.as_str().len()).max().unwrap_or_default()
}

fn text(report: &Report, voice: Voice) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let verdict = if report.ok { "holds" } else { "does not hold" };
    writeln!(
        text,
        "postern {} on Linux {} {}: what the profile promises {verdict} here\n",
        report.version, report.kernel, report.architecture
    )?;
    for finding in &report.findings {
        line(&mut text, finding, voice)?;
    }
    let fixes = report.failure.iter().flat_map(|failure| &failure.fixes);
    for (found, number) in fixes.zip(1..) {
        if number == 1 {
            writeln!(text, "\nTo fix the launch, one of:")?;
        }
        fix(&mut text, number, found)?;
    }
    Ok(text)
}

fn line(text: &mut String, finding: &Finding, voice: Voice) -> std::fmt::Result {
    let width = name_width();
    let indent = " ".repeat(STATUS_WIDTH + width + 4);
    let (status, name) = (status(voice, finding.status), finding.name);
    writeln!(text, "{status}  {name:width$}  {}", finding.detail)?;
    let more = [("why", &finding.why), ("fix", &finding.fix)];
    for (label, words) in more {
        if let Some(words) = words {
            writeln!(text, "{indent}{label}: {words}")?;
        }
    }
    Ok(())
}

fn fix(text: &mut String, number: usize, fix: &Fix) -> std::fmt::Result {
    writeln!(text, "\n{number}. {}: {}", fix.place.name(), fix.what)?;
    match &fix.file {
        Some(file) => writeln!(text, "   in {file}:\n")?,
        None => writeln!(text)?,
    }
    for line in fix.text.lines() {
        match line.is_empty() {
            true => writeln!(text)?,
            false => writeln!(text, "       {line}")?,
        }
    }
    match &fix.command {
        Some(command) => writeln!(text, "\n   then, as root:\n\n       {command}"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use postern::SandboxProfile;

    use super::*;

    #[test]
    fn columns_are_aligned_with_colours_and_without() {
        let report = check::run(&SandboxProfile::default());
        let plain = text(&report, Voice::Plain).unwrap();
        let coloured = text(&report, Voice::Coloured).unwrap();
        assert!(!plain.contains('\x1b'));
        let bare = ["31", "32", "33", "2", "0"]
            .iter()
            .fold(coloured.clone(), |text, code| text.replace(&format!("\x1b[{code}m"), ""));
        assert_eq!(bare, plain);
        assert!(coloured.contains("\x1b["), "{coloured}");
        let column = STATUS_WIDTH + name_width() + 4;
        for finding in &report.findings {
            let line = plain.lines().find(|line| line.contains(&format!("  {} ", finding.name)));
            let rest = line.and_then(|line| line.get(column..));
            assert_eq!(rest, Some(finding.detail.as_str()), "{}", finding.name);
        }
    }
}
