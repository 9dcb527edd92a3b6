//! `cargo xtask test`: everything once as the caller, the system tests on both hosts. An expected
//! half that did not run is a failure, never a skip.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::Command;

use crate::arguments::{Length, TestOptions};
use crate::clients;
use crate::command::{Cargo, program};
use crate::executables::{self, Executable, Kind};
use crate::failure::{Failure, NO_SKIPS};
use crate::half::{Half, Place, halves};
use crate::scratch::Scratch;
use crate::tally::Tally;
use crate::watch::watch;

/// Tests that read the source tree, which the other user need not be able to do, and that make no
/// sandbox: they run once, as the caller.
const OF_THE_SOURCES: [&str; 2] = ["tidy", "golden_plans"];

/// The test whose guests are gRPC clients.
const OF_CLIENTS: &str = "hatch";

/// Builds, runs, reports.
pub(crate) fn run(options: &TestOptions) -> Result<(), Failure> {
    let executables = executables::build()?;
    let mut report = Report::new(Box::new(io::stdout()), options.length);
    if options.only.is_empty() {
        once(&executables, &mut report)?;
    }
    on_both_hosts(&executables, options, &mut report)?;
    report.close(std::env::var_os(NO_SKIPS).is_some())
}

/// The unit tests, the other packages' own tests, and the documentation's examples.
fn once(executables: &[Executable], report: &mut Report) -> Result<(), Failure> {
    let here = executables.iter().filter(|executable| match executable.kind {
        Kind::Unit => true,
        Kind::Test => !is_of_both_hosts(executable),
        Kind::Program => false,
    });
    for executable in here {
        let mut command = program(&executable.file);
        command.current_dir(&executable.package);
        command.env("CARGO_MANIFEST_DIR", &executable.package);
        report.run("once", &executable.label(), command)?;
    }
    let examples = ["test", "--release", "--workspace", "--all-features", "--doc"];
    let examples = Cargo::new(examples).into_command();
    report.run("once", "documentation", examples)
}

fn on_both_hosts(
    executables: &[Executable],
    options: &TestOptions,
    report: &mut Report,
) -> Result<(), Failure> {
    let tests = chosen(executables, &options.only)?;
    let scratch = Scratch::new()?;
    let programs = executables.iter().filter(|executable| executable.kind == Kind::Program);
    for executable in programs.chain(tests.iter().copied()) {
        scratch.copy(&executable.file, &executable.name)?;
    }
    let halves = halves(rustix::process::geteuid().as_raw(), &options.user);
    if halves == [Half::Caller] {
        report.skip("the root half: the caller is not root");
    }
    let clients = match tests.iter().any(|test| test.name == OF_CLIENTS) {
        true => Some(clients::make()?),
        false => None,
    };
    for half in &halves {
        let place = Place::new(half, &scratch, clients.as_deref())?;
        for test in &tests {
            report.run(half.name(), &test.name, place.command(&test.name))?;
        }
        report.leftovers(half.name(), &place.left_behind());
        report.expect(half.name());
    }
    Ok(())
}

/// The tests for both hosts, in the order of their names; each name given must be one of theirs.
pub(crate) fn chosen<'a>(
    executables: &'a [Executable],
    only: &[OsString],
) -> Result<Vec<&'a Executable>, Failure> {
    let mut tests: Vec<_> = executables.iter().filter(|test| is_of_both_hosts(test)).collect();
    tests.sort_by(|a, b| a.name.cmp(&b.name));
    let is_test = |name: &&OsString| tests.iter().any(|test| **name == *test.name);
    if let Some(name) = only.iter().find(|name| !is_test(name)) {
        return Err(Failure::NotBuilt { what: format!("test named {}", name.display()) });
    }
    tests.retain(|test| only.is_empty() || only.iter().any(|name| *name == *test.name));
    Ok(tests)
}

fn is_of_both_hosts(executable: &Executable) -> bool {
    executable.kind == Kind::Test
        && executable.is_of_tests()
        && !OF_THE_SOURCES.contains(&executable.name.as_str())
}

/// What has run so far.
struct Report {
    show: Box<dyn Write>,
    length: Length,
    total: Tally,
    /// Executables that failed, and why where no test says so.
    troubles: Vec<String>,
    parts: Vec<(&'static str, Tally)>,
}

impl Report {
    fn new(show: Box<dyn Write>, length: Length) -> Self {
        Self { show, length, total: Tally::default(), troubles: Vec::new(), parts: Vec::new() }
    }

    fn run(&mut self, part: &'static str, name: &str, mut command: Command) -> Result<(), Failure> {
        drop(writeln!(self.show, "\n--- {part}: {name}"));
        if self.length == Length::Long {
            command.env("POSTERN_LONG", "1");
        }
        let watched = watch(command, self.length, &mut self.show)?;
        if let Some(trouble) = watched.trouble {
            self.trouble(format!("{part}: {name}: {trouble}"));
        } else if watched.tally.failed > 0 {
            self.troubles.push(format!("{part}: {name}: {} failed", watched.tally.failed));
        }
        self.total.add(watched.tally.clone());
        match self.parts.iter_mut().find(|(other, _)| *other == part) {
            Some((_, tally)) => tally.add(watched.tally),
            None => self.parts.push((part, watched.tally)),
        }
        Ok(())
    }

    /// A failure that no test counted.
    fn trouble(&mut self, text: String) {
        self.total.failed += 1;
        self.troubles.push(text);
    }

    fn skip(&mut self, note: &str) {
        self.total.skip(note);
    }

    fn leftovers(&mut self, part: &str, names: &[String]) {
        if !names.is_empty() {
            self.trouble(format!("{part}: left in the temporary directory: {}", names.join(" ")));
        }
    }

    /// A half in which nothing passed has not run.
    fn expect(&mut self, part: &str) {
        let ran = self.parts.iter().any(|(other, tally)| *other == part && tally.passed > 0);
        if !ran {
            self.trouble(format!("{part}: this half did not run"));
        }
    }

    fn close(mut self, no_skips: bool) -> Result<(), Failure> {
        let mut say = |line: String| drop(writeln!(self.show, "{line}"));
        say(String::new());
        for (part, tally) in &self.parts {
            let Tally { passed, failed, skipped, .. } = tally;
            say(format!("{part:>14} {passed:>6} {failed:>6} {skipped:>6}"));
        }
        self.total.notes.iter().for_each(|note| say(format!("skipped: {note}")));
        self.troubles.iter().for_each(|trouble| say(format!("failed: {trouble}")));
        let Tally { passed, failed, skipped, .. } = self.total;
        say(format!("\n{passed} passed, {failed} failed, {skipped} skipped"));
        match (failed, no_skips && skipped > 0) {
            (0, false) => Ok(()),
            (0, true) => Err(Failure::SkipRefused { count: skipped }),
            (count, _) => Err(Failure::Failed { count }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut shell = program("sh");
        shell.args(["-c", script]);
        shell
    }

    fn report(scripts: &[&str]) -> Report {
        let mut report = Report::new(Box::new(io::sink()), Length::Sample);
        for script in scripts {
            report.run("root", "x", shell(script)).unwrap();
        }
        report
    }

    const PASS: &str = "echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";
    const FAIL: &str = "echo 'test result: FAILED. 1 passed; 2 failed; 0 ignored'; exit 1";
    const SKIP: &str =
        "echo 'skipped: no x'; echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";

    #[test]
    fn each_report_closes_as_it_should() {
        let rows: [(&[&str], bool, Option<&str>); 7] = [
            (&[PASS, PASS], true, None),
            (&[PASS, SKIP], false, None),
            (&[PASS, SKIP], true, Some("1 skipped, and POSTERN_NO_SKIPS is set")),
            (&[PASS, FAIL], false, Some("2 failed")),
            (&[PASS, "true"], false, Some("1 failed")),
            (&[FAIL, "exit 9", SKIP], true, Some("3 failed")),
            (&[PASS, "echo skipped; exit 9"], true, Some("1 failed")),
        ];
        for (scripts, no_skips, words) in rows {
            let closed = report(scripts).close(no_skips);
            let text = closed.err().map(|failure| failure.to_string());
            assert_eq!(text.as_deref(), words, "{scripts:?}");
        }
    }

    #[test]
    fn each_name_given_is_a_test_for_both_hosts() {
        let executable = |name: &str, kind| Executable {
            name: name.to_owned(),
            kind,
            package: crate::command::root().join("tests"),
            file: "/t/x".into(),
        };
        let all = [
            executable("promises", Kind::Test),
            executable("endings", Kind::Test),
            executable("tidy", Kind::Test),
            executable("probe", Kind::Program),
        ];
        let rows: [(&[&str], Option<&[&str]>); 5] = [
            (&[], Some(&["endings", "promises"])),
            (&["promises"], Some(&["promises"])),
            (&["promises", "promise"], None),
            (&["tidy"], None),
            (&["probe"], None),
        ];
        for (only, names) in rows {
            let only: Vec<OsString> = only.iter().map(OsString::from).collect();
            let chosen = chosen(&all, &only).ok();
            let found =
                chosen.map(|tests| tests.iter().map(|test| test.name.as_str()).collect::<Vec<_>>());
            assert_eq!(found.as_deref(), names, "{only:?}");
        }
    }

    #[test]
    fn a_half_in_which_nothing_passed_has_not_run() {
        let rows: [(&[&str], &str, u64); 3] =
            [(&[PASS], "root", 0), (&[PASS], "unprivileged", 1), (&[], "root", 1)];
        for (scripts, half, failed) in rows {
            let mut report = report(scripts);
            report.expect(half);
            assert_eq!(report.total.failed, failed, "{scripts:?} {half}");
        }
    }

    #[test]
    fn what_is_left_behind_is_a_failure() {
        let mut report = report(&[PASS]);
        report.leftovers("root", &[]);
        assert_eq!(report.total.failed, 0);
        report.leftovers("root", &["postern-x".to_owned()]);
        assert_eq!(report.total.failed, 1);
    }
}
