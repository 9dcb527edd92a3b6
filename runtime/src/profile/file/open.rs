//! The bytes of a profile file: a regular file of bounded size, and never a wait for one.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::PROFILE_BYTES_MAX;
use super::error::{Place, ProfileFileError};

/// The text of a file.
pub(super) fn text(path: &Path) -> Result<String, ProfileFileError> {
    let file = open(path)?;
    let size = file.metadata().map_err(|source| read(path, source))?.len();
    if size > PROFILE_BYTES_MAX {
        return Err(too_large(path, size));
    }
    let bytes = bounded(path, file)?;
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let place = Place::in_text(&String::from_utf8_lossy(error.as_bytes()), Some(good));
        ProfileFileError::NotUtf8 { place }.of_file(path)
    })
}

/// All there is, within the bound: files of procfs have no size, and others may grow.
pub(super) fn bounded(path: &Path, from: impl Read) -> Result<Vec<u8>, ProfileFileError> {
    let mut bytes = Vec::new();
    let taken = from.take(PROFILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    taken.map_err(|source| read(path, source))?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= PROFILE_BYTES_MAX => Ok(bytes),
        length => Err(too_large(path, length.unwrap_or(u64::MAX))),
    }
}

fn read(path: &Path, source: io::Error) -> ProfileFileError {
    ProfileFileError::Read { path: path.to_owned(), source }
}

fn too_large(path: &Path, bytes: u64) -> ProfileFileError {
    ProfileFileError::TooLarge { path: path.to_owned(), bytes, limit: PROFILE_BYTES_MAX }
}

/// Opens without waiting for the other end of a pipe, and refuses what is no regular file.
fn open(path: &Path) -> Result<File, ProfileFileError> {
    let not_regular = |kind| ProfileFileError::NotRegular { path: path.to_owned(), kind };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(descriptor) => File::from(descriptor),
        Err(errno) => {
            // A socket cannot be opened at all, and a device perhaps not: say what it is.
            let kind = std::fs::metadata(path).ok().and_then(|metadata| kind(metadata.file_type()));
            return Err(kind.map_or_else(|| read(path, io::Error::from(errno)), not_regular));
        }
    };
    match kind(file.metadata().map_err(|source| read(path, source))?.file_type()) {
        Some(kind) => Err(not_regular(kind)),
        None => Ok(file),
    }
}

/// What a thing is that is no regular file.
fn kind(kind: std::fs::FileType) -> Option<&'static str> {
    let rows = [
        (kind.is_dir(), "a directory"),
        (kind.is_fifo(), "a pipe"),
        (kind.is_socket(), "a socket"),
        (kind.is_char_device() || kind.is_block_device(), "a device"),
    ];
    rows.into_iter().find(|(is, _)| *is).map(|(_, name)| name)
}
