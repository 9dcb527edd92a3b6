//! What a guest is answered: the handler's words within the hatch's limits, or the hatch's own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body::{Body as _, Frame};
use tokio::time::Sleep;
use tonic::Status;
use tonic::body::Body;

use super::budget::{Share, Waiting, charged};
use super::call::Call;
use super::messages::Messages;
use super::run::Run;

/// The body of an answer: nothing, or the rest of a handler's.
pub(super) struct Reply(Option<Rest>);

struct Rest {
    body: Body,
    messages: Messages,
    call: Arc<Call>,
    deadline: Pin<Box<Sleep>>,
    room: Room,
}

/// Room for the next message, without which a handler is not asked for it: nothing is made that
/// there is no room for.
#[derive(Default)]
pub(super) struct Room {
    taken: Option<Share>,
    /// With the place of an answer that was there before its room.
    waiting: Option<(Waiting, Option<Share>)>,
}

impl Room {
    /// For an answer that is there: taken, or waited for if not too many wait.
    pub(super) fn at_hand(run: &Run) -> Result<Self, Status> {
        match run.room() {
            Ok(share) => Ok(Self { taken: Some(share), ..Self::default() }),
            Err(waiting) => match run.place() {
                Some(place) => {
                    Ok(Self { waiting: Some((waiting, Some(place))), ..Self::default() })
                }
                None => Err(Status::resource_exhausted("too many answers are not taken yet")),
            },
        }
    }

    fn poll(&mut self, run: &Run, cx: &mut Context<'_>) -> Poll<Share> {
        if let Some(share) = self.taken.take() {
            return Poll::Ready(share);
        }
        let waiting = match &mut self.waiting {
            Some((waiting, _)) => waiting,
            None => match run.room() {
                Ok(share) => return Poll::Ready(share),
                Err(waiting) => &mut self.waiting.insert((waiting, None)).0,
            },
        };
        let share = ready!(waiting.as_mut().poll(cx));
        *self = Self::default();
        Poll::Ready(share)
    }
}

/// What the hatch says itself.
pub(super) fn status(status: Status) -> Response<Reply> {
    status.into_http::<Body>().map(|_| Reply(None))
}

/// At the deadline.
pub(super) fn late() -> Status {
    Status::deadline_exceeded("the call took longer than its deadline")
}

/// A handler's panic, which may have named anything, is not for the guest.
pub(super) fn panicked() -> Status {
    Status::internal("the handler failed")
}

/// Polls what a handler wrote, which may panic.
pub(super) fn guarded<T>(poll: impl FnOnce() -> Poll<T>) -> Result<Poll<T>, Status> {
    catch_unwind(AssertUnwindSafe(poll)).map_err(|_panic| panicked())
}

impl Reply {
    /// Nothing at all: the headers say it.
    pub(super) fn empty() -> Self {
        Self(None)
    }

    /// What a handler answers, until the deadline.
    pub(super) fn of(body: Body, call: Arc<Call>, deadline: Pin<Box<Sleep>>, room: Room) -> Self {
        if body.is_end_stream() {
            return Self(None);
        }
        let messages = Messages::new(call.run.limits().response_bytes_max);
        Self(Some(Rest { body, messages, call, deadline, room }))
    }

    /// The last frame.
    fn end(&mut self, status: &Status) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.0 = None;
        let mut trailers = HeaderMap::new();
        let added = status.add_header(&mut trailers);
        Poll::Ready(Some(added.map(|()| Frame::trailers(trailers))))
    }
}

impl Rest {
    /// The next frame within all limits.
    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, Status>> {
        if let Some(status) = self.call.verdict(cx) {
            return Poll::Ready(Err(status));
        }
        if self.deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(late()));
        }
        let mut share = ready!(self.room.poll(&self.call.run, cx));
        let frame = match ready!(guarded(|| Pin::new(&mut self.body).poll_frame(cx))?) {
            None => return Poll::Ready(Ok(None)),
            Some(frame) => frame?,
        };
        let piece = match frame.into_data() {
            Ok(piece) => piece,
            Err(other) => return Poll::Ready(Ok(Some(other))),
        };
        self.messages.pass(&piece).map_err(|long| {
            let most = self.call.run.limits().response_bytes_max;
            let bytes = long.bytes;
            Status::resource_exhausted(format!(
                "an answer of {bytes} bytes; the hatch gives at most {most}"
            ))
        })?;
        share.shrink(piece.len());
        Poll::Ready(Ok(Some(Frame::data(charged(piece, share)))))
    }
}

impl http_body::Body for Reply {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(rest) = &mut self.0 else { return Poll::Ready(None) };
        match ready!(rest.next(cx)) {
            Ok(Some(frame)) => {
                if frame.is_trailers() {
                    self.0 = None;
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Ok(None) => {
                self.0 = None;
                Poll::Ready(None)
            }
            Err(status) => self.end(&status),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }
}
