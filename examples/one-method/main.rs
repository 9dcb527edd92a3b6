//! The smallest hatch: a guest calls one typed method of the host, and nothing else of it.
//!
//! The guest needs grpcio, which few hosts have for all; name an environment that has it:
//! `cargo run -p postern --features grpc --example one-method -- VENV`.

use std::io::Write;

use postern::hatch::GrpcHatch;
use postern::{Sandbox, SandboxProfile};
use postern_proto::greeter::greeter_server::{Greeter, GreeterServer};
use postern_proto::greeter::{HelloReply, HelloRequest};
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status, Streaming};

const CODE: &str = r#"
import os
try:
    import grpc
except ImportError:
    raise SystemExit("the guest has no grpcio: name an environment that has it")
channel = grpc.insecure_channel("unix:" + os.environ["POSTERN_HATCH"])
# Field 1, five bytes: without stubs a message is its bytes.
for method in ["SayHello", "KeepGreeting"]:
    try:
        print(channel.unary_unary("/greeter.Greeter/" + method)(b"\x0a\x05guest")[2:].decode())
    except grpc.RpcError as error:
        print(error.code().name, error.details())
"#;

#[derive(Debug)]
struct Host;

#[tonic::async_trait]
impl Greeter for Host {
    async fn say_hello(
        &self,
        hello: Request<HelloRequest>,
    ) -> Result<Response<HelloReply>, Status> {
        let message = format!("hello, {}, from the host", hello.into_inner().name);
        Ok(Response::new(HelloReply { message }))
    }

    // Never reached: they are not on the list.
    type KeepGreetingStream = BoxStream<HelloReply>;
    type GreetEachStream = BoxStream<HelloReply>;

    async fn keep_greeting(
        &self,
        _: Request<HelloRequest>,
    ) -> Result<Response<Self::KeepGreetingStream>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn greet_together(
        &self,
        _: Request<Streaming<HelloRequest>>,
    ) -> Result<Response<HelloReply>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn greet_each(
        &self,
        _: Request<Streaming<HelloRequest>>,
    ) -> Result<Response<Self::GreetEachStream>, Status> {
        Err(Status::unimplemented("not here"))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hatch = GrpcHatch::allowing(["/greeter.Greeter/SayHello"])
        .add_service(GreeterServer::new(Host))
        .build()?;
    let profile = match std::env::args_os().nth(1) {
        Some(venv) => SandboxProfile::with_venv(venv)?,
        None => SandboxProfile::default(),
    };
    let sandbox = Sandbox::builder(profile).hatch(hatch.clone()).build()?;
    let result = sandbox.run_python(CODE)?;
    let (said, refused) = (result.stdout_text(), hatch.refused());
    writeln!(std::io::stdout(), "{said}{}refused: {refused}", result.stderr_text())?;
    Ok(())
}
