//! Source code to a command line: which interpreter reads it, from which file. Runs nothing, and
//! does not look at the code.

use std::ffi::{CString, OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{CommandError, PythonError};
use crate::hatches::Place;
use crate::plan::{EXCHANGE, Plan, Resource};

/// Source code that a run is given as a file.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) language: Language,
    pub(crate) source: Arc<Vec<u8>>,
    pub(crate) name: Option<OsString>,
}

/// Who reads it.
#[derive(Debug, Clone)]
pub(crate) enum Language {
    /// The profile's interpreter.
    Python,
    /// This shell.
    Shell(OsString),
}

impl Language {
    pub(crate) const fn is_python(&self) -> bool {
        matches!(self, Language::Python)
    }
}

/// What a command is checked against.
#[derive(Debug)]
pub(crate) struct World<'a> {
    /// The profile's environment.
    pub(crate) environment: &'a [CString],
    /// The profile's interpreter.
    pub(crate) python: &'a Path,
    /// What is known against it, on the profile's `PATH`.
    pub(crate) python_fault: Option<PythonError>,
    /// What the sandbox itself says, over everybody else's words.
    pub(crate) own_variables: Vec<(OsString, OsString)>,
    /// Bytes of a process's address space.
    pub(crate) address_space: Option<u64>,
}

impl<'a> World<'a> {
    pub(crate) fn new(plan: &'a Plan, python: &'a Path, places: &[Place]) -> World<'a> {
        let mut limits = plan.guest_rlimits.iter();
        let address_space = limits.find(|limit| limit.resource == Resource::AddressSpace);
        let address_space = address_space.map(|limit| limit.limit);
        let python_fault = plan.check_python().err();
        let own_variables = places.iter().map(Place::assignment).collect();
        World { environment: &plan.env, python, python_fault, own_variables, address_space }
    }

    #[cfg(test)]
    pub(crate) fn for_tests(environment: &'a [CString]) -> World<'a> {
        let python = Path::new("python3");
        World {
            environment,
            python,
            python_fault: None,
            own_variables: Vec::new(),
            address_space: None,
        }
    }
}

/// The beginning of a command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Interpreter {
    pub(crate) arguments: Vec<OsString>,
    /// It limits its own address space.
    pub(crate) limit_inside: bool,
}

/// Limits the address space, then runs the file as the interpreter itself would have: bare CPython
/// may need more address space to start than the guest is to have.
const LIMIT_FIRST: &str = include_str!("address_space.py");

/// `-u`: output leaves the guest when it is written, so that it can be read as it comes and is not
/// lost when the guest is killed. `-s`: the user's site directory is in the workspace, where one run
/// would leave what the next one's interpreter starts with.
const OPTIONS: &str = "-us";

impl Script {
    /// The file's name in `/run/postern`.
    pub(crate) fn file_name(&self) -> OsString {
        match (&self.name, &self.language) {
            (Some(name), _) => name.clone(),
            (None, Language::Python) => "main.py".into(),
            (None, Language::Shell(_)) => "main.sh".into(),
        }
    }

    /// The interpreter with the file.
    pub(crate) fn interpreter(&self, world: &World<'_>) -> Result<Interpreter, CommandError> {
        if let Some(at) = self.source.iter().position(|byte| *byte == 0) {
            let before = self.source.get(..at).unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            return Err(CommandError::NulInScript { line });
        }
        let file: PathBuf = [OsStr::new(EXCHANGE), &self.file_name()].iter().collect();
        let file = OsString::from(file);
        Ok(match (&self.language, world.address_space) {
            (Language::Shell(shell), _) => {
                Interpreter { arguments: vec![shell.clone(), file], limit_inside: false }
            }
            (Language::Python, None) => Interpreter {
                arguments: vec![world.python.into(), OPTIONS.into(), file],
                limit_inside: false,
            },
            (Language::Python, Some(bytes)) => {
                let (python, limit) = (world.python.into(), bytes.to_string().into());
                let options = OPTIONS.into();
                let arguments = vec![python, options, "-c".into(), LIMIT_FIRST.into(), limit, file];
                Interpreter { arguments, limit_inside: true }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(language: Language, source: &[u8], name: Option<&str>) -> Script {
        Script { language, source: Arc::new(source.to_vec()), name: name.map(OsString::from) }
    }

    #[test]
    fn each_language_has_its_command_line() {
        let sh = || Language::Shell("sh".into());
        let limited = World { address_space: Some(7), ..World::for_tests(&[]) };
        let free = World::for_tests(&[]);
        let python = ["python3", "-us", "-c", LIMIT_FIRST, "7", "/run/postern/main.py"];
        let rows: [(Script, &World<'_>, &[&str], bool); 4] = [
            (script(sh(), b"", None), &limited, &["sh", "/run/postern/main.sh"], false),
            (
                script(Language::Python, b"", None),
                &free,
                &["python3", "-us", "/run/postern/main.py"],
                false,
            ),
            (
                script(Language::Python, b"", Some("job.py")),
                &free,
                &["python3", "-us", "/run/postern/job.py"],
                false,
            ),
            (script(Language::Python, b"", None), &limited, &python, true),
        ];
        for (script, world, arguments, limit_inside) in rows {
            let arguments = arguments.iter().map(OsString::from).collect();
            let expected = Interpreter { arguments, limit_inside };
            assert_eq!(script.interpreter(world), Ok(expected), "{script:?}");
        }
    }

    #[test]
    fn a_nul_is_found_with_its_line() {
        let found = script(Language::Python, b"a\nb\n\0c\n", None)
            .interpreter(&World::for_tests(&[]))
            .unwrap_err();
        assert_eq!(found, CommandError::NulInScript { line: 3 });
    }
}
