//! What was measured, as tables for people and as JSON for machines; measures nothing.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::measure::{Series, Spread};

/// One line of a table.
#[derive(Debug, Clone)]
struct Row {
    name: String,
    count: usize,
    value: Spread,
    ratio: Option<Spread>,
}

/// A promise about one number.
#[derive(Debug, Clone)]
struct Promise {
    what: &'static str,
    value: f64,
    must: f64,
    aim: f64,
}

/// Numbers from one figure, in one unit.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    title: String,
    unit: &'static str,
    rows: Vec<Row>,
    promises: Vec<Promise>,
    notes: Vec<String>,
}

impl Table {
    pub(crate) fn new(title: impl Into<String>, unit: &'static str) -> Self {
        let (rows, promises, notes) = (Vec::new(), Vec::new(), Vec::new());
        Self { title: title.into(), unit, rows, promises, notes }
    }

    /// Series in microseconds; the ratio is how many times the first one's time each takes off.
    pub(crate) fn of_series(title: impl Into<String>, series: &[Series]) -> Self {
        let mut table = Self::new(title, "us");
        for one in series {
            let ratio = series.first().map(|first| first.pairwise(one, |first, one| first / one));
            let (name, count, value) = (one.name.clone(), one.count(), one.spread());
            table.rows.push(Row { name, count, value, ratio });
        }
        table
    }

    /// A row that stands for itself.
    pub(crate) fn row(&mut self, name: impl Into<String>, count: usize, value: Spread) {
        self.rows.push(Row { name: name.into(), count, value, ratio: None });
    }

    /// A row of one measurement.
    pub(crate) fn single(&mut self, name: impl Into<String>, value: f64) {
        self.row(name, 1, Spread { p10: value, p50: value, p90: value });
    }

    /// A row with its ratio to another.
    pub(crate) fn row_with(&mut self, name: impl Into<String>, value: Spread, ratio: Spread) {
        self.rows.push(Row { name: name.into(), count: 1, value, ratio: Some(ratio) });
    }

    /// A bound that `value` must keep. Whether more or less is better follows from `aim`.
    pub(crate) fn promise(&mut self, what: &'static str, value: f64, must: f64, aim: f64) {
        self.promises.push(Promise { what, value, must, aim });
    }

    /// Something the reader must know.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    pub(crate) fn broken(&self) -> usize {
        self.promises.iter().filter(|promise| !promise.keeps(promise.must)).count()
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = format!("\n{} ({})\n", self.title, self.unit);
        let width = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or_default();
        if !self.rows.is_empty() {
            let head = ["n", "p10", "median", "p90", "ratio", "(p10-p90)"];
            let [n, p10, p50, p90, ratio, range] = head;
            line(
                &mut text,
                format_args!(
                    "{:width$} {n:>6} {p10:>10} {p50:>10} {p90:>10} {ratio:>8} {range}",
                    ""
                ),
            );
        }
        for Row { name, count, value: Spread { p10, p50, p90 }, ratio } in &self.rows {
            let ratio = ratio.map_or(String::new(), |Spread { p10, p50, p90 }| {
                format!(" {p50:>8.2} ({p10:.2}-{p90:.2})")
            });
            line(
                &mut text,
                format_args!("{name:width$} {count:>6} {p10:>10.1} {p50:>10.1} {p90:>10.1}{ratio}"),
            );
        }
        for promise in &self.promises {
            let Promise { what, value, must, aim } = promise;
            let verdict = promise.verdict();
            line(&mut text, format_args!("{verdict}: {what}: {value:.2}, must {must}, aim {aim}"));
        }
        for note in &self.notes {
            line(&mut text, format_args!("{note}"));
        }
        text
    }

    pub(crate) fn to_json(&self) -> Value {
        let spread = |s: &Spread| json!({ "p10": s.p10, "p50": s.p50, "p90": s.p90 });
        let rows = self.rows.iter().map(|row| {
            let ratio = row.ratio.as_ref().map(spread);
            json!({ "name": row.name, "n": row.count, "value": spread(&row.value), "ratio": ratio })
        });
        let promises = self.promises.iter().map(|promise| {
            let Promise { what, value, must, aim } = promise;
            json!({ "what": what, "value": value, "must": must, "aim": aim,
                "verdict": promise.verdict() })
        });
        json!({ "title": self.title, "unit": self.unit, "rows": rows.collect::<Vec<_>>(),
            "promises": promises.collect::<Vec<_>>(), "notes": self.notes })
    }
}

/// Writing to a string does not fail.
fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    writeln!(text, "  {arguments}").ok();
}

impl Promise {
    fn keeps(&self, bound: f64) -> bool {
        match self.aim >= self.must {
            true => self.value >= bound,
            false => self.value <= bound,
        }
    }

    fn verdict(&self) -> &'static str {
        match (self.keeps(self.must), self.keeps(self.aim)) {
            (_, true) => "AIM MET",
            (true, false) => "kept",
            (false, false) => "BROKEN",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_points_the_way_of_its_aim() {
        let rows = [
            (5.0, 10.0, 4.9, "BROKEN"),
            (5.0, 10.0, 5.0, "kept"),
            (5.0, 10.0, 10.0, "AIM MET"),
            (48.0, 24.0, 49.0, "BROKEN"),
            (48.0, 24.0, 25.0, "kept"),
            (48.0, 24.0, 24.0, "AIM MET"),
        ];
        for (must, aim, value, verdict) in rows {
            let promise = Promise { what: "", value, must, aim };
            assert_eq!(promise.verdict(), verdict, "{value} of {must}, {aim}");
        }
    }
}
