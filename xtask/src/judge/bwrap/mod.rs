//! Whether something called `bwrap` is one: what Debian's newest bubblewrap does is right, and the
//! same tests, command lines and views are held against both. It knows nothing of how ours is made.

mod corpus;
mod line;
mod options;
mod python;
mod random;
mod reference;
mod suite;
mod tap;
mod verdicts;
mod view;
mod world;

use std::path::Path;

use super::Found;
use crate::cache::Cache;
use crate::failure::Failure;
use crate::half::Place;
use crate::install;
use crate::scratch::Scratch;
use reference::Binaries;

/// Programs that the tests run, and their packages.
pub(super) const PROGRAMS: [(&str, &str); 6] = [
    ("bwrap", "bubblewrap"),
    ("capsh", "libcap2-bin"),
    ("findmnt", "util-linux"),
    ("hostname", "hostname"),
    ("patchelf", "patchelf"),
    ("strace", "strace"),
];

/// The same, where no program tells. gRPC is for guests of the system's Python; without `tap` all of
/// `test-seccomp.py` is one test.
const PACKAGES: [&str; 3] = ["python3-grpcio", "python3-seccomp", "python3-tap"];

/// One way to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Suite,
    Python,
    Corpus,
    Options,
    Random,
}

impl Part {
    const ALL: [Self; 5] = [Self::Suite, Self::Python, Self::Corpus, Self::Options, Self::Random];

    const fn name(self) -> &'static str {
        match self {
            Self::Suite => "suite",
            Self::Python => "python",
            Self::Corpus => "corpus",
            Self::Options => "options",
            Self::Random => "random",
        }
    }
}

/// What is known to come out otherwise with ours, with reasons.
pub(super) const KNOWN: &str = include_str!("../../../../tests/peers/known.json");

/// What is seen by guests: not in `/tmp`, which many cover.
const STAGE: &str = "/var/tmp";

/// What `only` names: parts, or options and lines of the corpus.
struct Asked<'a> {
    parts: Vec<Part>,
    rows: Vec<&'a String>,
}

impl<'a> Asked<'a> {
    /// # Errors
    /// A word that is neither.
    fn read(only: &'a [String]) -> Result<Self, Failure> {
        let (mut parts, mut rows) = (Vec::new(), Vec::new());
        for word in only {
            let named = Part::ALL.into_iter().find(|part| part.name() == word);
            let holder = if word.starts_with("--") { Part::Options } else { Part::Corpus };
            match named {
                Some(part) => parts.push(part),
                None if options::has(word)? || corpus::has(word)? => {
                    rows.push(word);
                    parts.push(holder);
                }
                None => {
                    let wanted = "no part of this judge, nor an option or a line of one";
                    return Err(Failure::Usage { argument: word.into(), wanted });
                }
            }
        }
        if parts.is_empty() {
            parts.extend(Part::ALL);
        }
        Ok(Self { parts, rows })
    }
}

/// Each part that is asked for, in its order.
pub(super) fn run(
    places: &[Place<'_>],
    cache: &Cache,
    judged: Option<&Path>,
    only: &[String],
) -> Result<Vec<Found>, Failure> {
    let Asked { parts, rows } = Asked::read(only)?;
    install::packages(&PACKAGES)?;
    let stage = Scratch::beneath(Path::new(STAGE))?;
    let binaries = Binaries::find(cache, &stage, judged)?;
    let mut found = Vec::new();
    for part in Part::ALL.into_iter().filter(|part| parts.contains(part)) {
        found.extend(match part {
            Part::Suite => suite::run(places, &binaries, cache, &stage),
            Part::Python => python::run(places, &binaries, cache, &stage),
            Part::Corpus => corpus::run(places, &binaries, &stage, &rows),
            Part::Options => options::run(places, &binaries, &stage, &rows),
            Part::Random => random::run(places, &binaries, &stage),
        }?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::List;

    #[test]
    fn each_word_names_what_is_asked_for() {
        let rows: [(&[&str], &[Part], usize); 4] = [
            (&[], &Part::ALL, 0),
            (&["suite", "random"], &[Part::Suite, Part::Random], 0),
            (&["--unshare-net"], &[Part::Options], 1),
            (&["codex, read-only"], &[Part::Corpus], 1),
        ];
        for (only, parts, count) in rows {
            let only: Vec<String> = only.iter().map(|word| (*word).to_owned()).collect();
            let asked = Asked::read(&only).unwrap();
            assert_eq!((&*asked.parts, asked.rows.len()), (parts, count), "{only:?}");
        }
        assert!(Asked::read(&["siute".to_owned()]).is_err());
    }

    #[test]
    fn the_list_can_be_read_and_is_of_parts() {
        List::read(KNOWN).unwrap();
        for line in KNOWN.lines().filter_map(|line| line.trim().strip_prefix("\"row\": \"bwrap ")) {
            assert!(Part::ALL.iter().any(|part| line.starts_with(part.name())), "{line}");
        }
    }
}
