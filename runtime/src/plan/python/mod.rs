//! The guest's Python interpreter: what its virtual environment needs is put into the tree, and
//! what the guest will run is said. Nothing is run here, and no version is asked of a program.

use std::path::{Path, PathBuf};

use super::tree::Tree;
use super::{Access, Identity, Plan, identity};
use crate::error::{PythonError, PythonHidden, Refusal};
use crate::host::{FileFact, FileKind, FoundFile, Host, Shown, Trail, follow, named_version};
use crate::profile::{Bind, Field, SandboxProfile};

mod installation;

use installation::Installation;

/// The oldest Python that code is run with.
const LEAST: (u8, u8) = (3, 8);

/// What is known about the program that [`SandboxProfile::python_program`] names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Python {
    /// The guest runs this one.
    Found(Interpreter),
    /// There is none, for certain.
    Missing {
        /// What was looked for.
        program: PathBuf,
        /// The directories that do not have it.
        searched: Vec<PathBuf>,
    },
    /// Only the guest can tell, as where it may itself write to a directory of its `PATH`.
    Unknown,
}

/// A Python interpreter that the guest can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// The path that the guest runs it by; the virtual environment is found from it.
    pub guest_path: PathBuf,
    /// The executable on the host, without a symbolic link in its path.
    pub host_path: PathBuf,
    /// Its version, from the executable's name or `pyvenv.cfg`, where either says one.
    pub version: Option<(u8, u8)>,
}

impl Plan {
    /// The interpreter that the guest will run, if that is known.
    pub const fn interpreter(&self) -> Option<&Interpreter> {
        match &self.python {
            Python::Found(interpreter) => Some(interpreter),
            Python::Missing { .. } | Python::Unknown => None,
        }
    }

    /// Whether Python code can be run, as far as is known before anything is started. A profile
    /// without Python is a good one for everything else.
    ///
    /// # Errors
    ///
    /// [`PythonError`] when the interpreter is missing, or older than 3.8, for certain.
    pub fn check_python(&self) -> Result<(), PythonError> {
        match &self.python {
            Python::Missing { program, searched } => {
                Err(PythonError::Missing { program: program.clone(), searched: searched.clone() })
            }
            Python::Found(Interpreter { guest_path, version: Some(version), .. })
                if *version < LEAST =>
            {
                Err(PythonError::TooOld {
                    program: guest_path.clone(),
                    version: *version,
                    least: LEAST,
                })
            }
            Python::Found(_) | Python::Unknown => Ok(()),
        }
    }
}

/// Finds the interpreter as the guest's exec will.
pub(super) fn find(tree: &Tree<'_>, profile: &SandboxProfile) -> Python {
    let mut searched = Vec::new();
    for guest_path in profile.python_candidates() {
        if !guest_path.is_absolute() {
            return Python::Unknown;
        }
        match follow(&mut tree.seen(), &guest_path).end {
            Shown::Found(found) if is_program(&found) => {
                let version = version(&found, &guest_path, profile, tree.host());
                let host_path = found.canonical;
                return Python::Found(Interpreter { guest_path, host_path, version });
            }
            Shown::Nothing => searched.extend(guest_path.parent().map(Path::to_owned)),
            Shown::Found(_)
            | Shown::Made
            | Shown::Link(_)
            | Shown::Covered
            | Shown::Unreachable(_)
            | Shown::Unknown => return Python::Unknown,
        }
    }
    Python::Missing { program: profile.python_program(), searched }
}

/// A regular file that somebody may execute.
const fn is_program(found: &FoundFile) -> bool {
    matches!(found.kind, FileKind::Regular) && found.mode & 0o111 != 0
}

/// The name of the executable itself is right even where the environment's file is out of date.
fn version(
    found: &FoundFile,
    guest_path: &Path,
    profile: &SandboxProfile,
    host: &Host,
) -> Option<(u8, u8)> {
    let of_venv = || {
        let is_in_venv = guest_path.starts_with(profile.venv.as_ref()?.join("bin"));
        host.venv.as_ref().filter(|_| is_in_venv)?.version
    };
    found.canonical.file_name().and_then(named_version).or_else(of_venv)
}

/// What is being added for one virtual environment.
struct Addition<'v> {
    field: Field,
    venv: &'v Path,
    identity: &'v Identity,
    /// What shows where the guest's tree has nothing.
    base: PathBuf,
}

/// Makes the virtual environment's interpreter work: binds its installation read-only at its own
/// path and makes every symbolic link that leads there, unless the guest sees them anyway.
pub(super) fn add(
    tree: &mut Tree<'_>,
    profile: &SandboxProfile,
    identity: &Identity,
) -> Result<(), Refusal> {
    let Some(venv) = &profile.venv else { return Ok(()) };
    let host = tree.host();
    let base = match host.file(profile.system_base()) {
        Some(FileFact::Found(found)) => found.canonical.clone(),
        Some(_) | None => profile.system_base().to_owned(),
    };
    let addition = Addition { field: Field::new("venv"), venv, identity, base };
    let program = follow(&mut tree.seen_over(&addition.base), &venv.join("bin/python"));
    let Some(executable) = addition.executable(tree, &program, profile)? else { return Ok(()) };
    addition.bind_around(tree, &program.at)?;
    addition.make_links(tree, &program)?;
    addition.home(tree, &program.at)?;
    addition.permitted(tree, &program.at, 0o5)?;
    addition.permitted(tree, &venv.join("bin"), 0o1)?;
    match follow(&mut tree.seen(), &venv.join("bin/python")).end {
        Shown::Found(seen) if seen.canonical == executable.canonical => Ok(()),
        Shown::Found(_)
        | Shown::Made
        | Shown::Link(_)
        | Shown::Nothing
        | Shown::Covered
        | Shown::Unreachable(_)
        | Shown::Unknown => Err(addition.covered(tree, &program.at)),
    }
}

impl Addition<'_> {
    /// The file that `bin/python` leads to, or why there is none. Where nobody has looked, or the
    /// guest may write, its own exec decides.
    fn executable(
        &self,
        tree: &Tree<'_>,
        program: &Trail,
        profile: &SandboxProfile,
    ) -> Result<Option<FoundFile>, Refusal> {
        let path = self.venv.to_owned();
        match &program.end {
            Shown::Found(found) if found.kind == FileKind::Regular => Ok(Some(found.clone())),
            Shown::Nothing if !program.links.is_empty() => Err(Refusal::VenvPythonDangling {
                venv: path,
                missing: program.at.clone(),
                rootfs: profile.rootfs.clone(),
            }),
            Shown::Found(_) | Shown::Made | Shown::Nothing => {
                Err(Refusal::VenvWithoutPython { path })
            }
            Shown::Unreachable(errno) => Err(Refusal::SourceUnreachable {
                field: self.field,
                path: program.at.clone(),
                errno: *errno,
            }),
            Shown::Covered => Err(self.covered(tree, &program.at)),
            Shown::Link(_) | Shown::Unknown => Ok(None),
        }
    }

    /// The installation of an executable that the guest would not see.
    fn bind_around(&self, tree: &mut Tree<'_>, program: &Path) -> Result<(), Refusal> {
        if !tree.is_free(program) {
            return Ok(());
        }
        let prefix = program.ancestors().nth(2);
        match prefix.and_then(|prefix| installation::at(tree, &self.base, prefix, Some(program))) {
            Some(installation) => self.bind(tree, program, installation),
            None => Err(self.hidden(program, PythonHidden::NoInstallation, &[program.to_owned()])),
        }
    }

    /// The installation that `pyvenv.cfg` names, from which the interpreter finds its library:
    /// the same one by another path, or all there is of it where the executable is a copy.
    fn home(&self, tree: &mut Tree<'_>, program: &Path) -> Result<(), Refusal> {
        let config = tree.host().venv.as_ref();
        let Some(home) = config.and_then(|config| config.home.as_deref()) else { return Ok(()) };
        let home = follow(&mut tree.seen_over(&self.base), home);
        if !matches!(&home.end, Shown::Found(_) | Shown::Made) {
            return Ok(());
        }
        if tree.is_free(&home.at) {
            let prefix = home.at.parent();
            match prefix.and_then(|prefix| installation::at(tree, &self.base, prefix, None)) {
                Some(installation) => self.bind(tree, program, installation)?,
                None => return Ok(()),
            }
        }
        self.make_links(tree, &home)
    }

    /// Binds an installation, or says why not and what to bind.
    fn bind(
        &self,
        tree: &mut Tree<'_>,
        program: &Path,
        installation: Installation,
    ) -> Result<(), Refusal> {
        let parts = match installation {
            Installation::Parts(parts) => parts,
            Installation::Refused { why, paths } => return Err(self.hidden(program, why, &paths)),
        };
        for (target, part) in &parts {
            match &part.link {
                _ if !tree.is_free(target) => {}
                Some(says) => tree.symlink(self.field, target, says)?,
                None => {
                    tree.bind(self.field, part, target, Access::ReadOnly)?;
                    self.permitted(
                        tree,
                        target,
                        if part.kind == FileKind::Dir { 0o5 } else { 0o4 },
                    )?;
                }
            }
        }
        Ok(())
    }

    /// An interpreter where the sandbox mounts something of its own.
    fn covered(&self, tree: &Tree<'_>, at: &Path) -> Refusal {
        let program = match tree.host().file(&self.venv.join("bin/python")) {
            Some(FileFact::Found(found)) if self.base == Path::new("/") => &found.canonical,
            Some(_) | None => at,
        };
        let prefix = program.ancestors().nth(2);
        let paths = match prefix
            .and_then(|prefix| installation::at(tree, &self.base, prefix, Some(program)))
        {
            Some(Installation::Parts(parts)) => parts.into_iter().map(|(path, _)| path).collect(),
            Some(Installation::Refused { paths, .. }) => paths,
            None => vec![program.to_owned()],
        };
        self.hidden(program, PythonHidden::Covered, &paths)
    }

    /// The links of a trail that the guest would not see.
    fn make_links(&self, tree: &mut Tree<'_>, trail: &Trail) -> Result<(), Refusal> {
        for (place, says) in &trail.links {
            if tree.is_free(place) {
                tree.symlink(self.field, place, says)?;
            }
        }
        Ok(())
    }

    /// The guest's kernel ids may use a file that it sees through a bind: the bits `wanted` of the
    /// file, and search of each directory that the bind shows.
    fn permitted(&self, tree: &Tree<'_>, path: &Path, wanted: u32) -> Result<(), Refusal> {
        let Some(root) = tree.bind_above(path) else { return Ok(()) };
        let within = path.ancestors().take_while(|above| above.starts_with(root));
        let bits = core::iter::once(wanted).chain(core::iter::repeat(0o1));
        for (path, bits) in within.zip(bits) {
            if let Shown::Found(found) = follow(&mut tree.seen(), path).end
                && !identity::permits(self.identity, tree.host(), &found, bits)
            {
                return Err(Refusal::VenvPythonForbidden {
                    venv: self.venv.to_owned(),
                    path: found.canonical,
                    owner: found.uid,
                    mode: found.mode,
                    id: identity::known_uid(self.identity),
                });
            }
        }
        Ok(())
    }

    /// The refusal that says what to bind.
    fn hidden(&self, interpreter: &Path, why: PythonHidden, paths: &[PathBuf]) -> Refusal {
        let bind = |path: &PathBuf| {
            let source = self.base.join(path.strip_prefix("/").unwrap_or(path));
            Bind::new(source, path)
        };
        Refusal::VenvPythonHidden {
            venv: self.venv.to_owned(),
            interpreter: interpreter.to_owned(),
            why,
            binds: paths.iter().map(bind).collect(),
        }
    }
}
