//! The tests of a Python package that drives bubblewrap, with each binary first on the search path.
//! A test that comes out otherwise is tried again by itself, with both: some of them are timed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::reference::{Binaries, Binary};
use super::tap::Verdict;
use super::verdicts::{Count, Outcome, compare};
use crate::cache::{self, Cache};
use crate::command::{program, succeed};
use crate::failure::Failure;
use crate::half::Place;
use crate::judge::{FINE, Found};
use crate::say;
use crate::scratch::Scratch;
use crate::watch::follow;

const PACKAGE: &str = "postern";
const VERSION: &str = "0.5.0";

/// Pythons before 3.11.4 have no filters of archives, which one test is about.
const CONFTEST: &str = "import sys\nimport tarfile\n\nif not hasattr(tarfile, 'data_filter'):\n    \
    import backports.tarfile\n    sys.modules['tarfile'] = backports.tarfile\n";

/// Ten times what it takes on a machine with little else to do.
const DEADLINE: Duration = Duration::from_secs(600);

/// More than that is no accident of time, and would take as long again.
const AGAIN_MAX: usize = 20;

pub(super) fn run(
    places: &[Place<'_>],
    binaries: &Binaries,
    cache: &Cache,
    stage: &Scratch,
) -> Result<Vec<Found>, Failure> {
    let environment = environment(cache)?;
    // Most of what they do is to wait.
    std::thread::scope(|scope| {
        let both = |place| {
            let environment = &environment;
            scope.spawn(move || half(place, binaries, environment, stage))
        };
        let threads: Vec<_> = places.iter().map(both).collect();
        let found = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or(Err(Failure::Failed { count: 1 })));
        Ok(found.collect::<Result<Vec<_>, _>>()?.concat())
    })
}

/// The tests on one host.
fn half(
    place: &Place<'_>,
    binaries: &Binaries,
    environment: &Path,
    stage: &Scratch,
) -> Result<Vec<Found>, Failure> {
    let Binaries { newest, judged, .. } = binaries;
    let half = place.half().name();
    // The tests leave a directory for each of their sandboxes.
    let temporary = stage.directory(&format!("python-{half}"), 0o1777)?;
    let site = Site { place, environment, temporary: &temporary };
    let [right, ours] = [newest, judged].map(|binary| {
        let outcomes = site.outcomes(binary, &["tests"])?;
        let count = Count::of(&outcomes);
        say(&format!("{half:12} {PACKAGE} {VERSION}  {:12} {count}", binary.name));
        Ok::<_, Failure>(outcomes)
    });
    let (mut right, mut ours) = (right?, ours?);
    let once = compare(half, "python", &right, &ours);
    let again = once.iter().filter(|one| one.verdict != FINE);
    let names = again.filter_map(|one| one.row.strip_prefix("python "));
    let again: Vec<&str> = names.filter(|name| name.starts_with("tests/")).collect();
    if (1..=AGAIN_MAX).contains(&again.len()) {
        for (outcomes, binary) in [(&mut right, newest), (&mut ours, judged)] {
            let fresh = site.outcomes(binary, &again)?;
            outcomes.retain(|one| !fresh.iter().any(|other| other.name == one.name));
            outcomes.extend(fresh);
        }
    }
    Ok(compare(half, "python", &right, &ours))
}

/// Where the tests run.
struct Site<'a> {
    place: &'a Place<'a>,
    environment: &'a Path,
    temporary: &'a Path,
}

impl Site<'_> {
    fn outcomes(&self, binary: &Binary, tests: &[&str]) -> Result<Vec<Outcome>, Failure> {
        let mut command = self.place.program(&self.environment.join("bin/python"));
        command.args(["-m", "pytest", "-p", "no:cacheprovider", "--verbose", "--verbose"]);
        command.args(["--color=no", "--no-header", "--tb=line"]).args(tests);
        command.current_dir(self.environment.join("source")).env("TMPDIR", self.temporary);
        command.env("PATH", binary.path()).env("PYTHONDONTWRITEBYTECODE", "1");
        let mut outcomes = Vec::new();
        let mut last = String::new();
        let followed = follow(command, DEADLINE, |line| match read(line) {
            Some((name, verdict)) => {
                outcomes.push(Outcome { name: name.to_owned(), verdict, why: String::new() });
            }
            None => {
                if let Some((name, why)) = read_why(line)
                    && let Some(one) = outcomes.iter_mut().find(|one| one.name == name)
                {
                    why.clone_into(&mut one.why);
                }
                if !line.is_empty() {
                    line.clone_into(&mut last);
                }
            }
        })?;
        if followed.hung || outcomes.is_empty() {
            let (name, verdict) = ("the whole".to_owned(), Verdict::NotOk);
            let why = format!("{}: {last}", followed.status);
            outcomes.push(Outcome { name, verdict, why });
        }
        Ok(outcomes)
    }
}

/// `tests/test_a.py::test_b[c] PASSED   [ 10%]`.
fn read(line: &str) -> Option<(&str, Verdict)> {
    const WORDS: [(&str, Verdict); 4] = [
        (" PASSED", Verdict::Ok),
        (" FAILED", Verdict::NotOk),
        (" ERROR", Verdict::NotOk),
        (" SKIPPED", Verdict::Skip),
    ];
    if !line.starts_with("tests/") {
        return None;
    }
    WORDS.iter().find_map(|(word, verdict)| Some((line.rsplit_once(word)?.0, *verdict)))
}

/// `FAILED tests/test_a.py::test_b - why`, of the summary.
fn read_why(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR "))?;
    rest.split_once(" - ")
}

/// The package, its sources and what runs its tests, outside `/tmp`, which the guests cover. Made
/// where it stays: an environment knows its own path.
fn environment(cache: &Cache) -> Result<PathBuf, Failure> {
    let place = cache.path().join(format!("{PACKAGE}-{VERSION}"));
    let whole = place.join("whole");
    if !whole.exists() {
        say(&format!("xtask: fetching the tests of {PACKAGE} {VERSION} of PyPI"));
        succeed(program("/usr/bin/python3").args(["-m", "venv", "--clear"]).arg(&place))?;
        let named = format!("{PACKAGE}=={VERSION}");
        let pip = |verb: &str| {
            let mut pip = program(place.join("bin/python"));
            pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check", verb]);
            pip.current_dir(&place);
            pip
        };
        succeed(pip("install").args(["pytest", "grpcio", "backports.tarfile", &named]))?;
        succeed(pip("download").args(["--no-deps", "--no-binary", PACKAGE, &named]))?;
        cache::directory(&place.join("source"))?;
        let unpack =
            "tar --extract --file *.tar.gz --directory source --strip-components=1 --no-same-owner";
        succeed(program("sh").args(["-c", unpack]).current_dir(&place))?;
        cache::write(&place.join("source/conftest.py"), CONFTEST)?;
        cache::write(&whole, "")?;
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_of_a_test() {
        assert_eq!(
            read_why("FAILED tests/a.py::b - no c - d"),
            Some(("tests/a.py::b", "no c - d"))
        );
        assert_eq!(read_why("tests/a.py::b FAILED - x"), None);
    }

    #[test]
    fn each_line_is_a_verdict_or_nothing() {
        let rows = [
            ("tests/a.py::b PASSED      [  1%]", Some(("tests/a.py::b", Verdict::Ok))),
            ("tests/a.py::b[c d] FAILED [  1%]", Some(("tests/a.py::b[c d]", Verdict::NotOk))),
            ("tests/a.py::b ERROR       [  1%]", Some(("tests/a.py::b", Verdict::NotOk))),
            ("tests/a.py::b SKIPPED (why) [1%]", Some(("tests/a.py::b", Verdict::Skip))),
            ("FAILED tests/a.py::b - x", None),
            ("1 failed, 3 passed", None),
        ];
        for (line, expected) in rows {
            assert_eq!(read(line), expected, "{line}");
        }
    }
}
