//! What the rows play on: a default sandbox with the probe, canaries of the host beside it, and the
//! places where questions are asked. It judges nothing.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use postern::plan::Tier;
use postern::{Command, Sandbox, SandboxProfile, Stdin};
use postern_tests::{PROBE, PROBE_PATH, Scratch, install};
use serde_json::Value;

use crate::question::spelled;
use crate::table::{Ask, Lacking, Outside};

/// An id that nothing else on the host has, for the look from outside.
const STRANGER: u32 = 61_234;

/// The stage.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) sandbox: Sandbox,
    pub(crate) tier: Tier,
    /// What only root can prepare can be prepared.
    pub(crate) is_root: bool,
    pub(crate) scratch: Scratch,
    /// What this host lacks of what rows need.
    pub(crate) lacks: Vec<Lacking>,
    /// Bytes that only this process holds.
    pub(crate) canary: String,
    tcp: TcpListener,
    hidden: UnixListener,
    segment: Segment,
    visited: OnceLock<bool>,
}

/// A System V segment that anybody on the host may use.
#[derive(Debug)]
struct Segment(String);

impl Segment {
    fn new() -> Segment {
        let made = program("ipcmk", &["-M", "4096", "-p", "0666"]);
        let id = made.rsplit(' ').next().unwrap().trim().to_owned();
        id.parse::<u32>().unwrap_or_else(|_| panic!("ipcmk, of package util-linux: {made}"));
        Segment(id)
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        program("ipcrm", &["-m", &self.0]);
    }
}

/// Runs a program of the host's; what it prints.
#[expect(clippy::disallowed_methods, reason = "a test prepares the host as its owner would")]
pub(crate) fn program(name: &str, arguments: &[&str]) -> String {
    let output = std::process::Command::new(name).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{name}: {error}"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Stage {
    pub(crate) fn new() -> Stage {
        let sandbox = Sandbox::builder(SandboxProfile::default()).build();
        let sandbox = sandbox.unwrap_or_else(|error| panic!("{error}"));
        install(&sandbox);
        let enforcement = sandbox.enforcement().unwrap();
        let scratch = Scratch::new();
        scratch.file("probe", PROBE, 0o755);
        scratch.directory("w", 0o777);
        let lacks = [
            (enforcement.shared_uid, Lacking::DistinctUid),
            // The default profile asks for no limit of a run as a whole, whatever the host offers.
            (true, Lacking::CgroupV2),
        ];
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("postern-escapes-{}-{number}", std::process::id());
        let hidden = UnixAddr::from_abstract_name(&name).unwrap();
        Stage {
            tier: enforcement.tier,
            is_root: rustix::process::geteuid().is_root(),
            lacks: lacks.into_iter().filter_map(|(lacks, what)| lacks.then_some(what)).collect(),
            canary: format!("canary-{:x}-{}", &raw const name as usize, std::process::id()),
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            hidden: UnixListener::bind_addr(&hidden).unwrap(),
            segment: Segment::new(),
            visited: OnceLock::new(),
            sandbox,
            scratch,
        }
    }

    /// What stands in braces, in a sandbox or outside.
    pub(crate) fn names(&self, writable: &str) -> Vec<(&'static str, String)> {
        let SocketAddr::V4(tcp) = self.tcp.local_addr().unwrap() else { panic!("IPv4") };
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let tcp = [&[2, 0][..], &tcp.port().to_be_bytes(), &tcp.ip().octets(), &[0; 8]].concat();
        let hidden = self.hidden.local_addr().unwrap();
        let hidden = [&[1, 0, 0][..], hidden.as_abstract_name().unwrap()].concat();
        vec![
            ("w", writable.to_owned()),
            ("probe", format!("{writable}/probe")),
            ("tcp", hex(&tcp)),
            ("hidden", hex(&hidden)),
            ("hidden_len", hidden.len().to_string()),
            ("hostpid", std::process::id().to_string()),
            ("segment", self.segment.0.clone()),
            ("scratch", self.scratch.path().display().to_string()),
        ]
    }

    /// Whether any question so far has come to the host's listeners. What comes after the first
    /// look is not the sandbox's.
    pub(crate) fn was_visited(&self) -> bool {
        *self.visited.get_or_init(|| {
            self.tcp.set_nonblocking(true).unwrap();
            self.hidden.set_nonblocking(true).unwrap();
            self.tcp.accept().is_ok() | self.hidden.accept().is_ok()
        })
    }

    /// The answers of the sandbox.
    pub(crate) fn inside(&self, asks: &[Ask]) -> Vec<Value> {
        let answers = answers_in(&self.sandbox, &self.questions(asks, "/workspace"));
        self.was_visited();
        answers
    }

    fn questions(&self, asks: &[Ask], writable: &str) -> Vec<String> {
        let names = self.names(writable);
        asks.iter().map(|ask| spelled(ask.question, &names)).collect()
    }

    /// The answers of an unprivileged process of the host, where it can be asked.
    pub(crate) fn outside(&self, asks: &[Ask]) -> Vec<Option<Value>> {
        let asked: Vec<Ask> =
            asks.iter().filter(|ask| ask.outside == Outside::Asked).copied().collect();
        let writable = self.scratch.path().join("w");
        fs::copy(self.scratch.path().join("probe"), writable.join("probe")).unwrap();
        let questions = self.questions(&asked, writable.to_str().unwrap());
        let mut answers = unprivileged(&writable, &questions).into_iter();
        let of = |ask: &Ask| match ask.outside {
            Outside::Asked => answers.next(),
            Outside::Harmful => None,
        };
        asks.iter().map(of).collect()
    }

    /// Runs a question in the stage's sandbox alone.
    pub(crate) fn ask(&self, question: &str) -> Value {
        let question = spelled(question, &self.names("/workspace"));
        answers_in(&self.sandbox, &[question]).remove(0)
    }
}

/// Asks all questions in one run.
pub(crate) fn answers_in(sandbox: &Sandbox, questions: &[String]) -> Vec<Value> {
    let command = Command::new(PROBE_PATH).arg("batch").timeout(Duration::from_secs(100));
    let stdin = Stdin::Bytes(questions.join("\n").into_bytes());
    let result = sandbox.run(command.stdin(stdin)).unwrap_or_else(|error| panic!("{error}"));
    let shown = || format!("{:?} {}", result.ending, result.stderr_text());
    assert!(result.ok(), "{}", shown());
    let answers: Vec<Value> = serde_json::from_slice(&result.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {:.2000}", shown(), result.stdout_text()));
    assert_eq!(answers.len(), questions.len());
    answers
}

/// Asks all questions of a process without privileges: of this one's user, or under root of nobody
/// else's.
fn unprivileged(directory: &Path, questions: &[String]) -> Vec<Value> {
    let probe = directory.join("probe");
    let root = rustix::process::geteuid().is_root();
    #[expect(clippy::disallowed_methods, reason = "the same probe without a sandbox")]
    let mut command = match root {
        true => {
            let mut command = std::process::Command::new("setpriv");
            command.arg(format!("--reuid={STRANGER}")).arg(format!("--regid={STRANGER}"));
            command.args(["--clear-groups", "--inh-caps=-all"]).arg(&probe);
            command
        }
        false => std::process::Command::new(&probe),
    };
    command.arg("batch").current_dir(directory);
    answers_of(command, questions)
}

/// Answers of a third user, where there can be one.
pub(crate) fn as_stranger(scratch: &Scratch, questions: &[String]) -> Option<Vec<Value>> {
    let root = rustix::process::geteuid().is_root();
    root.then(|| unprivileged(scratch.path(), questions))
}

/// Feeds questions to a probe that reads them, and takes its answers.
pub(crate) fn answers_of(mut command: std::process::Command, questions: &[String]) -> Vec<Value> {
    use std::io::Write;
    use std::process::Stdio;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    // The probe reads all before it answers, so that neither waits for the other.
    child.stdin.take().unwrap().write_all(questions.join("\n").as_bytes()).ok();
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        panic!(
            "{error}: {:?} {stderr} {:.500}",
            output.status,
            String::from_utf8_lossy(&output.stdout)
        )
    })
}

/// A figure of this process's `status`, in KiB.
pub(crate) fn status_kib(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}
