//! Tables of questions and answers; the questions are asked in runs of one sandbox, one each.

use postern::Sandbox;
use serde_json::Value;

use crate::probe::ask;

/// A name, a question to the probe, the place in its answer (a JSON pointer), what must be there.
pub type Row<'a> = (&'a str, &'a [&'a str], &'a str, Value);

/// Asks every row and fails with all that are otherwise.
pub fn check(sandbox: &Sandbox, rows: &[Row<'_>]) {
    let different = differences(sandbox, rows);
    assert!(different.is_empty(), "{different:#?}");
}

/// The rows whose answers are otherwise, with what the answer was.
pub fn differences(sandbox: &Sandbox, rows: &[Row<'_>]) -> Vec<String> {
    let compared = rows.iter().filter_map(|(name, question, at, expected)| {
        let answer = ask(sandbox, question);
        let found = answer.pointer(at).cloned().unwrap_or(Value::Null);
        (found != *expected).then(|| format!("{name}: {found} and not {expected}"))
    });
    compared.collect()
}
