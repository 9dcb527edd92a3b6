//! stress-ng in a sandbox of the default profile, by `postern run`, and what is left of it.

#![expect(clippy::disallowed_methods, reason = "a host program of the tests starts what it tries")]

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::group::{BOUNDS, felt};

/// How long each stressor runs.
const SECONDS: &str = "5";
/// When it is killed, in seconds: half of an emulated processor is slow.
const TIMEOUT: &str = "120";
/// What a killed run's processes take to be gone.
const SOON: Duration = Duration::from_secs(30);

/// How guests run.
#[derive(Debug, Default)]
pub(crate) struct Guest {
    /// The level of the system-call filter; the default profile's where none is given.
    pub(crate) level: Option<String>,
}

impl Guest {
    /// Runs one stressor, two of a kind, to its end.
    pub(crate) fn stress(&self, stressor: &str, is_bounded: bool) -> io::Result<Ended> {
        let directory = std::env::var_os("POSTERN_TEST_BIN_DIR").unwrap_or_default();
        let mut command = Command::new(PathBuf::from(directory).join("postern"));
        command.args(["run", "--json", "--stdin", "null", "--timeout", TIMEOUT]);
        if is_bounded {
            command.args(BOUNDS);
        }
        if let Some(level) = &self.level {
            command.args(["--set", &format!("seccomp={level}")]);
        }
        command.args(["--", "stress-ng", &format!("--{stressor}"), "2", "--timeout", SECONDS]);
        command.args(["--temp-path", "/tmp", "--oomable"]).stdin(Stdio::null());
        let output = command.output()?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        // Why nothing was run; warnings stand on lines of their own.
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        Ok(Ended::read(&text))
    }
}

/// How a run ended, as `postern run --json` has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The exit status, -1 where nothing was run.
    pub(crate) code: i64,
    pub(crate) timed_out: bool,
    /// What stress-ng wrote, or why nothing was run.
    pub(crate) text: String,
    /// The guest's uid as the host's kernel sees it.
    pub(crate) kernel_uid: Option<u32>,
    /// How it was held, where it was bounded.
    pub(crate) felt: String,
}

impl Ended {
    fn read(text: &str) -> Self {
        let object = text.lines().find_map(|line| serde_json::from_str::<Value>(line).ok());
        let Some(object) = object.filter(|object| object.get("error").is_none()) else {
            return Self { code: -1, text: text.to_owned(), ..Self::default() };
        };
        let part = |key: &str| object[key].as_str().unwrap_or_default();
        Self {
            code: object["returncode"].as_i64().unwrap_or(-1),
            timed_out: object["timed_out"] == true,
            text: [part("stdout"), part("stderr")].concat(),
            kernel_uid: object["enforcement"]["kernel_uid"]
                .as_u64()
                .and_then(|uid| uid.try_into().ok()),
            felt: if object["usage"]["cgroup"].is_object() { felt(&object) } else { String::new() },
        }
    }

    /// What stress-ng could not do or was not given, each once; why nothing was run.
    pub(crate) fn refused(&self) -> String {
        if self.kernel_uid.is_none() {
            return self.text.clone();
        }
        let is_told = |line: &&str| {
            ["errno=", "skipp", "fail", "not permitted", "unavailable"]
                .iter()
                .any(|word| line.contains(word))
        };
        let told = self.text.lines().filter(is_told).map(without_pid);
        told.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join("; ")
    }
}

/// `stress-ng: fail:  [17] words` without what is the same in each.
fn without_pid(line: &str) -> &str {
    line.split_once("] ").map_or(line, |(_, words)| words)
}

/// Processes of the guest's kernel uid that were not there before and are still there.
pub(crate) fn left(uid: Option<u32>, before: &BTreeSet<(u32, u32)>) -> usize {
    let start = Instant::now();
    loop {
        let new = processes().into_iter().filter(|process| !before.contains(process));
        match new.filter(|(_, owner)| Some(*owner) == uid).count() {
            count if count > 0 && start.elapsed() < SOON => {
                std::thread::sleep(Duration::from_millis(50));
            }
            count => return count,
        }
    }
}

/// Each process and its uid.
pub(crate) fn processes() -> BTreeSet<(u32, u32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, entry.metadata().ok()?.uid()))
    });
    processes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_is_read_and_a_failure_is_no_run() {
        let run = r#"{"returncode": 4, "timed_out": true, "stdout": "a\n", "stderr": "b",
            "enforcement": {"kernel_uid": 70}}"#
            .replace('\n', "");
        let text = "a\nb".to_owned();
        let ended =
            Ended { code: 4, timed_out: true, text, kernel_uid: Some(70), felt: String::new() };
        assert_eq!(Ended::read(&format!("{run}\npostern: warning: x\n")), ended);
        for failed in [r#"{"error": {"kind": "launch"}}"#, "killed"] {
            let ended = Ended::read(&format!("{failed}\npostern: warning: x\n"));
            assert_eq!((ended.code, ended.kernel_uid), (-1, None));
            assert!(ended.text.contains(failed));
        }
    }

    #[test]
    fn what_was_refused_is_told_once() {
        let text = "stress-ng: info:  [2] dispatching\nstress-ng: fail:  [3] key: errno=1\n\
            stress-ng: fail:  [4] key: errno=1\n";
        let ended = Ended { text: text.to_owned(), ..Ended::default() };
        assert_eq!(ended.refused(), text, "nothing was run");
        assert_eq!(Ended { kernel_uid: Some(7), ..ended }.refused(), "key: errno=1");
    }

    #[test]
    fn what_was_there_before_is_not_left() {
        let before = processes();
        let own = rustix::process::geteuid().as_raw();
        assert!(before.contains(&(std::process::id(), own)));
        assert_eq!(left(None, &BTreeSet::new()), 0);
        assert!(processes().len() > 1);
    }
}
