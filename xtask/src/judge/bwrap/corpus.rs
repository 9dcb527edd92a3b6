//! Command lines as other programs make them, with bubblewrap and with what is judged: the probe must
//! see the same of each. The lines were written from the programs' documentation.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::line::Line;
use super::reference::{Binaries, Binary};
use super::view::{self, QUESTIONS, View};
use super::world::World;
use crate::failure::Failure;
use crate::half::Place;
use crate::judge::{FINE, Found};
use crate::say;
use crate::scratch::Scratch;

const CORPUS: &str = include_str!("../../../../tests/peers/corpus.json");

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Corpus {
    /// Files and, where a slash ends the path, directories.
    tree: Vec<String>,
    lines: Vec<Row>,
}

/// One command line without its command.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    /// Where the program is described; shown where a line is not the same.
    source: String,
    /// What is read from `{fd:args}`.
    #[serde(default)]
    args: Vec<String>,
    words: Vec<String>,
}

/// Whether there is a line of this name.
pub(super) fn has(name: &str) -> Result<bool, Failure> {
    Ok(read()?.lines.iter().any(|row| row.name == name))
}

fn read() -> Result<Corpus, Failure> {
    serde_json::from_str(CORPUS).map_err(|source| Failure::Known { source })
}

pub(super) fn run(
    places: &[Place<'_>],
    binaries: &Binaries,
    stage: &Scratch,
    only: &[&String],
) -> Result<Vec<Found>, Failure> {
    let Corpus { tree, lines } = read()?;
    let world = World::new(stage, tree)?;
    let mut found = Vec::new();
    let is_asked = |row: &&Row| only.is_empty() || only.iter().any(|one| **one == row.name);
    for place in places {
        let (mut same, mut fields, mut count) = (0_usize, 0_usize, 0_usize);
        for row in lines.iter().filter(is_asked) {
            let bench = Bench { row, place, world: &world };
            let (looked, differences) = bench.compare(binaries)?;
            same += usize::from(differences.is_empty());
            fields += looked;
            count += 1;
            found.extend(bench.found(differences));
        }
        let half = place.half().name();
        say(&format!("{half:12} corpus: {same} of {count} lines the same, {fields} fields"));
    }
    Ok(found)
}

struct Bench<'a> {
    row: &'a Row,
    place: &'a Place<'a>,
    world: &'a World,
}

/// A field and what stands in it with bubblewrap and with the other.
type Difference = (String, String);

impl Bench<'_> {
    /// How many fields were looked at, and which are not the same. A busy host may show one of them
    /// another mount than the other: what differs is looked at again.
    fn compare(&self, binaries: &Binaries) -> Result<(usize, Vec<Difference>), Failure> {
        let once = self.compare_once(binaries)?;
        if once.1.is_empty() { Ok(once) } else { self.compare_once(binaries) }
    }

    fn compare_once(&self, binaries: &Binaries) -> Result<(usize, Vec<Difference>), Failure> {
        let right = match self.view(&binaries.newest)? {
            Ok(view) => view,
            Err(words) => return Ok((0, vec![("bubblewrap refuses".to_owned(), words)])),
        };
        Ok(match self.view(&binaries.judged)? {
            Ok(judged) => (right.len(), differences(&right, &judged)),
            Err(words) => (0, vec![("refused".to_owned(), words)]),
        })
    }

    /// What the probe sees, or what was said instead.
    fn view(&self, binary: &Binary) -> Result<Result<View, String>, Failure> {
        self.world.renew(self.place)?;
        let mut words = self.row.words.clone();
        if !words.iter().any(|word| word == "{probe}") {
            words.extend(["--ro-bind", "{probe}", "{probe}"].map(str::to_owned));
        }
        words.extend(["--", "{probe}", "batch"].map(str::to_owned));
        let names = self.world.names(self.place);
        let line = Line::fill(&words, &self.row.args, &names, &self.world.directory())?;
        let ended = line.run(self.place, binary, QUESTIONS.join("\n").as_bytes())?;
        let said = format!("status {}: {:.300}", ended.status, ended.stderr.trim());
        Ok(match ended.status {
            0 => view::read(&ended.stdout).map_err(|error| format!("{error}: {said}")),
            _ => Err(said),
        })
    }

    fn found(&self, differences: Vec<Difference>) -> Vec<Found> {
        let half = self.place.half().name();
        let row = |field: &str| format!("corpus {field}: {}", self.row.name);
        let differs = |(field, evidence): Difference| {
            let verdict = "otherwise".to_owned();
            let evidence = format!("{evidence} ({})", self.row.source);
            Found { half, row: row(&field), verdict, evidence }
        };
        match differences.is_empty() {
            true => {
                let verdict = FINE.to_owned();
                vec![Found { half, row: row("whole"), verdict, evidence: String::new() }]
            }
            false => differences.into_iter().map(differs).collect(),
        }
    }
}

fn differences(right: &View, judged: &View) -> Vec<Difference> {
    let names: BTreeSet<&String> = right.keys().chain(judged.keys()).collect();
    let differ = names.into_iter().filter(|name| right.get(*name) != judged.get(*name));
    let shown = |view: &View, name: &String| {
        view.get(name).map_or_else(|| "nothing".to_owned(), |value| format!("{value:?}"))
    };
    let words =
        |name: &String| format!("{} with bubblewrap, {}", shown(right, name), shown(judged, name));
    differ.map(|name| (name.clone(), words(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_can_be_read_and_each_line_has_a_name_and_a_source() {
        let Corpus { lines, .. } = read().unwrap();
        let names: BTreeSet<&String> = lines.iter().map(|row| &row.name).collect();
        assert_eq!(names.len(), lines.len());
        assert!(lines.len() >= 30, "{}", lines.len());
        assert!(lines.iter().all(|row| row.source.starts_with("https://")));
        let has_args = |row: &Row| row.words.contains(&"{fd:args}".to_owned());
        assert!(lines.iter().all(|row| has_args(row) != row.args.is_empty()));
    }

    #[test]
    fn each_field_that_differs_is_told() {
        let view = |pairs: &[(&str, &str)]| -> View {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let right = view(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let judged = view(&[("a", "1"), ("b", "3"), ("d", "4")]);
        let fields: Vec<_> = differences(&right, &judged).into_iter().map(|one| one.0).collect();
        assert_eq!(fields, ["b", "c", "d"]);
    }
}
