//! The guests side by side: what holds where, what does not and why, and what nobody knew of.

use std::collections::BTreeMap;

use super::kernel::Kernel;
use super::outcome::{HELD, Outcome, REPORTED};
use crate::failure::Failure;
use crate::known::{List, Met};
use crate::say;

/// What is known not to hold, kernel by kernel.
const KNOWN: &str = include_str!("../../../tests/vm/known.json");

/// Shows the table, and wants every row to hold, to be reported by the product itself, or to be known.
pub(super) fn close(guests: &[(Kernel, Outcome)]) -> Result<(), Failure> {
    let mut known = List::read(KNOWN).map_err(|source| Failure::Known { source })?;
    let (lines, failures) = judge(guests, &mut known);
    say("");
    lines.iter().for_each(|line| say(line));
    failures.iter().for_each(|failure| say(&format!("failed: {failure}")));
    match u64::try_from(failures.len()) {
        Ok(0) => Ok(()),
        count => Err(Failure::Failed { count: count.unwrap_or(u64::MAX) }),
    }
}

/// The lines to show, and the failures among them.
fn judge(guests: &[(Kernel, Outcome)], known: &mut List) -> (Vec<String>, Vec<String>) {
    let mut failures = Vec::new();
    let mut lines = vec![format!(
        "{:8} {:13} {:12} {:>5} {:>8} {:>6} {:>6}",
        "kernel", "host", "executable", HELD, REPORTED, "known", "failed"
    )];
    let mut others = Vec::new();
    let mut tried = Vec::new();
    for (kernel, outcome) in guests {
        let mut counts: BTreeMap<(&str, &str), [u64; 4]> = BTreeMap::new();
        for row in &outcome.rows {
            let met =
                Met { world: kernel.name, half: &row.half, row: &row.name, verdict: &row.verdict };
            tried.push(met);
            let why = known.why(met);
            let column = match (&*row.verdict, why) {
                (HELD, None) => 0,
                (REPORTED, None) => 1,
                (_, Some(_)) => 2,
                (_, None) => 3,
            };
            let words = format!("{} {} {}: {}", kernel.name, row.half, row.name, row.verdict);
            match (column, why) {
                (0, _) => {}
                (3, _) => failures.push(format!("{words}: {}", row.evidence)),
                (_, why) => {
                    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
                    others.push(format!("{words}{why}: {}", row.evidence));
                }
            }
            let executable = row.name.split(' ').next().unwrap_or_default();
            let counted = counts.entry((&row.half, executable)).or_default();
            if let Some(count) = counted.get_mut(column) {
                *count += 1;
            }
        }
        for ((half, executable), [held, reported, known, failed]) in counts {
            lines.push(format!(
                "{:8} {half:13} {executable:12} {held:>5} {reported:>8} {known:>6} {failed:>6}",
                kernel.name
            ));
        }
        let left_out = outcome.left_out.iter();
        others.extend(
            left_out.map(|name| format!("{} {name}: not tried, nothing is launched", kernel.name)),
        );
        let troubles = outcome.troubles.iter();
        failures.extend(troubles.map(|trouble| format!("{}: {trouble}", kernel.name)));
    }
    failures.extend(known.stale(&tried));
    lines.push(String::new());
    lines.extend(others);
    (lines, failures)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(lines: &[&str]) -> Vec<(Kernel, Outcome)> {
        let mut outcome = Outcome::default();
        let all = ["@vm begin root facts"].into_iter().chain(lines.iter().copied());
        all.chain(["@vm end root facts 0", "@vm done"]).for_each(|line| outcome.line(line));
        outcome.close();
        vec![(Kernel::named("5.10").unwrap(), outcome)]
    }

    const ONE: &str = r#"[{"world": "5.10", "half": "*", "row": "facts launch",
        "verdict": "refused", "why": "old"}]"#;

    #[test]
    fn each_row_is_a_failure_or_not() {
        let rows: [(&[&str], &str, usize); 6] = [
            (&["fact\tlaunch\theld\tx"], "[]", 0),
            (&["fact\tlaunch\treported\tx"], "[]", 0),
            (&["fact\tlaunch\tfailed\tx"], "[]", 1),
            (&["fact\tlaunch\trefused\tx"], "[]", 1),
            (&["fact\tlaunch\trefused\tx"], ONE, 0),
            (&["fact\tlaunch\theld\tx"], ONE, 1),
        ];
        for (lines, list, count) in rows {
            let (_, failures) = judge(&guest(lines), &mut List::read(list).unwrap());
            assert_eq!(failures.len(), count, "{lines:?} {list}: {failures:?}");
        }
    }

    #[test]
    fn the_list_can_be_read() {
        List::read(KNOWN).unwrap();
    }
}
