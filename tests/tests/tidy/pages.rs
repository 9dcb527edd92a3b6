//! What the pages name must exist: paths, links, commands, records. Whether they are right is for
//! their readers.

use std::path::{Component, Path, PathBuf};

use super::none;
use super::packages::targets;
use super::tree::{File, file, files, root};

/// The pages that every reader looks for.
const PAGES: [&str; 5] =
    ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"];

/// The pages in which a path is a path of this repository.
const GUIDES: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

/// How the tests are run, by people and by CI.
const TEST_COMMAND: &str = "cargo xtask test";

const USAGE: &str = include_str!("../../../xtask/src/usage.txt");

/// The paths in a page's code spans: something with a slash that is no path of a guest.
fn named_paths(page: &str) -> Vec<&str> {
    let spans = page.split('`').skip(1).step_by(2);
    let is_path = |span: &&str| {
        let is_of_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        span.contains('/') && !span.starts_with(['/', '.']) && span.chars().all(is_of_path)
    };
    spans.filter(is_path).collect()
}

/// The targets of a page's links into the repository.
fn linked_paths(page: &str) -> Vec<&str> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split([')', ' ', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.contains(':')).collect()
}

/// The lines of a page's shell blocks.
fn commands(page: &str) -> Vec<&str> {
    let mut is_shell = false;
    let mut lines = Vec::new();
    for line in page.lines().map(str::trim) {
        if let Some(language) = line.strip_prefix("```") {
            is_shell = ["sh", "bash", "console"].contains(&language);
        } else if is_shell {
            lines.push(line.strip_prefix("$ ").unwrap_or(line));
        }
    }
    lines
}

/// Whether a command of ours can be given. Other people's commands are not judged.
fn exists(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["cargo", "xtask", task, ..] => USAGE.contains(&format!("cargo xtask {task}")),
        ["cargo", "run", rest @ ..] => named_target(rest),
        ["cargo", "install", "--path", path, ..] => root().join(path).is_dir(),
        ["postern", verb, ..] => verb.starts_with('-') || verbs().any(|own| own == *verb),
        _ => true,
    }
}

fn named_target(words: &[&str]) -> bool {
    let kinds = [("--example", "example"), ("--bin", "bin")];
    words.windows(2).all(|pair| {
        let kind = kinds.iter().find(|(flag, _)| *flag == pair[0]);
        kind.is_none_or(|(_, kind)| targets(kind).contains(&pair[1]))
    })
}

/// The variants of the command line's `Verb`, as they are typed.
fn verbs() -> impl Iterator<Item = String> {
    let text = file("cli/src/arguments/mod.rs").map_or("", |file| &file.text);
    let body = text.split_once("enum Verb {").map_or("", |(_, rest)| rest);
    let body = body.split_once("\n}").map_or("", |(body, _)| body);
    let names = body.lines().filter_map(|line| line.trim().split(['(', ' ', ',']).next());
    let names = names.filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()));
    names.map(str::to_lowercase)
}

/// A record's number, if its name is a record's.
fn record_number(name: &str) -> Option<u32> {
    let (number, words) = name.strip_suffix(".md")?.split_once('-')?;
    let is_plain = words.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    (number.len() == 4 && is_plain && !words.is_empty()).then(|| number.parse().ok())?
}

fn pages() -> impl Iterator<Item = &'static File> {
    files().iter().filter(|file| file.is("md"))
}

/// A path with its `..` taken away, as a reader follows it.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => plain.push(part),
        }
        plain
    })
}

#[test]
fn every_page_is_there() {
    let missing = PAGES.iter().filter(|page| file(page).is_none());
    none(&missing.map(|page| format!("{page} is missing")).collect::<Vec<_>>());
}

#[test]
fn every_path_of_the_guides_exists() {
    let mut faults = Vec::new();
    for name in GUIDES {
        let page = file(name).map_or("", |file| &file.text);
        let missing = named_paths(page).into_iter().filter(|path| !root().join(path).exists());
        faults.extend(missing.map(|path| format!("{name}: no {path}")));
    }
    none(&faults);
}

#[test]
fn every_link_leads_somewhere() {
    let mut faults = Vec::new();
    for page in pages() {
        let directory = page.path.parent().unwrap();
        for target in linked_paths(&page.text) {
            let path = root().join(plain(&directory.join(target)));
            faults
                .extend((!path.exists()).then(|| format!("{}: no {target}", page.path.display())));
        }
    }
    none(&faults);
}

#[test]
fn every_command_of_a_page_exists() {
    let mut faults = Vec::new();
    for page in pages() {
        let missing = commands(&page.text).into_iter().filter(|command| !exists(command));
        faults.extend(missing.map(|command| format!("{}: {command}", page.path.display())));
    }
    none(&faults);
}

#[test]
fn the_readme_and_ci_test_in_the_same_way() {
    let readme = file("README.md").map_or("", |file| &file.text);
    let script = file(".ci/run").map_or("", |file| &file.text);
    assert!(commands(readme).contains(&TEST_COMMAND), "README.md: no {TEST_COMMAND}");
    assert!(script.lines().any(|line| line == TEST_COMMAND), ".ci/run: no {TEST_COMMAND}");
}

#[test]
fn the_changelog_has_a_place_for_the_next_change() {
    let page = file("CHANGELOG.md").map_or("", |file| &file.text);
    let is_place = |line: &str| ["## Unreleased", "## [Unreleased]"].contains(&line.trim());
    assert!(page.lines().any(is_place), "CHANGELOG.md: no section Unreleased");
}

#[test]
fn decisions_are_numbered_once() {
    let records = files().iter().filter(|file| file.path.starts_with("docs/decisions"));
    let mut numbers = Vec::new();
    let mut faults = Vec::new();
    for file in records {
        let name = file.path.file_name().unwrap().to_string_lossy();
        match record_number(&name) {
            Some(number) if !numbers.contains(&number) => numbers.push(number),
            Some(number) => faults.push(format!("{name}: {number} is taken")),
            None => faults.push(format!("{name}: not NNNN-words.md")),
        }
    }
    none(&faults);
}

#[test]
fn each_thing_a_page_names_is_read() {
    let page = "See `runtime/src/plan`, `/proc/self`, `a b/c` and `Plan`.";
    assert_eq!(named_paths(page), ["runtime/src/plan"]);
    let page = "[a](docs/a.md), [b](docs/b.md#part), [c](https://example.org/), [d](#here)";
    assert_eq!(linked_paths(page), ["docs/a.md", "docs/b.md"]);
    let page = "```sh\n$ cargo xtask test\nls\n```\n```toml\na = 1\n```\n";
    assert_eq!(commands(page), ["cargo xtask test", "ls"]);
    assert_eq!(plain(Path::new("docs/decisions/../a.md")), Path::new("docs/a.md"));
}

#[test]
fn each_command_exists_or_not() {
    let rows = [
        ("cargo xtask test --long", true),
        ("cargo xtask tset", false),
        ("cargo run --release --bin postern -- run", true),
        ("cargo run --example nowhere", false),
        ("cargo install --path cli", true),
        ("cargo install --path clii", false),
        ("postern run -- id", true),
        ("postern rnu -- id", false),
        ("postern --version", true),
        ("apt-get install gawk", true),
    ];
    for (command, answer) in rows {
        assert_eq!(exists(command), answer, "{command}");
    }
}

#[test]
fn each_record_name_is_read() {
    let rows = [
        ("0007-static-image.md", Some(7)),
        ("7-static-image.md", None),
        ("0007-.md", None),
        ("0007-Static.md", None),
        ("README.md", None),
    ];
    for (name, number) in rows {
        assert_eq!(record_number(name), number, "{name}");
    }
}
