//! Messages with descriptors; decides nothing.
//!
//! # Safety
//! As in `crate::sys`: pointers derive from references that outlive the call.

use postern_init::arch::nr;
use postern_init::sys::{Fd, OwnedFd, Result};

use crate::sys::{arg, at, at_mut, call};

/// `socketpair(2)` of the kind that keeps the borders of messages.
///
/// # Errors
/// As the kernel says.
pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd)> {
    const AF_UNIX: usize = 1;
    const SEQPACKET_CLOEXEC: usize = 5 | 0o2_000_000;
    let mut ends = [-1i32; 2];
    call(nr::SOCKETPAIR, [AF_UNIX, SEQPACKET_CLOEXEC, 0, at_mut(&mut ends), 0, 0])?;
    let [a, b] = ends.map(|fd| OwnedFd::new(Fd(fd)));
    Ok((a, b))
}

/// How many descriptors one message carries at the most.
pub(crate) const FDS_MAX: usize = 8;

/// `struct msghdr` with what it points to.
#[repr(C)]
struct Message {
    name: usize,
    name_len: u32,
    parts: usize,
    parts_len: usize,
    control: usize,
    control_len: usize,
    flags: i32,
}

/// `struct cmsghdr` for descriptors, and room for them.
#[repr(C, align(8))]
struct Control {
    len: usize,
    level: i32,
    kind: i32,
    fds: [i32; FDS_MAX],
}

const CONTROL_HEADER: usize = 16;
const SOL_SOCKET: i32 = 1;
const SCM_RIGHTS: i32 = 1;

/// What [`receive`] got.
#[derive(Debug)]
pub(crate) struct Received {
    /// Bytes of the message.
    pub(crate) len: usize,
    /// Descriptors that came with it, in order.
    pub(crate) fds: [Option<OwnedFd>; FDS_MAX],
    /// Part of it did not fit, or a descriptor could not be installed.
    pub(crate) truncated: bool,
}

/// `recvmsg(2)` with descriptors, close-on-exec.
///
/// # Errors
/// As the kernel says; `EAGAIN` when `wait` is false and nothing is there.
pub(crate) fn receive(socket: Fd, buffer: &mut [u8], wait: bool) -> Result<Received> {
    const DONTWAIT: usize = 0x40;
    const CMSG_CLOEXEC: usize = 0x4000_0000;
    const TRUNCATED: i32 = 0x20 | 0x8;
    let mut control = Control { len: 0, level: 0, kind: 0, fds: [-1; FDS_MAX] };
    let part = [buffer.as_mut_ptr().expose_provenance(), buffer.len()];
    let mut message = Message {
        name: 0,
        name_len: 0,
        parts: at(&part),
        parts_len: 1,
        control: at_mut(&mut control),
        control_len: size_of::<Control>(),
        flags: 0,
    };
    let flags = CMSG_CLOEXEC | if wait { 0 } else { DONTWAIT };
    let len = call(nr::RECVMSG, [arg(socket), at_mut(&mut message), flags, 0, 0, 0])?;
    let has_fds = message.control_len >= CONTROL_HEADER
        && control.level == SOL_SOCKET
        && control.kind == SCM_RIGHTS;
    let bytes = if has_fds { control.len.saturating_sub(CONTROL_HEADER) } else { 0 };
    let count = bytes >> 2;
    let mut fds = [const { None }; FDS_MAX];
    for (slot, fd) in fds.iter_mut().zip(control.fds).take(count) {
        *slot = Some(OwnedFd::new(Fd(fd)));
    }
    Ok(Received { len, fds, truncated: message.flags & TRUNCATED != 0 })
}

/// `sendmsg(2)` with descriptors; never blocks, never raises `SIGPIPE`.
///
/// # Errors
/// As the kernel says.
pub(crate) fn send_with(socket: Fd, bytes: &[u8], fds: &[Fd]) -> Result<()> {
    const DONTWAIT_NOSIGNAL: usize = 0x40 | 0x4000;
    let mut control = Control { len: 0, level: SOL_SOCKET, kind: SCM_RIGHTS, fds: [-1; FDS_MAX] };
    for (slot, fd) in control.fds.iter_mut().zip(fds) {
        *slot = fd.0;
    }
    control.len = CONTROL_HEADER.saturating_add(fds.len().min(FDS_MAX) << 2);
    let part = [bytes.as_ptr().expose_provenance(), bytes.len()];
    let message = Message {
        name: 0,
        name_len: 0,
        parts: at(&part),
        parts_len: 1,
        control: if fds.is_empty() { 0 } else { at(&control) },
        control_len: if fds.is_empty() { 0 } else { control.len.next_multiple_of(8) },
        flags: 0,
    };
    call(nr::SENDMSG, [arg(socket), at(&message), DONTWAIT_NOSIGNAL, 0, 0, 0]).map(drop)
}
