//! The sandbox that is looked at and what `check` has said of this host; looks at nothing itself.

use postern::check::{Report, Status};
use postern::{Error, Sandbox};
use serde_json::Value;

/// What shows that a fact holds, or what was found instead.
pub(super) type Evidence = Result<String, String>;

/// How a fact stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// As on the best kernel.
    Held,
    /// Less than that, and the product says so itself.
    Reported,
    /// Nothing is launched, and the product says why.
    Refused,
    /// Less than that, and nobody says so.
    Failed,
}

impl Verdict {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Reported => "reported",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// Facts that may not hold, and the findings that have to say so then.
const SAID_BY: [(&str, &str); 2] = [("nproc-per-sandbox", "rlimit-nproc"), ("cgroup", "memory")];

#[derive(Debug)]
pub(super) struct World {
    pub(super) sandbox: Sandbox,
    pub(super) report: Report,
}

impl World {
    /// The verdict over a fact that does not hold.
    pub(super) fn unless_reported(&self, fact: &str, evidence: String) -> (Verdict, String) {
        let said_by = SAID_BY.iter().find(|(name, _)| *name == fact).map(|(_, finding)| *finding);
        let finding =
            self.report.findings.iter().find(|found| Some(found.name.as_str()) == said_by);
        match finding {
            Some(found) if matches!(found.status, Status::Weaker | Status::NotUsed) => (
                Verdict::Reported,
                format!("{evidence}; check says of {}: {}", found.name, found.detail),
            ),
            Some(_) | None => (Verdict::Failed, evidence),
        }
    }
}

/// Asks the probe, which is in the workspace.
pub(super) fn ask(sandbox: &Sandbox, question: &[&str]) -> Result<Value, String> {
    let words = |error: Error| error.to_string();
    let result = sandbox.run(postern_tests::command(question)).map_err(words)?;
    serde_json::from_slice(&result.stdout).map_err(|error| {
        format!("{question:?}: {:?}: {error}: {}", result.ending, result.stderr_text())
    })
}
