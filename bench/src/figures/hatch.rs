//! What a call through a hatch takes, as a stock grpcio guest sees it: ours, the same server without
//! a sandbox, and the hatch of the Python package `postern` 0.5 in its sandbox.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Stdio;

use postern::hatch::{GrpcHatch, Hatch, RunId};
use postern::{Command, Sandbox, SandboxProfile};
use postern_proto::greeter::greeter_server::{Greeter, GreeterServer};
use postern_proto::greeter::{HelloReply, HelloRequest};
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

use super::Setting;
use super::python::build_init;
use crate::measure::{Contender, Effort, Outcome, Series, alternate};
use crate::remote::Remote;
use crate::report::Table;
use crate::world::{complain, process};

const GUEST: &str = include_str!("../../peer/unary.py");
const PEER: &str = include_str!("../../peer/hatch.py");

/// Each guest makes so many times the calls that other figures make launches.
const CALLS: usize = 25;

/// Greets; the kinds of call that are not measured are not served.
#[derive(Debug, Clone)]
struct Host;

type Replies = Pin<Box<dyn Stream<Item = Result<HelloReply, Status>> + Send>>;

fn unmeasured<T>() -> Result<T, Status> {
    Err(Status::unimplemented("not measured"))
}

#[tonic::async_trait]
impl Greeter for Host {
    async fn say_hello(
        &self,
        request: Request<HelloRequest>,
    ) -> Result<Response<HelloReply>, Status> {
        let message = format!("hello, {}", request.into_inner().name);
        Ok(Response::new(HelloReply { message }))
    }

    type KeepGreetingStream = Replies;

    async fn keep_greeting(&self, _: Request<HelloRequest>) -> Result<Response<Replies>, Status> {
        unmeasured()
    }

    async fn greet_together(
        &self,
        _: Request<Streaming<HelloRequest>>,
    ) -> Result<Response<HelloReply>, Status> {
        unmeasured()
    }

    type GreetEachStream = Replies;

    async fn greet_each(
        &self,
        _: Request<Streaming<HelloRequest>>,
    ) -> Result<Response<Replies>, Status> {
        unmeasured()
    }
}

/// One unary call, by the clock of a guest that makes one after the other.
pub(crate) fn hatch(setting: &Setting) -> Outcome<Vec<Table>> {
    let title = "a unary call through a gRPC hatch, grpcio in every guest";
    let (Some(peer), Some(venv)) = (&setting.peer, &setting.venv) else {
        let mut table = Table::new(title, "us");
        table.note("SKIPPED: --peer names no Python package `postern` 0.5, or --venv no grpcio");
        return Ok(vec![table]);
    };
    let hatch = GrpcHatch::allowing(["/greeter.Greeter/SayHello"]);
    let hatch = hatch.add_service(GreeterServer::new(Host)).build()?;
    let profile = SandboxProfile::builder().venv(venv.clone()).build()?;
    let sandbox = Sandbox::builder(profile).hatch(hatch.clone()).build()?;
    let socket = setting.world.scratch("hatch.sock@localhost");
    let _serving = hatch.open(UnixListener::bind(&socket)?, RunId::next())?;
    let mut remote = Remote::spawn(peer_host(setting, peer, venv)?)?;
    let mut contenders = [
        remote.contender("PyPI postern 0.5, GrpcHatch"),
        Contender::in_batches("postern, GrpcHatch", |count| inside(&sandbox, count)),
        Contender::in_batches("the same server, no sandbox", |count| outside(venv, &socket, count)),
    ];
    let batch = setting.effort.batch * CALLS;
    let series = alternate(Effort { batch, ..setting.effort }, &mut contenders)?;
    drop(contenders);
    Ok(vec![judged(title, &series)])
}

fn judged(title: &str, series: &[Series]) -> Table {
    let mut table = Table::of_series(title, series);
    if let [peer, ours, bare] = series {
        let ratio = ours.pairwise(bare, |ours, bare| ours / bare).p50;
        table.promise("times the same server without a sandbox", ratio, 1.1, 1.0);
        let ratio = peer.pairwise(ours, |peer, ours| peer / ours).p50;
        table.promise("times faster than the Python package's", ratio, 1.5, 2.0);
    }
    for one in series {
        table.note(format!("p99 of {}: {:.1}", one.name, one.percentile(99)));
    }
    table
}

/// The peer with its own init, its own server in the same interpreter, and the same guest.
fn peer_host(setting: &Setting, peer: &Path, venv: &Path) -> Outcome<std::process::Command> {
    let init = build_init(setting, peer)?;
    let guest: PathBuf = setting.world.scratch("unary.py");
    std::fs::write(&guest, GUEST)?;
    let mut host = process(&venv.join("bin/python"));
    host.args(["-c", PEER]).arg(peer).arg(init).arg(venv).arg(guest);
    Ok(host)
}

fn inside(sandbox: &Sandbox, count: usize) -> Outcome<Vec<f64>> {
    let result = sandbox.run(Command::python(GUEST).env("CALLS", count.to_string()))?;
    match result.ok() {
        true => samples(&result.stdout_text()),
        false => Err(format!("{:?}: {}", result.ending, result.stderr_text()).into()),
    }
}

fn outside(venv: &Path, socket: &Path, count: usize) -> Outcome<Vec<f64>> {
    let mut guest = process(&venv.join("bin/python"));
    guest.args(["-usc", GUEST]).env("CALLS", count.to_string()).env("POSTERN_HATCH", socket);
    let output = guest.stdin(Stdio::null()).output()?;
    match output.status.success() {
        true => samples(&String::from_utf8_lossy(&output.stdout)),
        false => Err(complain(&output)),
    }
}

fn samples(line: &str) -> Outcome<Vec<f64>> {
    line.split_whitespace().map(|sample| sample.parse().map_err(Into::into)).collect()
}
