//! Reads the Test Anything Protocol, as far as bubblewrap's tests speak it. Whether a verdict is right
//! is its reader's affair.

/// What came of one test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Ok,
    NotOk,
    Skip,
}

impl Verdict {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotOk => "not ok",
            Self::Skip => "skip",
        }
    }
}

/// One test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) verdict: Verdict,
    pub(super) why: String,
}

/// The tests of one script.
#[derive(Debug, Default)]
pub(super) struct Tap {
    pub(super) cases: Vec<Case>,
    /// How many tests the script has, once it says so.
    plan: Option<usize>,
}

impl Tap {
    pub(super) fn line(&mut self, line: &str) {
        if let Some(why) = line.strip_prefix("# why: ") {
            if let Some(case) = self.cases.last_mut() {
                why.clone_into(&mut case.why);
            }
        } else if let Some(plan) = line.strip_prefix("1..") {
            self.plan = plan.split(' ').next().and_then(|count| count.parse().ok());
        } else if let Some(case) = read(line) {
            self.cases.push(case);
        }
    }

    /// Why the script is not whole: it tells of as many tests as it has.
    pub(super) fn trouble(&self) -> Option<String> {
        let count = self.cases.len();
        match self.plan {
            Some(plan) if plan == count && count > 0 => None,
            Some(plan) => Some(format!("{plan} tests, {count} told of")),
            None => Some(format!("it ended early, after {count} tests")),
        }
    }
}

/// `ok 3 - words # SKIP why` and its like; the number is no part of the name.
fn read(line: &str) -> Option<Case> {
    let (passed, rest) = match line.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok")?),
    };
    let rest = if rest.is_empty() { rest } else { rest.strip_prefix(' ')? };
    let words = rest.trim_start_matches(|c: char| c.is_ascii_digit() || " -".contains(c));
    let skip = words.to_ascii_lowercase().find("# skip");
    let (name, why) = match skip {
        Some(at) => {
            (words[..at].trim(), words[at + "# skip".len()..].trim_start_matches([' ', '-']))
        }
        None => (words.trim(), ""),
    };
    let verdict = match (passed, skip) {
        (false, _) => Verdict::NotOk,
        (true, Some(_)) => Verdict::Skip,
        (true, None) => Verdict::Ok,
    };
    // A test that says nothing but why it is skipped goes by that.
    let name = if name.is_empty() { why } else { name };
    Some(Case { name: name.to_owned(), verdict, why: why.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_case_or_nothing() {
        let rows = [
            ("ok 3 can run as pid 1", Some(("can run as pid 1", Verdict::Ok, ""))),
            ("ok - Test --pidns", Some(("Test --pidns", Verdict::Ok, ""))),
            ("not ok 4 - a_case", Some(("a_case", Verdict::NotOk, ""))),
            (
                "ok 1 # SKIP no FUSE support",
                Some(("no FUSE support", Verdict::Skip, "no FUSE support")),
            ),
            ("ok 2 - a_case # skip: none", Some(("a_case", Verdict::Skip, ": none"))),
            ("okay then", None),
            ("# ok 1", None),
            ("1..3", None),
        ];
        for (line, expected) in rows {
            let case = read(line);
            let found = case.as_ref().map(|case| (&*case.name, case.verdict, &*case.why));
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn a_script_that_breaks_off_is_in_trouble() {
        let rows = [
            ("ok 1 a\n1..1", None),
            ("1..1 # x\nok 1 a", None),
            ("ok 1 a", Some("it ended early, after 1 tests")),
            ("ok 1 a\n1..2", Some("2 tests, 1 told of")),
            ("1..0 # SKIP all", Some("0 tests, 0 told of")),
        ];
        for (text, expected) in rows {
            let mut tap = Tap::default();
            text.lines().for_each(|line| tap.line(line));
            assert_eq!(tap.trouble().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_reason_belongs_to_the_test_before_it() {
        let mut tap = Tap::default();
        "not ok 1 a\n# why: b\nok 2 c".lines().for_each(|line| tap.line(line));
        assert_eq!(tap.cases.first().map(|case| &*case.why), Some("b"));
        assert_eq!(tap.cases.last().map(|case| &*case.why), Some(""));
    }
}
