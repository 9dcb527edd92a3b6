//! Single acts on files and sockets, each answered with whether it was allowed.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use crate::json::Value;
use crate::sys::short;

const IOCTL: i64 = 16;
const TRUNCATE: i64 = 76;
const MKNOD: i64 = 133;

/// `act NAME ARGUMENT...`: true, or the errno.
pub(crate) fn act(arguments: &[OsString]) -> Value {
    let [name, rest @ ..] = arguments else { return false.into() };
    Value::of(perform(&name.to_string_lossy(), rest).map(|()| true))
}

fn perform(name: &str, arguments: &[OsString]) -> io::Result<()> {
    match (name, arguments) {
        ("create", [path]) => File::create_new(path).map(drop),
        ("write", [path]) => OpenOptions::new().write(true).open(path).map(drop),
        ("truncate", [path]) => with_path(path, |path| short(TRUNCATE, [path, 0])),
        ("rename", [from, to]) => fs::rename(from, to),
        ("link", [from, to]) => fs::hard_link(from, to),
        ("symlink", [to, path]) => std::os::unix::fs::symlink(to, path),
        ("mkdir", [path]) => fs::create_dir(path),
        ("rmdir", [path]) => fs::remove_dir(path),
        ("unlink", [path]) => fs::remove_file(path),
        ("fifo", [path]) => with_path(path, |path| short(MKNOD, [path, 0o010_600, 0])),
        ("block-device", [path]) => with_path(path, |path| short(MKNOD, [path, 0o060_600, 0])),
        ("listen", [path]) => UnixListener::bind(path).map(drop),
        ("connect-abstract", [name]) => {
            let address = SocketAddr::from_abstract_name(name.as_bytes())?;
            UnixStream::connect_addr(&address).map(drop)
        }
        ("terminal-mode", [path]) => terminal_mode(path),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn with_path(path: &OsStr, act: impl FnOnce(usize) -> io::Result<usize>) -> io::Result<()> {
    let path = CString::new(path.as_bytes())?;
    act(path.as_ptr().addr()).map(drop)
}

/// An ioctl that every terminal answers.
fn terminal_mode(path: &OsStr) -> io::Result<()> {
    const TCGETS: usize = 0x5401;
    const O_NOCTTY: i32 = 0o400;
    let mut options = OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, O_NOCTTY);
    let file = options.read(true).write(true).open(path)?;
    let mut mode = [0u8; 64];
    let fd = usize::try_from(file.as_raw_fd()).unwrap_or(usize::MAX);
    short(IOCTL, [fd, TCGETS, mode.as_mut_ptr().addr()]).map(drop)
}
