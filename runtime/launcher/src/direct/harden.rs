//! The walls that `--hardened` adds to what was asked for: around the program, not around its root,
//! but for the masks of `/proc`.

use core::ffi::CStr;

use postern_init::supervise::lower_limit;
use postern_init::sys::{Errno, Fd, O_CREATE_NEW, O_NOFOLLOW, O_PATH, O_WRONLY, OwnedFd, open_at};

use super::close_others;
use super::order::{Hardening, Masked};
use super::report::{Failure, Fault};
use super::tree::attribute::{NO_DEVICES, NO_EXEC, NO_SUID, READ_ONLY};
use crate::mount::sys::{self as mount, Reach};
use crate::{landlock, setup};

/// What covers a file and what covers a directory; nobody may read either.
const FILE: &CStr = c"masked-file";
const DIRECTORY: &CStr = c"masked-directory";

/// Everything but the filter: no keys of the caller's, limits, a Landlock domain, no descriptors but
/// stdio.
pub(super) fn enter(hardening: &Hardening<'_>, line: Fd) -> Result<(), Failure> {
    setup::join_keyring().map_err(|failure| Fault::Hardening.at(0)(failure.errno))?;
    for (resource, value) in hardening.limits {
        lower_limit(*resource, *value).map_err(Fault::Hardening.at(1))?;
    }
    landlock::enter_scopes().map_err(Fault::Hardening.at(2))?;
    close_others(&[line]).map_err(Fault::CloseDescriptors.why())
}

/// Covers what leaks when it is read.
pub(super) fn mask_proc(hardening: &Hardening<'_>, proc: &OwnedFd, base: Fd) -> Result<(), Errno> {
    make_covers(base)?;
    for (path, kind) in hardening.masks {
        let cover = match kind {
            Masked::File => FILE,
            Masked::Directory => DIRECTORY,
        };
        match open_at(proc.fd(), path, O_PATH | O_NOFOLLOW, 0) {
            // Not on this kernel, or out of reach already.
            Err(Errno::ENOENT | Errno::EACCES) => continue,
            Err(errno) => return Err(errno),
            Ok(place) => {
                let mount = mount::clone_tree(base, cover)?;
                let taken = READ_ONLY | NO_SUID | NO_DEVICES | NO_EXEC;
                mount::restrict(mount.fd(), Reach::One, taken)?;
                mount::attach(mount.fd(), place.fd())?;
            }
        }
    }
    Ok(())
}

/// A second `/proc` finds them made.
fn make_covers(base: Fd) -> Result<(), Errno> {
    let file = open_at(base, FILE, O_WRONLY | O_CREATE_NEW | O_NOFOLLOW, 0).map(drop);
    let directory = mount::make_directory(base, DIRECTORY, 0);
    for made in [file, directory] {
        match made {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
