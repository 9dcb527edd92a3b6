//! The front end beside bubblewraps: whole processes of the same arguments. Which is right is the
//! judge's affair.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::Setting;
use crate::measure::{Contender, Effort, Outcome, alternate, took};
use crate::remote::{Kind, Remote};
use crate::report::Table;
use crate::world::{World, complain, process};

/// Command lines of other programs, as the judge has them.
const CORPUS: &str = include_str!("../../../tests/peers/corpus.json");

/// Lines that need no descriptor and that Debian's oldest bubblewrap takes as well.
const LINES: [&str; 5] = [
    "sandbox-runtime",
    "nixpkgs buildFHSEnv",
    "an agent with one writable directory",
    "Arch wiki: a browser",
    "Portage-like phases",
];

/// File systems that the host of the last rows has besides.
const MOUNTS: usize = 500;

/// A line of the corpus, a line with few and with many binds, and a host with many mounts.
pub(crate) fn bwrap(setting: &Setting) -> Outcome<Vec<Table>> {
    let title = "bwrap's command line: whole processes of the same arguments";
    let mut table = Table::new(title, "us; ratio to ours");
    let binaries = binaries(setting);
    let Effort { rounds, batch } = setting.effort;
    let mut rows: Vec<(String, Vec<String>, Effort)> = Vec::new();
    for name in LINES {
        let line = line(name, &setting.world)?;
        rows.push((name.to_owned(), line, Effort { rounds, batch: batch.div_ceil(2) }));
    }
    for count in [5, 100, 1000] {
        let line = binds(&setting.world, count);
        // A bubblewrap that looks at all mounts for each bind takes seconds for the last one.
        let effort = Effort { rounds: rounds.div_ceil(2), batch: 500usize.div_ceil(count).min(10) };
        rows.push((format!("{count} binds"), line, effort));
    }
    for (name, line, effort) in &rows {
        let contend = |(who, binary): &(String, PathBuf)| {
            let (binary, who) = (binary.clone(), format!("{name}, {who}"));
            Contender::new(who, Duration::ZERO, move || run(&binary, line))
        };
        let mut contenders: Vec<_> = binaries.iter().map(contend).collect();
        take(&mut table, *effort, &mut contenders)?;
    }
    mounts(setting, &binaries, &mut table)?;
    Ok(vec![table])
}

/// Ours first.
fn binaries(setting: &Setting) -> Vec<(String, PathBuf)> {
    let named = |name: &str, path: &Option<PathBuf>| Some((name.to_owned(), path.clone()?));
    let bubblewraps = [Some(setting.bwrap.clone()), setting.newest.clone()];
    let bubblewraps = bubblewraps.into_iter().flatten().map(|path| (version(&path), path));
    named("ours", &setting.cli).into_iter().chain(bubblewraps).collect()
}

/// What it says it is.
fn version(binary: &Path) -> String {
    let said = process(binary).arg("--version").output().map(|output| output.stdout);
    String::from_utf8_lossy(&said.unwrap_or_default()).trim().to_owned()
}

fn take(table: &mut Table, effort: Effort, contenders: &mut [Contender<'_>]) -> Outcome<()> {
    let series = alternate(effort, contenders)?;
    if let Some((ours, others)) = series.split_first() {
        table.row(&ours.name, effort.rounds * effort.batch, ours.spread());
        for other in others {
            let ratio = other.pairwise(ours, |other, ours| other / ours);
            table.row_with(&other.name, other.spread(), ratio);
        }
    }
    Ok(())
}

/// Runs a line once by a binary that is told that it is bwrap; nothing but success is a sample.
pub(crate) fn run(binary: &Path, line: &[String]) -> Outcome<Duration> {
    let mut command = process(binary);
    command.arg0("bwrap").args(line).stdin(Stdio::null());
    took(|| {
        let output = command.output()?;
        if output.status.success() { Ok(()) } else { Err(complain(&output)) }
    })
}

/// A line of the corpus with the no-op at its end, its files made.
fn line(name: &str, world: &World) -> Outcome<Vec<String>> {
    let corpus: Value = serde_json::from_str(CORPUS)?;
    let tree = world.scratch("tree");
    let fill = |text: &str| {
        let named = ["app", "home", "project", "run", "tmp"].map(|name| (name, tree.join(name)));
        let put = |text: String, (name, path): &(&str, PathBuf)| {
            text.replace(&format!("{{{name}}}"), &path.to_string_lossy())
        };
        let uid = rustix::process::getuid().as_raw().to_string();
        named.iter().fold(text.to_owned(), put).replace("{uid}", &uid)
    };
    for entry in texts(&corpus["tree"]).filter(|entry| !entry.contains('{')) {
        let path = tree.join(entry);
        let directory = if entry.ends_with('/') { Some(&*path) } else { path.parent() };
        directory.map_or(Ok(()), fs::create_dir_all)?;
        if !entry.ends_with('/') {
            fs::write(&path, "")?;
        }
    }
    let lines = corpus["lines"].as_array().into_iter().flatten();
    let row = lines.into_iter().find(|row| row["name"] == name);
    let row = row.ok_or_else(|| format!("no line {name} in the corpus"))?;
    let words = texts(&row["words"]).map(fill).collect();
    Ok(ended(words, world))
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// A line with so many binds besides `/`.
fn binds(world: &World, count: usize) -> Vec<String> {
    let noop = world.noop().to_string_lossy().into_owned();
    let bind = |n| ["--ro-bind".to_owned(), noop.clone(), format!("/tmp/bind-{n}")];
    let words = ["--unshare-all", "--ro-bind", "/", "/", "--tmpfs", "/tmp"].map(str::to_owned);
    ended(words.into_iter().chain((0..count).flat_map(bind)).collect(), world)
}

fn ended(mut words: Vec<String>, world: &World) -> Vec<String> {
    let noop = world.noop().to_string_lossy().into_owned();
    words.extend(["--ro-bind".to_owned(), noop.clone(), noop.clone(), "--".to_owned(), noop]);
    words
}

/// The line that a host process of many mounts runs.
pub(crate) fn few_binds(world: &World) -> Vec<String> {
    binds(world, 5)
}

fn mounts(setting: &Setting, binaries: &[(String, PathBuf)], table: &mut Table) -> Outcome<()> {
    if !rustix::process::geteuid().is_root() {
        table.note(format!("SKIPPED: {MOUNTS} more host mounts, which only root can make"));
        return Ok(());
    }
    let start =
        |(_, binary): &(String, PathBuf)| Remote::start(&Kind::new(0, MOUNTS, "bwrap"), binary);
    let mut remotes = binaries.iter().map(start).collect::<Outcome<Vec<_>>>()?;
    let contend = |(remote, (who, _)): (_, &(String, PathBuf))| {
        Remote::contender(remote, format!("5 binds, {MOUNTS} more host mounts, {who}"))
    };
    let mut contenders: Vec<_> = remotes.iter_mut().zip(binaries).map(contend).collect();
    let Effort { rounds, batch } = setting.effort;
    take(table, Effort { rounds, batch: batch.div_ceil(2) }, &mut contenders)
}
