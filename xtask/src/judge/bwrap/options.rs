//! The options that bubblewrap's own tests never use, or do not miss where they are ignored: scripts,
//! each with what it prints. A row is tried a second time with a `bwrap` that ignores its option, and
//! must fail then: a row that cannot fail shows nothing.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;

use super::reference::{Binaries, Binary};
use crate::cache;
use crate::command::start;
use crate::failure::Failure;
use crate::half::{Half, Place};
use crate::judge::{FINE, Found};
use crate::say;
use crate::scratch::Scratch;

const ROWS: &str = include_str!("../../../../tests/peers/options.json");

/// One script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    option: String,
    /// How many words belong to the option.
    #[serde(default)]
    arguments: usize,
    /// Only on this host: on the other an ignored option makes no difference.
    half: Option<String>,
    /// Why nobody can tell that the option is ignored, where that is so.
    ignored: Option<String>,
    /// Lines that bash is given, in an empty directory that is its user's.
    script: Vec<String>,
    /// All that has to be on standard output.
    prints: String,
}

/// Whether a row is about this option.
pub(super) fn has(option: &str) -> Result<bool, Failure> {
    Ok(read()?.iter().any(|row| row.option == option))
}

fn read() -> Result<Vec<Row>, Failure> {
    serde_json::from_str(ROWS).map_err(|source| Failure::Known { source })
}

pub(super) fn run(
    places: &[Place<'_>],
    binaries: &Binaries,
    stage: &Scratch,
    only: &[&String],
) -> Result<Vec<Found>, Failure> {
    let rows = read()?;
    let mut found = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        if !only.is_empty() && !only.iter().any(|one| **one == row.option) {
            continue;
        }
        let directory = stage.directory(&format!("option-{number}"), 0o755)?;
        let bench = Bench { row, binaries, directory };
        let is_here = |place: &&Place<'_>| {
            row.half.is_none() || row.half.as_deref() == Some(place.half().name())
        };
        for place in places.iter().filter(is_here) {
            let (verdict, evidence) = bench.outcome(place)?;
            let half = place.half().name();
            let name = format!("options {} {number}", row.option);
            found.push(Found { half, row: name, verdict: verdict.to_owned(), evidence });
        }
    }
    let fine = found.iter().filter(|one| one.verdict == FINE).count();
    let blind = rows.iter().filter_map(|row| Some((&row.option, row.ignored.as_ref()?)));
    blind.for_each(|(option, why)| say(&format!("options: {option} may be ignored: {why}")));
    say(&format!("options: {fine} of {} as they are with bubblewrap", found.len()));
    Ok(found)
}

/// One row and where it is tried.
struct Bench<'a> {
    row: &'a Row,
    binaries: &'a Binaries,
    directory: PathBuf,
}

impl Bench<'_> {
    fn outcome(&self, place: &Place<'_>) -> Result<(&'static str, String), Failure> {
        let Binaries { newest, judged, .. } = self.binaries;
        let half = place.half();
        let ignoring = self.ignoring(judged, half.name())?;
        let wants = &self.row.prints;
        for (binary, verdict) in [(newest, "not bubblewrap's"), (judged, "otherwise")] {
            let prints = self.prints(place, binary)?;
            if prints != *wants {
                return Ok((verdict, format!("prints {prints:?}, wanted {wants:?}")));
            }
        }
        let is_missed = self.row.ignored.is_none() && self.prints(place, &ignoring)? == *wants;
        match is_missed {
            true => Ok(("cannot fail", format!("prints {wants:?} where the option is ignored"))),
            false => Ok((FINE, String::new())),
        }
    }

    /// What the script prints with a binary; what it says on standard error is for people.
    fn prints(&self, place: &Place<'_>, binary: &Binary) -> Result<String, Failure> {
        let half = place.half();
        let directory = self.directory.join(format!("{}-{}", half.name(), binary.name));
        cache::directory(&directory)?;
        if let Half::Unprivileged(user) = half {
            std::os::unix::fs::chown(&directory, Some(user.uid), Some(user.gid))
                .map_err(|source| cache::failure("give away", &directory, source))?;
        }
        let path = self.directory.join(format!("{}-{}.out", half.name(), binary.name));
        let out = File::create(&path).map_err(|source| cache::failure("make", &path, source))?;
        let mut command = place.program(Path::new("/usr/bin/timeout"));
        command.args(["--kill-after=1", "30", "/bin/bash", "-c", &self.row.script.join("\n")]);
        command.current_dir(&directory).env("PATH", binary.path());
        // A file, since a pipe would wait for whatever outlives the script.
        command.stdin(Stdio::null()).stdout(out).stderr(Stdio::null());
        command.status().map_err(|source| start(&command, source))?;
        let text = fs::read(&path).map_err(|source| cache::failure("read", &path, source))?;
        Ok(String::from_utf8_lossy(&text).trim_end_matches('\n').to_owned())
    }

    /// The binary behind a script that takes the option away.
    fn ignoring(&self, binary: &Binary, half: &str) -> Result<Binary, Failure> {
        let name = "ignoring".to_owned();
        let directory = self.directory.join(format!("{half}-bin"));
        cache::directory(&directory)?;
        let path = directory.join("bwrap");
        cache::write(&path, &ignoring(&self.row.option, self.row.arguments, &binary.file()))?;
        cache::allow(&path, 0o755)?;
        Ok(Binary { name, directory })
    }
}

fn ignoring(option: &str, arguments: usize, binary: &Path) -> String {
    let words = arguments + 1;
    format!(
        "#!/bin/bash\nwords=()\nwhile (($#)); do case $1 in\n  {option}) shift {words} ;;\n  \
         --) words+=(\"$@\"); break ;;\n  *) words+=(\"$1\"); shift ;;\nesac; done\n\
         exec '{}' \"${{words[@]}}\"\n",
        binary.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{lines_of, program};

    #[test]
    fn the_table_can_be_read_and_every_row_can_fail() {
        for row in read().unwrap() {
            let script = row.script.concat();
            assert!(script.contains(&row.option), "{}: not in its script", row.option);
            assert!(!row.prints.is_empty(), "{}: prints nothing", row.option);
        }
    }

    #[test]
    fn an_option_is_taken_away_with_its_words() {
        let script = ignoring("--uid", 1, Path::new("/bin/echo"));
        let words = ["-c", &script, "sh", "--a", "--uid", "7", "--b", "--", "--uid"];
        let lines = lines_of(program("/bin/bash").args(words)).unwrap();
        assert_eq!(lines, ["--a --b -- --uid"]);
    }
}
