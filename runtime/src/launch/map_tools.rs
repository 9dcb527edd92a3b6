//! Runs newuidmap(1) or newgidmap(1) for a launcher that waits, and looks whether the map is there;
//! believes no exit status and decides nothing about ids.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::socket::timespec;
use crate::error::LaunchError;

/// How long one may take: it looks the user up, wherever the machine keeps its users.
const PATIENCE: Duration = Duration::from_secs(5);

/// As much as is passed on of what one says.
const SAID_BYTES_MAX: u64 = 512;

/// A tool that did not write a map.
pub(super) struct ToolFailure {
    program: PathBuf,
    said: String,
}

impl From<ToolFailure> for LaunchError {
    fn from(ToolFailure { program, said }: ToolFailure) -> LaunchError {
        LaunchError::MapTool { program, said }
    }
}

/// Has `program` write `map` for the process, whose file `name` must hold it afterwards.
pub(super) fn write(program: &Path, pid: i32, name: &str, map: &str) -> Result<(), ToolFailure> {
    let failed = |said: String| ToolFailure { program: program.to_owned(), said };
    #[expect(
        clippy::disallowed_methods,
        reason = "a set-uid program can only be exec'ed, and std starts it without a copy of us"
    )]
    let mut command = std::process::Command::new(program);
    command.arg(pid.to_string()).args(map.split_ascii_whitespace()).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut tool = command.spawn().map_err(|error| failed(error.to_string()))?;
    let ended = wait(&mut tool);
    // Somebody else's wait may have been faster than ours: what counts is the map.
    let found = std::fs::read_to_string(format!("/proc/{pid}/{name}"));
    if found.is_ok_and(|found| found.split_ascii_whitespace().eq(map.split_ascii_whitespace())) {
        return Ok(());
    }
    Err(failed(match ended {
        Ended::Late => format!("killed, since it took longer than {PATIENCE:?}"),
        Ended::InTime => said(tool),
    }))
}

enum Ended {
    InTime,
    Late,
}

/// Waits, and reaps. Without a pidfd it is gone already, reaped by somebody else.
fn wait(tool: &mut Child) -> Ended {
    let Ok(pidfd) = pidfd_open(Pid::from_child(tool), PidfdFlags::empty()) else {
        return Ended::InTime;
    };
    let deadline = Instant::now() + PATIENCE;
    let mut left = PATIENCE;
    let mut ended = Ended::Late;
    while !left.is_zero() {
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
        if matches!(poll(&mut fds, Some(&timespec(left))), Ok(count) if count > 0) {
            ended = Ended::InTime;
            break;
        }
        left = deadline.saturating_duration_since(Instant::now());
    }
    if matches!(ended, Ended::Late) {
        tool.kill().ok();
    }
    tool.wait().ok();
    ended
}

/// The first of its words, which are not trusted to be text.
fn said(tool: Child) -> String {
    let mut bytes = Vec::new();
    if let Some(stderr) = tool.stderr {
        // It has ended: what it wrote is there, and no more comes.
        stderr.take(SAID_BYTES_MAX).read_to_end(&mut bytes).ok();
    }
    match bytes.trim_ascii() {
        [] => "it said nothing".to_owned(),
        words => words.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_map() -> String {
        std::fs::read_to_string("/proc/self/uid_map").unwrap()
    }

    fn own_pid() -> i32 {
        i32::try_from(std::process::id()).unwrap()
    }

    #[test]
    fn a_tool_that_wrote_no_map_is_told_with_its_own_words() {
        let rows = [
            ("/bin/false", "it said nothing"),
            ("/bin/true", "it said nothing"),
            ("/nonexistent/newuidmap", "No such file or directory (os error 2)"),
        ];
        for (program, words) in rows {
            let failed = write(Path::new(program), own_pid(), "uid_map", "7 7 7").err().unwrap();
            assert_eq!((failed.program.to_str(), &*failed.said), (Some(program), words));
        }
        // Its arguments are the process and the map, so that `ls` names what it cannot find.
        let failed = write(Path::new("/bin/ls"), 0, "uid_map", "no-such\nmap").err().unwrap();
        assert!(failed.said.contains("no-such") && failed.said.contains(r"\n"), "{}", failed.said);
        let error = LaunchError::from(failed).to_string();
        assert!(error.contains("/bin/ls wrote no id map") && error.contains("host_uid"), "{error}");
    }

    #[test]
    fn a_map_that_is_there_was_written_whatever_the_tool_says() {
        assert!(write(Path::new("/bin/false"), own_pid(), "uid_map", &own_map()).is_ok());
    }
}
