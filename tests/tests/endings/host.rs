//! Runs one scenario of the host program in a process of its own; knows no scenario.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// Where the runner has put copies of the helper programs.
const PROGRAMS: &str = "POSTERN_TEST_BIN_DIR";

/// One at a time: scenarios measure, and some use up what a user may have.
static TURN: Mutex<()> = Mutex::new(());

pub(crate) fn program() -> PathBuf {
    match std::env::var_os(PROGRAMS) {
        Some(directory) => Path::new(&directory).join("hostprog"),
        // As cargo lays them out: the test in `deps`, the program beside that directory.
        None => {
            let test = std::env::current_exe().unwrap();
            test.parent().unwrap().with_file_name("hostprog")
        }
    }
}

/// Directories that nobody else uses, for the locks and the temporary files of one scenario.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(scenario: &str) -> Scratch {
        let own = format!("postern-{scenario}-{}", std::process::id());
        let path = std::env::temp_dir().join(own);
        for name in ["run", "tmp"] {
            std::fs::create_dir_all(path.join(name)).unwrap();
        }
        // Guests of another uid come through it to their workspace.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, open).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Kills what does not end: a hang is a failure like any other.
fn wait(mut child: Child, limit: Duration) -> Result<(), String> {
    let start = Instant::now();
    loop {
        match child.try_wait().unwrap() {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(status.to_string()),
            None if start.elapsed() < limit => std::thread::sleep(Duration::from_millis(1)),
            None => {
                // Its own children too: one may be what hangs.
                kill_process_group(Pid::from_child(&child), Signal::KILL).unwrap();
                child.wait().unwrap();
                return Err(format!("it hung for {limit:?}"));
            }
        }
    }
}

/// Keeps scenarios and other tests that look at this process away from each other.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a scenario to its end and returns what it printed.
pub(crate) fn outcome(
    scenario: &str,
    arguments: &[&str],
    limit: Duration,
) -> Result<String, String> {
    outcome_by(&[], scenario, arguments, limit)
}

/// [`outcome`], where these words, if any, start the program.
pub(crate) fn outcome_by(
    starter: &[&str],
    scenario: &str,
    arguments: &[&str],
    limit: Duration,
) -> Result<String, String> {
    let _turn = turn();
    let scratch = Scratch::new(scenario);
    // A file takes any amount, while nobody reads.
    let printed = scratch.0.join("printed");
    let (mut command, program) = match starter {
        [] => (Command::new(program()), None),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest);
            (command, Some(program()))
        }
    };
    let child = command
        .args(program)
        .arg(scenario)
        .args(arguments)
        .env("POSTERN_RUNTIME_DIR", scratch.0.join("run"))
        .env("TMPDIR", scratch.0.join("tmp"))
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(File::create(&printed).unwrap())
        .spawn()
        .unwrap();
    let ended = wait(child, limit);
    let printed = std::fs::read(printed).unwrap();
    let printed = String::from_utf8_lossy(&printed).trim_end().to_owned();
    match ended {
        Ok(()) => Ok(printed),
        Err(how) => Err(format!("{how}: {printed}")),
    }
}
