//! Random command lines, the same each time: bubblewrap and what is judged must accept the same ones.
//! What they do with them is tried elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::line::{Ended, Line};
use super::reference::{Binaries, Binary};
use super::world::World;
use crate::failure::Failure;
use crate::half::Place;
use crate::judge::{FINE, Found};
use crate::say;
use crate::scratch::Scratch;

/// How many lines are run on each of two hosts, and how many are only read, on one.
const RUN: usize = 1500;
const READ: usize = 3000;

/// The most phrases in a line.
const PHRASES_MAX: u64 = 7;

/// Options with their words, as they are valid. What is in capitals is one of [`VALUES`]. Nothing that
/// a line can write to lies outside the tree, and so no source is `/`, nor `/dev`, but to be read.
const PHRASES: [&str; 78] = [
    "--add-seccomp-fd {fd:filter}",
    "--argv0 NAME",
    "--args {fd:args}",
    "--as-pid-1",
    "--assert-userns-disabled",
    "--bind RW DEST",
    "--bind-data {fd:data} DEST",
    "--bind-fd {fd:directory} DEST",
    "--bind-try RW DEST",
    "--block-fd {fd:data}",
    "--cap-add CAP",
    "--cap-drop CAP",
    "--chdir DEST",
    "--chmod OCTAL DEST",
    "--clearenv",
    "--dev DEST",
    "--dev-bind RW DEST",
    "--dev-bind-try RW DEST",
    "--die-with-parent",
    "--dir DEST",
    "--disable-userns --unshare-user",
    "--disable-userns",
    "--exec-label NAME",
    "--file {fd:data} DEST",
    "--file-label NAME",
    "--gid ID",
    "--gid ID --unshare-user",
    "--hostname NAME",
    "--hostname NAME --unshare-uts",
    "--info-fd {fd:info}",
    "--json-status-fd {fd:info}",
    "--level-prefix",
    "--lock-file DEST",
    "--mqueue DEST",
    "--mqueue DEST --unshare-ipc",
    "--new-session",
    "--not-a-security-boundary",
    "--overlay-src RO --overlay {tmp}/upper {tmp}/work DEST",
    "--overlay-src RO --overlay-src RO --ro-overlay DEST",
    "--overlay-src RO --tmp-overlay DEST",
    "--perms OCTAL --bind-data {fd:data} DEST",
    "--perms OCTAL --dir DEST",
    "--perms OCTAL --file {fd:data} DEST",
    "--perms OCTAL --ro-bind-data {fd:data} DEST",
    "--perms OCTAL --size BYTES --tmpfs DEST",
    "--perms OCTAL --tmpfs DEST",
    "--pidns {fd:null}",
    "--proc DEST",
    "--remount-ro DEST",
    "--remount-ro /",
    "--ro-bind RO DEST",
    "--ro-bind / DEST",
    "--ro-bind-data {fd:data} DEST",
    "--ro-bind-fd {fd:directory} DEST",
    "--ro-bind-try RO DEST",
    "--seccomp {fd:filter}",
    "--setenv NAME NAME",
    "--share-net",
    "--unshare-all --share-net",
    "--size BYTES --tmpfs DEST",
    "--symlink NAME DEST",
    "--symlink DEST DEST",
    "--sync-fd {fd:null}",
    "--tmpfs DEST",
    "--tmpfs /",
    "--uid ID",
    "--uid ID --unshare-user",
    "--unsetenv NAME",
    "--unshare-all",
    "--unshare-cgroup",
    "--unshare-cgroup-try",
    "--unshare-ipc",
    "--unshare-net",
    "--unshare-pid",
    "--unshare-user",
    "--unshare-user-try",
    "--unshare-uts",
    "--userns {fd:null}",
];

/// Options that are no part of a random line, or of few: the first two end one, the others would wait
/// for somebody or need two namespaces that fit.
const OTHERS: [&str; 4] = ["--help", "--version", "--userns-block-fd", "--userns2"];

/// What the names in capitals stand for.
const VALUES: [(&str, &[&str]); 8] = [
    ("RW", &["{project}", "{home}", "{project}/file", "{tree}/missing", "{home}/link"]),
    ("RO", &["/usr", "{project}", "{project}/file", "{tree}/missing", "{home}/link", "{home}"]),
    ("DEST", &["/a", "/a/b", "/a/b/c", "/b", "/file", "/tmp", "/usr", "relative", "/a/../b"]),
    ("NAME", &["a", "NAME", "/a", "longer-name", "a=b"]),
    ("OCTAL", &["0755", "700", "01777", "0"]),
    ("BYTES", &["4096", "1", "1048576"]),
    ("ID", &["0", "1000", "65534"]),
    ("CAP", &["ALL", "CAP_NET_RAW", "cap_chown", "CAP_SYS_ADMIN", "CAP_KILL"]),
];

/// What stands in the place of a word in lines that are only read.
const ODD: [&str; 18] = [
    "",
    "-1",
    "x",
    "0x1",
    "99999999999",
    "a=b",
    " 1",
    "+2",
    "--bind",
    "{fd:closed}",
    "0",
    "3.5",
    "1k",
    "CAP_FOO",
    "--",
    "08",
    "18446744073709551616",
    "--overlay-src",
];

/// Files for the lines.
const TREE: [&str; 8] = [
    "app/runtime/a/",
    "home/link/",
    "home/b",
    "project/file",
    "project/a/b/",
    "tmp/upper/",
    "tmp/work/",
    "run/",
];

/// The generator of Steele, Lea and Flood: each number depends on how many were drawn.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    fn one_of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        let count = u64::try_from(list.len()).unwrap_or(1);
        let index = usize::try_from(self.below(count)).unwrap_or(0);
        list.get(index).copied().unwrap_or_default()
    }

    /// Words of a valid line, without a command.
    fn valid(&mut self) -> Vec<String> {
        let phrases = self.below(PHRASES_MAX + 1);
        let words = (0..phrases).flat_map(|_| {
            let phrase = self.one_of(&PHRASES);
            phrase.split(' ').map(|word| self.value(word)).collect::<Vec<_>>()
        });
        words.collect()
    }

    fn value(&mut self, word: &str) -> String {
        let values = VALUES.iter().find(|(name, _)| *name == word);
        values.map_or(word, |(_, values)| self.one_of(values)).to_owned()
    }

    /// Words of a line, a few of which are others or missing.
    fn odd(&mut self) -> Vec<String> {
        let mut words = self.valid();
        for word in &mut words {
            if self.below(12) == 0 {
                self.one_of(&ODD).clone_into(word);
            }
        }
        if self.below(10) == 0 {
            words.pop();
        }
        words
    }
}

pub(super) fn run(
    places: &[Place<'_>],
    binaries: &Binaries,
    stage: &Scratch,
) -> Result<Vec<Found>, Failure> {
    let world = World::new(stage, TREE.map(str::to_owned).to_vec())?;
    let mut found = Vec::new();
    for (number, place) in (0_u64..).zip(places) {
        let bench = Bench { place, world: &world };
        if number == 0 {
            found.extend(grammar(place, &bench.help(&binaries.newest)?));
            let mut random = Random(17);
            let lines = (0..READ).map(|_| [random.odd(), vec!["--help".to_owned()]].concat());
            found.extend(bench.compare("read", lines, binaries)?);
        }
        let mut random = Random(number);
        let command = ["--ro-bind", "{probe}", "{probe}", "--", "{probe}", "argv"];
        let command = command.map(str::to_owned).to_vec();
        let lines = (0..RUN).map(|_| [random.valid(), command.clone()].concat());
        found.extend(bench.compare("run", lines, binaries)?);
    }
    Ok(found)
}

/// Options of bubblewrap's that no phrase has.
fn grammar(place: &Place<'_>, help: &str) -> Vec<Found> {
    let is_option = |word: &&str| word.starts_with("--");
    let texts = PHRASES.iter().chain(&OTHERS);
    let ours: BTreeSet<&str> = texts.flat_map(|text| text.split(' ').filter(is_option)).collect();
    let lines = help.lines().filter_map(|line| line.strip_prefix("    "));
    let theirs = lines.filter_map(|line| line.split(' ').next()).filter(is_option);
    let missing = theirs.filter(|option| !ours.contains(option));
    let found = missing.map(|option| Found {
        half: place.half().name(),
        row: format!("random phrases: {option}"),
        verdict: "missing".to_owned(),
        evidence: "bubblewrap has this option, and no line does".to_owned(),
    });
    found.collect()
}

struct Bench<'a> {
    place: &'a Place<'a>,
    world: &'a World,
}

impl Bench<'_> {
    fn help(&self, binary: &Binary) -> Result<String, Failure> {
        self.world.renew(self.place)?;
        let line = Line::fill(&["--help"], &[], &self.world.names(self.place), Path::new("/"))?;
        Ok(line.run(self.place, binary, b"")?.stdout)
    }

    /// Each kind of disagreement once, with how often it was met and the first such line.
    fn compare(
        &self,
        name: &str,
        lines: impl Iterator<Item = Vec<String>>,
        binaries: &Binaries,
    ) -> Result<Vec<Found>, Failure> {
        let half = self.place.half().name();
        let (mut count, mut accepted) = (0_usize, 0_usize);
        let mut kinds: BTreeMap<String, (usize, String)> = BTreeMap::new();
        let mut texts: BTreeMap<String, (usize, String)> = BTreeMap::new();
        for words in lines {
            let right = self.answer(&words, &binaries.newest)?;
            let judged = self.answer(&words, &binaries.judged)?;
            count += 1;
            accepted += usize::from(right == ACCEPTED);
            // Nothing is compared where both wait.
            if right != judged || right == HUNG {
                let is_text = right != ACCEPTED && judged != ACCEPTED && !judged.starts_with(HUNG);
                let list = if is_text { &mut texts } else { &mut kinds };
                let kind = list.entry(format!("{right} | {judged}")).or_default();
                kind.0 += 1;
                if kind.1.is_empty() {
                    kind.1 = words.join(" ");
                }
            }
        }
        let differ: usize = kinds.values().map(|kind| kind.0).sum();
        let worded: usize = texts.values().map(|kind| kind.0).sum();
        say(&format!(
            "{half:12} random: {count} lines to {name}, {accepted} accepted, {differ} otherwise, \
             {worded} refused in other words"
        ));
        let mut texts: Vec<_> = texts.into_iter().collect();
        texts.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        for (kind, (count, line)) in texts.iter().take(10) {
            say(&format!("    {count} times {kind}: {line:.200}"));
        }
        let found = kinds.into_iter().map(|(kind, (count, line))| Found {
            half,
            row: format!("random {kind}"),
            verdict: "otherwise".to_owned(),
            evidence: format!("{count} times, first: {line}"),
        });
        let mut found: Vec<_> = found.collect();
        if found.is_empty() {
            let row = format!("random lines to {name}");
            found.push(Found { half, row, verdict: FINE.to_owned(), evidence: String::new() });
        }
        Ok(found)
    }

    fn answer(&self, words: &[String], binary: &Binary) -> Result<String, Failure> {
        // A line that is only read changes nothing.
        if words.last().is_none_or(|word| word != "--help") {
            self.world.renew(self.place)?;
        }
        let args = ["--dir", "/a/d"].map(str::to_owned);
        let names = self.world.names(self.place);
        let line = Line::fill(words, &args, &names, &self.world.directory())?;
        let ended = line.run(self.place, binary, b"")?;
        let tree = names.fill("{tree}");
        Ok(answer(&ended).replace(&tree, "{tree}"))
    }
}

const ACCEPTED: &str = "accepted";
const HUNG: &str = "took too long";

/// In one line, the same for all numbers.
fn answer(ended: &Ended) -> String {
    const TIMED_OUT: [i32; 2] = [124, 137];
    if ended.status == 0 {
        return ACCEPTED.to_owned();
    }
    if TIMED_OUT.contains(&ended.status) {
        return HUNG.to_owned();
    }
    let mut lines = ended.stderr.lines().filter(|line| !line.contains("Only the last"));
    let line = lines.next().unwrap_or_default();
    let line = if line.starts_with("usage: ") { "usage" } else { line };
    let mut text = String::new();
    for letter in line.chars().take(160) {
        match letter.is_ascii_digit() {
            true if text.ends_with('N') => {}
            true => text.push('N'),
            false => text.push(letter),
        }
    }
    format!("{}: {text}", ended.status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_each_time_and_not_each_other() {
        let lines = |seed| {
            let mut random = Random(seed);
            (0..50).map(|_| random.valid()).collect::<Vec<_>>()
        };
        assert_eq!(lines(1), lines(1));
        assert_ne!(lines(1), lines(2));
        assert!(lines(1).iter().collect::<BTreeSet<_>>().len() > 40);
    }

    #[test]
    fn every_word_in_capitals_is_a_value() {
        let words = PHRASES.iter().flat_map(|phrase| phrase.split(' '));
        let names = words.filter(|word| word.chars().all(|c| c.is_ascii_uppercase()));
        let unknown = names.filter(|name| !VALUES.iter().any(|(other, _)| other == name));
        assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&str>::new());
    }

    #[test]
    fn each_end_is_an_answer() {
        let rows = [
            (0, "bwrap: warning", ACCEPTED),
            (137, "", HUNG),
            (1, "usage: bwrap x", "1: usage"),
            (1, "bwrap: Only the last --chdir\nbwrap: no fd 123", "1: bwrap: no fd N"),
        ];
        for (status, stderr, expected) in rows {
            let ended = Ended { status, stdout: String::new(), stderr: stderr.to_owned() };
            assert_eq!(answer(&ended), expected, "{stderr}");
        }
    }
}
