//! `postern demo` from end to end, as a person runs it: the first use, with the package index that
//! pip is configured for; later ones, without; and each way in which a first use can fail.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's own helpers fail the test")]

#[path = "demo/first_use.rs"]
mod first_use;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use postern_tests::{Scratch, Watch};
use serde_json::Value;

/// Where the programs are: the copies that the runner made, or where cargo puts them.
fn programs() -> PathBuf {
    let copies = std::env::var_os("POSTERN_TEST_BIN_DIR").map(PathBuf::from);
    let built = || std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned();
    copies.unwrap_or_else(built)
}

#[expect(clippy::disallowed_methods, reason = "a test starts the program it is about")]
fn program(path: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(path);
    command.stdin(Stdio::null());
    command
}

/// The demo, by the verb of the command.
fn demo(cache: &Path) -> Command {
    let path = programs().join("postern");
    assert!(path.exists(), "not built: cargo build -p postern-cli -p postern-demo");
    let mut command = program(path);
    command.arg("demo").arg("--cache").arg(cache);
    command
}

/// A cache for both halves: the first to need it makes it, and for the other it is another user's.
fn shared() -> PathBuf {
    programs().join("demo-cache")
}

/// pip, unable to get anything from anywhere.
fn cut_off(command: &mut Command) -> &mut Command {
    command
        .env("PIP_NO_INDEX", "1")
        .env("PIP_CONFIG_FILE", "/dev/null")
        .env_remove("PIP_FIND_LINKS")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(output: &Output) -> Value {
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"))
}

/// Makes the shared cache, if it is not there yet, and says what the use came to.
fn made(out: &Path) -> Value {
    let output = demo(&shared()).arg("--json").arg("--out").arg(out).output().unwrap();
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    report
}

/// The names of all attempts but those for directories of people, which depend on the host.
const ATTEMPTS: [&str; 12] = [
    "call Penguins/Remove",
    "connect to loopback",
    "connect to 192.0.2.1",
    "read a 0666 file",
    "write a 0666 file",
    "read the database",
    "read /etc/shadow",
    "write core_pattern",
    "ptrace PID 1",
    "mount a file system",
    "make a user namespace",
    "fork without end",
];

#[test]
fn the_script_gets_its_rows_and_nothing_else() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let report = made(scratch.path());

    // The data set itself: 344 penguins, of which two were not measured.
    assert_eq!(report["answer"]["rows"], 342);
    let species = report["answer"]["species"].as_array().unwrap().iter();
    let counts: Vec<_> = species
        .map(|one| (one["species"].as_str().unwrap(), one["count"].as_u64().unwrap()))
        .collect();
    assert_eq!(counts, [("Adelie", 151), ("Chinstrap", 68), ("Gentoo", 123)]);

    let attempts = report["attempts"].as_array().unwrap();
    for name in ATTEMPTS {
        assert!(attempts.iter().any(|one| one["name"] == name), "{name}: {report:#}");
    }
    assert!(attempts.iter().any(|one| one["name"] == "list /root"), "{report:#}");
    for one in attempts {
        assert_eq!(one["verdict"], "held", "{one:#}");
    }
    assert_eq!(report["held"], true);

    let plot = std::fs::read(scratch.path().join("plot.png")).unwrap();
    let size = |at: usize| u32::from_be_bytes(plot[at..at + 4].try_into().unwrap());
    assert!(plot.starts_with(b"\x89PNG\r\n\x1a\n"));
    assert_eq!((size(16), size(20)), (960, 600));
    assert!(plot.len() > 10_000, "{} bytes", plot.len());
    let result = std::fs::read(scratch.path().join("result.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&result).unwrap(), report["answer"]);
}

#[test]
fn a_later_use_asks_no_package_index() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    made(scratch.path());
    let mut again = demo(&shared());
    let again = cut_off(&mut again).arg("--out").arg(scratch.path());
    let report = json(&again.arg("--json").output().unwrap());
    assert_eq!(
        (&report["first_use"], &report["held"]),
        (&false.into(), &true.into()),
        "{report:#}"
    );
}

/// People get a table, without colours where there is no terminal. A wall that does not hold is
/// found by the host: here the home of whoever runs it is a directory that the guest is shown.
#[test]
fn what_does_not_hold_is_told_and_is_the_exit_status() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    made(scratch.path());
    let places = std::fs::read_dir(shared()).unwrap().flatten().map(|entry| entry.path());
    let venv = places.map(|place| place.join("venv")).find(|venv| venv.is_dir()).unwrap();
    let rows: [(&OsStr, i32, &[&str]); 2] = [
        ("/nobody's".as_ref(), 0, &["14 of 14 held. The guest ran as kernel uid "]),
        (venv.as_ref(), 1, &["NOT HELD\n", "only 13 of 14 held. "]),
    ];
    for (home, status, words) in rows {
        let output =
            demo(&shared()).arg("--out").arg(scratch.path()).env("HOME", home).output().unwrap();
        let stdout = text(&output.stdout);
        assert_eq!(output.status.code(), Some(status), "{stdout}{}", text(&output.stderr));
        for words in words.iter().chain(&["An untrusted pandas script got 342 rows through"]) {
            assert!(stdout.contains(words), "{words}: {stdout}");
        }
        assert!(!stdout.contains('\x1b'), "{stdout:?}");
    }
}

/// The smallest form of the same, as library code, with the guest's environment.
#[test]
fn the_example_of_a_hatch_says_hello_and_refuses_the_rest() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    made(scratch.path());
    let places = std::fs::read_dir(shared()).unwrap().flatten().map(|entry| entry.path());
    let venv = places.map(|place| place.join("venv")).find(|venv| venv.is_dir()).unwrap();
    let copy = programs().join("one-method");
    let path = if copy.exists() { copy } else { programs().join("examples/one-method") };
    let output = program(path).arg(venv).output().unwrap();
    let expected = "hello, guest, from the host\n\
        PERMISSION_DENIED /greeter.Greeter/KeepGreeting is not on the hatch allowlist\n\
        refused: 1\n";
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
}
