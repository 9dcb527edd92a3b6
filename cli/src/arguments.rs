//! The command line, as data.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use postern::profile::{Bind, WorkspaceAccess};

/// Runs untrusted programs in a sandbox built with system calls: no network, no files beyond a
/// read-only base and one workspace, no capabilities.
#[derive(Debug, Parser)]
#[command(name = "postern", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a program in a sandbox.
    ///
    /// stdin, stdout and stderr are passed through. The exit status is the program's own; 128 and
    /// the signal for one ended by a signal; 124 when the time is up; 126 or 127 for a program that
    /// cannot be started or found; 125 for a failure of postern itself.
    Run(Options),
    /// Print what `run` with the same options would do, one step a line, and do nothing.
    Plan(Options),
    /// Launch a sandbox for real and say, line by line, what is enforced here, what is not and
    /// why, and what to do about it. Changes nothing.
    ///
    /// The exit status is 0 when what the profile promises holds on this machine, 1 when it does
    /// not, and 125 for a failure of postern itself, such as a profile that cannot be read.
    Check(CheckOptions),
}

/// What to check, and how to say it.
#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// A profile file, TOML or JSON by its name. [default: the default profile] [example: --profile
    /// analysis.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// One JSON object instead of text. [default: text] [example: --json]
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to run, and where.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// A profile file, TOML or JSON by its name; options here override it. [default: the default
    /// profile] [example: --profile analysis.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// A directory of yours as /workspace, writable by the guest. [default: an empty one of 256 MiB
    /// that goes with the run] [example: --workspace ./job]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// How the guest comes to be allowed to write to DIR: `as-is`, or `shared`, which makes it mode
    /// 1777, open to every user of this machine. [default: as-is] [example: --workspace-access
    /// shared]
    #[arg(long, value_name = "HOW", default_value = "as-is", hide_default_value = true,
          requires = "workspace", value_parser = access)]
    pub(crate) workspace_access: WorkspaceAccess,
    /// A Python virtual environment, read-only at its own path and first on PATH. [default: none]
    /// [example: --venv /opt/analysis-env]
    #[arg(long, value_name = "DIR")]
    pub(crate) venv: Option<PathBuf>,
    /// A host path to see read-only inside, at the same path or another; repeatable. A colon in a
    /// path is written `\:`. [default: none] [example: --ro-bind /srv/data:/data]
    #[arg(long, value_name = "SOURCE[:TARGET]")]
    pub(crate) ro_bind: Vec<Bind>,
    /// Seconds until everything in the run is killed, a fraction allowed. [default: no limit]
    /// [example: --timeout 2.5]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// A variable for the guest, which inherits none; repeatable. [default: the profile's]
    /// [example: --env TZ=UTC]
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<OsString>,
    /// The program and its arguments. [example: -- python3 -c 'print(6 * 7)']
    #[arg(last = true, value_name = "ARGV")]
    pub(crate) argv: Vec<OsString>,
}

fn access(text: &str) -> Result<WorkspaceAccess, String> {
    match text {
        "as-is" => Ok(WorkspaceAccess::AsIs),
        "shared" => Ok(WorkspaceAccess::Shared),
        _ => Err("must be as-is or shared".to_owned()),
    }
}

fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds: f64 = text.parse().map_err(|error| format!("{error}"))?;
    match std::time::Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        Ok(_) => Err("must be more than zero".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn seconds_are_more_than_zero() {
        let rows = [("2.5", true), ("0", false), ("-1", false), ("x", false), ("inf", false)];
        for (text, accepted) in rows {
            assert_eq!(seconds(text).is_ok(), accepted, "{text}");
        }
    }
}
