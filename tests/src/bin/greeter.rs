//! A guest with tonic: prints what becomes of each kind of call, as JSON. Expects nothing itself.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a guest of the tests")]

use std::time::Duration;

use postern_proto::greeter::greeter_client::GreeterClient;
use postern_proto::greeter::{HelloReply, HelloRequest};
use serde_json::{Value, json};
use tokio_stream::{StreamExt, iter};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status, Streaming};

type Client = GreeterClient<Channel>;

fn hello(name: &str) -> HelloRequest {
    HelloRequest { name: name.to_owned(), count: 0 }
}

fn counted(name: &str, count: u32) -> HelloRequest {
    HelloRequest { name: name.to_owned(), count }
}

/// A failed call in one line: code, words, and what else came with them.
fn told(status: &Status) -> String {
    let mut code = String::new();
    for letter in format!("{:?}", status.code()).chars() {
        if letter.is_uppercase() && !code.is_empty() {
            code.push('_');
        }
        code.push(letter.to_ascii_uppercase());
    }
    let details = hex(status.details());
    let reason = status.metadata().get("x-reason").map_or("", |reason| reason.to_str().unwrap());
    let words = [&format!("{code}:"), status.message(), &details, reason];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn one(outcome: Result<Response<HelloReply>, Status>) -> Value {
    outcome.map_or_else(|status| told(&status).into(), |reply| reply.into_inner().message.into())
}

async fn all(outcome: Result<Response<Streaming<HelloReply>>, Status>) -> Value {
    let stream = match outcome {
        Ok(stream) => stream.into_inner(),
        Err(status) => return told(&status).into(),
    };
    let replies: Result<Vec<_>, _> = stream.collect().await;
    match replies {
        Ok(replies) => replies.into_iter().map(|reply| reply.message).collect(),
        Err(status) => told(&status).into(),
    }
}

async fn metadata(client: &mut Client) -> Value {
    let mut request = Request::new(hello("ada"));
    request.metadata_mut().insert("x-tag", "a b".parse().unwrap());
    let bytes = tonic::metadata::BinaryMetadataValue::from_bytes(&[0, 255]);
    request.metadata_mut().insert_bin("x-tag-bin", bytes);
    let reply = client.say_hello(request).await.unwrap();
    let tag = reply.metadata().get("x-tag").unwrap().to_str().unwrap();
    let bytes = reply.metadata().get_bin("x-tag-bin").unwrap().to_bytes().unwrap();
    format!("{tag} {}", hex(&bytes)).into()
}

/// Drops the stream after its first message, which is how a call is cancelled here.
async fn cancelled(client: &mut Client) -> Value {
    let mut stream = client.keep_greeting(counted("sleep", 2)).await.unwrap().into_inner();
    stream.message().await.unwrap().unwrap().message.into()
}

/// A method that the generated client does not have.
fn other_method(channel: &Channel) -> tonic::client::Grpc<Channel> {
    tonic::client::Grpc::new(channel.clone())
}

async fn denied(channel: &Channel, is_stream: bool) -> Value {
    let mut client = other_method(channel);
    client.ready().await.unwrap();
    let path = tonic::codegen::http::uri::PathAndQuery::from_static("/greeter.Greeter/Denied");
    let codec = tonic_prost::ProstCodec::<HelloRequest, HelloReply>::default();
    let request = Request::new(hello("ada"));
    match is_stream {
        true => all(client.server_streaming(request, path, codec).await).await,
        false => one(client.unary(request, path, codec).await),
    }
}

async fn outcomes(socket: &str) -> Value {
    let channel = Endpoint::try_from(format!("unix://{socket}")).unwrap().connect().await.unwrap();
    let client = &mut Client::new(channel.clone());
    let mut late = Request::new(hello("sleep"));
    late.set_timeout(Duration::from_millis(200));
    json!({
        "version": "tonic",
        "unary": one(client.say_hello(hello("ada")).await),
        "server stream": all(client.keep_greeting(counted("bob", 3)).await).await,
        "client stream": one(client.greet_together(iter(["eve", "dan"].map(hello))).await),
        "both streams": all(client.greet_each(iter(["eve", "dan"].map(hello))).await).await,
        "metadata": metadata(client).await,
        "details": one(client.say_hello(hello("details")).await),
        "deadline": one(client.say_hello(late).await),
        "and dropped": one(client.say_hello(hello("waiting")).await),
        "cancel": cancelled(client).await,
        "dropped": one(client.say_hello(hello("waiting")).await),
        "denied": denied(&channel, false).await,
        "denied stream": denied(&channel, true).await,
        "over-limit": one(client.say_hello(hello(&"x".repeat(5 << 20))).await),
        "afterwards": one(client.say_hello(hello("ada")).await),
    })
}

/// One greeting, by the first connection.
async fn connect(socket: &str) -> String {
    let endpoint = Endpoint::try_from(format!("unix://{socket}")).unwrap();
    let mut client = Client::new(endpoint.connect().await.unwrap());
    client.say_hello(hello("ada")).await.unwrap().into_inner().message
}

/// Two calls that never end; says so once they are underway.
async fn sleep(socket: &str) -> (Client, Streaming<HelloReply>) {
    let endpoint = Endpoint::try_from(format!("unix://{socket}")).unwrap();
    let mut client = Client::new(endpoint.connect().await.unwrap());
    let mut stream = client.keep_greeting(counted("sleep", 2)).await.unwrap().into_inner();
    stream.message().await.unwrap().unwrap();
    let mut other = client.clone();
    tokio::spawn(async move { other.say_hello(hello("sleep")).await });
    println!("sleeping");
    (client, stream)
}

/// Until the end of its input, or for ever where there is none.
async fn rest(is_for_ever: bool) {
    if is_for_ever {
        std::future::pending::<()>().await;
    }
    let input = || std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    tokio::task::spawn_blocking(input).await.unwrap().unwrap();
}

/// With no argument every kind of call; else `connect`, or `sleep` with any word for "for ever".
async fn act(socket: &str, arguments: &[String]) {
    match arguments {
        [] => println!("{}", outcomes(socket).await),
        [act] if act == "connect" => println!("{}", connect(socket).await),
        [_sleep, rest_of_them @ ..] => {
            let _calls = sleep(socket).await;
            rest(!rest_of_them.is_empty()).await;
        }
    }
}

fn main() {
    let socket = std::env::var("POSTERN_HATCH").unwrap();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(act(&socket, &arguments));
}
