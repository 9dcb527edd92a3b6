//! The program's environment and where it is started.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use postern_launcher::direct::Directory;

use super::invocation::{Environment, Invocation};
use super::kept;

/// What execvp(3) looks in where nothing else is said.
const SEARCH: &str = "/bin:/usr/bin";

/// Variables in their order, and where each is; a variable that was unset has no value.
#[derive(Default)]
pub(super) struct Variables {
    entries: Vec<(OsString, Option<OsString>)>,
    places: HashMap<OsString, usize>,
}

impl Variables {
    /// Those of this process, changed as asked.
    pub(super) fn new(
        own: impl Iterator<Item = (OsString, OsString)>,
        asked: &[Environment],
    ) -> Self {
        let mut variables = Self::default();
        own.for_each(|(name, value)| variables.set(&name, &value));
        for change in asked {
            match change {
                Environment::Clear => variables = Self::default(),
                Environment::Set(name, value) => variables.set(name, value),
                Environment::Unset(name) => {
                    let place = variables.places.remove(name);
                    if let Some((_, value)) = place.and_then(|at| variables.entries.get_mut(at)) {
                        *value = None;
                    }
                }
            }
        }
        variables
    }

    /// A new variable comes last; one that is there keeps its place.
    fn set(&mut self, name: &OsStr, value: &OsStr) {
        let next = self.entries.len();
        let place = *self.places.entry(name.to_owned()).or_insert(next);
        match self.entries.get_mut(place) {
            Some((_, old)) => *old = Some(value.to_owned()),
            None => self.entries.push((name.to_owned(), Some(value.to_owned()))),
        }
    }

    fn get(&self, name: &str) -> Option<&OsStr> {
        let place = *self.places.get(OsStr::new(name))?;
        self.entries.get(place)?.1.as_deref()
    }

    /// Where programs are looked for.
    pub(super) fn search(&self) -> &'static CStr {
        kept::text(self.get("PATH").unwrap_or(OsStr::new(SEARCH)))
    }

    /// As the program gets them, but for `PWD`, which depends on where it can be started.
    pub(super) fn entries(&self) -> &'static [&'static CStr] {
        let set = self.entries.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let others = set.filter(|(name, _)| *name != "PWD");
        kept::list(others.map(|(name, value)| kept::text(entry(name, value))).collect())
    }

    /// Working directories to try, in order.
    pub(super) fn directories(
        &self,
        invocation: &Invocation,
        own: Option<&Path>,
    ) -> &'static [Directory<'static>] {
        let directory = |path: &OsStr, is_asked| Directory {
            path: kept::text(path),
            variable: kept::text(entry(OsStr::new("PWD"), path)),
            is_asked,
        };
        if let Some(asked) = &invocation.chdir {
            return kept::list(vec![directory(asked.as_os_str(), true)]);
        }
        let own = own.map(Path::as_os_str);
        let all = [own, self.get("HOME"), Some(OsStr::new("/"))];
        kept::list(all.into_iter().flatten().map(|path| directory(path, false)).collect())
    }
}

fn entry(name: &OsStr, value: &OsStr) -> OsString {
    OsString::from_vec([name.as_bytes(), b"=", value.as_bytes()].concat())
}

/// The working directory, by the name that the shell has for it if that is right.
pub(super) fn own_directory() -> Option<PathBuf> {
    let identity =
        |path: &Path| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let here = identity(Path::new("."))?;
    let named = std::env::var_os("PWD").map(PathBuf::from);
    let named = named.filter(|path| path.is_absolute() && identity(path) == Some(here));
    named.or_else(|| std::env::current_dir().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(own: &[(&str, &str)], asked: &[Environment]) -> Vec<String> {
        let own = own.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let variables = Variables::new(own, asked);
        variables.entries().iter().map(|entry| entry.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_environment_changes_in_order() {
        use Environment::{Clear, Set, Unset};
        let set = |name: &str, value: &str| Set(name.into(), value.into());
        let own = [("A", "1"), ("PWD", "/here"), ("B", "2")];
        let rows = [
            (vec![], vec!["A=1", "B=2"]),
            (vec![set("A", "3"), set("C", "4")], vec!["A=3", "B=2", "C=4"]),
            (vec![Unset("A".into()), set("A", "5")], vec!["B=2", "A=5"]),
            (vec![set("A", "6"), Clear, set("D", "7")], vec!["D=7"]),
            (vec![Unset("no".into())], vec!["A=1", "B=2"]),
        ];
        for (asked, expected) in rows {
            assert_eq!(entries(&own, &asked), expected, "{asked:?}");
        }
    }

    #[test]
    fn the_first_working_directory_that_can_be_entered_counts() {
        let variables = Variables::new([("HOME".into(), "/h".into())].into_iter(), &[]);
        let paths = |chdir: Option<&str>, own: Option<&str>| -> Vec<(String, bool)> {
            let invocation =
                Invocation { chdir: chdir.map(PathBuf::from), ..Invocation::default() };
            let all = variables.directories(&invocation, own.map(Path::new));
            all.iter()
                .map(|entry| (entry.variable.to_string_lossy().into_owned(), entry.is_asked))
                .collect()
        };
        let tried = |path: &str| (format!("PWD={path}"), false);
        assert_eq!(paths(Some("/c"), Some("/own")), [("PWD=/c".to_owned(), true)]);
        assert_eq!(paths(None, Some("/own")), [tried("/own"), tried("/h"), tried("/")]);
        assert_eq!(paths(None, None), [tried("/h"), tried("/")]);
    }
}
