//! The files that one run alone can see, in a directory of a tmpfs that the launcher owns.

use std::ffi::{CStr, CString, OsString};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};

use crate::error::{CommandError, Error, LaunchError};

/// Removed, with its files, when dropped: the run has its own mount of it by then or is over.
#[derive(Debug)]
pub(crate) struct RunDirectory {
    exchange: OwnedFd,
    name: CString,
    files: Vec<CString>,
    kept: Option<CString>,
}

impl RunDirectory {
    pub(crate) fn new(
        exchange: &OwnedFd,
        name: &str,
        kept: Option<&CStr>,
        files: &[(OsString, Vec<u8>)],
    ) -> Result<RunDirectory, Error> {
        let names = files.iter().map(|(name, _)| checked(name, kept));
        let names = names.collect::<Result<Vec<_>, _>>()?;
        let make = || -> io::Result<RunDirectory> {
            let name = CString::new(name)?;
            let exchange = exchange.try_clone()?;
            mkdirat(&exchange, &name, Mode::from_raw_mode(0o755))?;
            let kept = kept.map(CStr::to_owned);
            let mut made = RunDirectory { exchange, name, files: Vec::new(), kept };
            made.fill(&names, files)?;
            Ok(made)
        };
        make().map_err(|source| {
            let object = "/run/postern".into();
            LaunchError::Prepare { what: "make the run's own directory", object, source }.into()
        })
    }

    pub(crate) fn name(&self) -> &CStr {
        &self.name
    }

    fn fill(&mut self, names: &[CString], files: &[(OsString, Vec<u8>)]) -> io::Result<()> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let directory = openat(&self.exchange, &self.name, flags, Mode::empty())?;
        // The guest is another user, and the host's umask is not its business.
        rustix::fs::fchmod(&directory, Mode::from_raw_mode(0o755))?;
        if let Some(kept) = &self.kept {
            mkdirat(&directory, kept, Mode::from_raw_mode(0o755))?;
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        for (name, (_, bytes)) in names.iter().zip(files) {
            self.files.push(name.clone());
            let file = openat(&directory, name, flags, Mode::from_raw_mode(0o444))?;
            rustix::fs::fchmod(&file, Mode::from_raw_mode(0o444))?;
            std::fs::File::from(file).write_all(bytes)?;
        }
        Ok(())
    }
}

/// One path component that is not taken.
fn checked(name: &OsString, kept: Option<&CStr>) -> Result<CString, CommandError> {
    let bytes = name.as_bytes();
    let taken = kept.is_some_and(|kept| kept.to_bytes() == bytes);
    let bad = bytes.is_empty() || bytes.contains(&b'/') || bytes == b"." || bytes == b"..";
    match CString::new(bytes) {
        Ok(name) if !bad && !taken && bytes.len() <= 255 => Ok(name),
        Ok(_) | Err(_) => Err(CommandError::PrivateFileName(name.clone())),
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
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
