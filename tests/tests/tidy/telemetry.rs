//! The page about telemetry and the code must agree: each span and event, its level, its fields. And
//! what a guest could repeat must have a rate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::none;
use super::tree::{file, files};

const PAGE: &str = "docs/telemetry.md";

/// Where events come from.
const SOURCES: [&str; 3] = ["runtime/src", "hatch/src", "cli/src"];

/// Told as often as it happens: each time the product broke its word.
const WITHOUT_RATE: [&str; 1] = ["sandbox.unconfined"];

/// A span or an event.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    level: String,
    fields: BTreeSet<String>,
}

type All = BTreeMap<String, Told>;

/// The arguments of a macro, as they stand between its parentheses.
fn arguments(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let (mut depth, mut is_text, mut before) = (0, false, ' ');
    for character in text.chars() {
        match character {
            '"' if before != '\\' => is_text = !is_text,
            '(' | '[' if !is_text => depth += 1,
            ')' | ']' if !is_text && depth == 0 => break,
            ')' | ']' if !is_text => depth -= 1,
            _ => {}
        }
        match character {
            ',' if !is_text && depth == 0 => all.push(String::new()),
            other => all.last_mut().unwrap().push(other),
        }
        before = character;
    }
    let trimmed = all.into_iter().map(|argument| argument.trim().to_owned());
    trimmed.filter(|argument| !argument.is_empty()).collect()
}

/// A quoted word without its quotes.
fn word(argument: &str) -> Option<&str> {
    argument.strip_prefix('"')?.strip_suffix('"')
}

/// One use of a macro, `LEVEL!(…` or `LEVEL_span!(…`: its name and what it tells.
fn told(call: &str) -> Result<(String, Told), String> {
    let (macro_name, rest) = call.split_once("!(").ok_or("no macro")?;
    let is_span = macro_name.ends_with("_span");
    let level = macro_name.trim_end_matches("_span").to_uppercase();
    let (mut name, mut target, mut fields) = (None, None, BTreeSet::new());
    for argument in arguments(rest) {
        match argument.split_once(": ") {
            Some(("name", value)) => name = word(value).map(str::to_owned),
            Some(("target", value)) => target = word(value).map(str::to_owned),
            Some(("parent", _)) => {}
            _ if argument.starts_with('"') => {
                name = name.or_else(|| word(&argument).filter(|_| is_span).map(str::to_owned));
            }
            _ => {
                let field = argument.split('=').next().unwrap_or_default();
                fields.insert(field.trim().trim_start_matches(['%', '?']).to_owned());
            }
        }
    }
    let name = name.ok_or_else(|| format!("without a name: {call:.60}"))?;
    if target.as_deref() != Some("postern") {
        return Err(format!("{name}: without the target"));
    }
    Ok((name, Told { level, fields }))
}

/// What one source tells.
fn in_source(text: &str, all: &mut All) -> Vec<String> {
    let mut faults = Vec::new();
    let of_macro = |rest: &&str| {
        rest.split_once("!(").is_some_and(|(name, _)| {
            name.chars().all(|c| c.is_ascii_lowercase() || c == '_') && name != "subscriber"
        })
    };
    for call in text.split("tracing::").skip(1).filter(of_macro) {
        match told(call) {
            Err(fault) => faults.push(fault),
            Ok((name, told)) => {
                if all.insert(name.clone(), told).is_some() {
                    faults.push(format!("{name}: told in two places"));
                }
            }
        }
    }
    faults
}

/// The rows of the page's tables of four columns.
fn on_page(page: &str) -> All {
    let mut all = All::new();
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, level, fields, _] = cells[..] else { continue };
        let words = |cell: &str| {
            cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<_>>()
        };
        let told = Told { level: level.to_owned(), fields: words(fields) };
        all.insert(name.trim_matches('`').to_owned(), told);
    }
    all
}

fn in_code() -> (All, Vec<String>) {
    let (mut all, mut faults) = (All::new(), Vec::new());
    let is_source = |path: &Path| SOURCES.iter().any(|source| path.starts_with(source));
    for source in files().iter().filter(|file| file.is("rs") && is_source(&file.path)) {
        faults.extend(in_source(&source.text, &mut all));
    }
    (all, faults)
}

/// Where two lists differ.
fn differences(code: &All, page: &All) -> Vec<String> {
    let names: BTreeSet<_> = code.keys().chain(page.keys()).collect();
    let differ = names.into_iter().filter(|name| code.get(*name) != page.get(*name));
    differ
        .map(|name| format!("{name}: {:?} on the page is {:?}", page.get(name), code.get(name)))
        .collect()
}

/// What is told loudly and without a rate.
fn loud(all: &All) -> Vec<String> {
    let is_loud = |told: &Told| {
        ["WARN", "ERROR"].contains(&&*told.level) && !told.fields.contains("unlogged")
    };
    let loud =
        all.iter().filter(|(name, told)| is_loud(told) && !WITHOUT_RATE.contains(&name.as_str()));
    loud.map(|(name, _)| format!("{name}: loud, and without a rate")).collect()
}

#[test]
fn the_page_about_telemetry_and_the_code_agree() {
    let (code, mut faults) = in_code();
    let page = file(PAGE).map_or("", |file| &file.text);
    assert!(code.len() > 15, "{code:#?}");
    faults.extend(differences(&code, &on_page(page)));
    none(&faults);
}

#[test]
fn what_is_loud_has_a_rate() {
    none(&loud(&in_code().0));
}

#[test]
fn each_fault_of_an_event_is_found() {
    let good = "tracing::warn!(name: \"a.b\", target: \"postern\", %x, y = f(1, \",\"), unlogged, \"m, {z}\")";
    let rows = [
        (good.to_owned(), 0, 0),
        (good.replace("name: \"a.b\", ", ""), 1, 0),
        (good.replace("target: \"postern\", ", ""), 1, 0),
        (format!("{good};{good}"), 1, 0),
        (good.replace("unlogged, ", ""), 0, 1),
    ];
    for (text, faults, without_rate) in rows {
        let mut all = All::new();
        assert_eq!(in_source(&text, &mut all).len(), faults, "{text}");
        assert_eq!(loud(&all).len(), without_rate, "{text}");
    }
    let mut code = All::new();
    in_source(good, &mut code);
    let row = "| `a.b` | WARN | `x`, `y`, `unlogged` | when |";
    let rows = [
        (row.to_owned(), 0),
        (row.replace("WARN", "INFO"), 1),
        (row.replace("`x`, ", ""), 1),
        (format!("{row}\n| `c` | INFO | | when |"), 1),
        (String::new(), 1),
    ];
    for (page, count) in rows {
        assert_eq!(differences(&code, &on_page(&page)).len(), count, "{page}");
    }
    let span = "tracing::debug_span!(target: \"postern\", \"run\", %run)";
    let mut spans = All::new();
    assert_eq!(in_source(span, &mut spans).len(), 0);
    assert!(spans.contains_key("run"));
}
