//! `postern run` and `postern plan`: options to a profile and a command, and the run's end to a code.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use postern::host::Host;
use postern::plan::{Plan, Warning, resolve};
use postern::profile::{Bind, Workspace};
use postern::{Command, Ending, Sandbox, SandboxProfile, Stdin};

use crate::arguments::Options;
use crate::streams::{copy, own};

type Failure = Box<dyn std::error::Error>;

/// Runs a program; the exit status.
pub(crate) fn run(options: Options) -> Result<u8, Failure> {
    let profile = profile(&options)?;
    let command = command(&options)?;
    let program = options.argv.first().cloned().unwrap_or_default();
    let sandbox = Sandbox::builder(profile).run_directories(false).single_use(true).build()?;
    warn(sandbox.plan());
    let mut process = sandbox.start(command)?;
    if let Some(stdin) = process.take_stdin() {
        // Not waited for: the program may end without reading it, and then so do we.
        drop(copy(own(std::io::stdin())?, stdin));
    }
    let outputs = [
        (process.take_stdout(), own(std::io::stdout())?),
        (process.take_stderr(), own(std::io::stderr())?),
    ];
    let copying = outputs.into_iter().filter_map(|(from, to)| Some(copy(from?, to)));
    let copying: Vec<_> = copying.collect();
    let result = process.wait()?;
    for stream in copying {
        stream.finish()?;
    }
    // All of the run is gone; what is left of the launcher needs nobody to wait for it.
    sandbox.leave();
    explain(&result.ending, result.timed_out, &program);
    Ok(u8::try_from(result.returncode()).unwrap_or(u8::MAX))
}

/// Prints the plan; 0.
pub(crate) fn plan(options: Options) -> Result<u8, Failure> {
    let profile = profile(&options)?;
    let plan = resolve(&profile, &Host::probe(&profile)?)?;
    write!(std::io::stdout(), "{plan}")?;
    Ok(0)
}

/// The profile file, or the default, with the options over it.
fn profile(options: &Options) -> Result<SandboxProfile, Failure> {
    let mut profile = match &options.profile {
        Some(path) => SandboxProfile::from_file(path)?,
        None => SandboxProfile::default(),
    };
    if let Some(path) = &options.workspace {
        let access = options.workspace_access;
        profile.workspace = Workspace::Directory { path: absolute(path)?, access };
    }
    if let Some(venv) = &options.venv {
        profile.venv = Some(absolute(venv)?);
    }
    for bind in &options.ro_bind {
        let source = absolute(&bind.source)?;
        let target = if bind.target == bind.source { &source } else { &bind.target };
        profile.required_ro_binds.push(Bind::new(source.clone(), target.clone()));
    }
    Ok(profile)
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()).into())
}

fn command(options: &Options) -> Result<Command, Failure> {
    let mut command = Command::from(options.argv.clone()).stdin(Stdin::Piped);
    for entry in &options.env {
        let (name, value) = split(entry).ok_or_else(|| format!("--env {entry:?}: no '='"))?;
        command = command.env(name, value);
    }
    match options.timeout {
        Some(timeout) => Ok(command.timeout(timeout)),
        None => Ok(command),
    }
}

fn split(entry: &OsStr) -> Option<(OsString, OsString)> {
    let bytes = entry.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (bytes.get(..at)?, bytes.get(at + 1..)?);
    Some((OsStr::from_bytes(name).to_owned(), OsStr::from_bytes(value).to_owned()))
}

/// What the user asked for is no news; what the host could not do is.
fn warn(plan: &Plan) {
    for warning in &plan.warnings {
        if let Warning::SharedGroups(groups) = warning {
            let text = "this host cannot drop supplementary groups; the guest keeps";
            writeln!(std::io::stderr(), "postern: warning: {text} {groups:?}").ok();
        }
    }
}

fn explain(ending: &Ending, timed_out: bool, program: &OsStr) {
    let line = if timed_out {
        "[postern] timed out".to_owned()
    } else if let Ending::ExecFailed(errno) = ending {
        let why = std::io::Error::from_raw_os_error(*errno);
        format!("postern: cannot exec {program:?}: {why}")
    } else if *ending == Ending::LauncherLost {
        "postern: launcher_lost: the launcher was killed, and the run with it".to_owned()
    } else {
        return;
    };
    writeln!(std::io::stderr(), "{line}").ok();
}
