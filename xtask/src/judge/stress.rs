//! The program `stress` on both hosts: stress-ng inside and a canary outside. What it does and how it
//! judges are its own affair.

use std::time::Duration;

use super::guest::Guest;
use super::{FINE, Found, NEEDS_CGROUP};
use crate::failure::Failure;
use crate::say;
use crate::watch::follow;

/// The program, of `tests/`.
pub(super) const PROGRAM: &str = "stress";

/// How long all rows of a host may take.
const DEADLINE: Duration = Duration::from_secs(60 * 60);

pub(super) fn run(guests: &[Guest<'_>], only: &[String]) -> Result<Vec<Found>, Failure> {
    let mut found = Vec::new();
    for guest in guests {
        let mut command = guest.place.command(PROGRAM);
        if let Some(level) = guest.level {
            command.args(["--level", level]);
        }
        let before = found.len();
        command.args(only);
        follow(command, DEADLINE, |line| {
            say(&format!("{:13} {line}", guest.half()));
            found.extend(row(guest.half(), line));
        })?;
        if found.len() == before {
            let evidence = "no row was tried".to_owned();
            let (half, row, verdict) = (guest.half(), "*".to_owned(), "not-run".to_owned());
            found.push(Found { half, row, verdict, evidence });
        }
    }
    Ok(found)
}

/// A line of the program's.
fn row(half: &'static str, line: &str) -> Option<Found> {
    let mut fields = line.strip_prefix("fact\t")?.splitn(3, '\t').map(str::to_owned);
    let (row, verdict, evidence) = (fields.next()?, fields.next()?, fields.next()?);
    let verdict = match &*verdict {
        "held" => FINE.to_owned(),
        "needs" => NEEDS_CGROUP.to_owned(),
        _ => verdict,
    };
    Some(Found { half, row, verdict, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_program_is_a_row_or_none() {
        let rows = [
            ("fact\tvm\theld\t1.1 times", Some(("vm", FINE))),
            ("fact\tvm\tneeds\t7.0 times", Some(("vm", NEEDS_CGROUP))),
            ("fact\tvm\tfailed\t7.0 times", Some(("vm", "failed"))),
            ("fact\tvm\theld", None),
            ("postern: warning: x", None),
        ];
        for (line, expected) in rows {
            let found = row("root", line);
            let found = found.as_ref().map(|found| (&*found.row, &*found.verdict));
            assert_eq!(found, expected, "{line}");
        }
    }
}
