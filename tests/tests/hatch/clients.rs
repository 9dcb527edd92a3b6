//! The table of clients: each of them, stock and without an option, gets the same of every kind of
//! call, on the path that the guest is given.

use postern::profile::Bind;
use postern::{Command, Sandbox, SandboxProfile};
use serde_json::{Value, json};

use crate::fixture::{GREETER, NEWEST, begin, fetched, figure, hatch, profile, python};

/// A client as a guest.
struct Client {
    name: &'static str,
    profile: SandboxProfile,
    command: Command,
    /// How it may say that its own time is over.
    late: &'static [&'static str],
}

const LATE: &[&str] = &["DEADLINE_EXCEEDED: "];

fn in_python(name: &'static str, environment: &str, code: &str) -> Client {
    let profile = profile().venv(fetched(environment)).build().unwrap();
    Client { name, profile, command: python(code), late: LATE }
}

fn clients() -> [Client; 5] {
    let blocking = include_str!("guests/blocking.py");
    let modules = fetched("grpc-js-1.14.7").join("node_modules");
    let modules = Bind::new(modules, "/opt/node_modules");
    [
        in_python("grpcio 1.60.2", "grpcio-1.60.2", blocking),
        in_python("grpcio 1.85.3", NEWEST, blocking),
        in_python("grpc.aio 1.85.3", NEWEST, include_str!("guests/aio.py")),
        Client {
            name: "grpc-js 1.14.7",
            profile: profile().required_ro_binds([modules]).build().unwrap(),
            command: Command::new("node")
                .arg("/run/postern/client.js")
                .private_file("client.js", include_str!("guests/client.js"))
                .env("NODE_PATH", "/opt/node_modules"),
            late: LATE,
        },
        Client {
            name: "tonic",
            profile: profile().build().unwrap(),
            command: Command::new(GREETER),
            // Its own clock may be first, and then it says this.
            late: &["DEADLINE_EXCEEDED: ", "CANCELLED: Timeout expired"],
        },
    ]
}

/// What a call must come to.
enum Wanted {
    This(Value),
    OneThatBegins(&'static [&'static str]),
}

impl Wanted {
    fn is(&self, outcome: &Value) -> bool {
        match self {
            Self::This(value) => outcome == value,
            Self::OneThatBegins(beginnings) => outcome
                .as_str()
                .is_some_and(|text| beginnings.iter().any(|beginning| text.starts_with(beginning))),
        }
    }
}

const DENIED: &str = "PERMISSION_DENIED: /greeter.Greeter/Denied is not on the hatch allowlist";
const TOO_LONG: &str =
    "RESOURCE_EXHAUSTED: a message of 5242885 bytes; the hatch takes at most 4194304";

/// The columns of the table.
fn wanted(run: &str, late: &'static [&'static str]) -> [(&'static str, Wanted); 14] {
    let greeting = || Wanted::This(json!(format!("hello, ada of {run}")));
    let this = |value| Wanted::This(value);
    [
        ("unary", greeting()),
        ("server stream", this(json!(["1: hello, bob", "2: hello, bob", "3: hello, bob"]))),
        ("client stream", this(json!("hello, eve, dan"))),
        ("both streams", this(json!(["hello, eve", "hello, dan"]))),
        ("metadata", this(json!("a b 00ff"))),
        ("details", this(json!("FAILED_PRECONDITION: d\u{e9}j\u{e0}\nvu 00ff07 closed"))),
        ("deadline", Wanted::OneThatBegins(late)),
        ("and dropped", this(json!("0 waiting"))),
        ("cancel", this(json!("1: hello, sleep"))),
        ("dropped", this(json!("0 waiting"))),
        ("denied", this(json!(DENIED))),
        ("denied stream", this(json!(DENIED))),
        ("over-limit", this(json!(TOO_LONG))),
        ("afterwards", greeting()),
    ]
}

/// The outcomes of one client, and the number of its run as the host knows it.
fn outcomes(client: Client) -> (Value, String) {
    let (hatch, _) = hatch();
    let sandbox = Sandbox::builder(client.profile).hatch(hatch).build();
    let sandbox = sandbox.unwrap_or_else(|error| panic!("{}: {error}", client.name));
    let process = sandbox.start(client.command).unwrap();
    let run = process.id().to_string();
    let result = process.communicate(crate::fixture::HANG, None).unwrap();
    let err = result.stderr_text();
    assert!(result.ok(), "{}: {:?}: {err}", client.name, result.ending);
    (serde_json::from_slice(&result.stdout).unwrap(), run)
}

/// A line of the table, and what in it is not as wanted.
fn tried(client: Client) -> (String, Vec<String>) {
    let (name, late) = (client.name, client.late);
    let (outcomes, run) = outcomes(client);
    let mut line = format!("{name:16}");
    let mut faults = Vec::new();
    for (column, wanted) in wanted(&run, late) {
        let outcome = &outcomes[column];
        let is_ok = wanted.is(outcome);
        let word = if is_ok { "ok" } else { "not" };
        line.push_str(&format!(" {word:>width$}", width = column.len()));
        faults.extend((!is_ok).then(|| format!("{name}: {column}: {outcome}")));
    }
    let version = &outcomes["version"];
    faults.extend((version != name).then(|| format!("{name} says that it is {version}")));
    (line, faults)
}

#[test]
fn stock_clients_get_everything_that_is_promised() {
    let _watch = begin();
    let (lines, faults): (Vec<_>, Vec<_>) = clients().into_iter().map(tried).unzip();
    let columns = wanted("", LATE).map(|(column, _)| column);
    figure(format!("{:16} {}", "client", columns.join(" ")));
    lines.iter().for_each(figure);
    let faults = faults.concat();
    assert!(faults.is_empty(), "{faults:#?}");
}
