//! What a guest sends in a call, on its way to the handler: bounded, and never taken for whole when
//! it was broken off. Messages are not decoded here.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tonic::Status;

use super::budget::Waiting;
use super::call::Call;
use super::messages::Messages;

/// The body of a request.
pub(super) struct Arriving {
    body: Option<Incoming>,
    messages: Messages,
    call: Arc<Call>,
    /// A piece for whose messages there is no share yet.
    waiting: Option<(Bytes, Waiting)>,
}

impl Arriving {
    pub(super) fn new(body: Incoming, call: Arc<Call>) -> Self {
        let messages = Messages::new(call.run.limits().message_bytes_max);
        Self { body: Some(body), messages, call, waiting: None }
    }

    /// The piece, as soon as there is a share for the messages that begin in it.
    fn admit(&mut self, piece: Bytes) -> Result<Option<Bytes>, Status> {
        let Some(begun) = self.messages.pass(&piece).map_err(|long| self.refuse(long.bytes))?
        else {
            return Ok(Some(piece));
        };
        // The handler has asked for more, so it is done with the last message.
        self.call.hold(None);
        match self.call.run.arriving().take(begun) {
            Ok(share) => {
                self.call.hold(Some(share));
                Ok(Some(piece))
            }
            Err(waiting) => {
                self.waiting = Some((piece, waiting));
                Ok(None)
            }
        }
    }

    fn refuse(&self, bytes: u32) -> Status {
        let most = self.call.run.limits().message_bytes_max;
        let text = format!("a message of {bytes} bytes; the hatch takes at most {most}");
        self.call.run.refuse(&text);
        let status = Status::resource_exhausted(text);
        self.call.judge(status.clone());
        status
    }
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        loop {
            if let Some((_, waiting)) = &mut self.waiting {
                let share = ready!(waiting.as_mut().poll(cx));
                self.call.hold(Some(share));
                let piece = self.waiting.take().map(|(piece, _)| Ok(Frame::data(piece)));
                return Poll::Ready(piece);
            }
            let Some(body) = &mut self.body else { return Poll::Ready(None) };
            let frame = match ready!(Pin::new(body).poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(Err(_)) => {
                    self.body = None;
                    // Tonic takes CANCELLED for a proper end, and a half upload for a whole one.
                    let status = Status::aborted("the guest broke the call off");
                    return Poll::Ready(Some(Err(status)));
                }
                Some(Ok(frame)) => frame,
            };
            let piece = match frame.into_data() {
                Ok(piece) => piece,
                Err(other) => return Poll::Ready(Some(Ok(other))),
            };
            match self.admit(piece) {
                Ok(Some(piece)) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
                Ok(None) => {}
                Err(status) => {
                    self.body = None;
                    return Poll::Ready(Some(Err(status)));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.waiting.is_none() && self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
