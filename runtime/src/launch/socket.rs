//! The library's side of the sockets to the launcher and to each run.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use postern_init::record::{LEN, Record};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// As many descriptors as one message carries.
const FDS_MAX: usize = 8;

/// Two connected ends that keep the borders of messages.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends one message with descriptors, without waiting.
pub(crate) fn send(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(Errno::INVAL.into());
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, flags)?;
    Ok(())
}

/// What [`receive`] found.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A record, with its descriptors.
    Record(Record, Vec<OwnedFd>),
    /// Nothing yet.
    Nothing,
    /// The other side is gone.
    End,
}

/// Takes one record if one is there.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Incoming> {
    let mut bytes = [0u8; LEN];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let mut take = || {
        recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags)
            .map(|got| got.bytes)
    };
    // A peer that closes with something unread resets the line once, before what it said is read.
    let taken = match take() {
        Err(Errno::CONNRESET) => take(),
        taken => taken,
    };
    let len = match taken {
        Ok(len) => len,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(Incoming::Nothing),
        Err(Errno::CONNRESET) => return Ok(Incoming::End),
        Err(errno) => return Err(errno.into()),
    };
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    match (len, bytes.get(..len).and_then(Record::decode)) {
        (0, _) => Ok(Incoming::End),
        (_, Some(record)) => Ok(Incoming::Record(record, fds)),
        (_, None) => Err(io::Error::new(io::ErrorKind::InvalidData, "not a record")),
    }
}

/// The next record, waited for until `deadline`; `None`: it passed.
pub(crate) fn receive_until(socket: impl AsFd, deadline: Instant) -> io::Result<Option<Incoming>> {
    loop {
        match receive(&socket)? {
            Incoming::Nothing => {}
            found @ (Incoming::Record(..) | Incoming::End) => return Ok(Some(found)),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        wait_readable(&socket, left)?;
    }
}

/// Waits until `socket` is readable or at its end, `left` at the most.
pub(crate) fn wait_readable(socket: impl AsFd, left: Duration) -> io::Result<()> {
    let timeout = timespec(left);
    match poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// A duration as the kernel takes it.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
