//! Hatches that serve the greeter, and sandboxes whose guests have a client of it.

use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant};

use postern::hatch::{GrpcHatch, GrpcHatchBuilder};
use postern::profile::{Bind, SandboxProfileBuilder};
use postern::{Command, ProcResult, Sandbox, SandboxProfile};
use postern_proto::greeter::DESCRIPTORS;
use postern_proto::greeter::greeter_server::GreeterServer;

use postern_tests::Watch;

use crate::service::{Host, Waiting};

/// Every method of the service.
const METHODS: [&str; 4] = [
    "/greeter.Greeter/SayHello",
    "/greeter.Greeter/KeepGreeting",
    "/greeter.Greeter/GreetTogether",
    "/greeter.Greeter/GreetEach",
];

/// The newest grpcio of the cache.
pub(crate) const NEWEST: &str = "grpcio-1.85.3";

/// More than anything here takes on a busy machine: what is still there then hangs.
pub(crate) const HANG: Duration = Duration::from_secs(60);

/// Within this a run's handlers are gone after its end.
pub(crate) const GONE_WITHIN: Duration = Duration::from_secs(1);

/// Watches for what a test leaves. A first runtime makes what tokio keeps for ever; it is gone
/// before anybody watches.
pub(crate) fn begin() -> Watch {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        drop(tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap());
    });
    Watch::begin()
}

/// A hatch to be, that greets in these words, and what it says about its handlers.
pub(crate) fn greeting(greeting: &'static str) -> (GrpcHatchBuilder, Waiting) {
    let host = Host { greeting, waiting: Waiting::default() };
    let waiting = host.waiting.clone();
    let builder = GrpcHatch::allowing(METHODS).descriptors(DESCRIPTORS);
    (builder.add_service(GreeterServer::new(host)), waiting)
}

/// A hatch that greets with "hello".
pub(crate) fn hatch() -> (GrpcHatch, Waiting) {
    let (builder, waiting) = greeting("hello");
    (builder.build().unwrap(), waiting)
}

/// Where a client is that `cargo xtask test` has fetched.
pub(crate) fn fetched(name: &str) -> PathBuf {
    const VARIABLE: &str = "POSTERN_TEST_CLIENTS_DIR";
    let clients = std::env::var_os(VARIABLE);
    let clients = clients.unwrap_or_else(|| panic!("no {VARIABLE}: `cargo xtask test` sets it"));
    let path = Path::new(&clients).join(name);
    assert!(path.is_dir(), "{} is not there", path.display());
    path
}

/// The guest with tonic.
fn greeter() -> PathBuf {
    match std::env::var_os("POSTERN_TEST_BIN_DIR") {
        Some(copies) => Path::new(&copies).join("greeter"),
        None => std::env::current_exe().unwrap().parent().unwrap().with_file_name("greeter"),
    }
}

/// Where [`profile`] shows the guest with tonic.
pub(crate) const GREETER: &str = "/opt/greeter";

/// What shows it there.
pub(crate) fn bind() -> Bind {
    Bind::new(greeter(), GREETER)
}

/// A profile with that guest.
pub(crate) fn profile() -> SandboxProfileBuilder {
    SandboxProfile::builder().required_ro_binds([bind()])
}

/// A sandbox whose Python has the newest grpcio, with no hatch of its own.
pub(crate) fn with_grpcio() -> Sandbox {
    let profile = profile().venv(fetched(NEWEST)).build().unwrap();
    Sandbox::builder(profile).build().unwrap_or_else(|error| panic!("{error}"))
}

/// Python code with the messages and the stubs before it.
pub(crate) fn python(code: &str) -> Command {
    Command::python(format!("{}\n{code}", include_str!("guests/messages.py"))).timeout(HANG)
}

/// Runs a command that must end with code 0.
pub(crate) fn run(sandbox: &Sandbox, command: Command) -> ProcResult {
    let result = sandbox.run(command).unwrap_or_else(|error| panic!("{error}"));
    let (out, err) = (result.stdout_text(), result.stderr_text());
    assert!(result.ok(), "{:?}, timed out: {}: {out}{err}", result.ending, result.timed_out);
    result
}

/// Waits until something is so, and says how long that took.
#[track_caller]
pub(crate) fn within(limit: Duration, what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
    start.elapsed()
}

/// Shows a measured value.
#[expect(clippy::print_stdout, reason = "figures belong into a test's output")]
pub(crate) fn figure(text: impl std::fmt::Display) {
    println!("{text}");
}
