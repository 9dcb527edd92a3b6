//! Commands for inside and outside, on one host, and what becomes of one inside.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::failure::Failure;
use crate::half::Place;
use crate::watch::follow;

/// A host, and the level at which guests run there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guest<'a> {
    pub(super) place: &'a Place<'a>,
    pub(super) level: Option<&'a str>,
}

impl Guest<'_> {
    /// The program in a sandbox of the default profile, with these options of `postern run`'s.
    pub(super) fn inside(&self, options: &[String], argv: &[&str]) -> Command {
        let mut command = self.place.command("postern");
        command.args(["run", "--stdin", "null"]);
        if let Some(level) = self.level {
            command.args(["--set", &format!("seccomp={level}")]);
        }
        command.args(options).arg("--").args(argv);
        command
    }

    /// Runs a program in a sandbox for so long at most.
    pub(super) fn run(
        &self,
        options: &[String],
        argv: &[&str],
        deadline: Duration,
    ) -> Result<Ended, Failure> {
        let own = ["--json".to_owned(), format!("--timeout={}", deadline.as_secs())];
        let options = [&own[..], options].concat();
        let mut lines = Vec::new();
        // A run that outlives its own time limit is found by ours.
        follow(self.inside(&options, argv), deadline * 2, |line| lines.push(line.to_owned()))?;
        Ok(Ended::read(&lines))
    }

    /// The program as the same user without a sandbox.
    pub(super) fn outside(&self, argv: &[&str]) -> Command {
        let (name, arguments) = argv.split_first().unwrap_or((&"true", &[]));
        let mut command = self.place.program(Path::new(name));
        command.args(arguments);
        command
    }

    pub(super) fn half(&self) -> &'static str {
        self.place.half().name()
    }
}

/// How a run ended, as `postern run --json` has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ended {
    /// The exit status, -1 where nothing was run.
    pub(super) code: i64,
    pub(super) timed_out: bool,
    pub(super) stdout: String,
    /// What was written to standard error, or why nothing was run.
    pub(super) stderr: String,
    /// The guest's uid as the host's kernel sees it.
    pub(super) kernel_uid: Option<u32>,
}

impl Ended {
    /// Warnings stand on lines of their own before the object.
    fn read(lines: &[String]) -> Self {
        let object = lines.iter().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
        let Some(object) = object.filter(|object| object.get("error").is_none()) else {
            return Self { code: -1, stderr: lines.join("\n"), ..Self::default() };
        };
        let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
        Self {
            code: object["returncode"].as_i64().unwrap_or(-1),
            timed_out: object["timed_out"] == true,
            stdout: text("stdout"),
            stderr: text("stderr"),
            kernel_uid: object["enforcement"]["kernel_uid"]
                .as_u64()
                .and_then(|uid| uid.try_into().ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_is_read_and_a_failure_is_no_run() {
        let run = r#"{"returncode": 4, "timed_out": true, "stdout": "a\n", "stderr": "b",
            "enforcement": {"kernel_uid": 70}}"#
            .replace('\n', "");
        let ended = Ended {
            code: 4,
            timed_out: true,
            stdout: "a\n".to_owned(),
            stderr: "b".to_owned(),
            kernel_uid: Some(70),
        };
        let warning = "postern: warning: x".to_owned();
        assert_eq!(Ended::read(&[warning.clone(), run]), ended);
        for failed in [r#"{"error": {"kind": "launch"}}"#, "killed"] {
            let ended = Ended::read(&[warning.clone(), failed.to_owned()]);
            assert_eq!((ended.code, ended.kernel_uid), (-1, None));
            assert!(ended.stderr.contains(failed));
        }
    }
}
