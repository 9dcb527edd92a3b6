//! The bytes of one connection. Descriptors that a guest sends along are not received: nothing here
//! has room for control messages, so the kernel drops them.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::{Shutdown, shutdown};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::time::{Sleep, sleep};

use super::run::Seat;

/// The client's preface, and the frame header that follows it.
const GREETING_BYTES: usize = 24 + 9;

/// What is read in one turn: bytes, and reads that brought little. Few enough for the handlers to
/// take small messages before there are more of them than HTTP/2's own bound allows.
const TURN_BYTES: usize = 8 * 1024;
const TURN_READS: u32 = 8;

/// What is read at once, and made frames of before the next look at the clock.
const READ_BYTES: usize = 2 * 1024;

/// One connection.
pub(super) struct Wire {
    socket: Arc<UnixStream>,
    seat: Seat,
    greeting: Option<Greeting>,
    /// In this turn.
    bytes: usize,
    reads: u32,
}

/// What a connection must begin with, and until when.
struct Greeting {
    left: usize,
    until: Pin<Box<Sleep>>,
}

impl Wire {
    /// A connection that must begin within a time.
    pub(super) fn new(socket: Arc<UnixStream>, seat: Seat, time: Duration) -> Self {
        let greeting = Greeting { left: GREETING_BYTES, until: Box::pin(sleep(time)) };
        Self { socket, seat, greeting: Some(greeting), bytes: 0, reads: 0 }
    }

    fn start_turn(&mut self) {
        (self.bytes, self.reads) = (0, 0);
    }

    /// Ready while it is this connection's turn; the next comes after the run's other tasks.
    fn poll_turn(&mut self, cx: &Context<'_>) -> Poll<()> {
        let is_over = self.bytes >= TURN_BYTES || self.reads >= TURN_READS;
        if !is_over && !self.seat.run().tasks().is_time_up() {
            return Poll::Ready(());
        }
        self.start_turn();
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_bytes(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.socket.poll_read_ready(cx))?;
            let room = buf.remaining().min(READ_BYTES);
            let count = match self.socket.try_read(buf.initialize_unfilled_to(room)) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                outcome => outcome?,
            };
            buf.advance(count);
            if let Some(greeting) = &mut self.greeting {
                greeting.left = greeting.left.saturating_sub(count);
            }
            self.bytes += count;
            self.reads += 1;
            self.greeting.take_if(|greeting| greeting.left == 0);
            return Poll::Ready(Ok(()));
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_turn(cx));
        if let Poll::Ready(outcome) = self.poll_bytes(cx, buf) {
            return Poll::Ready(outcome);
        }
        self.start_turn();
        let greeting = self.greeting.as_mut();
        match greeting.is_some_and(|own| own.until.as_mut().poll(cx).is_ready()) {
            true => Poll::Ready(Err(ErrorKind::TimedOut.into())),
            false => Poll::Pending,
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.socket.poll_write_ready(cx))?;
            match self.socket.try_write_vectored(pieces) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                outcome => return Poll::Ready(outcome),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(shutdown(&*self.socket, Shutdown::Write).map_err(io::Error::from))
    }
}
