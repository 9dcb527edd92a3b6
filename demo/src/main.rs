//! The program `postern-demo`, which `postern demo` starts: parses, calls the library, shows what
//! came of it.

mod progress;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use postern_demo::{DemoError, Options, Paint, default_cache, run, show};
use serde::Serialize;

/// A failure of the demo itself, as for the command `postern`.
const OWN_FAILURE: u8 = 125;

/// An untrusted pandas script gets rows of a database of this host through one typed gRPC method,
/// computes and draws, and then tries everything that it should not.
///
/// The first use makes the guest's Python environment with pip, which needs a package index, and
/// the database from the data set that the package palmerpenguins ships: about 300 MiB in the
/// cache. Later uses find both there.
///
/// The exit status is 0 when everything held, 1 when something did not, and 125 when the demo could
/// not be carried out, which says why and what to do.
#[derive(Debug, Parser)]
#[command(name = "postern-demo", bin_name = "postern demo", version, max_term_width = 100)]
struct Arguments {
    /// Where the environment and the database are kept.
    ///
    /// [default: $XDG_CACHE_HOME/postern or ~/.cache/postern] [example: --cache ./cache]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Where plot.png and result.json are put; files of these names are replaced.
    ///
    /// [default: out in the cache] [example: --out .]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The interpreter that the environment is made with: CPython 3.10 to 3.13.
    ///
    /// [default: python3] [example: --python /usr/bin/python3]
    #[arg(long, value_name = "PROGRAM")]
    python: Option<OsString>,
    /// One JSON object instead of text: held, answer, plot, result, attempts, sandbox, first_use,
    /// ms; or error, with kind, message and fix.
    ///
    /// [default: text] [example: --json]
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Nobody is left to be told when our own outputs are closed.
            error.print().ok();
            return ExitCode::from(if error.use_stderr() { OWN_FAILURE } else { 0 });
        }
    };
    let is_json = arguments.json;
    let (text, code) = match carry_out(arguments) {
        Ok(outcome) => outcome,
        Err(error) if is_json => (failure(&error), OWN_FAILURE),
        Err(error) => {
            std::io::stderr().write_all(words(&error).as_bytes()).ok();
            return ExitCode::from(OWN_FAILURE);
        }
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::from(code),
        Err(_) => ExitCode::from(OWN_FAILURE),
    }
}

fn carry_out(arguments: Arguments) -> Result<(String, u8), DemoError> {
    let cache = arguments.cache.map_or_else(default_cache, Ok)?;
    let mut options = Options::new(cache);
    options.out = arguments.out.unwrap_or(options.out);
    options.python = arguments.python.unwrap_or(options.python);
    let report = run(&options, &mut *progress::new())?;
    let text = match arguments.json {
        true => line(&report),
        false => show(&report, paint()),
    };
    Ok((text, u8::from(!report.held)))
}

/// Colours only on a terminal that can and may show them (<https://no-color.org>).
fn paint() -> Paint {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_dumb = set("TERM").is_none_or(|term| term == "dumb");
    match std::io::stdout().is_terminal() && !is_dumb && set("NO_COLOR").is_none() {
        true => Paint::Coloured,
        false => Paint::Plain,
    }
}

/// One object, on one line.
fn line(value: &impl Serialize) -> String {
    // No key is anything but a string, and no writer is there to fail.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

fn failure(error: &DemoError) -> String {
    #[derive(Serialize)]
    struct Failed<'a> {
        error: Facts<'a>,
    }
    #[derive(Serialize)]
    struct Facts<'a> {
        kind: &'static str,
        message: String,
        fix: Option<String>,
        lines: &'a [String],
    }
    let (message, fix, lines) = (error.to_string(), error.fix(), error.lines());
    line(&Failed { error: Facts { kind: error.kind(), message, fix, lines } })
}

fn words(error: &DemoError) -> String {
    let lines = error.lines().iter().map(|line| format!("postern demo: | {line}\n"));
    let fix = error.fix().map(|fix| format!("postern demo: fix: {fix}\n"));
    std::iter::once(format!("postern demo: {error}\n")).chain(lines).chain(fix).collect()
}
