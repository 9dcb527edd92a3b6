//! Decides about every call of a connection by its headers alone, before anything else of it is
//! read, and hands the allowed ones to their handlers.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::time::Sleep;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::ServiceExt;

use super::arriving::Arriving;
use super::call::Call;
use super::context::RunContext;
use super::method::Shown;
use super::reply::{self, Reply, Room, guarded};
use super::run::Run;
use super::{Route, timeout};

/// The way into one run's hatch, for one connection.
pub(super) struct Gate(pub(super) Arc<Run>);

impl Gate {
    /// The answer that a call gets without a handler, if it gets one.
    fn refuse<B>(&self, request: &Request<B>) -> Option<Response<Reply>> {
        // The whole path with its query: what is compared is what would be dispatched on.
        let path = request.uri().path_and_query().map_or("", http::uri::PathAndQuery::as_str);
        if request.method() != Method::POST {
            self.0.refuse(&format_args!("{}: no POST", Shown(path)));
            return Some(plain(StatusCode::METHOD_NOT_ALLOWED));
        }
        if !is_grpc(request.headers()) {
            self.0.refuse(&format_args!("{}: no gRPC", Shown(path)));
            return Some(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        if !self.0.allows(path) {
            let text = format!("{} is not on the hatch allowlist", Shown(path));
            self.0.refuse(&text);
            return Some(reply::status(Status::permission_denied(text)));
        }
        None
    }

    fn route(&self, path: &str) -> Option<Route> {
        let (_, service) = path.rsplit_once('/').zip(path.strip_prefix('/'))?;
        self.0.route(service.split('/').next()?)
    }
}

/// gRPC itself, and none of its relatives that a handler might take for it.
fn is_grpc(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let is_one = |kind: &http::HeaderValue| {
        ["application/grpc", "application/grpc+proto"].iter().any(|own| kind == own)
    };
    types.next().is_some_and(is_one) && types.next().is_none()
}

fn plain(status: StatusCode) -> Response<Reply> {
    let mut response = Response::new(Reply::empty());
    *response.status_mut() = status;
    response
}

fn not_served(path: &str) -> Status {
    Status::unimplemented(format!("{} is allowed but not served", Shown(path)))
}

impl hyper::service::Service<Request<Incoming>> for Gate {
    type Response = Response<Reply>;
    type Error = Infallible;
    type Future = Answer;

    fn call(&self, request: Request<Incoming>) -> Answer {
        if let Some(refusal) = self.refuse(&request) {
            return Answer::refusal(refusal);
        }
        let path = request.uri().path().to_owned();
        let Some(route) = self.route(&path) else {
            return Answer::refusal(reply::status(not_served(&path)));
        };
        let most = self.0.limits().deadline;
        let time = timeout::of(request.headers()).map_or(most, |time| time.min(most));
        let call = Arc::new(Call::new(Arc::clone(&self.0)));
        let mut request = request.map(|body| Body::new(Arriving::new(body, Arc::clone(&call))));
        request.extensions_mut().insert(RunContext { run: self.0.id() });
        Answer::Handler(Box::new(Handling {
            answer: Box::pin(route.oneshot(request)),
            call,
            deadline: Some(Box::pin(tokio::time::sleep(time))),
            path,
        }))
    }
}

/// The answer to one call, to be.
pub(super) enum Answer {
    /// The hatch's own.
    Ready(Option<Box<Response<Reply>>>),
    /// A handler's.
    Handler(Box<Handling>),
}

/// A handler at work.
pub(super) struct Handling {
    answer: Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>,
    call: Arc<Call>,
    /// Until the answer takes it over.
    deadline: Option<Pin<Box<Sleep>>>,
    path: String,
}

impl Handling {
    /// The handler's answer, or the hatch's that comes before it.
    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<(Body, Room)>, Status>> {
        if let Some(status) = self.call.verdict(cx) {
            return Poll::Ready(Err(status));
        }
        if self.deadline.as_mut().is_some_and(|deadline| deadline.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(Err(reply::late()));
        }
        let Ok(response) = ready!(guarded(|| self.answer.as_mut().poll(cx))?);
        // The handler may have looked away from what judged its request.
        match self.call.verdict(cx) {
            Some(status) => Poll::Ready(Err(status)),
            None if is_unknown(&response) => Poll::Ready(Err(not_served(&self.path))),
            None if response.body().is_end_stream() => {
                Poll::Ready(Ok(response.map(|body| (body, Room::default()))))
            }
            None => {
                let room = Room::at_hand(&self.call.run)?;
                Poll::Ready(Ok(response.map(|body| (body, room))))
            }
        }
    }
}

/// What tonic answers for a method that a service does not have.
fn is_unknown(response: &Response<Body>) -> bool {
    let headers = response.headers();
    let code = headers.get(Status::GRPC_STATUS).map(|code| Code::from_bytes(code.as_bytes()));
    let has_text = headers.contains_key(Status::GRPC_MESSAGE);
    code == Some(Code::Unimplemented) && !has_text && response.body().is_end_stream()
}

impl Answer {
    fn refusal(response: Response<Reply>) -> Self {
        Self::Ready(Some(Box::new(response)))
    }
}

impl Future for Answer {
    type Output = Result<Response<Reply>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let handling = match &mut *self {
            // Polled again after its end, which nobody does, it says nothing more.
            Self::Ready(response) => {
                return response.take().map_or(Poll::Pending, |own| Poll::Ready(Ok(*own)));
            }
            Self::Handler(handling) => handling,
        };
        let response = match ready!(handling.next(cx)) {
            Err(status) => reply::status(status),
            Ok(response) => match handling.deadline.take() {
                Some(deadline) => {
                    let call = Arc::clone(&handling.call);
                    response.map(|(body, room)| Reply::of(body, call, deadline, room))
                }
                None => reply::status(reply::late()),
            },
        };
        *self = Self::Ready(None);
        Poll::Ready(Ok(response))
    }
}
