//! `postern-bench` measures postern beside bubblewrap on this machine. It never tunes what it
//! measures, and it is no test: a broken promise is printed, and fails only with `--check`.

mod figures;
mod measure;
mod remote;
mod report;
mod world;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use figures::{Setting, bwrap, hatch, latency, output, probe, python, scale, stages, weight};
use measure::{Effort, Outcome};
use report::Table;
use world::World;

#[derive(Debug, Parser)]
#[command(
    name = "postern-bench",
    about = "Measures postern beside bubblewrap",
    max_term_width = 100
)]
struct Arguments {
    #[command(subcommand)]
    figure: Figure,
    /// Rounds of each contender, in turn.
    #[arg(long, global = true, default_value_t = 20)]
    rounds: usize,
    /// Samples of a contender in a round.
    #[arg(long, global = true, default_value_t = 20)]
    batch: usize,
    /// How long each sustained measurement lasts.
    #[arg(long, global = true, default_value_t = 2.0)]
    seconds: f64,
    /// Also write the numbers here, as JSON.
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Exit with 1 when a promise is broken.
    #[arg(long, global = true)]
    check: bool,
    /// The `postern` binary. [default: beside this one]
    #[arg(long, global = true, value_name = "PATH")]
    cli: Option<PathBuf>,
    /// The bubblewrap binary.
    #[arg(long, global = true, value_name = "PATH", default_value = "/usr/bin/bwrap")]
    bwrap: PathBuf,
    /// For `bwrap`: another bubblewrap binary, such as the newest.
    #[arg(long, global = true, value_name = "PATH")]
    newest: Option<PathBuf>,
    /// For `python` and `hatch`: the directory that holds the Python package `postern`, unpacked.
    #[arg(long, global = true, value_name = "DIR")]
    peer: Option<PathBuf>,
    /// For `hatch`: a virtual environment that has grpcio.
    #[arg(long, global = true, value_name = "DIR")]
    venv: Option<PathBuf>,
}

#[derive(Debug, Clone, Subcommand)]
enum Figure {
    /// Everything below.
    All,
    /// What the two worlds look like from inside.
    Probe,
    /// The no-op on an open sandbox.
    Noop,
    /// Making a sandbox, and a sandbox for one run.
    Build,
    /// The two command lines.
    Cli,
    /// `postern bwrap` and bubblewraps, with the same arguments.
    Bwrap,
    /// `run_python("pass")` beside that of the Python package `postern` 0.5 with its C init.
    Python,
    /// A unary call through a gRPC hatch, beside no sandbox and that package's hatch.
    Hatch,
    /// Launches per second with 1, 2 and 4 workers.
    Rate,
    /// A large host, and a host with many mounts.
    Host,
    /// What each bind of a profile costs.
    Binds,
    /// What output costs its reader, beside a plain pipe.
    Output,
    /// The size of the image and the memory of the processes.
    Weight,
    /// Where one run's time goes; root only.
    Stages,
    /// Be a host process for `host`.
    #[command(hide = true)]
    Serve(remote::Kind),
}

fn main() -> ExitCode {
    match bench(Arguments::parse()) {
        Ok(code) => code,
        Err(failure) => {
            writeln!(std::io::stderr(), "postern-bench: {failure}").ok();
            ExitCode::from(2)
        }
    }
}

fn bench(arguments: Arguments) -> Outcome<ExitCode> {
    if let Figure::Serve(kind) = &arguments.figure {
        remote::serve(kind, &arguments.bwrap)?;
        return Ok(ExitCode::SUCCESS);
    }
    let cli = match arguments.cli {
        Some(path) => Some(path),
        None => std::env::current_exe()?.parent().map(|beside| beside.join("postern")),
    };
    let setting = Setting {
        world: World::new(&arguments.bwrap)?,
        effort: Effort { rounds: arguments.rounds, batch: arguments.batch },
        cli,
        bwrap: arguments.bwrap,
        newest: arguments.newest,
        peer: arguments.peer,
        venv: arguments.venv,
        seconds: arguments.seconds,
    };
    let mut tables: Vec<Table> = Vec::new();
    for figure in chosen(&arguments.figure) {
        let new = figure(&setting)?;
        for table in &new {
            write!(std::io::stdout(), "{}", table.to_text())?;
        }
        tables.extend(new);
    }
    if let Some(path) = arguments.json {
        let tables = tables.iter().map(Table::to_json).collect();
        std::fs::write(path, serde_json::to_vec_pretty(&serde_json::Value::Array(tables))?)?;
    }
    let broken: usize = tables.iter().map(Table::broken).sum();
    Ok(if arguments.check && broken > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

type Measure = fn(&Setting) -> Outcome<Vec<Table>>;

fn chosen(figure: &Figure) -> Vec<Measure> {
    match figure {
        Figure::All => vec![
            probe::probe,
            latency::noop,
            latency::build,
            latency::cli,
            bwrap::bwrap,
            python::python,
            hatch::hatch,
            scale::rate,
            scale::host,
            scale::binds,
            output::output,
            weight::weight,
            stages::stages,
        ],
        Figure::Probe => vec![probe::probe],
        Figure::Noop => vec![latency::noop],
        Figure::Build => vec![latency::build],
        Figure::Cli => vec![latency::cli],
        Figure::Bwrap => vec![bwrap::bwrap],
        Figure::Python => vec![python::python],
        Figure::Hatch => vec![hatch::hatch],
        Figure::Rate => vec![scale::rate],
        Figure::Host => vec![scale::host],
        Figure::Binds => vec![scale::binds],
        Figure::Output => vec![output::output],
        Figure::Weight => vec![weight::weight],
        Figure::Stages => vec![stages::stages],
        Figure::Serve(_) => vec![],
    }
}
