//! The options that several verbs have, each with its default and an example in its words.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use postern::profile::{Bind, Etc, ProcKind, WorkspaceAccess};

use super::streams::{self, Beyond, StdinChoice};
use super::values;

/// What the sandbox is made of.
#[derive(Debug, Args)]
pub(crate) struct WorldOptions {
    /// A profile file, TOML or JSON by its name; the other options go over it.
    ///
    /// [default: the default profile] [example: --profile analysis.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// A key of the profile, as in its file, and its value; repeatable.
    ///
    /// [default: the profile's] [example: --set limits.nproc=64]
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::setting)]
    pub(crate) set: Vec<(String, String)>,
    /// A directory of yours as /workspace, writable by the guest.
    ///
    /// [default: an empty one of 256 MiB that goes with the run] [example: --workspace ./job]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// How the guest comes to be allowed to write to DIR: `as-is`, or `shared`, which makes it mode
    /// 1777, open to every user of this machine.
    ///
    /// [default: as-is] [example: --workspace-access shared]
    #[arg(long, value_name = "HOW", default_value = "as-is", hide_default_value = true,
          requires = "workspace", value_parser = values::access(), hide_possible_values = true)]
    pub(crate) workspace_access: WorkspaceAccess,
    /// A Python virtual environment, read-only at its own path and first on PATH.
    ///
    /// [default: none] [example: --venv /opt/analysis-env]
    #[arg(long, value_name = "DIR")]
    pub(crate) venv: Option<PathBuf>,
    /// A directory whose system directories stand in for the host's.
    ///
    /// [default: the host's own] [example: --rootfs /srv/images/debian]
    #[arg(long, value_name = "DIR")]
    pub(crate) rootfs: Option<PathBuf>,
    /// The guest's Python: a name for its PATH, or an absolute path inside.
    ///
    /// [default: bin/python of the venv, or python3] [example: --python python3.12]
    #[arg(long, value_name = "NAME")]
    pub(crate) python: Option<String>,
    /// Modules that the guest can import, a file or a directory; repeatable.
    ///
    /// [default: none] [example: --stubs ./stubs]
    #[arg(long, value_name = "PATH")]
    pub(crate) stubs: Vec<PathBuf>,
    /// A host path to see read-only inside, at the same path or another; repeatable. A colon in a
    /// path is written `\:`.
    ///
    /// [default: none] [example: --ro-bind /srv/data:/data]
    #[arg(long, value_name = "SOURCE[:TARGET]", value_parser = values::bind())]
    pub(crate) ro_bind: Vec<Bind>,
    /// A host path to see inside and to write to, where its permission bits let the guest;
    /// repeatable.
    ///
    /// [default: none] [example: --rw-bind /srv/out:/out]
    #[arg(long, value_name = "SOURCE[:TARGET]", value_parser = values::bind())]
    pub(crate) rw_bind: Vec<Bind>,
    /// A variable for the guest, which inherits none; repeatable.
    ///
    /// [default: the profile's] [example: --env TZ=UTC]
    #[arg(long, value_name = "NAME=VALUE", value_parser = values::variable())]
    pub(crate) env: Vec<(OsString, OsString)>,
    /// The working directory inside.
    ///
    /// [default: /workspace] [example: --cwd /tmp]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Memory of the whole run, its tmpfs files included, as bytes or with K, M, G or T, which are
    /// powers of 1024; no swap. A run that uses it up is killed. Needs a delegated control group;
    /// where there is none a warning says so.
    ///
    /// [default: no limit] [example: --memory 512M]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub(crate) memory: Option<u64>,
    /// Processors that the whole run has at the most, a fraction allowed; as for --memory.
    ///
    /// [default: no limit] [example: --cpus 1.5]
    #[arg(long, value_name = "N", value_parser = values::cpus)]
    pub(crate) cpus: Option<u64>,
    /// Processes and threads of the whole run; as for --memory.
    ///
    /// [default: no limit] [example: --pids 64]
    #[arg(long, value_name = "N")]
    pub(crate) pids: Option<u64>,
    /// What /proc is: `read-only`; `minimal`, processes only; `masked`, the guest's own files
    /// writable; or `none`.
    ///
    /// [default: read-only] [example: --proc none]
    #[arg(long, value_name = "KIND", value_parser = values::proc(), hide_possible_values = true)]
    pub(crate) proc: Option<ProcKind>,
    /// What /etc is: `generated`, what ordinary programs need; or `none`, ld.so.cache alone.
    ///
    /// [default: generated] [example: --etc none]
    #[arg(long, value_name = "KIND", value_parser = values::etc(), hide_possible_values = true)]
    pub(crate) etc: Option<Etc>,
    /// A policy of your own over the system-call filter, in the JSON of the crate seccompiler; it
    /// can only tighten. `postern seccomp explain --policy FILE` says what it does.
    ///
    /// [default: the profile's] [example: --seccomp-policy policy.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) seccomp_policy: Option<PathBuf>,
    /// The hostname inside.
    ///
    /// [default: sandbox] [example: --hostname box]
    #[arg(long, value_name = "NAME")]
    pub(crate) hostname: Option<String>,
    /// Whether postern's own messages are coloured: `auto`, on a terminal and without NO_COLOR;
    /// `always`; or `never`.
    ///
    /// [default: auto] [example: --color never]
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub(crate) color: Paint,
}

/// How a program is run.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct RunOptions {
    /// Seconds until everything in the run is killed, a fraction allowed.
    ///
    /// [default: no limit] [example: --timeout 2.5]
    #[arg(long, value_name = "SECONDS", value_parser = values::timeout)]
    pub(crate) timeout: Option<Duration>,
    /// Seconds that the program has to end by itself after the first INT, TERM, HUP or QUIT, a
    /// fraction allowed; then everything in the run is killed.
    ///
    /// [default: 5] [example: --grace 30]
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds, default_value = "5",
          hide_default_value = true)]
    pub(crate) grace: Duration,
    /// The guest's stdin: `inherit`, postern's own, copied; `null`, /dev/null, and postern's own is
    /// left alone; or a file, copied (`./null` for one of such a name).
    ///
    /// [default: inherit] [example: --stdin null]
    #[arg(long, value_name = "WHAT", default_value = "inherit", hide_default_value = true,
          value_parser = streams::stdin())]
    pub(crate) stdin: StdinChoice,
    /// Give the program a terminal of its own, with job control and the size of yours, which passes
    /// every key on: Ctrl-C and Ctrl-Z are the program's. stdin must be a terminal. All output is
    /// stdout's. TERM is yours unless --env says otherwise.
    ///
    /// [default: pipes] [example: -t]
    #[arg(long, short = 't', conflicts_with_all = ["json", "stdin", "merge"])]
    pub(crate) tty: bool,
    /// Give the guest one pipe for both outputs, which comes out on stdout in its true order.
    ///
    /// [default: two pipes] [example: --merge]
    #[arg(long)]
    pub(crate) merge: bool,
    /// Say on stderr at the end how the run ended, what it used and what held it.
    ///
    /// [default: not said] [example: --stats]
    #[arg(long)]
    pub(crate) stats: bool,
    /// Print one JSON object at the end and pass no output through; its keys are listed below.
    ///
    /// [default: output is passed through] [example: --json]
    #[arg(long)]
    pub(crate) json: bool,
    /// Append a record of the run to this file when it has ended: one JSON object on one line, with
    /// what was run, how it ended, what it used and what held it, and nothing that it wrote.
    ///
    /// [default: no record] [example: --audit /var/log/postern.jsonl]
    #[arg(long, value_name = "FILE")]
    pub(crate) audit: Option<PathBuf>,
    /// How much of stdout and of stderr, each, is kept or passed through: bytes, or KiB, MiB, GiB
    /// with K, M, G behind the number.
    ///
    /// [default: 64M with --json, else no limit] [example: --max-output 1M]
    #[arg(long, value_name = "SIZE", value_parser = streams::size)]
    pub(crate) max_output: Option<u64>,
    /// What becomes of output beyond --max-output: `drop`, it is read and dropped; or `kill`,
    /// everything in the run is killed, and the exit status is 137.
    ///
    /// [default: drop] [example: --at-max-output kill]
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "drop",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub(crate) at_max_output: Beyond,
    /// Say nothing of postern's own but failures: no warning, and no word on a terminal about what
    /// takes more than a second.
    ///
    /// [default: both are said] [example: --quiet]
    #[arg(long, short = 'q')]
    pub(crate) quiet: bool,
}

/// Whether our own messages are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Paint {
    /// On a terminal, where NO_COLOR is not set.
    Auto,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}
