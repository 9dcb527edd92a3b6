//! What a guest said, as rows: who, what was tried, what came of it. Whether that was to be expected
//! is not decided here.

use crate::tally::Tally;

/// How a row stands, in the words of the program `facts` and of this file.
pub(crate) const HELD: &str = "held";
pub(crate) const REPORTED: &str = "reported";
const FAILED: &str = "failed";

/// One thing that was tried on one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) half: String,
    /// The executable and its row, such as `facts launch`.
    pub(crate) name: String,
    pub(crate) verdict: String,
    pub(crate) evidence: String,
}

/// Everything that one guest said.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) rows: Vec<Row>,
    /// What the guest calls itself.
    pub(crate) release: String,
    /// What went wrong besides: an executable that ended before its time, a guest that did.
    pub(crate) troubles: Vec<String>,
    /// What was not tried since nothing can be launched there.
    pub(crate) left_out: Vec<String>,
    done: bool,
    running: Option<Running>,
}

/// The executable whose lines these are.
#[derive(Debug)]
struct Running {
    half: String,
    name: String,
    tally: Tally,
    failed: u64,
    /// It prints facts, and no sum.
    is_facts: bool,
}

impl Outcome {
    /// Takes account of a line of the port.
    pub(crate) fn line(&mut self, line: &str) {
        let line = line.trim_end_matches('\r');
        match line.strip_prefix("@vm ") {
            Some(own) => self.own(own),
            None => self.of_an_executable(line),
        }
    }

    fn own(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["kernel", release] => self.release = (*release).to_owned(),
            ["begin", half, name] => {
                self.running = Some(Running {
                    half: (*half).to_owned(),
                    name: (*name).to_owned(),
                    tally: Tally::default(),
                    failed: 0,
                    is_facts: false,
                });
            }
            ["end", .., code] => self.end(code),
            ["left-out", half, name] => self.left_out.push(format!("{half} {name}")),
            ["done"] => self.done = true,
            _ => self.troubles.push(format!("the guest said: {line}")),
        }
    }

    fn of_an_executable(&mut self, line: &str) {
        let Some(running) = &mut self.running else { return };
        running.tally.line(line);
        running.is_facts |= fact(line).is_some();
        let result = fact(line).or_else(|| test(line));
        running.failed += u64::from(result.is_some_and(|(_, verdict, _)| verdict == FAILED));
        if let Some((name, verdict, evidence)) = result.or_else(|| escape(line)) {
            self.rows.push(Row {
                half: running.half.clone(),
                name: format!("{} {name}", running.name),
                verdict: verdict.to_owned(),
                evidence: evidence.to_owned(),
            });
        }
    }

    /// An executable has to account for each of its tests, and for its exit status.
    fn end(&mut self, code: &str) {
        let Some(running) = self.running.take() else { return };
        let Running { half, name, tally, failed, is_facts } = running;
        let is_whole = is_facts || tally.results > 0 && tally.failed == failed;
        let is_told = code == "0" || failed > 0 || is_facts && code == "3";
        if !is_whole || !is_told {
            let seen = format!("{failed} failures seen, {} counted", tally.failed);
            self.troubles.push(format!("{half} {name}: left with {code}; {seen}"));
        }
    }

    /// A guest that did not come to its end has not said everything.
    pub(crate) fn close(&mut self) {
        if let Some(running) = self.running.take() {
            self.troubles.push(format!("{} {}: did not end", running.half, running.name));
        }
        if !self.done {
            self.troubles.push("the guest did not come to its end".to_owned());
        }
    }
}

/// A line of the program `facts`.
fn fact(line: &str) -> Option<(&str, &str, &str)> {
    let mut fields = line.strip_prefix("fact\t")?.splitn(3, '\t');
    Some((fields.next()?, fields.next()?, fields.next()?))
}

/// A line of the standard test harness.
fn test(line: &str) -> Option<(&str, &str, &str)> {
    let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    match result {
        "ok" => Some((name, HELD, "")),
        "FAILED" => Some((name, FAILED, "")),
        _ => None,
    }
}

/// A line of the escape suite's table. What needs something that is not there, and what there is
/// nothing to hold against, says so.
fn escape(line: &str) -> Option<(&str, &str, &str)> {
    let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.splitn(5, " | ").collect();
    let [id, _, _, verdict, evidence] = cells[..] else { return None };
    let (section, number) = id.split_once('-')?;
    let is_id = section.len() == 1 && number.len() == 2 && number.parse::<u8>().is_ok();
    let verdict = match verdict {
        "held" => HELD,
        "needs" | "vacuous" => REPORTED,
        _ => FAILED,
    };
    is_id.then_some((id, verdict, evidence))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(lines: &[&str]) -> Outcome {
        let mut outcome = Outcome::default();
        lines.iter().for_each(|line| outcome.line(line));
        outcome.close();
        outcome
    }

    const BEGIN: &str = "@vm begin root promises";
    const RESULT: &str = "test result: FAILED. 1 passed; 1 failed; 0 ignored";

    #[test]
    fn each_guest_is_whole_or_has_a_trouble() {
        let fine = "test result: ok. 1 passed; 0 failed; 0 ignored";
        let rows: [(&[&str], Option<&str>); 8] = [
            (&[BEGIN, "test a ... ok", fine, "@vm end root promises 0", "@vm done"], None),
            (
                &[
                    BEGIN,
                    "test a ... ok",
                    "test b ... FAILED",
                    RESULT,
                    "@vm end root promises 101",
                    "@vm done",
                ],
                None,
            ),
            (
                &[
                    "@vm begin root facts",
                    "fact\tlaunch\trefused\tno",
                    "@vm end root facts 3",
                    "@vm done",
                ],
                None,
            ),
            (&[BEGIN, fine, "@vm end root promises 0"], Some("did not come to its end")),
            (&[BEGIN, "test a ... ok"], Some("promises: did not end")),
            (&[BEGIN, "@vm end root promises 101", "@vm done"], Some("left with 101")),
            (
                &[BEGIN, RESULT, "@vm end root promises 101", "@vm done"],
                Some("0 failures seen, 1 counted"),
            ),
            (&["@vm panic", "@vm done"], Some("the guest said: panic")),
        ];
        for (lines, words) in rows {
            let troubles = outcome(lines).troubles.join("; ");
            assert_eq!(troubles.is_empty(), words.is_none(), "{lines:?}: {troubles}");
            assert!(words.is_none_or(|words| troubles.contains(words)), "{lines:?}: {troubles}");
        }
    }

    #[test]
    fn each_row_has_its_place_and_verdict() {
        let outcome = outcome(&[
            "test before ... ok",
            "@vm begin unprivileged facts",
            "fact\tcheck.groups\treported\tkeeps 5001\r",
            "@vm end unprivileged facts 0",
            BEGIN,
            "test gate::a ... FAILED",
            "test gate::b ... ignored",
            "| id | | row | verdict | evidence |",
            "| B-03 | C | a \\| b | held | x |",
            "| M-21 | H | a | needs | cgroup_v2: b | c |",
            "| M-22 | H | a | vacuous | y |",
            "| M-23 | H | a | failed | z |",
            "| Landlock | `none` | 3 rows: B-03 C |",
        ]);
        let rows: Vec<_> =
            outcome.rows.iter().map(|row| (&*row.half, &*row.name, &*row.verdict)).collect();
        let expected = [
            ("unprivileged", "facts check.groups", "reported"),
            ("root", "promises gate::a", "failed"),
            ("root", "promises B-03", "held"),
            ("root", "promises M-21", "reported"),
            ("root", "promises M-22", "reported"),
            ("root", "promises M-23", "failed"),
        ];
        assert_eq!(rows, expected);
        assert_eq!(outcome.rows[3].evidence, "cgroup_v2: b | c");
        assert_eq!(outcome.rows[0].evidence, "keeps 5001");
    }
}
