//! The tables of the guide against the policies: run with `UPDATE_GOLDEN=1` to write them anew.
#![expect(clippy::unwrap_used, reason = "a test's own helpers fail the test")]

use std::fmt::Write;
use std::path::PathBuf;

use postern_seccomp::{Arch, Level, Policy, Rule};

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/seccomp.md")
}

fn policy(level: Level) -> Policy {
    level.policy(Arch::X86_64).unwrap()
}

/// One row a rule.
fn table(rules: impl Iterator<Item = &'static Rule>) -> String {
    let mut table = "| Call | Where | Answer | Why |\n| --- | --- | --- | --- |\n".to_owned();
    for rule in rules {
        let conditions: Vec<_> = rule.conditions.iter().map(|test| format!("`{test}`")).collect();
        let place = if conditions.is_empty() { "always".to_owned() } else { conditions.join(", ") };
        writeln!(table, "| `{}` | {place} | {} | {} |", rule.call, rule.action, rule.reason)
            .unwrap();
    }
    table
}

fn guards() -> String {
    let mut table = "| Guard | Answer | Why |\n| --- | --- | --- |\n".to_owned();
    for guard in policy(Level::Default).guards() {
        writeln!(table, "| {} | {} | {} |", guard.name, guard.action, guard.reason).unwrap();
    }
    table
}

#[test]
fn the_tables_of_the_guide_are_the_policies() {
    let strict = policy(Level::Strict);
    let of_default: Vec<_> = policy(Level::Default).rules().collect();
    let own = strict.rules().filter(|rule| !of_default.contains(rule));
    let tables = [
        ("guards", guards()),
        ("default", table(policy(Level::Default).rules())),
        ("strict", table(own)),
        ("compat", table(policy(Level::Compat).rules())),
    ];
    let page = std::fs::read_to_string(path()).unwrap();
    let mut wanted = page.clone();
    for (name, table) in tables {
        let marks = [format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->\n")];
        let (before, rest) = wanted.split_once(&marks[0]).unwrap();
        let (_, after) = rest.split_once(&marks[1]).unwrap();
        wanted = format!("{before}{}{table}{}{after}", marks[0], marks[1]);
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path(), wanted).unwrap();
        return;
    }
    let different = page.lines().zip(wanted.lines()).find(|(old, new)| old != new);
    assert!(page == wanted, "run this test with UPDATE_GOLDEN=1: {different:?}");
}
