//! Lists of what is known not to be as elsewhere, each with its reason: what is not on the list is a
//! failure, and so is what is on it and no longer so.

use serde::Deserialize;

/// One entry. A pattern is a text in which a `*` at the end stands for anything.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    /// Where: a kernel, a level, or `*`.
    pub(crate) world: String,
    /// Which host: `root`, `unprivileged`, or `*`.
    pub(crate) half: String,
    /// What.
    pub(crate) row: String,
    /// What comes of it there.
    pub(crate) verdict: String,
    /// Why, in a sentence for people.
    pub(crate) why: String,
}

/// What came of something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Met<'a> {
    pub(crate) world: &'a str,
    pub(crate) half: &'a str,
    pub(crate) row: &'a str,
    pub(crate) verdict: &'a str,
}

impl Known {
    fn is_about(&self, met: Met<'_>) -> bool {
        fits(&self.world, met.world) && fits(&self.half, met.half) && fits(&self.row, met.row)
    }

    fn fits(&self, met: Met<'_>) -> bool {
        self.is_about(met) && self.verdict == met.verdict
    }
}

fn fits(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => text.starts_with(start),
        None => pattern == text,
    }
}

/// A list, and which of its entries have been met.
#[derive(Debug)]
pub(crate) struct List {
    entries: Vec<(Known, bool)>,
}

impl List {
    /// Reads one.
    ///
    /// # Errors
    /// What serde says of it.
    pub(crate) fn read(text: &str) -> Result<Self, serde_json::Error> {
        let entries: Vec<Known> = serde_json::from_str(text)?;
        Ok(Self { entries: entries.into_iter().map(|entry| (entry, false)).collect() })
    }

    /// The reason, if it is on the list.
    pub(crate) fn why(&mut self, met: Met<'_>) -> Option<&str> {
        let mut why = None;
        for (entry, is_met) in self.entries.iter_mut().filter(|(entry, _)| entry.fits(met)) {
            *is_met = true;
            why = why.or(Some(&*entry.why));
        }
        why
    }

    /// Lets entries be no longer so: the list is about something other than what was tried.
    pub(crate) fn keep_stale(&mut self) {
        self.entries.iter_mut().for_each(|(_, is_met)| *is_met = true);
    }

    /// Entries about something that was tried and came out otherwise each time.
    pub(crate) fn stale(&self, tried: &[Met<'_>]) -> Vec<String> {
        let unmet = self.entries.iter().filter(|(_, is_met)| !is_met).map(|(entry, _)| entry);
        let stale = unmet.filter(|entry| tried.iter().any(|met| entry.is_about(*met)));
        stale
            .map(|entry| {
                format!(
                    "{} {} {} is no longer {}",
                    entry.world, entry.half, entry.row, entry.verdict
                )
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met<'a>(world: &'a str, half: &'a str, row: &'a str, verdict: &'a str) -> Met<'a> {
        Met { world, half, row, verdict }
    }

    const LIST: &str = r#"[
        {"world": "5.10", "half": "*", "row": "facts launch", "verdict": "refused", "why": "old"},
        {"world": "*", "half": "root", "row": "test_os.*", "verdict": "failed", "why": "no mknod"}
    ]"#;

    #[test]
    fn each_row_is_known_or_not() {
        let rows = [
            (met("5.10", "root", "facts launch", "refused"), Some("old")),
            (met("5.10", "root", "facts launch", "failed"), None),
            (met("6.1", "root", "facts launch", "refused"), None),
            (met("6.1", "root", "test_os.A.test_b", "failed"), Some("no mknod")),
            (met("6.1", "unprivileged", "test_os.A.test_b", "failed"), None),
        ];
        for (row, why) in rows {
            assert_eq!(List::read(LIST).unwrap().why(row), why, "{row:?}");
        }
    }

    #[test]
    fn an_entry_that_is_no_longer_so_is_stale() {
        let mut list = List::read(LIST).unwrap();
        let tried = [met("5.10", "root", "facts launch", "held")];
        assert_eq!(list.stale(&tried).len(), 1, "tried, and otherwise");
        assert_eq!(list.stale(&[]).len(), 0, "not tried");
        list.why(met("5.10", "root", "facts launch", "refused"));
        assert_eq!(list.stale(&tried).len(), 0, "met");
    }

    #[test]
    fn an_unknown_key_is_refused() {
        assert!(List::read(r#"[{"kernel": "5.10"}]"#).is_err());
    }
}
