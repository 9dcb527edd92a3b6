//! The hatches of a run: where their sockets are, what the guest finds them by, and whether they can
//! stand side by side. Serves nothing itself.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;

use postern_hatch::{Hatch, HatchName, RunId, Serving};
use rustix::fs::{AtFlags, Mode, chmodat, linkat};

use crate::error::{Error, HatchConflict, LaunchError};
use crate::plan::EXCHANGE;

/// A hatch as runs share it.
pub(crate) type SharedHatch = Arc<dyn Hatch>;

/// The socket of the hatch that has no name.
const UNNAMED: &str = "hatch";
/// The variable of the hatch that has no name.
const UNNAMED_VARIABLE: &str = "POSTERN_HATCH";

/// The guest may connect to it and do nothing else with it: it is on a read-only mount.
const SOCKET: Mode = Mode::from_raw_mode(0o666);

/// Where one hatch is in the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The variable that holds the socket's path.
    variable: String,
    /// The socket's name, which is the last part of that path.
    name: String,
    /// A second name of the socket, where the first one has a suffix.
    plain: Option<String>,
}

impl Place {
    fn of(hatch: &dyn Hatch) -> Place {
        let stem = hatch.name().map_or(UNNAMED, HatchName::as_str);
        let plain = format!("{stem}.sock");
        let variable =
            hatch.name().map_or_else(|| UNNAMED_VARIABLE.to_owned(), HatchName::variable);
        match hatch.socket_suffix() {
            "" => Place { variable, name: plain, plain: None },
            suffix => Place { variable, name: format!("{plain}{suffix}"), plain: Some(plain) },
        }
    }

    /// The variable and its value.
    pub(crate) fn assignment(&self) -> (OsString, OsString) {
        let path: PathBuf = [EXCHANGE, &self.name].iter().collect();
        (self.variable.clone().into(), path.into())
    }

    /// The names that its socket takes in the run's directory.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str()).chain(self.plain.as_deref())
    }

    /// A socket in `directory` that listens.
    fn listen(&self, directory: &OwnedFd) -> io::Result<UnixListener> {
        // By way of the descriptor: the directory has no path on the host, and a socket's is short.
        let path = format!("/proc/self/fd/{}/{}", directory.as_raw_fd(), self.name);
        let listener = UnixListener::bind(path)?;
        chmodat(directory, self.name.as_str(), SOCKET, AtFlags::empty())?;
        if let Some(plain) = &self.plain {
            let (from, to) = (self.name.as_str(), plain.as_str());
            linkat(directory, from, directory, to, AtFlags::empty())?;
        }
        Ok(listener)
    }
}

/// Where each hatch is, if they can stand side by side: no two have a variable or a socket in common.
///
/// # Errors
/// The first two that cannot.
pub(crate) fn places(hatches: &[SharedHatch]) -> Result<Vec<Place>, HatchConflict> {
    let places: Vec<Place> = hatches.iter().map(|hatch| Place::of(&**hatch)).collect();
    for (at, place) in places.iter().enumerate() {
        let clash = places.iter().take(at).position(|other| other.variable == place.variable);
        if let Some(other) = clash {
            let name = |at: usize| hatches.get(at).and_then(|hatch| hatch.name().cloned());
            return Err(match (name(other), name(at)) {
                (Some(first), Some(second)) => HatchConflict::SameVariable { first, second },
                (None, _) | (_, None) => HatchConflict::TwoUnnamed,
            });
        }
    }
    Ok(places)
}

/// Has every hatch serve one run from `directory`, the run's own.
pub(crate) fn open(
    hatches: &[SharedHatch],
    places: &[Place],
    directory: &OwnedFd,
    run: RunId,
) -> Result<Vec<Serving>, Error> {
    let mut servings = Vec::with_capacity(hatches.len());
    for (hatch, place) in hatches.iter().zip(places) {
        let failed = |what| {
            let object = [EXCHANGE, &place.name].iter().collect();
            move |source| LaunchError::Prepare { what, object, source }
        };
        let listener =
            place.listen(directory).map_err(failed("listen on the socket of a hatch"))?;
        servings.push(hatch.open(listener, run).map_err(failed("have a hatch serve the run"))?);
    }
    Ok(servings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Named(Option<HatchName>, &'static str);

    impl Hatch for Named {
        fn name(&self) -> Option<&HatchName> {
            self.0.as_ref()
        }

        fn socket_suffix(&self) -> &'static str {
            self.1
        }

        fn open(&self, _listener: UnixListener, _run: RunId) -> io::Result<Serving> {
            Ok(Serving::new(|| {}))
        }
    }

    fn hatch(name: &str, suffix: &'static str) -> SharedHatch {
        let name = (!name.is_empty()).then(|| name.parse().unwrap());
        Arc::new(Named(name, suffix))
    }

    #[test]
    fn each_has_its_variable_and_names() {
        let hatches = [hatch("", "@localhost"), hatch("Repo", ""), hatch("db", "@x")];
        let places = places(&hatches).unwrap();
        let assignments: Vec<_> = places.iter().map(Place::assignment).collect();
        let expected = [
            ("POSTERN_HATCH", "/run/postern/hatch.sock@localhost"),
            ("POSTERN_HATCH_REPO", "/run/postern/Repo.sock"),
            ("POSTERN_HATCH_DB", "/run/postern/db.sock@x"),
        ];
        assert_eq!(assignments, expected.map(|(name, path)| (name.into(), path.into())));
        let names: Vec<_> = places.iter().flat_map(Place::names).collect();
        let expected = ["hatch.sock@localhost", "hatch.sock", "Repo.sock", "db.sock@x", "db.sock"];
        assert_eq!(names, expected);
    }

    #[test]
    fn two_that_the_guest_could_not_tell_apart_are_refused() {
        let name = |text: &str| text.parse().unwrap();
        let rows = [
            (["", ""], HatchConflict::TwoUnnamed),
            (
                ["repo", "REPO"],
                HatchConflict::SameVariable { first: name("repo"), second: name("REPO") },
            ),
        ];
        for (names, conflict) in rows {
            let hatches = names.map(|name| hatch(name, ""));
            assert_eq!(places(&hatches), Err(conflict));
        }
    }
}
