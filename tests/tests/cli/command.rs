//! Starts the command as its tests want it, on pipes or on a terminal; expects nothing of it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// How long a thing that happens soon may take on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// The command: beside the copies that the runner made, or where cargo puts it.
pub(crate) fn postern() -> PathBuf {
    let copies = std::env::var_os("POSTERN_TEST_BIN_DIR").map(PathBuf::from);
    let built = || std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned();
    let path = copies.unwrap_or_else(built).join("postern");
    assert!(path.exists(), "{} is not built: cargo build -p postern-cli", path.display());
    path
}

/// Some other program.
#[expect(clippy::disallowed_methods, reason = "a test starts the command it is about")]
pub(crate) fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.stdin(Stdio::null()).env_remove("NO_COLOR");
    command
}

/// The command with arguments and nothing on stdin.
pub(crate) fn start<S: AsRef<OsStr>>(arguments: &[S]) -> Command {
    let mut command = program(postern());
    command.args(arguments);
    command
}

/// Runs it to its end.
pub(crate) fn run<S: AsRef<OsStr>>(arguments: &[S]) -> Output {
    start(arguments).output().unwrap()
}

/// A shell that knows the command as `$P`.
pub(crate) fn shell(script: &str) -> Command {
    let mut command = program("bash");
    command.args(["-c", script]).env("P", postern());
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// stderr without the warning that an unprivileged host has to give.
pub(crate) fn words(stderr: &[u8]) -> String {
    let text = text(stderr);
    let lines = text.split_inclusive('\n');
    lines.filter(|line| !line.contains("cannot drop supplementary groups")).collect()
}

/// Sends a signal to the command itself.
pub(crate) fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Reads until the text is there, and no further than that line.
pub(crate) fn read_until(from: &mut (impl Read + AsFd), wanted: &str) -> String {
    let (mut seen, end) = (Vec::new(), Instant::now() + SOON);
    loop {
        let so_far = text(&seen);
        if so_far.contains(wanted) {
            return so_far;
        }
        let left = Timespec::try_from(end.saturating_duration_since(Instant::now())).unwrap();
        let mut fds = [PollFd::new(&*from, PollFlags::IN)];
        assert!(poll(&mut fds, Some(&left)).unwrap() > 0, "no {wanted:?} in {so_far:?}");
        let mut byte = [0u8];
        // A terminal whose other end is closed is an error.
        let read = from.read(&mut byte).unwrap_or(0);
        assert!(read > 0, "the end, and no {wanted:?} in {so_far:?}");
        seen.push(byte[0]);
    }
}

/// Everything that is still to come.
pub(crate) fn read_rest(from: &mut impl Read) -> String {
    let (mut seen, mut chunk) = (Vec::new(), [0u8; 4096]);
    while let Ok(len @ 1..) = from.read(&mut chunk) {
        seen.extend_from_slice(&chunk[..len]);
    }
    text(&seen)
}

/// A terminal, with a program that leads its session and foreground group.
pub(crate) struct Terminal {
    pub(crate) screen: File,
    pub(crate) child: Child,
}

impl Terminal {
    /// Starts a program with its three streams on a new terminal.
    pub(crate) fn start(line: &[&OsStr]) -> Terminal {
        let screen =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let name = ptsname(&screen, Vec::new()).unwrap().into_string().unwrap();
        let open = || Stdio::from(File::options().read(true).write(true).open(&name).unwrap());
        let mut command = program("setsid");
        command.arg("--ctty").args(line).stdin(open()).stdout(open()).stderr(open());
        command.env("TERM", "xterm").env("P", postern());
        Terminal { screen: screen.into(), child: command.spawn().unwrap() }
    }

    /// What a person types.
    pub(crate) fn type_in(&mut self, keys: &str) {
        self.screen.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn read_until(&mut self, wanted: &str) -> String {
        read_until(&mut self.screen, wanted)
    }

    /// Its exit status, and what else it wrote.
    pub(crate) fn finish(mut self) -> (Option<i32>, String) {
        let rest = read_rest(&mut self.screen);
        (self.child.wait().unwrap().code(), rest)
    }
}

/// Tries until it is so.
pub(crate) fn soon(mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + SOON;
    while !is_so() {
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Whether a process has this word among its arguments.
pub(crate) fn is_running(word: &str) -> bool {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok()).any(|line| {
        let mut words = line.split(|byte| *byte == 0);
        words.any(|found| found == word.as_bytes())
    })
}
