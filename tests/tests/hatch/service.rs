//! The greeter behind the hatches, which counts its handlers run by run. It refuses nothing: that is
//! the hatch's part.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use postern::hatch::{RunContext, RunId};
use postern_proto::greeter::greeter_server::Greeter;
use postern_proto::greeter::{HelloReply, HelloRequest};
use tokio_stream::{Stream, StreamExt, iter};
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Response, Status, Streaming};

/// Handlers and streams that wait for ever, by run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Waiting(Arc<Mutex<HashMap<RunId, u32>>>);

impl Waiting {
    pub(crate) fn of(&self, run: RunId) -> u32 {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&run).copied().unwrap_or_default()
    }

    /// Of all runs.
    pub(crate) fn all(&self) -> u32 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    fn add(&self, run: RunId) -> Guard {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(run).or_default() += 1;
        Guard { waiting: self.clone(), run }
    }
}

/// Counts until its drop.
struct Guard {
    waiting: Waiting,
    run: RunId,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut counts = self.waiting.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(self.run).or_default() -= 1;
    }
}

/// The service, which greets in words of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Host {
    pub(crate) greeting: &'static str,
    pub(crate) waiting: Waiting,
}

type Replies = Pin<Box<dyn Stream<Item = Result<HelloReply, Status>> + Send>>;

fn reply(message: impl Into<String>) -> HelloReply {
    HelloReply { message: message.into() }
}

fn run<T>(request: &Request<T>) -> Result<RunId, Status> {
    RunContext::of(request).map(|context| context.run).ok_or(Status::internal("no run"))
}

async fn never() {
    std::future::pending::<()>().await;
}

/// How long a handler may take to be dropped.
const DROPPED_WITHIN: Duration = Duration::from_secs(1);

impl Host {
    /// How many handlers of the run wait: as soon as none does, or when one should have been gone.
    async fn still_waiting(&self, run: RunId) -> u32 {
        let end = std::time::Instant::now() + DROPPED_WITHIN;
        while self.waiting.of(run) > 0 && std::time::Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.waiting.of(run)
    }
}

#[tonic::async_trait]
impl Greeter for Host {
    async fn say_hello(
        &self,
        request: Request<HelloRequest>,
    ) -> Result<Response<HelloReply>, Status> {
        let run = run(&request)?;
        match request.get_ref().name.as_str() {
            "sleep" => {
                let _waits = self.waiting.add(run);
                never().await;
            }
            "waiting" => {
                let count = self.still_waiting(run).await;
                return Ok(Response::new(reply(format!("{count} waiting"))));
            }
            "details" => {
                let mut metadata = MetadataMap::new();
                metadata.insert("x-reason", "closed".parse().unwrap());
                let (code, details) = (Code::FailedPrecondition, vec![0, 255, 7].into());
                let words = "d\u{e9}j\u{e0}\nvu";
                return Err(Status::with_details_and_metadata(code, words, details, metadata));
            }
            _ => {}
        }
        let greeting = format!("{}, {} of {run}", self.greeting, request.get_ref().name);
        let mut response = Response::new(reply(greeting));
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
        let run = run(&request)?;
        let HelloRequest { name, count } = request.into_inner();
        let waits = (name == "sleep").then(|| self.waiting.add(run));
        let replies = iter(1..=count).then(move |number| {
            let _in_the_stream = &waits;
            let (name, must_wait) = (name.clone(), waits.is_some() && number > 1);
            async move {
                if must_wait {
                    never().await;
                }
                Ok(reply(format!("{number}: hello, {name}")))
            }
        });
        Ok(Response::new(Box::pin(replies)))
    }

    async fn greet_together(
        &self,
        request: Request<Streaming<HelloRequest>>,
    ) -> Result<Response<HelloReply>, Status> {
        let mut requests = request.into_inner();
        let mut names = Vec::new();
        while let Some(request) = requests.message().await? {
            names.push(request.name);
        }
        Ok(Response::new(reply(format!("hello, {}", names.join(", ")))))
    }

    type GreetEachStream = Replies;

    async fn greet_each(
        &self,
        request: Request<Streaming<HelloRequest>>,
    ) -> Result<Response<Replies>, Status> {
        let replies = request
            .into_inner()
            .map(|request| request.map(|request| reply(format!("hello, {}", request.name))));
        Ok(Response::new(Box::pin(replies)))
    }
}
