//! bubblewrap's own tests, with each binary on each host. The newest bubblewrap is right: a test comes
//! out as with it. Its sources are fetched, and changed in a copy where they judge nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::reference::{Binaries, Binary};
use super::tap::{Case, Tap, Verdict};
use super::verdicts::{Count, Outcome, compare, unskipped};
use crate::apt::{Apt, Kind};
use crate::cache::{self, Cache};
use crate::command::{program, root, succeed};
use crate::failure::Failure;
use crate::half::{Half, Place};
use crate::judge::Found;
use crate::say;
use crate::scratch::Scratch;
use crate::watch::follow;

/// The newest release whose sources the archive has, and where.
const RELEASE: &str = "0.12.0";
const ARCHIVE: &str = "trixie";

/// The scripts and how long each may take. `test-utils` is left out: it tries upstream's C, no binary.
const SCRIPTS: [(&str, u64); 5] = [
    ("test-run.sh", 150),
    ("test-sandbox.py", 120),
    ("test-seccomp.py", 120),
    ("test-specifying-pidns.sh", 20),
    ("test-specifying-userns.sh", 20),
];

/// A change to the copy: the file, the words, and what stands there instead.
type Edit = (&'static str, &'static str, &'static str);

const EDITS: [Edit; 7] = [
    // Every test is told of, not only those before the first failure.
    ("test-run.sh", "\n# Test help\n", "\n. \"$PEERS_KEEP_GOING\"\n"),
    // `! command` on a line of its own asserts nothing. The two other such lines are left alone:
    // a caller with CAP_SYS_ADMIN needs no user namespace, and so bubblewrap succeeds there.
    ("test-run.sh", "! $BWRAP --assert-userns", "refuses $BWRAP --assert-userns"),
    ("test-run.sh", "! $BWRAP_RECURSE --assert-userns", "refuses $BWRAP_RECURSE --assert-userns"),
    // A lock that is never given up would be waited for without end.
    ("test-run.sh", "./lockf-n.py ./lock wait", "timeout 30 ./lockf-n.py ./lock wait"),
    // The file is never removed.
    ("test-run.sh", "mktemp /tmp/bwrap-test-", "mktemp \"$TMPDIR\"/bwrap-test-"),
    ("test-run.sh", "\ndone_testing\n", "\nrm -f \"$tempfile\"\ndone_testing\n"),
    // The kernel writes 120 bytes, over whatever lies after these 16.
    (
        "test-sandbox.py",
        "('f_bsize', ctypes.c_long)]",
        "('f_bsize', ctypes.c_long), ('rest', ctypes.c_long * 64)]",
    ),
];

pub(super) fn run(
    places: &[Place<'_>],
    binaries: &Binaries,
    cache: &Cache,
    stage: &Scratch,
) -> Result<Vec<Found>, Failure> {
    let tests = staged(cache, stage)?;
    let mut found = Vec::new();
    let Binaries { newest, installed, judged } = binaries;
    for place in places {
        let half = place.half().name();
        let tell = |binary: &Binary, outcomes: &[Outcome]| {
            let count = Count::of(outcomes);
            say(&format!("{half:12} suite {RELEASE}  {:12} {count}", binary.name));
        };
        let right = outcomes(place, newest, &tests)?;
        tell(newest, &right);
        let theirs = unskipped(&right, outcomes(place, installed, &tests)?);
        tell(installed, &theirs);
        let ours = unskipped(&right, outcomes(place, judged, &tests)?);
        tell(judged, &ours);
        found.extend(compare(half, "suite", &right, &ours));
    }
    Ok(found)
}

/// All scripts with one binary on one host.
fn outcomes(place: &Place<'_>, binary: &Binary, tests: &Path) -> Result<Vec<Outcome>, Failure> {
    let mut outcomes = Vec::new();
    for (script, seconds) in SCRIPTS {
        let mut tap = Tap::default();
        let command = command(place, binary, tests, script, seconds);
        let followed = follow(command, Duration::from_secs(seconds + 30), |line| tap.line(line))?;
        let ended = Case {
            name: "the whole".to_owned(),
            verdict: Verdict::NotOk,
            why: format!("{}: {}", followed.status, tap.trouble().unwrap_or_default()),
        };
        let trouble = tap.trouble().is_some() || followed.hung;
        for case in tap.cases.into_iter().chain(trouble.then_some(ended)) {
            let name = format!("{script}: {}", case.name);
            outcomes.push(Outcome { name, verdict: case.verdict, why: case.why });
        }
    }
    Ok(outcomes)
}

fn command(
    place: &Place<'_>,
    binary: &Binary,
    tests: &Path,
    script: &str,
    seconds: u64,
) -> Command {
    let interpreter = if script.ends_with(".py") { "/usr/bin/python3" } else { "/bin/bash" };
    let mut command = place.program(Path::new("/usr/bin/timeout"));
    command.arg("--kill-after=5").arg(seconds.to_string()).arg(interpreter);
    command.arg(tests.join("tests").join(script));
    command.env("BWRAP", binary.file()).env("BWRAP_MUST_WORK", "1").env("LANG", "C.UTF-8");
    command.env("G_TEST_SRCDIR", tests).env("G_TEST_BUILDDIR", tests);
    command.env("PEERS_KEEP_GOING", tests.join("keep-going.sh"));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    quiet(contained(place, &command))
}

/// In a pid namespace, so that nothing outlives a test. Only root can make one without a user
/// namespace, in which the tests would meet other rules.
fn contained(place: &Place<'_>, command: &Command) -> Command {
    let mut contained = match place.half() {
        Half::Root | Half::Unprivileged(_) => {
            let mut unshare = program("unshare");
            unshare.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
            unshare.arg(command.get_program());
            unshare
        }
        Half::Caller => program(command.get_program()),
    };
    contained.args(command.get_args()).env_clear();
    contained.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    contained
}

/// Without what it says on standard error, which is every command of its own.
fn quiet(command: Command) -> Command {
    let mut quiet = program("/bin/sh");
    quiet.args(["-c", "exec \"$@\" 2>/dev/null", "sh"]).arg(command.get_program());
    quiet.args(command.get_args()).env_clear();
    quiet.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    quiet
}

/// The copy in which the tests run: everybody can read it, and it is not in `/tmp`, which they cover.
fn staged(cache: &Cache, stage: &Scratch) -> Result<PathBuf, Failure> {
    let pristine = cache.path().join(format!("bubblewrap-tests-{RELEASE}"));
    if !pristine.exists() {
        say(&format!("xtask: fetching the tests of bubblewrap {RELEASE}"));
        let apt = Apt::new(cache, "/debian", ARCHIVE, Kind::Source)?;
        cache.fill(&pristine, |unfinished| fetch(&apt, unfinished))?;
    }
    let place = stage.path().join("suite");
    succeed(program("cp").arg("--recursive").arg(&pristine).arg(&place))?;
    for edit in EDITS {
        let path = place.join("tests").join(edit.0);
        let text = fs::read_to_string(&path).map_err(|e| cache::failure("read", &path, e))?;
        cache::write(&path, &edited(edit, &text)?)?;
    }
    stage.copy(&root().join("tests/peers/keep-going.sh"), "suite/keep-going.sh")?;
    succeed(program("chmod").args(["--recursive", "a+rX"]).arg(&place))?;
    Ok(place)
}

/// # Errors
/// The words are not there: the tests are others than those that this was written for.
fn edited((file, from, to): Edit, text: &str) -> Result<String, Failure> {
    match text.contains(from) {
        true => Ok(text.replace(from, to)),
        false => {
            let fact = format!("bubblewrap's {file} has no {from:?} to be changed");
            Err(Failure::Archive { fact })
        }
    }
}

fn fetch(apt: &Apt, directory: &Path) -> Result<(), Failure> {
    apt.tarball("bubblewrap", directory)?;
    let archive = format!("bubblewrap_{RELEASE}.orig.tar.xz");
    if !directory.join(&archive).exists() {
        let fact = format!("{ARCHIVE} has no longer {archive}");
        return Err(Failure::Archive { fact });
    }
    let mut unpack = program("tar");
    unpack.args(["--extract", "--strip-components=1", "--no-same-owner", "--wildcards"]);
    unpack.arg("--file").arg(&archive).arg("*/tests");
    succeed(unpack.current_dir(directory))?;
    cache::remove(&directory.join(&archive))?;
    let compile = ["-O1", "-o", "tests/try-syscall", "tests/try-syscall.c"];
    succeed(program("cc").args(compile).current_dir(directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_without_its_words_is_refused() {
        let edit = ("a", "! x", "refuses x");
        assert_eq!(edited(edit, "! x y\n! x z\n").unwrap(), "refuses x y\nrefuses x z\n");
        assert!(edited(edit, "x").is_err());
    }
}
