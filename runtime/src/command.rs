//! What to run, said once and checked before anything is started.

mod streams;

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use postern_hatch::Hatch;

use crate::error::CommandError;
use crate::hatches::{Place, SharedHatch};
use crate::script::{Language, Script, World};
pub(crate) use streams::Input;
pub use streams::{OUTPUT_BYTES_MAX, OutputCap, Stdin, WindowSize};

/// A program with its arguments, and how it is run.
///
/// ```
/// use std::time::Duration;
/// use postern::Command;
///
/// let command = Command::new("sort").arg("-n").timeout(Duration::from_secs(10));
/// let code = "import sys; print(sys.argv[1:])";
/// let python = Command::python(code).args(["a", "b"]).env("PYTHONHASHSEED", "0");
/// # drop((command, python));
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "a command does nothing until a sandbox runs it"]
pub struct Command {
    /// Before the arguments; `None`: the first argument is the program.
    pub(crate) script: Option<Script>,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) input: Input,
    pub(crate) timeout: Option<Duration>,
    pub(crate) queue_timeout: Option<Duration>,
    pub(crate) output_bytes_max: Option<u64>,
    pub(crate) output_cap: OutputCap,
    pub(crate) terminal: Option<WindowSize>,
    pub(crate) merge_output: bool,
    pub(crate) private_files: Vec<(OsString, Arc<Vec<u8>>)>,
    pub(crate) hatches: Vec<SharedHatch>,
}

impl Command {
    /// A program: a path with a slash, or a name for the guest's `PATH`.
    pub fn new(program: impl Into<OsString>) -> Command {
        Command { arguments: vec![program.into()], ..Command::default() }
    }

    /// Python source code of any size, run by the profile's interpreter as `__main__`.
    ///
    /// The guest finds it as `/run/postern/main.py`, a file that this run alone can see, and runs
    /// it as it would any script: tracebacks show its lines, `sys.argv` holds the arguments after
    /// the script's name, `sys.path` begins with the script's directory, stdin is free. The user's
    /// site directory, which would be in the workspace, is not used (`-s`), and output is not
    /// buffered by the interpreter (`-u`). A limit of the address space takes effect once the
    /// interpreter is up.
    pub fn python(code: impl Into<Vec<u8>>) -> Command {
        Command::script(Language::Python, code.into())
    }

    /// A script of any size for `bash`; see [`Command::shell`].
    pub fn bash(script: impl Into<Vec<u8>>) -> Command {
        Command::shell("bash", script)
    }

    /// A script of any size for `shell`, a path with a slash or a name for the guest's `PATH`.
    ///
    /// The guest finds it as `/run/postern/main.sh`, a file that this run alone can see, which is
    /// `$0`; arguments are `$1` and so on, stdin is free.
    pub fn shell(shell: impl Into<OsString>, script: impl Into<Vec<u8>>) -> Command {
        Command::script(Language::Shell(shell.into()), script.into())
    }

    fn script(language: Language, source: Vec<u8>) -> Command {
        let script = Script { language, source: Arc::new(source), name: None };
        Command { script: Some(script), ..Command::default() }
    }

    /// The name of the file in which the guest finds the source of [`Command::python`] or
    /// [`Command::shell`], which is what tracebacks and `$0` show; default `main.py` or `main.sh`.
    /// No effect on other commands.
    pub fn script_name(mut self, name: impl Into<OsString>) -> Command {
        if let Some(script) = &mut self.script {
            script.name = Some(name.into());
        }
        self
    }

    /// One more argument.
    pub fn arg(mut self, argument: impl Into<OsString>) -> Command {
        self.arguments.push(argument.into());
        self
    }

    /// More arguments.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Command {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// A variable of the environment, over the profile's.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Command {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The working directory inside; default the profile's.
    pub fn cwd(mut self, path: impl Into<PathBuf>) -> Command {
        self.cwd = Some(path.into());
        self
    }

    /// How long the run may take from its start until everything in it is killed; default no limit.
    pub fn timeout(mut self, timeout: Duration) -> Command {
        self.timeout = Some(timeout);
        self
    }

    /// How long the run may wait for its place under the sandbox's ceiling, instead of
    /// [what the ceiling says](crate::Ceiling::queue_timeout); zero: not at all. No part of
    /// [`Command::timeout`].
    pub fn queue_timeout(mut self, timeout: Duration) -> Command {
        self.queue_timeout = Some(timeout);
        self
    }

    /// A read-only file at `/run/postern/NAME` that this run alone can see. Not in a sandbox built
    /// without [run directories](crate::SandboxBuilder::run_directories).
    pub fn private_file(mut self, name: impl Into<OsString>, bytes: impl Into<Vec<u8>>) -> Command {
        self.private_files.push((name.into(), Arc::new(bytes.into())));
        self
    }

    /// A hatch for this run alone, besides those of its sandbox; see
    /// [`SandboxBuilder::hatch`](crate::SandboxBuilder::hatch).
    pub fn hatch(mut self, hatch: impl Hatch + 'static) -> Command {
        self.hatches.push(Arc::new(hatch));
        self
    }

    /// The checked C form.
    pub(crate) fn check(&self, world: &World<'_>) -> Result<Checked, CommandError> {
        let mut limit_inside = false;
        let mut arguments = Vec::new();
        let mut files = self.private_files.clone();
        if let Some(script) = &self.script {
            let has_own_path = self.environment.iter().any(|(name, _)| name == "PATH");
            match &world.python_fault {
                Some(fault) if script.language.is_python() && !has_own_path => {
                    return Err(CommandError::Python(fault.clone()));
                }
                Some(_) | None => {}
            }
            let interpreter = script.interpreter(world)?;
            limit_inside = interpreter.limit_inside;
            arguments = interpreter.arguments;
            files.push((script.file_name(), Arc::clone(&script.source)));
        }
        arguments.extend(self.arguments.iter().cloned());
        match arguments.first() {
            None => return Err(CommandError::NoProgram),
            Some(program) if program.is_empty() => return Err(CommandError::EmptyProgram),
            Some(_) => {}
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(CommandError::ZeroTimeout);
        }
        let arguments = arguments
            .into_iter()
            .map(|argument| c_string(&argument).ok_or(CommandError::NulInArgument(argument)));
        Ok(Checked {
            arguments: arguments.collect::<Result<_, _>>()?,
            environment: environment(world.environment, &self.environment, &world.own_variables)?,
            cwd: self.cwd.as_deref().map(working_directory).transpose()?,
            files,
            limit_inside,
            hatches: Vec::new(),
            places: Vec::new(),
        })
    }
}

/// A command that the kernel can take.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) arguments: Vec<CString>,
    pub(crate) environment: Vec<CString>,
    pub(crate) cwd: Option<CString>,
    /// What this run alone can see in `/run/postern`.
    pub(crate) files: Vec<(OsString, Arc<Vec<u8>>)>,
    /// The program limits its own address space.
    pub(crate) limit_inside: bool,
    /// What is served to it, and where.
    pub(crate) hatches: Vec<SharedHatch>,
    pub(crate) places: Vec<Place>,
}

fn c_string(text: &OsStr) -> Option<CString> {
    CString::new(text.as_bytes()).ok()
}

fn environment(
    base: &[CString],
    own: &[(OsString, OsString)],
    last: &[(OsString, OsString)],
) -> Result<Vec<CString>, CommandError> {
    let mut all = base.to_vec();
    for (name, value) in own.iter().chain(last) {
        if name.is_empty() || name.as_bytes().contains(&b'=') {
            return Err(CommandError::EnvironmentName(name.clone()));
        }
        let mut entry = name.clone();
        entry.push("=");
        let prefix = entry.len();
        entry.push(value);
        let entry = c_string(&entry).ok_or(CommandError::NulInEnvironment(entry))?;
        let same = |old: &CString| old.as_bytes().get(..prefix) == entry.as_bytes().get(..prefix);
        all.retain(|old| !same(old));
        all.push(entry);
    }
    Ok(all)
}

fn working_directory(path: &Path) -> Result<CString, CommandError> {
    let plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
    let dots = |name: &[u8]| matches!(name, b"." | b"..");
    let bytes = path.as_os_str().as_bytes();
    let clean = path.components().all(plain) && !bytes.split(|byte| *byte == b'/').any(dots);
    let refused = || CommandError::WorkingDirectory(path.as_os_str().to_owned());
    match path.is_absolute() && clean {
        true => c_string(path.as_os_str()).ok_or_else(refused),
        false => Err(refused()),
    }
}

/// A whole command line: the program and its arguments.
impl<S: Into<OsString>, const N: usize> From<[S; N]> for Command {
    fn from(line: [S; N]) -> Command {
        Command::default().args(line)
    }
}

/// A whole command line: the program and its arguments.
impl<S: Into<OsString>> From<Vec<S>> for Command {
    fn from(line: Vec<S>) -> Command {
        Command::default().args(line)
    }
}

/// A whole command line: the program and its arguments.
impl<S: Into<OsString> + Clone> From<&[S]> for Command {
    fn from(line: &[S]) -> Command {
        Command::default().args(line.iter().cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_commands_are_refused_by_rule() {
        let rows: [(&str, Command, CommandError); 9] = [
            ("no program", Command::default(), CommandError::NoProgram),
            ("empty program", Command::new(""), CommandError::EmptyProgram),
            ("nul", Command::new("a\0b"), CommandError::NulInArgument("a\0b".into())),
            (
                "nul in a value",
                Command::new("a").env("A", "\0"),
                CommandError::NulInEnvironment("A=\0".into()),
            ),
            ("no name", Command::new("a").env("", "x"), CommandError::EnvironmentName("".into())),
            (
                "= in a name",
                Command::new("a").env("A=B", "x"),
                CommandError::EnvironmentName("A=B".into()),
            ),
            (
                "relative cwd",
                Command::new("a").cwd("tmp"),
                CommandError::WorkingDirectory("tmp".into()),
            ),
            (
                "dots in cwd",
                Command::new("a").cwd("/tmp/../etc"),
                CommandError::WorkingDirectory("/tmp/../etc".into()),
            ),
            ("zero", Command::new("a").timeout(Duration::ZERO), CommandError::ZeroTimeout),
        ];
        for (name, command, refused) in rows {
            assert_eq!(command.check(&World::for_tests(&[])).unwrap_err(), refused, "{name}");
        }
    }

    #[test]
    fn the_command_overrides_the_profile() {
        let base = [c"PATH=/bin".to_owned(), c"A=1".to_owned(), c"AA=2".to_owned()];
        let checked = Command::new("a").env("A", "3").check(&World::for_tests(&base)).unwrap();
        let expected = [c"PATH=/bin".to_owned(), c"AA=2".to_owned(), c"A=3".to_owned()];
        assert_eq!(checked.environment, expected);
    }
}
