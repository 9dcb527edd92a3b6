//! CPython's own tests, inside against outside: the same interpreter, the same tests, and outside a
//! user without privileges. A case that comes out otherwise inside needs a reason, unless it passes:
//! a user who is in no file, as that one is, lacks more than the guest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::guest::Guest;
use super::{FINE, Found};
use crate::apt::{Apt, Kind};
use crate::cache::{self, Cache};
use crate::command::{lines_of, program, root, succeed};
use crate::failure::Failure;
use crate::say;
use crate::scratch::Scratch;
use crate::watch::follow;

/// The modules of the tests, without `test_`: what the system has to do.
const MODULES: [&str; 22] = [
    "asyncio",
    "concurrent_futures",
    "fcntl",
    "mmap",
    "multiprocessing_fork",
    "multiprocessing_forkserver",
    "multiprocessing_spawn",
    "os",
    "pathlib",
    "posix",
    "pty",
    "resource",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "sqlite3",
    "ssl",
    "subprocess",
    "tempfile",
    "threading",
    "zipfile",
];

const PYTHON: &str = "/usr/bin/python3";

/// Where the guest finds the program that runs the tests.
const VERDICTS: &str = "/opt/verdicts.py";

/// Long after the slowest module on a busy machine.
const DEADLINE: Duration = Duration::from_secs(30 * 60);

/// A verdict of `verdicts.py`.
const PASSED: &str = "passed";

/// What `verdicts.py` and we call a run that broke off.
const WHOLE: &str = "the whole";

/// A case's verdict and why.
type Verdicts = BTreeMap<String, (String, String)>;

/// One world in which tests run.
struct World<'a> {
    name: &'static str,
    command: Box<dyn Fn(&str) -> Command + Sync + 'a>,
}

pub(super) fn run(
    guests: &[Guest<'_>],
    cache: &Cache,
    scratch: &Scratch,
    only: &[String],
) -> Result<Vec<Found>, Failure> {
    let tests = suite(cache)?;
    scratch.copy(&root().join("tests/judges/verdicts.py"), "verdicts.py")?;
    let verdicts = scratch.path().join("verdicts.py");
    let worlds = worlds(guests, &tests, &verdicts);
    let mut found = Vec::new();
    for module in
        MODULES.iter().filter(|name| only.is_empty() || only.iter().any(|one| one == *name))
    {
        let start = Instant::now();
        let name = format!("test_{module}");
        let all = everywhere(&worlds, &name)?;
        let Some((outside, inside)) = all.split_first() else { continue };
        let counts = inside.iter().zip(&worlds[1..]).map(|(verdicts, world)| {
            let found = compare(&worlds, world, outside, verdicts)?;
            let different = found.iter().filter(|one| one.verdict != FINE).count();
            Ok((world.name, different, found))
        });
        let counts = counts.collect::<Result<Vec<_>, Failure>>()?;
        let words =
            counts.iter().map(|(name, different, _)| format!("{name} {different} different"));
        let words = words.collect::<Vec<_>>().join(", ");
        let seconds = start.elapsed().as_secs();
        say(&format!("{name:32} {:>5} cases, {words}, {seconds} s", outside.len()));
        found.extend(counts.into_iter().flat_map(|(.., found)| found));
    }
    Ok(found)
}

/// The one outside, and one for each host inside.
fn worlds<'a>(guests: &'a [Guest<'a>], tests: &'a Path, verdicts: &'a Path) -> Vec<World<'a>> {
    let mut worlds = Vec::new();
    // The last is the one without privileges.
    if let Some(guest) = guests.last() {
        let command = move |name: &str| {
            let (python, verdicts) = (python(tests), verdicts.display().to_string());
            guest.outside(&[&python, &verdicts, name])
        };
        worlds.push(World { name: "outside", command: Box::new(command) });
    }
    for guest in guests {
        let command = move |name: &str| {
            let options = [
                format!("--venv={}", tests.display()),
                format!("--ro-bind={}:{VERDICTS}", verdicts.display()),
                format!("--timeout={}", DEADLINE.as_secs()),
            ];
            guest.inside(&options, &[&python(tests), VERDICTS, name])
        };
        worlds.push(World { name: guest.half(), command: Box::new(command) });
    }
    worlds
}

fn python(environment: &Path) -> String {
    environment.join("bin/python").display().to_string()
}

/// In all worlds at once.
fn everywhere(worlds: &[World<'_>], name: &str) -> Result<Vec<Verdicts>, Failure> {
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            worlds.iter().map(|world| scope.spawn(|| verdicts((world.command)(name)))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Ok(Verdicts::new())))
            .collect()
    })
}

fn verdicts(command: Command) -> Result<Verdicts, Failure> {
    let mut verdicts = Verdicts::new();
    let mut others = Vec::new();
    let followed = follow(command, DEADLINE, |line| match read(line) {
        Some((verdict, name, why)) => {
            verdicts.insert(name.to_owned(), (verdict.to_owned(), why.to_owned()));
        }
        None => others.push(line.to_owned()),
    })?;
    if followed.hung || !followed.status.success() {
        let words = format!("{}: {}", followed.status, others.join(" "));
        verdicts.entry(WHOLE.to_owned()).or_insert(("failed".to_owned(), words));
    }
    Ok(verdicts)
}

fn read(line: &str) -> Option<(&str, &str, &str)> {
    let mut fields = line.splitn(3, '\t');
    let verdict = fields.next().filter(|word| [PASSED, "failed", "skipped"].contains(word))?;
    Some((verdict, fields.next()?, fields.next()?))
}

/// What came of each case inside. One that is different is tried once more by itself, outside and
/// inside: a busy machine is no difference.
fn compare(
    worlds: &[World<'_>],
    world: &World<'_>,
    outside: &Verdicts,
    inside: &Verdicts,
) -> Result<Vec<Found>, Failure> {
    let mut found = Vec::new();
    let names = outside.keys().chain(inside.keys().filter(|name| !outside.contains_key(*name)));
    for name in names {
        let mut pair = (of(outside, name), of(inside, name));
        if pair.0.0 != pair.1.0
            && pair.1.0 != PASSED
            && let Some(again) = alone(name)
        {
            let outside = worlds.first().map(|world| verdicts((world.command)(&again)));
            let outside = outside.transpose()?.unwrap_or_default();
            let inside = verdicts((world.command)(&again))?;
            pair = (of(&outside, name), of(&inside, name));
        }
        let ((out, _), (verdict, why)) = pair;
        let is_same = out == verdict || verdict == PASSED;
        let (verdict, evidence) = match is_same && is_case(name) {
            true => (FINE.to_owned(), String::new()),
            false => (verdict, format!("{out} outside: {why}")),
        };
        let row = name.strip_prefix("test.").unwrap_or(name).to_owned();
        found.push(Found { half: world.name, row, verdict, evidence });
    }
    Ok(found)
}

fn of(verdicts: &Verdicts, name: &str) -> (String, String) {
    verdicts.get(name).cloned().unwrap_or_else(|| ("missing".to_owned(), String::new()))
}

/// A module that cannot be loaded and an interpreter that dies are no cases: the same outside would
/// only mean that nothing was tried.
fn is_case(name: &str) -> bool {
    name != WHOLE && !name.starts_with("unittest.loader.")
}

/// The name under which a case, or the class of a fixture, is run by itself.
fn alone(name: &str) -> Option<String> {
    let name = match name.split_once('(') {
        Some((_, rest)) => rest.trim_end_matches(')'),
        None => name,
    };
    name.strip_prefix("test.").map(str::to_owned)
}

/// An environment in which `test` is that of the interpreter's own sources, for programs that its
/// tests start too; Debian's package of tests leaves some out.
fn suite(cache: &Cache) -> Result<PathBuf, Failure> {
    let version =
        "import sys, platform; print('%d.%d' % sys.version_info[:2], platform.python_version())";
    let lines = lines_of(program(PYTHON).args(["-I", "-c", version]))?;
    let line = lines.first().map_or("", String::as_str);
    let (short, long) = line.split_once(' ').unwrap_or((line, line));
    let place = cache.path().join(format!("cpython-{long}"));
    if !place.exists() {
        say(&format!("xtask: fetching the tests of Python {long}"));
        let name =
            lines_of(program("sh").args(["-c", ". /etc/os-release; echo $VERSION_CODENAME"]))?;
        let apt = Apt::new(cache, "/debian", &name.concat(), Kind::Source)?;
        cache.fill(&place, |unfinished| fetch(&apt, short, unfinished))?;
    }
    Ok(place)
}

fn fetch(apt: &Apt, short: &str, directory: &Path) -> Result<(), Failure> {
    let make = ["-I", "-m", "venv", "--without-pip", "--symlinks"];
    succeed(program(PYTHON).args(make).arg(directory))?;
    // The system's own `test` comes first otherwise, and is empty.
    let first = "import os, sys; sys.path.insert(0, os.path.join(sys.prefix, 'tests'))\n";
    let site = format!("lib/python{short}/site-packages/tests.pth");
    cache::write(&directory.join(site), first)?;
    let tests = directory.join("tests");
    cache::directory(&tests)?;
    let sources = directory.join("sources");
    cache::directory(&sources)?;
    apt.source(&format!("python{short}"), &sources)?;
    let unpack = "tar --extract --file sources/*.orig.tar.* --directory tests --strip-components=2 --wildcards \
                  --no-same-owner '*/Lib/test'";
    succeed(program("sh").args(["-c", unpack]).current_dir(directory))?;
    cache::remove(&sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(name: &'static str, lines: &'static str) -> World<'static> {
        let command = move |_: &str| {
            let mut shell = program("printf");
            shell.arg(lines);
            shell
        };
        World { name, command: Box::new(command) }
    }

    #[test]
    fn each_case_is_the_same_or_different() {
        let outside = "passed\\ttest.a\\t\\nfailed\\ttest.b\\tx\\nskipped\\ttest.c\\tno\\n";
        let rows = [
            (outside, [FINE, FINE, FINE]),
            ("passed\\ttest.a\\t\\nfailed\\ttest.b\\ty\\n", [FINE, FINE, "missing"]),
            (
                "failed\\ttest.a\\tx\\npassed\\ttest.b\\t\\nskipped\\ttest.c\\t\\n",
                ["failed", FINE, FINE],
            ),
        ];
        for (lines, expected) in rows {
            let worlds = [world("outside", outside), world("root", lines)];
            let all = everywhere(&worlds, "a").unwrap();
            let found = compare(&worlds, &worlds[1], &all[0], &all[1]).unwrap();
            let verdicts: Vec<_> = found.iter().map(|one| &*one.verdict).collect();
            assert_eq!(verdicts, expected, "{lines}");
        }
    }

    #[test]
    fn what_is_no_case_is_never_fine() {
        for lines in ["failed\\tthe whole\\tx\\n", "failed\\tunittest.loader._FailedTest.a\\tx\\n"]
        {
            let worlds = [world("outside", lines), world("root", lines)];
            let all = everywhere(&worlds, "a").unwrap();
            let found = compare(&worlds, &worlds[1], &all[0], &all[1]).unwrap();
            assert!(found.iter().all(|one| one.verdict == "failed"), "{lines}");
            assert_eq!(found.len(), 1);
        }
    }

    #[test]
    fn an_interpreter_that_dies_is_different() {
        let mut shell = program("sh");
        shell.args(["-c", "printf 'passed\\ttest.a\\t\\n'; exit 3"]);
        let verdicts = verdicts(shell).unwrap();
        assert_eq!(of(&verdicts, "the whole").0, "failed");
    }

    #[test]
    fn a_case_is_tried_again_by_its_own_name() {
        let rows = [
            ("test.test_os.A.test_b", Some("test_os.A.test_b")),
            ("setUpClass (test.test_os.A)", Some("test_os.A")),
            ("the whole", None),
        ];
        for (name, expected) in rows {
            assert_eq!(alone(name).as_deref(), expected, "{name}");
        }
    }
}
