//! Things that a service may have at hand when it launches: open descriptors of every kind, a key
//! in its session, a secret in its memory.

use std::fs::{self, File};
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fs::{MemfdFlags, Mode, OFlags, inotify, memfd_create};
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use crate::sys;
use crate::world::text;

/// What must stay as long as the habit.
#[derive(Debug, Default)]
pub(super) struct Kept {
    _descriptors: Vec<OwnedFd>,
    _secret: Vec<String>,
}

/// Takes up each by its name.
pub(super) fn take_up(names: &[String]) -> Result<Kept, String> {
    let mut kept = Kept::default();
    for name in names {
        match name.as_str() {
            "descriptors" => kept._descriptors.extend(descriptors()?),
            "key" => key()?,
            "secret" => kept._secret.push(secret()),
            other => return Err(format!("unknown habit {other:?}")),
        }
    }
    Ok(kept)
}

/// One of each kind, and more of files; none closes on exec.
fn descriptors() -> Result<Vec<OwnedFd>, String> {
    let open = |path: &str, flags| rustix::fs::open(path, flags, Mode::empty()).map_err(text);
    let mut all = vec![
        open("/etc/hostname", OFlags::RDONLY)?,
        open("/", OFlags::RDONLY | OFlags::DIRECTORY)?,
        open("/", OFlags::PATH | OFlags::DIRECTORY)?,
        open("/proc/self/ns/net", OFlags::RDONLY)?,
        open("/proc/self/ns/user", OFlags::RDONLY)?,
        memfd_create("stray", MemfdFlags::empty()).map_err(text)?,
        eventfd(0, EventfdFlags::empty()).map_err(text)?,
        epoll::create(epoll::CreateFlags::empty()).map_err(text)?,
        inotify::init(inotify::CreateFlags::empty()).map_err(text)?,
        pidfd_open(getpid(), PidfdFlags::empty()).map_err(text)?,
    ];
    // The standard library's close on exec; a duplicate does not.
    let socket = UdpSocket::bind("127.0.0.1:0").map_err(text)?;
    let path = std::env::temp_dir().join("stray");
    fs::remove_file(&path).ok();
    let listener = UnixListener::bind(&path).map_err(text)?;
    fs::remove_file(&path).map_err(text)?;
    all.push(rustix::io::dup(&socket).map_err(text)?);
    all.push(rustix::io::dup(&listener).map_err(text)?);
    let file = File::open("/etc/hostname").map_err(text)?;
    for _ in 0..40 {
        all.push(rustix::io::dup(&file).map_err(text)?);
    }
    Ok(all)
}

/// A key in a session keyring of this process's own.
fn key() -> Result<(), String> {
    sys::join_session_keyring().map_err(text)?;
    sys::add_session_key(c"postern-canary").map_err(text)
}

/// Text that no argument and no file has.
fn secret() -> String {
    ["service", "secret", "in", "memory"].join("-").repeat(64)
}
