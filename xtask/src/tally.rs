//! Counts what test executables print. It reads the result lines of the standard test harness and
//! the notes of tests that could not do their work; it judges neither.

/// The mark of a test that lacked something: `skipped: WHAT IS MISSING`, written straight to
/// standard error, past the harness's capture.
const SKIPPED: &str = "skipped: ";

/// Tests counted, in one executable or many.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// Tests marked `ignore`, and notes.
    pub(crate) skipped: u64,
    /// Result lines seen: an executable that prints none has not finished.
    pub(crate) results: u64,
    /// What was missing, in the tests' own words.
    pub(crate) notes: Vec<String>,
}

impl Tally {
    /// Takes account of one line of output.
    pub(crate) fn line(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.results += 1;
            self.passed += count(counts, "passed");
            self.failed += count(counts, "failed");
            self.skipped += count(counts, "ignored");
        } else if let Some((_, note)) = line.split_once(SKIPPED) {
            self.skip(note.trim_end());
        }
    }

    /// Something that was not done, and why.
    pub(crate) fn skip(&mut self, note: &str) {
        self.skipped += 1;
        self.notes.push(note.to_owned());
    }

    /// Adds another tally to this one.
    pub(crate) fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.results += other.results;
        self.notes.extend(other.notes);
    }
}

/// The number before a word in `ok. 3 passed; 0 failed; …`.
fn count(text: &str, word: &str) -> u64 {
    let words: Vec<&str> = text.split([' ', ';']).filter(|word| !word.is_empty()).collect();
    let pair = words.windows(2).find(|pair| pair.last() == Some(&word));
    pair.and_then(|pair| pair.first()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_counts_as_it_says() {
        let rows = [
            (
                "test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out",
                [12, 0, 3],
            ),
            ("test result: FAILED. 1 passed; 20 failed; 0 ignored; 0 measured", [1, 20, 0]),
            ("skipped: POSTERN_PEER_BLOB not set", [0, 0, 1]),
            ("test one_thread ... skipped: no bwrap", [0, 0, 1]),
            ("test a ... ok", [0, 0, 0]),
            ("running 7 tests", [0, 0, 0]),
        ];
        for (line, counts) in rows {
            let mut tally = Tally::default();
            tally.line(line);
            assert_eq!([tally.passed, tally.failed, tally.skipped], counts, "{line}");
        }
    }

    #[test]
    fn tallies_add_up() {
        let one = Tally { passed: 1, failed: 2, skipped: 3, results: 4, notes: vec!["a".into()] };
        let mut sum = one.clone();
        sum.add(one);
        let notes = vec!["a".into(), "a".into()];
        assert_eq!(sum, Tally { passed: 2, failed: 4, skipped: 6, results: 8, notes });
    }
}
