//! The service behind the hatch: greets, and on certain names does what a handler may do wrong.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use postern_hatch::RunContext;
use postern_proto::greeter::greeter_server::Greeter;
use postern_proto::greeter::{HelloReply, HelloRequest};
use tokio_stream::{Stream, StreamExt, iter};
use tonic::{Code, Request, Response, Status, Streaming};

/// What the handlers have seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Calls that reached a handler.
    pub(crate) called: AtomicU64,
    /// Handlers and streams that are not dropped yet.
    pub(crate) alive: AtomicU64,
    /// Client streams that came to a proper end.
    pub(crate) whole: AtomicU64,
    /// Client streams that were broken off.
    pub(crate) broken: AtomicU64,
}

impl Seen {
    pub(crate) fn called(&self) -> u64 {
        self.called.load(Ordering::SeqCst)
    }

    pub(crate) fn alive(&self) -> u64 {
        self.alive.load(Ordering::SeqCst)
    }
}

/// Counts a handler as alive until its drop.
struct Alive(Arc<Seen>);

impl Alive {
    fn new(seen: &Arc<Seen>) -> Self {
        seen.called.fetch_add(1, Ordering::SeqCst);
        seen.alive.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(seen))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The service.
#[derive(Debug, Clone, Default)]
pub(crate) struct Host {
    pub(crate) seen: Arc<Seen>,
}

type Replies = Pin<Box<dyn Stream<Item = Result<HelloReply, Status>> + Send>>;

fn reply(message: impl Into<String>) -> HelloReply {
    HelloReply { message: message.into() }
}

async fn never() {
    tokio::time::sleep(Duration::from_secs(3600)).await;
}

/// Waits where its name says so, with a byte in the answer for each that is asked for.
async fn answer(request: &Request<HelloRequest>) -> Result<HelloReply, Status> {
    let HelloRequest { name, count } = request.get_ref();
    match name.as_str() {
        "sleep" => never().await,
        "wait" => tokio::time::sleep(Duration::from_millis(50)).await,
        "panic" => panic!("a secret of the host"),
        "block" => std::thread::sleep(Duration::from_millis(300)),
        "details" => {
            let mut metadata = tonic::metadata::MetadataMap::new();
            metadata.insert("x-reason", "closed".parse().unwrap());
            let (code, details) = (Code::FailedPrecondition, vec![0, 255, 7].into());
            return Err(Status::with_details_and_metadata(code, "déjà\nvu", details, metadata));
        }
        "big" => return Ok(reply("x".repeat(usize::try_from(*count).unwrap()))),
        _ => {}
    }
    let run = RunContext::of(request).unwrap().run;
    Ok(reply(format!("hello, {name} of {run}")))
}

#[tonic::async_trait]
impl Greeter for Host {
    async fn say_hello(
        &self,
        request: Request<HelloRequest>,
    ) -> Result<Response<HelloReply>, Status> {
        let _alive = Alive::new(&self.seen);
        let mut response = Response::new(answer(&request).await?);
        if let Some(tag) = request.metadata().get("x-tag") {
            response.metadata_mut().insert("x-tag", tag.clone());
        }
        if let Some(tag) = request.metadata().get_bin("x-tag-bin") {
            response.metadata_mut().insert_bin("x-tag-bin", tag.clone());
        }
        Ok(response)
    }

    type KeepGreetingStream = Replies;

    async fn keep_greeting(
        &self,
        request: Request<HelloRequest>,
    ) -> Result<Response<Replies>, Status> {
        let alive = Alive::new(&self.seen);
        let HelloRequest { name, count } = request.into_inner();
        let replies = iter(1..=count).then(move |number| {
            let (name, alive) = (name.clone(), Arc::clone(&alive.0));
            async move {
                match name.as_str() {
                    "sleep" if number > 1 => never().await,
                    "panic" if number > 1 => {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        panic!("a secret of the host");
                    }
                    "big" => return Ok(reply("x".repeat(1 << 20))),
                    _ => drop(alive),
                }
                Ok(reply(format!("{number}: hello, {name}")))
            }
        });
        let guard = Alive::new(&self.seen);
        let replies = replies.map(move |reply| {
            let _in_the_stream = &guard;
            reply
        });
        Ok(Response::new(Box::pin(replies)))
    }

    async fn greet_together(
        &self,
        request: Request<Streaming<HelloRequest>>,
    ) -> Result<Response<HelloReply>, Status> {
        let _alive = Alive::new(&self.seen);
        let mut names = request.into_inner();
        let mut all = Vec::new();
        loop {
            match names.message().await {
                Ok(Some(request)) => {
                    if request.name == "slow" && all.len() % 100 == 0 {
                        tokio::time::sleep(Duration::from_millis(2)).await;
                    }
                    all.push(request.name);
                }
                Ok(None) => break,
                Err(_) if all.first().is_some_and(|name| name == "deaf") => break,
                Err(_) if all.first().is_some_and(|name| name == "rude") => {
                    return Err(Status::unknown("my own reason"));
                }
                Err(status) => {
                    self.seen.broken.fetch_add(1, Ordering::SeqCst);
                    return Err(status);
                }
            }
        }
        self.seen.whole.fetch_add(1, Ordering::SeqCst);
        let bytes: usize = all.iter().map(String::len).sum();
        let names = if bytes < 100 { all.join(", ") } else { format!("{bytes} bytes of names") };
        Ok(Response::new(reply(format!("hello, {names}"))))
    }

    type GreetEachStream = Replies;

    async fn greet_each(
        &self,
        request: Request<Streaming<HelloRequest>>,
    ) -> Result<Response<Replies>, Status> {
        let alive = Alive::new(&self.seen);
        let replies = request.into_inner().map(move |request| {
            let _in_the_stream = &alive;
            request.map(|request| reply(format!("hello, {}", request.name)))
        });
        Ok(Response::new(Box::pin(replies)))
    }
}
