//! What the refusals about a virtual environment's interpreter print; the rules are in
//! `plan::python`.

use core::fmt;
use std::path::Path;

use crate::error::Shown as _;
use crate::profile::Bind;

/// Why an interpreter is not shown to a guest whose profile does not name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PythonHidden {
    /// Something else is mounted over its place, such as the guest's own `/tmp`.
    Covered,
    /// No standard library (`lib/pythonX.Y/os.py`) lies next to its directory.
    NoInstallation,
    /// It was installed right into a user's home directory.
    Home,
    /// It is one package of a store and needs others.
    Store,
}

impl fmt::Display for PythonHidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Covered => "something else is mounted over its place",
            Self::NoInstallation => {
                "no standard library (lib/pythonX.Y/os.py) lies next to its directory"
            }
            Self::Home => "it was installed right into a home directory",
            Self::Store => "it is one package of a store and needs others",
        })
    }
}

/// An interpreter that exists and is not shown.
pub(super) fn hidden(
    f: &mut fmt::Formatter<'_>,
    venv: &Path,
    interpreter: &Path,
    why: PythonHidden,
    binds: &[Bind],
) -> fmt::Result {
    let (venv, interpreter) = (venv.shown(), interpreter.shown());
    write!(f, "the interpreter of {venv} is {interpreter}, which the guest cannot see: {why}; ")?;
    f.write_str("if the guest may see it, add `required_ro_binds = [")?;
    for (index, bind) in binds.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(f, "{comma}{:?}", bind.to_string())?;
    }
    f.write_str("]`")
}

/// A link to nothing, as after an upgrade that took the old interpreter away.
pub(super) fn dangling(
    f: &mut fmt::Formatter<'_>,
    venv: &Path,
    missing: &Path,
    rootfs: Option<&Path>,
) -> fmt::Result {
    write!(f, "bin/python of {} leads to {}, which ", venv.shown(), missing.shown())?;
    match rootfs {
        None => f.write_str("does not exist; make the environment anew")?,
        Some(rootfs) => write!(
            f,
            "does not exist in the rootfs {}; install that Python there, or make the environment \
             from one that is there",
            rootfs.shown(),
        )?,
    }
    Ok(())
}

/// A file or directory that is there for other users only.
pub(super) fn forbidden(
    f: &mut fmt::Formatter<'_>,
    venv: &Path,
    path: &Path,
    (owner, mode): (u32, u32),
    id: Option<u32>,
) -> fmt::Result {
    match id {
        Some(id) => write!(f, "the guest's kernel uid {id} may not use ")?,
        None => f.write_str("no uid that is leased to a guest may use ")?,
    }
    let (path, venv) = (path.shown(), venv.shown());
    write!(f, "{path} (owner {owner}, mode {mode:04o}), which the interpreter of {venv} needs; ")?;
    write!(f, "`chmod a+rX {path}`")
}
