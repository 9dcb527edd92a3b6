//! Overlays: layers are given by descriptor, since their paths may hold what separates options.

use core::ffi::CStr;

use postern_init::sys::{Errno, Fd, O_DIRECTORY, O_PATH, OwnedFd, c_str, open_at};

use super::order::Upper;
use super::report::{Failure, Fault, decimal, fd_path};
use super::sys;
use super::tree::attribute::{NO_DEVICES, NO_SUID};
use crate::mount::sys as mount;

/// An overlay, as the order has it.
pub(super) struct Overlay<'a> {
    /// The uppermost first.
    pub(super) layers: &'a [&'a CStr],
    pub(super) upper: Upper<'a>,
}

/// Makes one, on no path yet; what is written to memory is in `base`.
pub(super) fn make(overlay: &Overlay<'_>, base: Fd, index: u32) -> Result<OwnedFd, Failure> {
    let failed = |errno| Fault::Overlay.at(index)(errno);
    let source = |path| open_at(Fd::CWD, path, O_PATH, 0).map_err(Fault::OpenSource.at(index));
    let context = mount::open_file_system(c"overlay").map_err(failed)?;
    // An old kernel follows the paths only when the file system is made.
    let written = match overlay.upper {
        Upper::ReadOnly => None,
        Upper::Directory { upper, work } => Some([source(upper)?, source(work)?]),
        Upper::Memory => Some(in_memory(base, index).map_err(failed)?),
    };
    mount::configure(context.fd(), c"source", c"overlay").map_err(failed)?;
    if let Some([upper, work]) = &written {
        set(&context, c"upperdir", upper).map_err(failed)?;
        set(&context, c"workdir", work).map_err(failed)?;
    }
    let _open = layers(&context, overlay.layers, index)?;
    sys::configure_flag(context.fd(), c"userxattr").map_err(failed)?;
    mount::create_mount(context.fd(), NO_SUID | NO_DEVICES).map_err(failed)
}

fn set(context: &OwnedFd, key: &CStr, directory: &OwnedFd) -> Result<(), Errno> {
    let mut buffer = [0; 32];
    let path = fd_path(&mut buffer, directory.fd()).ok_or(Errno::EINVAL)?;
    mount::configure(context.fd(), key, path)
}

/// Directories for the writes to an overlay, named after its place.
fn in_memory(base: Fd, index: u32) -> Result<[OwnedFd; 2], Errno> {
    let mut buffer = [0; 11];
    let name = decimal(&mut buffer, index).ok_or(Errno::EINVAL)?;
    let own = directory(base, name)?;
    Ok([directory(own.fd(), c"upper")?, directory(own.fd(), c"work")?])
}

fn directory(parent: Fd, name: &CStr) -> Result<OwnedFd, Errno> {
    mount::make_directory(parent, name, 0o755)?;
    open_at(parent, name, O_PATH | O_DIRECTORY, 0)
}

/// How many layers fit one option, whose value has 255 bytes at the most.
const TOGETHER: usize = 12;

/// As one option where they fit, which every kernel takes, else one by one, which Linux 6.8 and later
/// do; what has to stay open meanwhile.
fn layers(
    context: &OwnedFd,
    layers: &[&CStr],
    index: u32,
) -> Result<[Option<OwnedFd>; TOGETHER], Failure> {
    let failed = |errno| Fault::Overlay.at(index)(errno);
    let open = |path| open_at(Fd::CWD, path, O_PATH, 0).map_err(Fault::OpenSource.at(index));
    let mut opened = [const { None }; TOGETHER];
    if layers.len() > TOGETHER {
        for layer in layers {
            set(context, c"lowerdir+", &open(layer)?).map_err(failed)?;
        }
        return Ok(opened);
    }
    let mut option = [0u8; 256];
    let mut len = 0usize;
    for (slot, layer) in opened.iter_mut().zip(layers) {
        let directory = open(layer)?;
        let mut buffer = [0; 32];
        let path = fd_path(&mut buffer, directory.fd()).ok_or(Errno::EINVAL).map_err(failed)?;
        let colon: &[u8] = if len == 0 { b"" } else { b":" };
        for part in [colon, path.to_bytes()] {
            let end = len.wrapping_add(part.len());
            let room = option.get_mut(len..end).ok_or(Errno::E2BIG).map_err(failed)?;
            room.copy_from_slice(part);
            len = end;
        }
        *slot = Some(directory);
    }
    let option = option.get(..=len).and_then(c_str).ok_or(Errno::E2BIG).map_err(failed)?;
    mount::configure(context.fd(), c"lowerdir", option).map_err(failed)?;
    Ok(opened)
}
