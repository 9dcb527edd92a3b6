//! A report for people: the answer, where the plot is, what was tried, how long it took. Words and
//! columns only.

use std::fmt::Write as _;

use crate::report::{Attempt, Report, Verdict};

/// Whether the text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// As it is.
    Plain,
    /// With the colours of a terminal.
    Coloured,
}

const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[1;31m";
const BOLD: &str = "\x1b[1m";
const RESET: &str = "\x1b[0m";

impl Paint {
    fn of(self, colour: &str, text: &str) -> String {
        match self {
            Paint::Plain => text.to_owned(),
            Paint::Coloured => format!("{colour}{text}{RESET}"),
        }
    }
}

/// How much of a guest's words is shown; the JSON has more.
const WORDS_MAX: usize = 32;

/// The text, which ends with a newline.
#[must_use]
pub fn show(report: &Report, paint: Paint) -> String {
    let mut text = String::new();
    answer(&mut text, report, paint);
    attempts(&mut text, &report.attempts, paint);
    ending(&mut text, report, paint);
    text
}

/// Nothing is there to fail when a string is written to.
macro_rules! line {
    ($text:expr, $($words:tt)*) => { writeln!($text, $($words)*).unwrap_or_default() };
}

fn answer(text: &mut String, report: &Report, paint: Paint) {
    let rows = report.answer.rows;
    line!(text, "An untrusted pandas script got {rows} rows through penguins.Penguins/Rows:\n");
    let head = format!(
        "  {:<10} {:>5} {:>12} {:>10} {:>16}",
        "species", "count", "mean mass, g", "deviation", "g per mm flipper"
    );
    line!(text, "{}", paint.of(BOLD, &head));
    for one in &report.answer.species {
        line!(
            text,
            "  {:<10} {:>5} {:>12.1} {:>10.1} {:>16.2}",
            crate::judge::harmless(&one.species),
            one.count,
            one.mean_body_mass_g,
            one.stdev_body_mass_g,
            one.grams_per_flipper_mm
        );
    }
    line!(text, "\n  plot: {}\n", report.plot.display());
}

fn attempts(text: &mut String, attempts: &[Attempt], paint: Paint) {
    line!(text, "Then it tried what it should not:\n");
    let guests: Vec<_> = attempts.iter().map(|one| short(&one.guest)).collect();
    let width = |words: &mut dyn Iterator<Item = usize>, head: usize| words.max().max(Some(head));
    let names = width(&mut attempts.iter().map(|one| one.name.chars().count()), 7).unwrap_or(0);
    let words = width(&mut guests.iter().map(|one| one.chars().count()), 5).unwrap_or(0);
    let hosts = width(&mut attempts.iter().map(|one| one.host.chars().count()), 4).unwrap_or(0);
    let head =
        format!("  {:<names$}  {:<words$}  {:<hosts$}  {}", "attempt", "guest", "host", "verdict");
    line!(text, "{}", paint.of(BOLD, &head));
    for (one, guest) in attempts.iter().zip(guests) {
        let verdict = verdict(one.verdict, paint);
        let (name, host) = (&one.name, &one.host);
        line!(text, "  {name:<names$}  {guest:<words$}  {host:<hosts$}  {verdict}");
    }
}

fn verdict(verdict: Verdict, paint: Paint) -> String {
    match verdict {
        Verdict::Held => paint.of(GREEN, "held"),
        Verdict::NotHeld => paint.of(RED, "NOT HELD"),
        Verdict::NotTried => paint.of(RED, "NOT TRIED"),
    }
}

/// Of a refusal, the code, which says enough in a column.
fn short(words: &str) -> String {
    let words = words.split(": ").next().unwrap_or(words);
    match words.chars().count() > WORDS_MAX {
        true => words.chars().take(WORDS_MAX - 3).chain("...".chars()).collect(),
        false => words.to_owned(),
    }
}

fn ending(text: &mut String, report: &Report, paint: Paint) {
    let held = report.attempts.iter().filter(|one| one.verdict == Verdict::Held).count();
    let all = report.attempts.len();
    let summary = match report.held {
        true => paint.of(GREEN, &format!("{held} of {all} held")),
        false => paint.of(RED, &format!("only {held} of {all} held")),
    };
    let uid = report.sandbox.kernel_uid;
    let whose = match report.sandbox.shared_uid {
        true => ", your own: an unprivileged host has no other",
        false => ", nobody else's",
    };
    line!(text, "\n{summary}. The guest ran as kernel uid {uid}{whose}.");
    let ms = report.ms;
    let prepared = match report.first_use {
        true => format!("first use {:.1} s, ", ms.prepare / 1e3),
        false => String::new(),
    };
    let (sandbox, guest, total) = (ms.sandbox, ms.guest / 1e3, ms.total / 1e3);
    line!(text, "{prepared}sandbox {sandbox:.0} ms, guest {guest:.1} s, all {total:.1} s");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Answer, Milliseconds, Species, Walls};

    fn report(verdict: Verdict) -> Report {
        let species = Species {
            species: "Adelie\x1b".to_owned(),
            count: 151,
            mean_body_mass_g: 3700.66,
            stdev_body_mass_g: 458.6,
            grams_per_flipper_mm: 32.83,
        };
        let attempt = |name: &str, guest: &str, verdict| Attempt {
            name: name.to_owned(),
            guest: guest.to_owned(),
            host: "nothing".to_owned(),
            verdict,
        };
        Report {
            held: verdict == Verdict::Held,
            answer: Answer { rows: 342, species: vec![species] },
            plot: "/out/plot.png".into(),
            result: "/out/result.json".into(),
            attempts: vec![
                attempt("fork", "EAGAIN after 250", Verdict::Held),
                attempt("call", "PERMISSION_DENIED: no", verdict),
            ],
            sandbox: Walls {
                kernel_uid: 1234,
                shared_uid: true,
                shared_groups: Vec::new(),
                seccomp: "compat".to_owned(),
            },
            first_use: true,
            ms: Milliseconds { prepare: 20_000.0, sandbox: 11.4, guest: 1900.0, total: 22_000.0 },
        }
    }

    const TEXT: &str = "\
An untrusted pandas script got 342 rows through penguins.Penguins/Rows:

  species    count mean mass, g  deviation g per mm flipper
  Adelie\\u{1b}   151       3700.7      458.6            32.83

  plot: /out/plot.png

Then it tried what it should not:

  attempt  guest              host     verdict
  fork     EAGAIN after 250   nothing  held
  call     PERMISSION_DENIED  nothing  held

2 of 2 held. The guest ran as kernel uid 1234, your own: an unprivileged host has no other.
first use 20.0 s, sandbox 11 ms, guest 1.9 s, all 22.0 s
";

    #[test]
    fn a_report_is_aligned_and_coloured_on_demand_only() {
        assert_eq!(show(&report(Verdict::Held), Paint::Plain), TEXT);
        let coloured = show(&report(Verdict::NotHeld), Paint::Coloured);
        assert!(coloured.contains("\x1b[1;31mNOT HELD\x1b[0m"), "{coloured}");
        let plain = show(&report(Verdict::NotTried), Paint::Plain);
        assert!(plain.contains("NOT TRIED\n\nonly 1 of 2 held.") && !plain.contains('\x1b'));
    }
}
