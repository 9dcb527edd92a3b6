//! The command line, as data. Nothing is looked up on the machine here.

use std::ffi::{OsStr, OsString};

use crate::failure::Failure;
use crate::half::User;
use crate::judge::{Judge, JudgeOptions};
use crate::vm::{Kernel, VmOptions};

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Help,
    Check(Advisories),
    Test(TestOptions),
    Vm(VmOptions),
    Judge(JudgeOptions),
    Golden,
    Codegen,
    Bench(Vec<OsString>),
    Fuzz { target: String, options: Vec<OsString> },
}

/// Whether to ask the database of known vulnerabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advisories {
    Ask,
    Leave,
}

/// How long a suite may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    Sample,
    Long,
}

/// What `cargo xtask test` runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TestOptions {
    pub(crate) length: Length,
    /// Only these executables of `tests/`; empty: everything.
    pub(crate) only: Vec<OsString>,
    pub(crate) user: User,
}

/// The task that the arguments name.
pub(crate) fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Task, Failure> {
    let Some(task) = arguments.next() else { return Ok(Task::Help) };
    match task.to_str() {
        Some("help" | "--help" | "-h") => Ok(Task::Help),
        Some("check") => check(arguments),
        Some("test") => test(arguments),
        Some("vm") => vm(arguments),
        Some("judge") => judge(arguments),
        Some("golden") => last(arguments, Task::Golden),
        Some("codegen") => last(arguments, Task::Codegen),
        Some("bench") => Ok(Task::Bench(arguments.collect())),
        Some("fuzz") => fuzz(task, arguments),
        Some(_) | None => Err(usage(task, "no such task")),
    }
}

fn fuzz(task: OsString, mut rest: impl Iterator<Item = OsString>) -> Result<Task, Failure> {
    let target = rest.next().and_then(|target| target.into_string().ok());
    match target.filter(|target| !target.starts_with('-')) {
        Some(target) => Ok(Task::Fuzz { target, options: rest.collect() }),
        None => Err(usage(task, "wants the name of a target")),
    }
}

fn check(mut arguments: impl Iterator<Item = OsString>) -> Result<Task, Failure> {
    match arguments.next() {
        None => Ok(Task::Check(Advisories::Leave)),
        Some(flag) if flag == "--advisories" => last(arguments, Task::Check(Advisories::Ask)),
        Some(other) => Err(usage(other, "no such option")),
    }
}

fn test(mut arguments: impl Iterator<Item = OsString>) -> Result<Task, Failure> {
    let mut options =
        TestOptions { length: Length::Sample, only: Vec::new(), user: User::default() };
    while let Some(flag) = arguments.next() {
        match flag.to_str() {
            Some("--long") => options.length = Length::Long,
            Some("--only") => options.only.push(value(&flag, &mut arguments)?),
            Some("--uid") => options.user.uid = id(&flag, &mut arguments)?,
            Some("--gid") => options.user.gid = id(&flag, &mut arguments)?,
            Some("--groups") => options.user.groups = ids(&flag, &mut arguments)?,
            Some(_) | None => return Err(usage(flag, "no such option")),
        }
    }
    Ok(Task::Test(options))
}

fn vm(mut arguments: impl Iterator<Item = OsString>) -> Result<Task, Failure> {
    let mut options = VmOptions::default();
    while let Some(flag) = arguments.next() {
        match flag.to_str() {
            Some("--kernel") => {
                let name = value(&flag, &mut arguments)?;
                let kernel = name.to_str().and_then(Kernel::named);
                options.kernels.push(kernel.ok_or_else(|| usage(name, "no such kernel"))?);
            }
            Some("--only") => options.only.push(value(&flag, &mut arguments)?),
            Some(_) | None => return Err(usage(flag, "no such option")),
        }
    }
    Ok(Task::Vm(options))
}

fn judge(mut arguments: impl Iterator<Item = OsString>) -> Result<Task, Failure> {
    let name = arguments.next().ok_or_else(|| usage("judge".into(), "wants a name"))?;
    let judge = Judge::ALL.into_iter().find(|judge| name == judge.name());
    let judge = judge.ok_or_else(|| usage(name, "no such judge"))?;
    let mut options = JudgeOptions::new(judge);
    while let Some(flag) = arguments.next() {
        match flag.to_str() {
            Some("--level") => options.level = Some(text(&flag, &mut arguments)?),
            Some("--only") => options.only.push(text(&flag, &mut arguments)?),
            Some("--binary") => options.binary = Some(value(&flag, &mut arguments)?.into()),
            Some(_) | None => return Err(usage(flag, "no such option")),
        }
    }
    Ok(Task::Judge(options))
}

fn text(flag: &OsStr, arguments: &mut impl Iterator<Item = OsString>) -> Result<String, Failure> {
    let text = value(flag, arguments)?;
    text.into_string().map_err(|text| usage(text, "is no text"))
}

fn last(mut rest: impl Iterator<Item = OsString>, task: Task) -> Result<Task, Failure> {
    match rest.next() {
        None => Ok(task),
        Some(argument) => Err(usage(argument, "one argument too many")),
    }
}

fn value(
    flag: &OsStr,
    arguments: &mut impl Iterator<Item = OsString>,
) -> Result<OsString, Failure> {
    arguments.next().ok_or_else(|| usage(flag.to_owned(), "wants a value"))
}

fn id(flag: &OsStr, arguments: &mut impl Iterator<Item = OsString>) -> Result<u32, Failure> {
    let text = value(flag, arguments)?;
    match text.to_str().and_then(unprivileged_id) {
        Some(id) => Ok(id),
        None => Err(usage(text, WANTED_ID)),
    }
}

fn ids(flag: &OsStr, arguments: &mut impl Iterator<Item = OsString>) -> Result<Vec<u32>, Failure> {
    let text = value(flag, arguments)?;
    let ids = text.to_str().map(|text| text.split(',').map(unprivileged_id).collect());
    match ids.flatten() {
        Some(ids) => Ok(ids),
        None => Err(usage(text, WANTED_ID)),
    }
}

const WANTED_ID: &str = "an id that is neither 0 nor 65534 is wanted";

/// 65534 is the guest's id and the overflow id: as the host's it would prove nothing.
fn unprivileged_id(text: &str) -> Option<u32> {
    text.parse().ok().filter(|id| ![0, 65534, u32::MAX].contains(id))
}

fn usage(argument: OsString, wanted: &'static str) -> Failure {
    Failure::Usage { argument, wanted }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(length: Length, only: &[&str], ids: (u32, u32, &[u32])) -> Task {
        Task::Test(TestOptions {
            length,
            only: only.iter().map(OsString::from).collect(),
            user: User { uid: ids.0, gid: ids.1, groups: ids.2.to_vec() },
        })
    }

    #[test]
    fn each_command_line_names_its_task() {
        const USUAL: (u32, u32, &[u32]) = (51_234, 51_234, &[5001, 5002]);
        let rows = [
            ("", Task::Help),
            ("help", Task::Help),
            ("check", Task::Check(Advisories::Leave)),
            ("check --advisories", Task::Check(Advisories::Ask)),
            ("golden", Task::Golden),
            ("codegen", Task::Codegen),
            (
                "fuzz profile_parse -max_total_time=60",
                Task::Fuzz {
                    target: "profile_parse".to_owned(),
                    options: vec!["-max_total_time=60".into()],
                },
            ),
            ("bench noop --json", Task::Bench(vec!["noop".into(), "--json".into()])),
            ("vm", Task::Vm(VmOptions::default())),
            (
                "vm --kernel 6.12 --only facts",
                Task::Vm(VmOptions {
                    kernels: Kernel::named("6.12").into_iter().collect(),
                    only: vec!["facts".into()],
                }),
            ),
            (
                "judge cpython --level strict --only os",
                Task::Judge(JudgeOptions {
                    judge: Judge::Cpython,
                    level: Some("strict".into()),
                    only: vec!["os".into()],
                    binary: None,
                }),
            ),
            (
                "judge bwrap --binary /usr/bin/bwrap --only suite",
                Task::Judge(JudgeOptions {
                    only: vec!["suite".into()],
                    binary: Some("/usr/bin/bwrap".into()),
                    ..JudgeOptions::new(Judge::Bwrap)
                }),
            ),
            ("test", options(Length::Sample, &[], USUAL)),
            ("test --long", options(Length::Long, &[], USUAL)),
            ("test --only a --only b", options(Length::Sample, &["a", "b"], USUAL)),
            ("test --uid 7 --gid 8 --groups 9", options(Length::Sample, &[], (7, 8, &[9]))),
        ];
        for (line, task) in rows {
            let parsed = parse(line.split_whitespace().map(OsString::from));
            assert_eq!(parsed.unwrap(), task, "{line}");
        }
    }

    #[test]
    fn each_wrong_command_line_is_refused() {
        let rows = [
            ("tset", "tset: no such task"),
            ("check --fast", "--fast: no such option"),
            ("golden now", "now: one argument too many"),
            ("codegen greeter", "greeter: one argument too many"),
            ("vm --kernel 2.6", "2.6: no such kernel"),
            ("judge", "judge: wants a name"),
            ("judge pypy", "pypy: no such judge"),
            ("test --only", "--only: wants a value"),
            ("test --uid 0", "0: an id that is neither"),
            ("test --gid 65534", "65534: an id that is neither"),
            ("test --groups 5001,", "5001,: an id that is neither"),
            ("test --groups 5001,0", "5001,0: an id that is neither"),
        ];
        for (line, words) in rows {
            let parsed = parse(line.split_whitespace().map(OsString::from));
            let text = parsed.unwrap_err().to_string();
            assert!(text.starts_with(words), "{line}: {text}");
        }
    }
}
