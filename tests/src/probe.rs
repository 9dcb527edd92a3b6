//! Puts the probe into a sandbox and asks it; what an answer ought to be is the caller's affair.

use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, OwnedFd};

use postern::{Command, ProcResult, Process, Sandbox, Stdin};
use rustix::fs::{AtFlags, Mode, chmodat};
use serde_json::Value;

use crate::host::{guest_of, init_of};

/// The probe: a static program that needs nothing of the world it runs in.
pub const PROBE: &[u8] = include_bytes!(env!("POSTERN_PROBE"));

/// Where [`install`] puts it.
pub const PROBE_PATH: &str = "/workspace/probe";

/// Puts the probe into the owned workspace: no mount of the world under test is there for it.
pub fn install(sandbox: &Sandbox) {
    let workspace = sandbox.workspace().expect("an owned workspace");
    workspace.write("probe", PROBE).unwrap();
    chmodat(workspace.as_fd(), "probe", Mode::from_raw_mode(0o755), AtFlags::empty()).unwrap();
}

/// The command that asks a question.
pub fn command(question: &[&str]) -> Command {
    Command::new(PROBE_PATH).args(question.iter().copied())
}

/// Asks the installed probe.
pub fn ask(sandbox: &Sandbox, question: &[&str]) -> Value {
    answer(&run(sandbox, command(question)))
}

/// Runs a command that must be started and end with code 0.
pub fn run(sandbox: &Sandbox, command: Command) -> ProcResult {
    let shown = format!("{command:.200?}");
    let result = sandbox.run(command).unwrap_or_else(|error| panic!("{shown}: {error}"));
    assert!(result.ok(), "{shown}: {:?} {}", result.ending, result.stderr_text());
    result
}

fn answer(result: &ProcResult) -> Value {
    serde_json::from_slice(&result.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", result.stdout_text()))
}

/// A probe that has answered and waits, so that the host can look at it.
#[derive(Debug)]
pub struct Held {
    /// Its answer.
    pub answer: Value,
    /// The run's PID 1 by its number on the host.
    pub init: i32,
    /// The probe itself by its number on the host.
    pub guest: i32,
    process: Process,
    stdin: OwnedFd,
}

/// Starts the command, which must be a question with `hold` before it, and reads its answer.
pub fn hold(sandbox: &Sandbox, command: Command) -> Held {
    try_hold(sandbox, command).unwrap_or_else(|failure| panic!("{failure}"))
}

/// [`hold`], where a run that did not start is an answer too.
///
/// # Errors
/// How the run ended instead.
pub fn try_hold(sandbox: &Sandbox, command: Command) -> Result<Held, String> {
    let mut process = sandbox.start(command.stdin(Stdin::Piped)).map_err(|e| e.to_string())?;
    let stdin = process.take_stdin().expect("a pipe");
    let stdout = process.take_stdout().expect("a pipe");
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let Ok(answer) = serde_json::from_str(&line) else {
        drop(stdin);
        return match process.wait() {
            Ok(result) => Err(format!("{line:?}, {:?}: {}", result.ending, result.stderr_text())),
            Err(error) => Err(error.to_string()),
        };
    };
    let init = init_of(&process);
    Ok(Held { answer, init, guest: guest_of(init), process, stdin: stdin.into() })
}

impl Held {
    /// Lets the probe go, and waits.
    pub fn release(self) -> ProcResult {
        drop(self.stdin);
        self.process.wait().unwrap()
    }
}
