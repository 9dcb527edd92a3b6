//! A small host program that launches the default profile and prints what holds here, one fact a
//! line: name, verdict, evidence, with tabs between. What ought to hold is the reader's affair.
//!
//! Leaves with 0 when every fact was found out, and with 3 when nothing can be launched here.

mod rows;
mod world;

use std::io::Write;
use std::process::ExitCode;

use postern::check::{self, Finding, Report, Status};
use postern::{Sandbox, SandboxProfile};

use world::{Verdict, World};

/// Nothing can be launched: no test of the sandbox needs to be tried.
const REFUSED: u8 = 3;

fn main() -> ExitCode {
    let report = check::run(&SandboxProfile::default());
    match Sandbox::builder(SandboxProfile::default()).build() {
        Err(error) => {
            // What was not looked at says no more than the refusal.
            let seen = report.findings.iter().filter(|found| found.status != Status::Unknown);
            seen.for_each(finding);
            say("launch", Verdict::Refused, &format!("{}: {error}", cause(&report)));
            ExitCode::from(REFUSED)
        }
        Ok(sandbox) => {
            report.findings.iter().for_each(finding);
            postern_tests::install(&sandbox);
            say("launch", Verdict::Held, sandbox_words(&sandbox).as_str());
            rows(&World { sandbox, report });
            ExitCode::SUCCESS
        }
    }
}

fn finding(finding: &Finding) {
    let evidence = match &finding.why {
        Some(why) => format!("{}; {why}", finding.detail),
        None => finding.detail.clone(),
    };
    say(&format!("check.{}", finding.name), of(finding.status), &evidence);
}

fn rows(world: &World) {
    for (name, row) in rows::ALL {
        let (verdict, evidence) = match row(world) {
            Ok(evidence) => (Verdict::Held, evidence),
            Err(evidence) => world.unless_reported(name, evidence),
        };
        say(name, verdict, &evidence);
    }
}

/// Less than on the best host is no failure where it is said.
fn of(status: Status) -> Verdict {
    match status {
        Status::Enforced => Verdict::Held,
        Status::Weaker | Status::NotUsed => Verdict::Reported,
        Status::Failed | Status::Unknown | _ => Verdict::Failed,
    }
}

fn cause(report: &Report) -> String {
    let cause = report.failure.as_ref().and_then(|failure| failure.cause);
    cause.map_or_else(|| "no known cause".to_owned(), |cause| cause.to_string())
}

fn sandbox_words(sandbox: &Sandbox) -> String {
    match sandbox.run(["true"]) {
        Ok(result) => format!("{:?} by {:?}", result.ending, result.enforcement.launcher),
        Err(error) => error.to_string(),
    }
}

/// One fact. A closed standard output is no reason to stop.
fn say(name: &str, verdict: Verdict, evidence: &str) {
    let evidence = evidence.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = format!("fact\t{name}\t{}\t{evidence}\n", verdict.name());
    std::io::stdout().write_all(line.as_bytes()).ok();
}
