//! The files that one run alone can see, in a directory of a tmpfs that the launcher owns.

use std::ffi::{CStr, CString, OsString};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use postern_hatch::Serving;
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};

use crate::error::{CommandError, Error, LaunchError};
use crate::hatches::Place;
use crate::plan::EXCHANGE;

/// A file and what it holds.
pub(crate) type PrivateFile = (OsString, Arc<Vec<u8>>);

/// The tmpfs in which each run finds a directory of its own.
#[derive(Debug)]
pub(crate) struct Exchange {
    root: Arc<OwnedFd>,
    /// The entry that every run keeps.
    kept: Option<CString>,
    runs: AtomicU64,
}

/// What runs without files share.
const EMPTY: &CStr = c"empty";

/// Mode of a directory that the guest, another user, may look into.
const DIRECTORY: Mode = Mode::from_raw_mode(0o755);
/// Mode of a file in it.
const FILE: Mode = Mode::from_raw_mode(0o444);

impl Exchange {
    pub(crate) fn new(root: OwnedFd, kept: Option<&CStr>) -> Result<Exchange, Error> {
        let exchange = Exchange {
            root: Arc::new(root),
            kept: kept.map(CStr::to_owned),
            runs: AtomicU64::new(0),
        };
        exchange.make_directory(EMPTY).map_err(not_made)?;
        Ok(exchange)
    }

    /// The name of the directory that a run with these files and sockets sees, and what removes it.
    /// `listen` makes the sockets in it.
    pub(crate) fn directory(
        &self,
        files: &[PrivateFile],
        places: &[Place],
        listen: impl FnOnce(&OwnedFd) -> Result<Vec<Serving>, Error>,
    ) -> Result<(CString, Option<RunDirectory>), Error> {
        if files.is_empty() && places.is_empty() {
            return Ok((EMPTY.to_owned(), None));
        }
        let sockets = places.iter().flat_map(Place::names).map(CString::new);
        let sockets: Vec<CString> = sockets.collect::<Result<_, _>>().map_err(not_made)?;
        let mut names: Vec<CString> = Vec::with_capacity(files.len());
        for (name, _) in files {
            let refused = || CommandError::PrivateFileName(name.clone());
            let checked = checked(name).ok_or_else(refused)?;
            let is_kept = self.kept.as_ref() == Some(&checked);
            if is_kept || names.contains(&checked) || sockets.contains(&checked) {
                return Err(refused().into());
            }
            names.push(checked);
        }
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let name = CString::new(format!("run-{number}")).map_err(not_made)?;
        let mut made = RunDirectory {
            exchange: Arc::clone(&self.root),
            name: name.clone(),
            files: sockets,
            kept: self.kept.clone(),
            servings: Vec::new(),
        };
        let directory = self.make_directory(&name).map_err(not_made)?;
        made.fill(&directory, names, files).map_err(not_made)?;
        made.servings = listen(&directory)?;
        Ok((name, Some(made)))
    }

    fn make_directory(&self, name: &CStr) -> io::Result<OwnedFd> {
        mkdirat(&self.root, name, DIRECTORY)?;
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let directory = openat(&self.root, name, flags, Mode::empty())?;
        // The host's umask is not the guest's business.
        rustix::fs::fchmod(&directory, DIRECTORY)?;
        if let Some(kept) = &self.kept {
            mkdirat(&directory, kept, DIRECTORY)?;
        }
        Ok(directory)
    }
}

fn not_made(source: impl Into<io::Error>) -> Error {
    let source = source.into();
    let object = PathBuf::from(EXCHANGE);
    LaunchError::Prepare { what: "make the run's own directory", object, source }.into()
}

/// Removed, with its files, when dropped: the run has its own mount of it by then or is over.
#[derive(Debug)]
pub(crate) struct RunDirectory {
    exchange: Arc<OwnedFd>,
    name: CString,
    /// Sockets too.
    files: Vec<CString>,
    kept: Option<CString>,
    /// The hatches' word for this run.
    servings: Vec<Serving>,
}

impl RunDirectory {
    /// Nothing is served any more: the run is over.
    pub(crate) fn end_servings(&mut self) {
        self.servings.clear();
    }

    fn fill(
        &mut self,
        directory: &OwnedFd,
        names: Vec<CString>,
        files: &[PrivateFile],
    ) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        for (name, (_, bytes)) in names.into_iter().zip(files) {
            let file = openat(directory, &name, flags, FILE)?;
            self.files.push(name);
            rustix::fs::fchmod(&file, FILE)?;
            std::fs::File::from(file).write_all(bytes)?;
        }
        Ok(())
    }
}

/// One path component.
fn checked(name: &OsString) -> Option<CString> {
    let bytes = name.as_bytes();
    let bad = bytes.is_empty() || bytes.contains(&b'/') || bytes == b"." || bytes == b"..";
    if bad || bytes.len() > 255 { None } else { CString::new(bytes).ok() }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        self.end_servings();
        // What cannot be removed goes with the launcher's tmpfs at the latest.
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if let Ok(directory) = openat(&self.exchange, &self.name, flags, Mode::empty()) {
            for file in &self.files {
                unlinkat(&directory, file, AtFlags::empty()).ok();
            }
            if let Some(kept) = &self.kept {
                unlinkat(&directory, kept, AtFlags::REMOVEDIR).ok();
            }
        }
        unlinkat(&self.exchange, &self.name, AtFlags::REMOVEDIR).ok();
    }
}
