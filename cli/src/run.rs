//! `postern run`, `python`, `bash` and `plan`: options to a sandbox and a command, a run to its end,
//! and the end to an exit status.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postern::error::CommandError;
use postern::host::Host;
use postern::plan::{Plan, Warning, resolve};
use postern::{
    Audit, Command, Ending, OutputCap, ProcResult, Process, Sandbox, SandboxProfile, Stdin,
    WindowSize,
};

use crate::arguments::{
    BashVerb, Beyond, PlanVerb, PythonVerb, RunOptions, RunVerb, StdinChoice, WorldOptions,
};
use crate::failure::Failure;
use crate::profile::{profile, write_out};
use crate::progress::Progress;
use crate::report;
use crate::say::{Line, Voice};
use crate::script::{Script, script};
use crate::signals::{OwnTerminal, Signals};
use crate::streams::{Allowed, Copying, SlowReader, copy, is_null, own};
use crate::terminal::{GivenOver, is_in_background};

/// A run that has been asked for.
struct Job {
    profile: SandboxProfile,
    command: Command,
    /// What to call the program when it cannot be started.
    program: OsString,
    /// Its source is a file of the run's own directory.
    is_script: bool,
    /// Nothing of our stdin is for the guest.
    no_stdin: bool,
    options: RunOptions,
}

/// Runs a program; the exit status.
pub(crate) fn run(verb: RunVerb, voice: Voice) -> Result<u8, Failure> {
    let profile = profile(&verb.world)?;
    let Some(program) = verb.argv.first().cloned() else {
        return Err(postern::Error::Command(CommandError::NoProgram).into());
    };
    let command = with_options(Command::from(verb.argv), &verb.world, &verb.options);
    let options = verb.options;
    Job { profile, command, program, is_script: false, no_stdin: false, options }.carry_out(voice)
}

/// Runs Python source code; the exit status.
pub(crate) fn python(verb: PythonVerb, voice: Voice) -> Result<u8, Failure> {
    let script = script(verb.code, verb.rest)?;
    let profile = profile(&verb.world)?;
    let program = profile.python_program().into_os_string();
    let (command, no_stdin) = scripted(script, Command::python);
    let command = with_options(command, &verb.world, &verb.options);
    let options = verb.options;
    Job { profile, command, program, is_script: true, no_stdin, options }.carry_out(voice)
}

/// Runs a shell script; the exit status.
pub(crate) fn bash(verb: BashVerb, voice: Voice) -> Result<u8, Failure> {
    let script = script(verb.code, verb.rest)?;
    let profile = profile(&verb.world)?;
    let program = verb.shell;
    let (command, no_stdin) = scripted(script, |code| Command::shell(program.clone(), code));
    let command = with_options(command, &verb.world, &verb.options);
    let options = verb.options;
    Job { profile, command, program, is_script: true, no_stdin, options }.carry_out(voice)
}

/// Prints the plan; 0.
pub(crate) fn plan(verb: &PlanVerb) -> Result<u8, Failure> {
    let profile = profile(&verb.world)?;
    let host = Host::probe(&profile).map_err(postern::Error::from)?;
    let plan = resolve(&profile, &host)?;
    write_out(plan.to_string().as_bytes())?;
    Ok(0)
}

/// The command for a script, and whether stdin is used up.
fn scripted(script: Script, command: impl FnOnce(Vec<u8>) -> Command) -> (Command, bool) {
    let command = command(script.code).args(script.arguments);
    let command = match script.name {
        Some(name) => command.script_name(name),
        None => command,
    };
    (command, script.is_stdin)
}

fn with_options(command: Command, world: &WorldOptions, options: &RunOptions) -> Command {
    let mut command = command.merge_output(options.merge);
    // As ssh(1) has it: the guest draws for the terminal that it is shown on.
    if let Some(term) = std::env::var_os("TERM").filter(|_| options.tty) {
        command = command.env("TERM", term);
    }
    for (name, value) in &world.env {
        command = command.env(name, value);
    }
    if let Some(timeout) = options.timeout {
        command = command.timeout(timeout);
    }
    if let Some(bytes) = options.max_output {
        command = command.output_bytes_max(bytes);
    }
    command.output_cap(match options.at_max_output {
        Beyond::Drop => OutputCap::Drop,
        Beyond::Kill => OutputCap::Kill,
    })
}

impl Job {
    fn carry_out(mut self, voice: Voice) -> Result<u8, Failure> {
        let stdin = own(std::io::stdin()).map_err(broken("take stdin"))?;
        let input = self.input(&stdin)?;
        let tty = self.options.tty;
        let audit = self.options.audit.as_deref().map(audit).transpose()?;
        let terminal = if tty { OwnTerminal::GivenOver } else { OwnTerminal::Ours };
        let signals = Signals::take(self.options.grace, terminal);
        let signals = signals.map_err(broken("prepare for signals"))?;
        let is_quiet = self.options.json || self.options.quiet;
        let progress = Progress::start("making the sandbox", !is_quiet);
        let profile = std::mem::take(&mut self.profile);
        let mut builder = Sandbox::builder(profile);
        if let Some(audit) = &audit {
            builder = builder.audit(audit.clone());
        }
        let built = builder.run_directories(self.is_script).single_use(true).build();
        drop(progress);
        if let Some(signal) = signals.asked() {
            return Err(Failure::Interrupted { signal: signal as i32 });
        }
        let sandbox = built?;
        if !is_quiet {
            warn(sandbox.plan(), voice);
            if tty && is_in_background(&stdin) {
                let text = "in the background; the terminal is the program's once this job has it";
                voice.say(&[Line::Warning(text.to_owned())]);
            }
        }
        let given_over = tty.then(|| GivenOver::new(stdin)).transpose();
        let given_over = given_over.map_err(broken("give the terminal over"))?;
        let progress = Progress::start("starting the program", !is_quiet);
        let process = sandbox.start(std::mem::take(&mut self.command).stdin(input));
        drop(progress);
        let mut process = process?;
        if let Err(signal) = signals.started(process.handle()) {
            return Err(Failure::Interrupted { signal: signal as i32 });
        }
        let exceeded = Arc::default();
        let copying = match self.options.json {
            true => None,
            false => Some(
                pass_through(&mut process, &self.options, &exceeded)
                    .map_err(broken("take the outputs"))?,
            ),
        };
        let result = process.wait()?;
        signals.over();
        let is_cut_short = result.timed_out || signals.asked().is_some();
        let slow = if is_cut_short { SlowReader::GivenUp } else { SlowReader::Awaited };
        let last = finish(copying, slow)?;
        drop(given_over);
        // All of the run is gone; what is left of the launcher needs nobody to wait for it.
        sandbox.leave();
        let exceeded = exceeded.load(Ordering::Relaxed);
        self.tell(&result, &signals, exceeded, audit.as_ref(), last, voice)
    }

    /// What came of it: the exit status, and what there is to say.
    fn tell(
        &self,
        result: &ProcResult,
        signals: &Signals,
        exceeded: bool,
        audit: Option<&Audit>,
        last: Option<u8>,
        voice: Voice,
    ) -> Result<u8, Failure> {
        let mut lines = Vec::new();
        if self.options.json {
            let terminated = result.terminated || signals.asked().is_some();
            write_out(&report::json(result, terminated))?;
        } else {
            lines.extend(self.cap_words(exceeded));
            lines.extend(explain(result, signals, self.options.grace, &self.program));
        }
        if self.options.stats {
            lines.extend(report::stats(result));
        }
        if audit.is_some_and(|audit| audit.lost() > 0) {
            lines.push(Line::Warning(
                "the audit record of this run could not be written".to_owned(),
            ));
        }
        if !lines.is_empty() && last.is_some_and(|byte| byte != b'\n') {
            // The guest's last line has no end, and ours begins one.
            std::io::stderr().write_all(b"\n").ok();
        }
        voice.say(&lines);
        Ok(u8::try_from(result.returncode()).unwrap_or(u8::MAX))
    }

    /// What is said of output beyond what may be passed through.
    fn cap_words(&self, exceeded: bool) -> Option<Line> {
        let max = self.options.max_output.filter(|_| exceeded)?;
        match self.options.at_max_output {
            Beyond::Kill => Some(Line::Failure(format!(
                "it wrote more than {max} bytes to an output (--max-output), and was killed"
            ))),
            Beyond::Drop => (!self.options.quiet).then(|| {
                Line::Warning(format!("output beyond {max} bytes (--max-output) was dropped"))
            }),
        }
    }

    /// Where the guest's input comes from; with `--tty` the command is given a terminal.
    fn input(&mut self, stdin: &File) -> Result<Stdin, Failure> {
        if self.options.tty {
            let refused = match (self.no_stdin, stdin.is_terminal()) {
                (false, true) => None,
                (true, _) => Some("--tty: stdin is where the code comes from; name a file, or -c"),
                (false, false) => Some("--tty: stdin is no terminal; leave --tty out"),
            };
            if let Some(words) = refused {
                return Err(Failure::Usage(words.to_owned()));
            }
            let command = std::mem::take(&mut self.command);
            self.command = command.terminal(WindowSize::of(stdin).unwrap_or_default());
        }
        let copied = |file: &File| file.try_clone().map(Stdin::copied);
        match &self.options.stdin {
            StdinChoice::Inherit if !self.no_stdin && !is_null(stdin) => {
                copied(stdin).map_err(broken("take stdin"))
            }
            StdinChoice::Inherit | StdinChoice::Null => Ok(Stdin::Null),
            StdinChoice::File(path) => open(path)
                .map(Stdin::copied)
                .map_err(|source| Failure::File { what: "read", path: path.clone(), source }),
        }
    }
}

fn broken(what: &'static str) -> impl FnOnce(std::io::Error) -> Failure {
    move |source| Failure::Stream { what, source }
}

fn open(path: &Path) -> std::io::Result<File> {
    let file = File::open(path)?;
    match file.metadata()?.is_dir() {
        true => Err(std::io::ErrorKind::IsADirectory.into()),
        false => Ok(file),
    }
}

/// Where the record of the run goes.
fn audit(path: &Path) -> Result<Audit, Failure> {
    let failed = |source| Failure::File { what: "append to", path: path.to_owned(), source };
    Audit::append_to(path).map_err(failed)
}

type Outputs = [Option<Copying>; 2];

/// Has the guest's outputs passed on to ours. What cannot be written ends the run: nobody would see
/// what it does from then on.
fn pass_through(
    process: &mut Process,
    options: &RunOptions,
    exceeded: &Arc<AtomicBool>,
) -> std::io::Result<Outputs> {
    let (stdout, stderr) = (own(std::io::stdout())?, own(std::io::stderr())?);
    let run = process.handle();
    let kills = options.at_max_output == Beyond::Kill;
    let allowed = || {
        let (run, exceeded) = (run.clone(), Arc::clone(exceeded));
        let then = move || {
            if kills {
                run.kill();
            }
        };
        options.max_output.map(|bytes| Allowed { bytes, exceeded, then: Box::new(then) })
    };
    let copying = |from: Option<File>, to| {
        let run = run.clone();
        from.map(|from| copy(from, to, allowed(), move || run.kill()))
    };
    Ok([copying(process.take_stdout(), stdout), copying(process.take_stderr(), stderr)])
}

/// Waits until all output has been passed on; the last byte of stderr, or of stdout where both are
/// one place for all we know.
fn finish(copying: Option<Outputs>, slow: SlowReader) -> Result<Option<u8>, Failure> {
    let mut last = None;
    for (copying, what) in copying.into_iter().flatten().zip(["write to stdout", "write to stderr"])
    {
        if let Some(copying) = copying {
            last = copying.finish(slow).map_err(|source| Failure::Stream { what, source })?;
        }
    }
    Ok(last)
}

/// What the user asked for is no news; what the host could not do is.
fn warn(plan: &Plan, voice: Voice) {
    for warning in &plan.warnings {
        if let Warning::SharedGroups(groups) = warning {
            let text = "this host cannot drop supplementary groups; the guest keeps";
            voice.say(&[Line::Warning(format!("{text} {groups:?}"))]);
        }
    }
    if let Some((_, gap)) = plan.cgroup_gaps.first() {
        let limits = plan.cgroup_gaps.iter().map(|(limit, _)| limit.resource.to_string());
        let limits = limits.collect::<Vec<_>>().join(", ");
        let fix = Line::Fix(gap.fix().to_owned());
        voice.say(&[Line::Warning(format!("not limited here: {limits}; {gap}")), fix]);
    }
}

/// What a person would not understand from the exit status alone.
fn explain(result: &ProcResult, signals: &Signals, grace: Duration, program: &OsStr) -> Vec<Line> {
    if result.timed_out {
        return vec![Line::TimedOut];
    }
    if let Some(signal) = signals.overstayed() {
        let grace = grace.as_secs_f64();
        let text = format!("it did not end within {grace} s of {signal}, and was killed");
        return vec![Line::Failure(text)];
    }
    if result.oom.is_yes() {
        let text = "out of memory: the kernel killed the run (memory.max of its control group, or \
                    the machine's memory)";
        return vec![Line::Failure(text.to_owned())];
    }
    if result.pids_limit.is_yes() {
        let text = "it came to its limit of processes (pids.max of its control group)";
        return vec![Line::Warning(text.to_owned())];
    }
    if let Ending::ExecFailed(errno) = result.ending {
        let why = std::io::Error::from_raw_os_error(errno);
        let fix = "the guest sees /usr, its workspace and what is bound; show it the program with \
                   --ro-bind, or name another";
        let fix = Some(fix).filter(|_| why.kind() == std::io::ErrorKind::NotFound);
        let failure = Line::Failure(format!("cannot exec {program:?}: {why}"));
        return [failure].into_iter().chain(fix.map(|fix| Line::Fix(fix.to_owned()))).collect();
    }
    if result.ending == Ending::LauncherLost {
        let text = "launcher_lost: the launcher was killed, and the run with it";
        return vec![Line::Failure(text.to_owned())];
    }
    if result.ending == Ending::Unreaped {
        return vec![Line::Failure(format!("the run was {}", result.reason()))];
    }
    Vec::new()
}
