//! The command line, as data; looks at no file and starts nothing.

mod options;
mod seccomp;
mod streams;
mod tail;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use options::{Paint, RunOptions, WorldOptions};
pub(crate) use seccomp::{ExplainVerb, ListVerb, SeccompVerb};
pub(crate) use streams::{Beyond, StdinChoice};

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
    /// Without --json, stdin, stdout and stderr are passed through. The exit status is the
    /// program's own; 128 and the signal for one ended by a signal; 124 when the time is up; 126 or
    /// 127 for a program that cannot be started or found; 125 for a failure of postern itself.
    #[command(after_long_help = RUN_NOTES)]
    Run(RunVerb),
    /// Run Python source code in a sandbox.
    ///
    /// The code is read here, on the host; the guest finds it as a read-only file in /run/postern,
    /// which tracebacks show and sys.argv begins with. Files beside FILE are not seen: for a program
    /// of several files use `postern run --workspace DIR -- python3 job.py`. What follows CODE or
    /// FILE belongs to the script, even where it looks like an option. The interpreter does not buffer
    /// output (-u) and has no user site directory (-s). The exit status is as for `run`; 127 also
    /// where the guest has no Python, 125 where it is older than 3.8.
    #[command(
        after_long_help = RUN_NOTES,
        override_usage = "postern python [OPTIONS] <-c CODE|FILE|-> [ARGS]..."
    )]
    Python(PythonVerb),
    /// Run a shell script in a sandbox.
    ///
    /// The script is read here, on the host; the guest finds it as a read-only file in
    /// /run/postern, which is $0; ARGS are $1 and so on. What follows SCRIPT or FILE belongs to the
    /// script, even where it looks like an option. The exit status is as for `run`.
    #[command(
        after_long_help = RUN_NOTES,
        override_usage = "postern bash [OPTIONS] <-c SCRIPT|FILE|-> [ARGS]..."
    )]
    Bash(BashVerb),
    /// Print what `run` in the same sandbox would do, one step a line, and do nothing.
    Plan(PlanVerb),
    /// Launch a sandbox for real and say, line by line, what is enforced here, what is not and why,
    /// and what to do about it. Changes nothing.
    ///
    /// The exit status is 0 when what the profile promises holds on this machine, 1 when it does
    /// not, and 125 for a failure of postern itself, such as a profile that cannot be read.
    Check(CheckVerb),
    /// Show profiles, and the schema of their files.
    #[command(subcommand)]
    Profile(ProfileVerb),
    /// Say what the system-call filter answers, and why; nothing is started.
    #[command(subcommand)]
    Seccomp(SeccompVerb),
    /// See it all at work: an untrusted pandas script, a database of this host, one typed method
    /// between them, and everything that the script should not be able to do.
    ///
    /// Starts the program `postern-demo`, which is a program of its own so that this one stays
    /// small: `cargo install --path demo`. It is looked for beside this one, then in PATH, and takes
    /// all that follows: `postern demo --help` is its own.
    #[command(disable_help_flag = true)]
    Demo(DemoVerb),
    /// Be bubblewrap: its options in their order, its behaviour, its messages.
    ///
    /// The same program does so under the name `bwrap`, by a link for example. `postern bwrap --help`
    /// lists the options; docs/bwrap.md says what differs. Nothing is confined beyond what is asked for
    /// but with `--hardened`, which is an option of ours. The exit status is the program's own, 128 and
    /// the signal for one ended by a signal, 127 or 126 for one that is not there or cannot be started,
    /// and 1 for everything else that keeps it from being started.
    #[command(disable_help_flag = true)]
    Bwrap(BwrapVerb),
    /// Print a completion script for a shell.
    ///
    /// For bash: postern completions bash > ~/.local/share/bash-completion/completions/postern
    Completions(CompletionsVerb),
    /// Print the manual page, or write one for each verb.
    Man(ManVerb),
}

/// What every verb that runs something says at the end of its help.
const RUN_NOTES: &str = "\
Precedence: the defaults, then the profile file, then each --set in turn, then the named options. \
What can be given several times adds to what is there; of two values for one thing the later \
counts.

Signals: INT, TERM, HUP, QUIT, USR1, USR2 and WINCH go to the program. After the first INT, TERM, \
HUP or QUIT it has the grace to end by itself; then everything in the run is killed, as it is by a \
second INT. A signal that was ignored when postern started, as after nohup, stays ignored.

Input: stdin is read ahead of the program by a piece of at most 64 KiB and what a pipe holds; what \
the program does not take of it is lost, so that a loop which reads its list from stdin needs \
--stdin null.

Terminal: with --tty your terminal is as before whenever postern ends, or is stopped by TSTP; only \
a postern that was killed (KILL) leaves it to `stty sane`. A change of its size is passed on. In the \
background it is left alone, and postern is not stopped.

With POSTERN_LOG set to error, warn, info, debug or trace in the environment, what postern does is \
told on stderr, down to that level.

With --json, one object on stdout at the end:
  returncode   the exit status, a number
  ending       how it ended: {kind: exited, code}, {kind: signaled, signal}, {kind: killed, signal},
               {kind: exec_failed, errno}, {kind: launcher_lost} or {kind: unreaped}
  signal       the number of the signal that ended it, or null
  ok           it left with 0, in time, and not overflowed
  timed_out    it was killed since its time was up
  terminated   a signal to postern asked for its end
  truncated    output beyond --max-output was dropped; stdout_truncated, stderr_truncated say which
  overflowed   it wrote more than --max-output, with --at-max-output kill
  oom          the kernel killed it for want of memory; null where nobody counts
  pids_limit   it came to --pids; likewise
  stdout, stderr
               text, with U+FFFD for what is no UTF-8; then stdout_base64, stderr_base64 hold all
               bytes
  duration_ms  from the request until everything was gone
  usage        {user_ms, system_ms, peak_memory_kib, cgroup}; cgroup is null without a limit of the
               whole run that is held, or {peak_memory_bytes, user_ms, system_ms, throttled_periods,
               throttled_ms} of all its processes
  enforcement  what held it: {tier, namespaces, kernel_uid, kernel_gid, shared_uid, shared_groups,
                landlock, landlock_abi, seccomp, seccomp_digest, seccomp_policy_digest, cgroup,
                quota_gaps, launcher, fallbacks, warnings}
When postern itself fails, the object is {error: {kind, message, fix}}, with field and rule, or \
phase, step, call, object, errno and cause, where there are such; the exit status is 125, or 128 and the signal \
where one came before the run had begun.";

/// `postern run`.
#[derive(Debug, Args)]
pub(crate) struct RunVerb {
    #[command(flatten)]
    pub(crate) world: WorldOptions,
    #[command(flatten)]
    pub(crate) options: RunOptions,
    /// The program and its arguments.
    ///
    /// [default: none, it must be there] [example: -- python3 -c 'print(6 * 7)']
    #[arg(trailing_var_arg = true, value_name = "ARGV")]
    pub(crate) argv: Vec<OsString>,
}

/// `postern python`.
#[derive(Debug, Args)]
pub(crate) struct PythonVerb {
    #[command(flatten)]
    pub(crate) world: WorldOptions,
    #[command(flatten)]
    pub(crate) options: RunOptions,
    /// The code itself; what follows it is the rest of sys.argv.
    ///
    /// [default: none, FILE is read] [example: -c 'print(6 * 7)']
    #[arg(short = 'c', value_name = "CODE", allow_hyphen_values = true)]
    pub(crate) code: Option<OsString>,
    /// A file of source code on the host, at most 256 MiB, or - for stdin, which is empty for the
    /// guest then; and the script's arguments.
    ///
    /// [default: none, -c or FILE must be there] [example: job.py --verbose]
    #[arg(trailing_var_arg = true, value_name = "FILE|ARGS")]
    pub(crate) rest: Vec<OsString>,
}

/// `postern bash`.
#[derive(Debug, Args)]
pub(crate) struct BashVerb {
    #[command(flatten)]
    pub(crate) world: WorldOptions,
    #[command(flatten)]
    pub(crate) options: RunOptions,
    /// The shell that reads the script: a name for the guest's PATH, or a path inside.
    ///
    /// [default: bash] [example: --shell sh]
    #[arg(long, value_name = "NAME", default_value = "bash", hide_default_value = true)]
    pub(crate) shell: OsString,
    /// The script itself; what follows it is $1 and so on.
    ///
    /// [default: none, FILE is read] [example: -c 'echo $((6 * 7))']
    #[arg(short = 'c', value_name = "SCRIPT", allow_hyphen_values = true)]
    pub(crate) code: Option<OsString>,
    /// A script on the host, at most 256 MiB, or - for stdin, which is empty for the guest then;
    /// and its arguments.
    ///
    /// [default: none, -c or FILE must be there] [example: job.sh --verbose]
    #[arg(trailing_var_arg = true, value_name = "FILE|ARGS")]
    pub(crate) rest: Vec<OsString>,
}

/// `postern plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanVerb {
    #[command(flatten)]
    pub(crate) world: WorldOptions,
    /// What `run` would start; the plan is the same for every program.
    ///
    /// [default: none] [example: -- python3]
    #[arg(trailing_var_arg = true, value_name = "ARGV")]
    pub(crate) _argv: Vec<OsString>,
}

/// `postern check`.
#[derive(Debug, Args)]
pub(crate) struct CheckVerb {
    #[command(flatten)]
    pub(crate) world: WorldOptions,
    /// One JSON object instead of text.
    ///
    /// [default: text] [example: --json]
    #[arg(long)]
    pub(crate) json: bool,
}

/// `postern profile`.
#[derive(Debug, Subcommand)]
pub(crate) enum ProfileVerb {
    /// Print the profile that the options come to, every key in it.
    ///
    /// What is printed is a profile file: `postern run --profile` reads an equal profile back.
    Show(Box<ShowVerb>),
    /// Print the JSON Schema of profile files, for editors and for programs that write them.
    Schema,
}

/// `postern profile show`.
#[derive(Debug, Args)]
pub(crate) struct ShowVerb {
    #[command(flatten)]
    pub(crate) world: WorldOptions,
    /// As JSON.
    ///
    /// [default: TOML] [example: --json]
    #[arg(long)]
    pub(crate) json: bool,
}

/// `postern demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoVerb {
    /// What `postern-demo` takes.
    ///
    /// [default: none] [example: --json]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub(crate) rest: Vec<OsString>,
}

/// `postern bwrap`.
#[derive(Debug, Args)]
pub(crate) struct BwrapVerb {
    /// What `bwrap` takes.
    ///
    /// [default: none, it must be there] [example: --ro-bind / / --unshare-all true]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub(crate) rest: Vec<OsString>,
}

/// `postern completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsVerb {
    /// The shell.
    ///
    /// [default: none, it must be there] [example: bash]
    #[arg(value_name = "SHELL", hide_possible_values = false)]
    pub(crate) shell: Shell,
}

/// `postern man`.
#[derive(Debug, Args)]
pub(crate) struct ManVerb {
    /// A directory that is there, in which postern.1 and a page for each verb are written.
    ///
    /// [default: none, postern.1 is printed] [example: --out ~/.local/share/man/man1]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

impl Verb {
    /// Whether somebody reads the outcome as JSON.
    pub(crate) fn is_for_programs(&self) -> bool {
        match self {
            Verb::Run(RunVerb { options, .. })
            | Verb::Python(PythonVerb { options, .. })
            | Verb::Bash(BashVerb { options, .. }) => options.json,
            Verb::Check(verb) => verb.json,
            Verb::Seccomp(SeccompVerb::Explain(verb)) => verb.json,
            Verb::Seccomp(SeccompVerb::List(verb)) => verb.json,
            Verb::Demo(verb) => verb.rest.iter().any(|word| word == "--json"),
            Verb::Plan(_)
            | Verb::Profile(_)
            | Verb::Bwrap(_)
            | Verb::Completions(_)
            | Verb::Man(_) => false,
        }
    }

    /// What was said about colours.
    pub(crate) fn paint(&self) -> Paint {
        match self {
            Verb::Run(RunVerb { world, .. })
            | Verb::Python(PythonVerb { world, .. })
            | Verb::Bash(BashVerb { world, .. })
            | Verb::Plan(PlanVerb { world, .. })
            | Verb::Check(CheckVerb { world, .. }) => world.color,
            Verb::Profile(ProfileVerb::Show(show)) => show.world.color,
            Verb::Profile(ProfileVerb::Schema)
            | Verb::Seccomp(_)
            | Verb::Demo(_)
            | Verb::Bwrap(_)
            | Verb::Completions(_)
            | Verb::Man(_) => Paint::Auto,
        }
    }
}

impl Arguments {
    /// Reads a command line, its first word the name of the command.
    pub(crate) fn read(words: Vec<OsString>) -> Result<Arguments, clap::Error> {
        if let Some(verb) = Verb::read_alone(&words) {
            return Ok(Arguments { verb });
        }
        let mut definition = Arguments::command();
        let words = match words.get(1).and_then(|verb| definition.find_subcommand(verb)) {
            Some(verb) => tail::fence(verb, 2, words),
            None => words,
        };
        let matches = definition.try_get_matches_from_mut(words)?;
        Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut definition))
    }
}

impl Verb {
    /// A verb that runs something, read without the definition of all others, which costs more than
    /// the reading. `None`: there is something to say, which takes the whole definition.
    fn read_alone(words: &[OsString]) -> Option<Verb> {
        match words.get(1)?.to_str()? {
            "run" => alone(words).map(Verb::Run),
            "python" => alone(words).map(Verb::Python),
            "bash" => alone(words).map(Verb::Bash),
            _ => None,
        }
    }
}

fn alone<V: Args>(words: &[OsString]) -> Option<V> {
    let definition = V::augment_args(clap::Command::new("postern"));
    let words = tail::fence(&definition, 1, words.get(1..)?.to_vec());
    V::from_arg_matches(&definition.try_get_matches_from(words).ok()?).ok()
}

#[cfg(test)]
mod tests;
