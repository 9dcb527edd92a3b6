//! A hatch that serves, in a directory of its own, and ordinary clients of it.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use postern_hatch::{GrpcHatch, GrpcHatchBuilder, Hatch, RunId, Serving};
use postern_proto::greeter::greeter_client::GreeterClient;
use postern_proto::greeter::greeter_server::GreeterServer;
use postern_proto::greeter::{DESCRIPTORS, HelloRequest};
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};

use crate::service::{Host, Seen};

/// The methods of the service, by what they stream.
pub(crate) const UNARY: &str = "/greeter.Greeter/SayHello";
pub(crate) const SERVER_STREAM: &str = "/greeter.Greeter/KeepGreeting";
pub(crate) const CLIENT_STREAM: &str = "/greeter.Greeter/GreetTogether";
pub(crate) const BOTH_STREAMS: &str = "/greeter.Greeter/GreetEach";
pub(crate) const ALL: [&str; 4] = [UNARY, SERVER_STREAM, CLIENT_STREAM, BOTH_STREAMS];

static PROCESS: RwLock<()> = RwLock::new(());

/// Most tests share the process.
pub(crate) fn together() -> RwLockReadGuard<'static, ()> {
    PROCESS.read().unwrap_or_else(PoisonError::into_inner)
}

/// One that measures it has it alone.
pub(crate) fn alone() -> RwLockWriteGuard<'static, ()> {
    PROCESS.write().unwrap_or_else(PoisonError::into_inner)
}

/// A directory that is removed at the end.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let name = format!("postern-hatch-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// A hatch with one service, and one run that it serves.
pub(crate) struct Fixture {
    pub(crate) seen: Arc<Seen>,
    pub(crate) hatch: GrpcHatch,
    pub(crate) run: RunId,
    pub(crate) path: PathBuf,
    pub(crate) serving: Option<Serving>,
    scratch: Scratch,
}

impl Fixture {
    /// Everything allowed, all limits as they are.
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder)
    }

    /// Everything allowed.
    pub(crate) fn with(change: impl FnOnce(GrpcHatchBuilder) -> GrpcHatchBuilder) -> Self {
        Self::allowing(&ALL, change)
    }

    pub(crate) fn allowing(
        methods: &[&str],
        change: impl FnOnce(GrpcHatchBuilder) -> GrpcHatchBuilder,
    ) -> Self {
        let builder = GrpcHatch::allowing(methods.iter().copied()).descriptors(DESCRIPTORS);
        Self::of(change(builder))
    }

    /// Also methods that nobody has.
    pub(crate) fn undescribed(methods: &[&str]) -> Self {
        Self::of(GrpcHatch::allowing(methods.iter().copied()))
    }

    fn of(builder: GrpcHatchBuilder) -> Self {
        let host = Host::default();
        let seen = Arc::clone(&host.seen);
        let hatch = builder.add_service(server(host)).build().unwrap();
        let scratch = Scratch::new();
        let (path, run, serving) = open(&hatch, scratch.path(), "hatch.sock");
        Self { seen, hatch, run, path, serving: Some(serving), scratch }
    }

    /// Another run of the same hatch.
    pub(crate) fn another(&self, name: &str) -> (PathBuf, RunId, Serving) {
        open(&self.hatch, self.scratch.path(), name)
    }

    pub(crate) fn directory(&self) -> &Path {
        self.scratch.path()
    }
}

/// The service, ready for messages longer than the hatch lets through.
pub(crate) fn server(host: Host) -> GreeterServer<Host> {
    GreeterServer::new(host).max_decoding_message_size(64 << 20)
}

/// Serves a run at a socket, which ends like those in guests.
pub(crate) fn open(hatch: &dyn Hatch, directory: &Path, name: &str) -> (PathBuf, RunId, Serving) {
    let path = directory.join(format!("{name}{}", hatch.socket_suffix()));
    let run = RunId::next();
    let serving = hatch.open(UnixListener::bind(&path).unwrap(), run).unwrap();
    (path, run, serving)
}

/// The client's runtime.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// A client of tonic's own, that takes messages of any length.
pub(crate) async fn client(path: &Path) -> GreeterClient<Channel> {
    GreeterClient::new(channel(path).await).max_decoding_message_size(usize::MAX)
}

pub(crate) async fn channel(path: &Path) -> Channel {
    let endpoint = Endpoint::try_from(format!("unix://{}", path.display())).unwrap();
    endpoint.connect().await.unwrap()
}

pub(crate) fn hello(name: &str) -> HelloRequest {
    HelloRequest { name: name.to_owned(), count: 0 }
}

pub(crate) fn counted(name: &str, count: u32) -> HelloRequest {
    HelloRequest { name: name.to_owned(), count }
}

/// Waits until something is so, and says how long that took.
#[track_caller]
pub(crate) fn within(time: Duration, is_so: impl Fn() -> bool, what: &str) -> Duration {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < time, "not within {time:?}: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
    start.elapsed()
}
