//! Programs that people run, each a script in a fresh sandbox with what it has to print. A program
//! that is not on this machine is a failure: what is not tried is not known.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::guest::Guest;
use super::{FINE, Found};
use crate::cache::{self, Cache};
use crate::command::{lines_of, program, succeed};
use crate::failure::Failure;
use crate::say;

const PROGRAMS: &str = include_str!("../../../tests/judges/programs.json");

/// A compiler on a busy machine.
const DEADLINE: Duration = Duration::from_secs(300);

/// One program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    /// What bash is given.
    script: String,
    /// All that has to be on standard output.
    prints: String,
    #[serde(default)]
    needs: Needs,
    /// Options of `postern run`.
    #[serde(default)]
    options: Vec<String>,
}

/// What a program needs besides this machine's `/usr`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Needs {
    #[default]
    Nothing,
    /// A Python environment with numpy and pandas.
    Environment,
    /// The toolchain that builds this repository, at `/opt/rust`.
    Toolchain,
}

pub(super) fn run(
    guests: &[Guest<'_>],
    cache: &Cache,
    only: &[String],
) -> Result<Vec<Found>, Failure> {
    let rows: Vec<Row> =
        serde_json::from_str(PROGRAMS).map_err(|source| Failure::Known { source })?;
    let mut found = Vec::new();
    for row in rows.iter().filter(|row| only.is_empty() || only.contains(&row.name)) {
        let options = options(row, cache)?;
        for guest in guests {
            let start = Instant::now();
            let (verdict, evidence) = outcome(row, guest, &options)?;
            let seconds = start.elapsed().as_secs_f64();
            say(&format!("{:13} {:12} {verdict:8} {seconds:>6.1} s", guest.half(), row.name));
            let row = row.name.clone();
            found.push(Found { half: guest.half(), row, verdict: verdict.to_owned(), evidence });
        }
    }
    Ok(found)
}

fn outcome(
    row: &Row,
    guest: &Guest<'_>,
    options: &[String],
) -> Result<(&'static str, String), Failure> {
    let ended = guest.run(options, &["bash", "-c", &row.script], DEADLINE)?;
    match ended.code == 0 && ended.stdout.trim_end_matches('\n') == row.prints {
        true => Ok((FINE, String::new())),
        false => {
            let text = format!("{}\n{}", ended.stdout, ended.stderr);
            let text = text.lines().collect::<Vec<_>>().join(" | ");
            Ok(("broken", format!("status {}: {text:.600}", ended.code)))
        }
    }
}

fn options(row: &Row, cache: &Cache) -> Result<Vec<String>, Failure> {
    let mut options = row.options.clone();
    match row.needs {
        Needs::Nothing => {}
        Needs::Environment => options.push(format!("--venv={}", environment(cache)?.display())),
        Needs::Toolchain => {
            options.push(format!("--ro-bind={}:/opt/rust", toolchain(cache)?.display()))
        }
    }
    Ok(options)
}

/// Made where it stays: an environment knows its own path.
fn environment(cache: &Cache) -> Result<PathBuf, Failure> {
    let place = cache.path().join("environment");
    let whole = place.join("whole");
    if !whole.exists() {
        say("xtask: making a Python environment with numpy and pandas");
        succeed(program("/usr/bin/python3").args(["-m", "venv", "--clear"]).arg(&place))?;
        let mut install = program(place.join("bin/python"));
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        succeed(install.args(["numpy", "pandas"]))?;
        cache::write(&whole, "")?;
    }
    Ok(place)
}

/// A copy of the compiler that every user can read, as the original need not be.
fn toolchain(cache: &Cache) -> Result<PathBuf, Failure> {
    let lines = lines_of(program("rustc").args(["--print", "sysroot"]))?;
    let original = PathBuf::from(lines.first().map_or("", String::as_str));
    let version = lines_of(program("rustc").arg("--version"))?.concat().replace(' ', "-");
    let place = cache.path().join(version);
    if !place.exists() {
        say("xtask: copying the toolchain");
        cache.fill(&place, |unfinished| copy(&original, unfinished))?;
    }
    Ok(place)
}

/// What a build needs; the documentation is as large again.
fn copy(original: &Path, directory: &Path) -> Result<(), Failure> {
    let bin = directory.join("bin");
    cache::directory(&bin)?;
    succeed(program("cp").arg("--archive").arg(original.join("lib")).arg(directory))?;
    let programs = ["cargo", "rustc"].map(|name| original.join("bin").join(name));
    succeed(program("cp").arg("--archive").args(programs).arg(&bin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_read_and_each_program_has_one_row() {
        let rows: Vec<Row> = serde_json::from_str(PROGRAMS).unwrap();
        let mut names: Vec<_> = rows.iter().map(|row| &row.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), rows.len());
        assert!(
            rows.iter().all(|row| !row.prints.is_empty()),
            "a row that prints nothing shows nothing"
        );
    }
}
