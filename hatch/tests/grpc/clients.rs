//! Stock grpcio, without one option, on the path that a guest is given: its newest release and the
//! oldest that is promised.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{ALL, Fixture, alone};

/// Releases of grpcio, with what of each is asked for.
const RELEASES: [&str; 2] = ["grpcio==1.60.2", "grpcio"];

#[expect(clippy::disallowed_methods, reason = "the clients are programs")]
fn command(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    command.stdin(Stdio::null());
    command
}

/// The interpreter of an environment that has a release, made once and kept beside what is built.
fn python(release: &str) -> PathBuf {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(release.replace("==", "-"));
    let python = kept.join("bin/python");
    let has_it = |python: &Path| command(python).args(["-c", "import grpc"]).status();
    if !has_it(&python).is_ok_and(|status| status.success()) {
        succeed(command("/usr/bin/python3").args(["-m", "venv"]).arg(&kept));
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", release];
        succeed(command(&python).args(install));
    }
    python
}

#[track_caller]
fn succeed(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}

/// What each call must come to.
fn expected() -> Value {
    let too_long =
        "RESOURCE_EXHAUSTED: a message of 5242887 bytes; the hatch takes at most 4194304";
    let deadline = "DEADLINE_EXCEEDED: ";
    json!({
        "unary": "hello, ada",
        "server stream": ["1: hello, bob", "2: hello, bob", "3: hello, bob"],
        "client stream": "hello, eve, dan",
        "both streams": ["hello, eve", "hello, dan"],
        "metadata": "a b 00ff",
        "details": "FAILED_PRECONDITION: déjà\nvu",
        "concurrent": 100,
        "deadline": deadline,
        "cancelled": "1: hello, sleep, CANCELLED",
        "denied": "PERMISSION_DENIED: /greeter.Greeter/Denied is not on the hatch allowlist",
        "denied stream": "PERMISSION_DENIED: /greeter.Greeter/Denied is not on the hatch allowlist",
        "not served": "UNIMPLEMENTED: /greeter.Greeter/Gone is allowed but not served",
        "long message": too_long,
        "long in stream": too_long,
        "4 MiB": "hello, 4194000 bytes of names",
        "afterwards": "hello, ada",
    })
}

#[test]
fn stock_grpcio_works_without_an_option() {
    let _alone = alone();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/grpc/client.py");
    for release in RELEASES {
        let python = python(release);
        let methods: Vec<_> = ALL.into_iter().chain(["/greeter.Greeter/Gone"]).collect();
        let fixture = Fixture::undescribed(&methods);
        let output = command(python).arg(&script).arg(&fixture.path).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{release}: {errors}");
        let outcomes: Value = serde_json::from_slice(&output.stdout).unwrap();
        let figure = |name: &str| outcomes[name].as_f64().unwrap() * 1e6;
        let (version, p50, p99) = (&outcomes["version"], figure("p50"), figure("p99"));
        println!("grpcio {version}: unary p50 {p50:.0} µs, p99 {p99:.0} µs");
        for (name, expected) in expected().as_object().unwrap() {
            let outcome = &outcomes[name];
            match (outcome.as_str(), expected.as_str()) {
                // The client says in its own words that its own time is over.
                (Some(outcome), Some(code)) if code.ends_with(": ") => {
                    assert!(outcome.starts_with(code), "{release}: {name}: {outcome}");
                }
                _ => assert_eq!(outcome, expected, "{release}: {name}"),
            }
        }
    }
}
