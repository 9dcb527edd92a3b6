//! What the kernel says about one confined PID 1 and one program in it. What could not be read stays
//! unknown; it judges nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use procfs::process::{Limits, MountInfo, Process as Proc, Status};
use rustix::event::{PollFd, PollFlags, poll};

use crate::attest::{plain, shared_namespaces};
use crate::command::{Command, Stdin};
use crate::error::Error;
use crate::result::{Ending, ProcResult};
use crate::sandbox::Sandbox;
use crate::verify::pid_of;

/// How long the small programs may take; a host on which they do not end at once is an odd one.
const PROGRAM_LIMIT: Duration = Duration::from_secs(5);

/// A confined PID 1.
pub(super) struct Init {
    pub(super) status: Option<Status>,
    pub(super) limits: Option<Limits>,
    pub(super) mounts: Option<Vec<Mount>>,
    /// Every namespace, and whether it is the service's.
    pub(super) shared: Option<[(&'static str, Option<bool>); 7]>,
    /// Whether the run's network knows 127.0.0.1, which the kernel adds when `lo` comes up.
    pub(super) loopback: Option<bool>,
}

/// A mount of the run.
pub(super) struct Mount {
    pub(super) target: PathBuf,
    pub(super) kind: String,
    pub(super) read_only: bool,
    pub(super) nosuid: bool,
    /// Only processes in it (`subset=pid`).
    pub(super) only_pids: bool,
}

impl Mount {
    fn new(info: &MountInfo) -> Mount {
        Mount {
            target: plain(&info.mount_point),
            kind: info.fs_type.clone(),
            read_only: info.mount_options.contains_key("ro"),
            nosuid: info.mount_options.contains_key("nosuid"),
            only_pids: info
                .super_options
                .get("subset")
                .is_some_and(|kind| kind.as_deref() == Some("pid")),
        }
    }
}

impl Init {
    pub(super) fn read(init: &Proc) -> Init {
        let mounts = init.mountinfo().ok();
        let mut addresses = String::new();
        let read = init
            .open_relative("net/fib_trie")
            .ok()
            .and_then(|mut file| file.read_to_string(&mut addresses).ok());
        Init {
            status: init.status().ok(),
            limits: init.limits().ok(),
            mounts: mounts.map(|mounts| mounts.iter().map(Mount::new).collect()),
            shared: Some(shared_namespaces(init)),
            loopback: read.map(|_| addresses.contains("127.0.0.1")),
        }
    }
}

/// A program that ran in the sandbox.
pub(super) struct Guest {
    pub(super) ended: ProcResult,
    /// Its limits as the host's kernel has them.
    pub(super) limits: Option<Limits>,
    /// The settings that it read, by their path below `/proc/sys`.
    pub(super) settings: BTreeMap<String, String>,
}

/// Names the settings that it can read, tells them, and waits until stdin ends so that it can be
/// looked at. Not by the shell's own `read`, which takes single bytes: of a setting that is all.
const SCRIPT: &str = "set --; for name in user/max_user_namespaces kernel/shmmni kernel/msgmni \
                      fs/mqueue/queues_max; do \
                      if [ -r \"/proc/sys/$name\" ]; then set -- \"$@\" \"$name\"; fi; done; \
                      echo \"$*\"; \
                      if [ $# -gt 0 ] && cd /proc/sys; then cat \"$@\"; fi; \
                      echo ready; read -r line; exit 0";

/// The first line's words, each with a line of its own.
fn settings(text: &str) -> BTreeMap<String, String> {
    let mut lines = text.lines();
    let names = lines.next().unwrap_or_default().split(' ');
    let values = lines.take_while(|line| *line != "ready");
    names.zip(values).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

impl Guest {
    /// Runs a shell; `None` where the world has none.
    pub(super) fn run(sandbox: &Sandbox) -> Result<Option<Guest>, Error> {
        let command = Command::new("sh").args(["-c", SCRIPT]);
        let mut process = sandbox.start(command.stdin(Stdin::Piped).timeout(PROGRAM_LIMIT))?;
        let stdin = process.take_stdin();
        let text = process.take_stdout().map(read_until_ready).unwrap_or_default();
        let init = process.pidfd().and_then(|pidfd| pid_of(pidfd).ok());
        let limits = init.and_then(only_child).and_then(|guest| guest.limits().ok());
        drop(stdin);
        let ended = process.wait()?;
        if matches!(ended.ending, Ending::ExecFailed(_)) {
            return Ok(None);
        }
        Ok(Some(Guest { ended, limits, settings: settings(&text) }))
    }
}

/// Until the last line, the end, or the limit.
fn read_until_ready(mut stdout: File) -> String {
    let deadline = Instant::now() + PROGRAM_LIMIT;
    let mut text = Vec::new();
    while !text.ends_with(b"ready\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = crate::launch::socket::timespec(left);
        let mut fds = [PollFd::new(&stdout, PollFlags::IN)];
        if !poll(&mut fds, Some(&left)).is_ok_and(|ready| ready > 0) {
            break;
        }
        let mut chunk = [0u8; 512];
        match stdout.read(&mut chunk) {
            Ok(len @ 1..) => text.extend_from_slice(chunk.get(..len).unwrap_or_default()),
            Ok(_) | Err(_) => break,
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn only_child(init: i32) -> Option<Proc> {
    let children = std::fs::read_to_string(format!("/proc/{init}/task/{init}/children")).ok()?;
    Proc::new(children.split_ascii_whitespace().next()?.parse().ok()?).ok()
}

/// The interpreter's own word for its version; the reason where there is none.
pub(super) fn version(sandbox: &Sandbox, program: &Path) -> Result<String, String> {
    let command = Command::new(program).args(["--version"]).timeout(PROGRAM_LIMIT);
    match sandbox.run(command) {
        Ok(result) if result.ok() => Ok(result.stdout_text().trim().to_owned()),
        Ok(result) => Err(match (result.timed_out, result.ending) {
            (false, Ending::ExecFailed(errno)) => {
                std::io::Error::from_raw_os_error(errno).to_string()
            }
            (true, _) => format!("no answer in {PROGRAM_LIMIT:?}"),
            (false, ending) => format!("{ending:?}: {}", result.stderr_text().trim()),
        }),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_named_then_told() {
        let rows: [(&str, &[(&str, &str)]); 4] = [
            ("a/b c/d\n0\n128\nready\n", &[("a/b", "0"), ("c/d", "128")]),
            ("\nready\n", &[]),
            ("a/b\nready\n", &[]),
            ("", &[]),
        ];
        for (text, pairs) in rows {
            let pairs = pairs.iter().map(|pair| (pair.0.to_owned(), pair.1.to_owned()));
            assert_eq!(settings(text), pairs.collect(), "{text:?}");
        }
    }
}
