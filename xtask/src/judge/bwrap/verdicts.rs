//! Tests by name, with one binary against another. Which tests, and what they try, is not known here.

use std::collections::BTreeMap;
use std::fmt;

use super::tap::Verdict;
use crate::judge::{FINE, Found};

/// What came of one test with one binary.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) name: String,
    pub(super) verdict: Verdict,
    pub(super) why: String,
}

/// How many of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    ok: usize,
    not_ok: usize,
    skip: usize,
}

impl Count {
    pub(super) fn of(outcomes: &[Outcome]) -> Self {
        let count = |verdict| outcomes.iter().filter(|one| one.verdict == verdict).count();
        Self { ok: count(Verdict::Ok), not_ok: count(Verdict::NotOk), skip: count(Verdict::Skip) }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "ok {:>4}  not ok {:>3}  skipped {:>3}", self.ok, self.not_ok, self.skip)
    }
}

/// Tests of one name are told apart by their order.
fn by_name(outcomes: &[Outcome]) -> BTreeMap<(&str, usize), &Outcome> {
    let mut seen = BTreeMap::new();
    let number = |one: &Outcome| {
        let count = seen.entry(one.name.clone()).or_insert(0_usize);
        *count += 1;
        *count
    };
    let numbers: Vec<usize> = outcomes.iter().map(number).collect();
    outcomes.iter().zip(numbers).map(|(one, number)| ((&*one.name, number), one)).collect()
}

/// A test that skips itself where another binary is tried has met a fault of the binary: some do so
/// at any error.
pub(super) fn unskipped(right: &[Outcome], mut judged: Vec<Outcome>) -> Vec<Outcome> {
    let is_tried =
        |name: &str| right.iter().any(|one| one.name == name && one.verdict == Verdict::Ok);
    for one in judged.iter_mut().filter(|one| one.verdict == Verdict::Skip) {
        if is_tried(&one.name) {
            one.verdict = Verdict::NotOk;
        }
    }
    judged
}

/// What came of each test of `judged`; fine is what is as it is with `right`, unless that failed too:
/// then nothing was tried.
pub(super) fn compare(
    half: &'static str,
    part: &str,
    right: &[Outcome],
    judged: &[Outcome],
) -> Vec<Found> {
    let (right, judged) = (by_name(right), by_name(judged));
    let names = right.keys().chain(judged.keys().filter(|name| !right.contains_key(*name)));
    let found = names.map(|name| {
        let (verdict, evidence) = match (right.get(name), judged.get(name)) {
            (Some(right), Some(judged))
                if right.verdict == judged.verdict && right.verdict != Verdict::NotOk =>
            {
                (FINE, String::new())
            }
            (right, Some(judged)) => {
                let other = right.map_or("missing", |right| right.verdict.name());
                (judged.verdict.name(), format!("{other} with bubblewrap: {}", judged.why))
            }
            (right, None) => {
                let other = right.map_or("missing", |right| right.verdict.name());
                ("missing", format!("{other} with bubblewrap"))
            }
        };
        let row = format!("{part} {}", name.0);
        Found { half, row, verdict: verdict.to_owned(), evidence }
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(name: &str, verdict: Verdict) -> Outcome {
        Outcome { name: name.to_owned(), verdict, why: String::new() }
    }

    #[test]
    fn each_test_comes_out_as_with_the_right_one() {
        use Verdict::{NotOk, Ok, Skip};
        let rows = [
            (Some(Ok), Some(Ok), FINE),
            (Some(Skip), Some(Skip), FINE),
            (Some(Ok), Some(Skip), "skip"),
            (Some(Ok), Some(NotOk), "not ok"),
            (Some(NotOk), Some(NotOk), "not ok"),
            (Some(NotOk), Some(Ok), "ok"),
            (Some(Ok), None, "missing"),
            (None, Some(Ok), "ok"),
        ];
        for (right, judged, expected) in rows {
            let list = |verdict: Option<Verdict>| -> Vec<Outcome> {
                verdict.map(|verdict| outcome("a", verdict)).into_iter().collect()
            };
            let found = compare("root", "suite", &list(right), &list(judged));
            let verdicts: Vec<_> = found.iter().map(|one| &*one.verdict).collect();
            assert_eq!(verdicts, [expected], "{right:?} {judged:?}");
        }
    }

    #[test]
    fn a_skip_is_a_fault_where_the_test_can_be_run() {
        let right = [outcome("a", Verdict::Ok), outcome("b", Verdict::Skip)];
        let judged = vec![outcome("a", Verdict::Skip), outcome("b", Verdict::Skip)];
        let verdicts: Vec<_> = unskipped(&right, judged).iter().map(|one| one.verdict).collect();
        assert_eq!(verdicts, [Verdict::NotOk, Verdict::Skip]);
    }

    #[test]
    fn tests_of_one_name_are_each_compared() {
        let right = [outcome("a", Verdict::Ok), outcome("a", Verdict::Skip)];
        let judged = [outcome("a", Verdict::Ok)];
        let found = compare("root", "suite", &right, &judged);
        assert_eq!(found.iter().filter(|one| one.verdict == "missing").count(), 1);
        assert_eq!(Count::of(&right), Count { ok: 1, not_ok: 0, skip: 1 });
    }
}
