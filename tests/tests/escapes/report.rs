//! The table of verdicts as text, Markdown and JSON; it judges nothing.

use std::fmt::Write;
use std::path::Path;

use postern::plan::Tier;
use serde_json::{Value, json};

use crate::table::{Row, Severity};
use crate::verdict::{Verdict, as_json};

/// Where the table is written, as files named after the host, when this names a directory.
const OUT: &str = "POSTERN_ESCAPES_OUT";

/// A row and what became of it.
pub(crate) type Judged = (Row, Verdict);

/// What kind of host the table is of.
pub(crate) fn host_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Privileged => "root",
        Tier::MapWriter => "container-root",
        Tier::Subordinate => "subordinate",
        Tier::Unprivileged => "unprivileged",
    }
}

/// Rows by severity and verdict.
pub(crate) fn counts(judged: &[Judged]) -> String {
    let mut text = format!("| severity | {} | all |\n", Verdict::NAMES.join(" | "));
    text.push_str("| --- | ---: | ---: | ---: | ---: | ---: |\n");
    for severity in Severity::ALL {
        let of: Vec<_> = judged.iter().filter(|(row, _)| row.severity == severity).collect();
        let count = |name| of.iter().filter(|(_, verdict)| verdict.name() == name).count();
        let cells = Verdict::NAMES.map(|name| count(name).to_string()).join(" | ");
        writeln!(text, "| {} | {cells} | {} |", severity.letter(), of.len()).unwrap();
    }
    text
}

/// The whole table.
pub(crate) fn markdown(judged: &[Judged], host: &str) -> String {
    let mut text = format!("# Escape rows, {host} host\n\n{}\n", counts(judged));
    text.push_str("| id | | row | verdict | evidence |\n| --- | --- | --- | --- | --- |\n");
    for (row, verdict) in judged {
        let evidence = verdict.evidence().replace('|', "\\|").replace('\n', " ");
        let (id, severity, what) = (row.id, row.severity.letter(), row.what);
        writeln!(text, "| {id} | {severity} | {what} | {} | {evidence:.300} |", verdict.name())
            .unwrap();
    }
    text
}

/// Writes the table where it is asked for.
pub(crate) fn publish(judged: &[Judged], host: &str) {
    let Some(directory) = std::env::var_os(OUT) else { return };
    let rows: Vec<Value> = judged.iter().map(|(row, verdict)| as_json(row, verdict)).collect();
    let json = json!({ "host": host, "rows": rows });
    let file = |extension: &str| Path::new(&directory).join(format!("escapes-{host}.{extension}"));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(file("md"), markdown(judged, host)).unwrap();
    std::fs::write(file("json"), format!("{json:#}\n")).unwrap();
}

/// Writes another table there.
pub(crate) fn publish_text(name: &str, host: &str, text: &str) {
    let Some(directory) = std::env::var_os(OUT) else { return };
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(Path::new(&directory).join(format!("{name}-{host}.md")), text).unwrap();
}

/// Ids in a page, each with the verdicts that its chapter allows: what is promised is held, or there
/// is nothing to hold it against; what is not promised needs something.
pub(crate) fn ids_in(page: &str) -> Vec<(String, &'static [&'static str])> {
    const PROMISED: &[&str] = &["held", "vacuous", "needs"];
    const NOT_PROMISED: &[&str] = &["needs", "held", "vacuous"];
    const HELD: &[&str] = &["held", "vacuous"];
    let mut ids = Vec::new();
    let mut wanted = HELD;
    for line in page.lines() {
        if let Some(chapter) = line.strip_prefix("## ") {
            wanted = match chapter {
                "What depends on the host" => PROMISED,
                "What is not promised" => NOT_PROMISED,
                _ => HELD,
            };
        }
        let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        ids.extend(words.filter(|word| is_id(word)).map(|word| (word.to_owned(), wanted)));
    }
    ids
}

fn is_id(word: &str) -> bool {
    let bytes = word.as_bytes();
    matches!(bytes, [b'A'..=b'M', b'-', tens, ones] if tens.is_ascii_digit() && ones.is_ascii_digit())
}

#[test]
fn ids_are_found_with_their_chapter() {
    let page = "## A\nSee B-03, and (C-04).\n## What is not promised\nJ-06: SHA-256, C-123, Z-01\n";
    let found: Vec<(String, usize)> =
        ids_in(page).into_iter().map(|(id, wanted)| (id, wanted.len())).collect();
    let wanted = [("B-03", 2), ("C-04", 2), ("J-06", 3)].map(|(id, len)| (id.to_owned(), len));
    assert_eq!(found, wanted);
}
