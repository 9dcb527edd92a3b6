//! The guide to profile files against the reader: its table of keys, its examples, its errors.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::schema::{Known, known};
use super::{SandboxProfile, sentence};
use crate::profile::file::keys::{KEYS, Key};

const BEGIN: &str = "<!-- keys: begin -->\n";
const END: &str = "<!-- keys: end -->\n";

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/profiles.md")
}

fn page() -> String {
    std::fs::read_to_string(path()).unwrap()
}

/// The default of a key as the guide has it.
fn default(key: &Key, known: &Known) -> String {
    match &known.default {
        Some(value) if value.as_object().is_some_and(|table| !table.is_empty()) => {
            "as its keys".to_owned()
        }
        Some(mode) if key.path.ends_with(".mode") => format!("`0o{:o}`", mode.as_u64().unwrap()),
        Some(value) => format!("`{}`", toml::Value::try_from(value).unwrap()),
        None if known.is_required => "must be set".to_owned(),
        None => "none".to_owned(),
    }
}

/// One row of the guide's table, and what its words mean.
fn row(key: &Key, known: &Known, choices: &[(String, String)]) -> String {
    let (path, expects, example) = (key.path, key.expects, key.example);
    let choices: String =
        choices.iter().map(|(word, means)| format!("<br>`\"{word}\"`: {means}")).collect();
    let (default, words) = (default(key, known), &known.words);
    format!("| `{path}` | {expects} | {default} | `{example}` | {words}{choices} |\n")
}

/// The whole table; words that keys share are explained at the first of them.
fn table() -> String {
    let (known, mut explained) = (known(), BTreeSet::new());
    let mut table = "| Key | Expects | Default | Example | Meaning |\n".to_owned();
    table.push_str("| --- | --- | --- | --- | --- |\n");
    for key in KEYS.iter().filter(|key| !key.path.ends_with("[]")) {
        let known = &known[key.path];
        let is_new = explained.insert(&known.choices);
        table.push_str(&row(key, known, if is_new { &known.choices } else { &[] }));
    }
    table
}

#[test]
fn the_table_of_the_guide_is_the_one_of_the_reader() {
    let (page, table) = (page(), table());
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (committed, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path(), format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    let different = committed.lines().zip(table.lines()).find(|(old, new)| old != new);
    assert!(committed == table, "run this test with UPDATE_GOLDEN=1: {different:?}");
}

/// The page's blocks in one language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let parts: Vec<_> = page.split("\n```").skip(1).step_by(2).collect();
    let blocks = parts.into_iter().filter_map(|block| block.split_once('\n'));
    blocks.filter(|(other, _)| *other == language).map(|(_, text)| text).collect()
}

#[test]
fn every_example_of_the_guide_is_a_profile() {
    let page = page();
    let (toml, json) = (blocks(&page, "toml"), blocks(&page, "json"));
    assert!(toml.len() > 2 && !json.is_empty(), "{toml:?} {json:?}");
    for text in toml {
        SandboxProfile::from_toml_str(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    }
    for text in json {
        SandboxProfile::from_json_str(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    }
}

/// In a block of errors, what is not indented is a text, and what is, the sentence it gets.
#[test]
fn every_error_of_the_guide_is_the_one_that_is_given() {
    let page = page();
    let [errors] = blocks(&page, "text")[..] else { panic!("one block of errors") };
    let (texts, sentences): (Vec<_>, Vec<_>) =
        errors.lines().filter(|line| !line.is_empty()).partition(|line| !line.starts_with(' '));
    assert!(texts.len() > 8 && texts.len() == sentences.len(), "{errors}");
    for (text, words) in texts.into_iter().zip(sentences) {
        assert_eq!(sentence(SandboxProfile::from_toml_str(text)), words.trim_start());
    }
}
