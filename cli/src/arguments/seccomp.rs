//! `postern seccomp`, as data.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use postern::seccomp::Level;

/// `postern seccomp`.
#[derive(Debug, Subcommand)]
pub(crate) enum SeccompVerb {
    /// Say what the filter answers to one system call, by which rule, and why.
    ///
    /// Without ARGS, and where the answer depends on them, every rule of the call is shown. With
    /// some of them the others are 0.
    Explain(ExplainVerb),
    /// Print every rule of a level, each with its reason.
    List(ListVerb),
}

/// `postern seccomp explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainVerb {
    /// The call by its name, or by its number on this machine.
    ///
    /// [default: none, it must be there] [example: openat]
    #[arg(value_name = "SYSCALL")]
    pub(crate) call: String,
    /// Its arguments as the kernel gets them: numbers as in C, or names of constants, joined by |.
    ///
    /// [default: none] [example: AF_VSOCK SOCK_STREAM 0]
    #[arg(value_name = "ARGS", num_args = 0..=6, allow_negative_numbers = true)]
    pub(crate) arguments: Vec<String>,
    /// The level: `strict`, `default`, `compat` or `off`.
    ///
    /// [default: default] [example: --level strict]
    #[arg(long, value_name = "LEVEL", default_value = "default", hide_default_value = true)]
    pub(crate) level: Level,
    /// A policy of your own that goes with the level, in the JSON of the crate seccompiler.
    ///
    /// [default: none] [example: --policy policy.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// One JSON object instead of text.
    ///
    /// [default: text] [example: --json]
    #[arg(long)]
    pub(crate) json: bool,
}

/// `postern seccomp list`.
#[derive(Debug, Args)]
pub(crate) struct ListVerb {
    /// The level: `strict`, `default`, `compat` or `off`.
    ///
    /// [default: default] [example: --level compat]
    #[arg(long, value_name = "LEVEL", default_value = "default", hide_default_value = true)]
    pub(crate) level: Level,
    /// One JSON object instead of text.
    ///
    /// [default: text] [example: --json]
    #[arg(long)]
    pub(crate) json: bool,
}
