//! What a row is made of: an id, how bad its failure would be, questions to the probe with the
//! answers that hold, and for some a look from the host. It asks nothing itself.

use serde_json::Value;

use crate::stage::Stage;
use crate::verdict::Finding;

/// How bad it is when a row fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// The guest runs code on the host, or is out.
    Critical,
    /// It reads or changes what is the host's, or takes the host down for good.
    High,
    /// It slows the host for a while, leaks what is of use, or weakens a wall.
    Medium,
    /// It is untidy.
    Low,
}

impl Severity {
    pub(crate) const ALL: [Severity; 4] = [Self::Critical, Self::High, Self::Medium, Self::Low];

    pub(crate) const fn letter(self) -> &'static str {
        match self {
            Self::Critical => "C",
            Self::High => "H",
            Self::Medium => "M",
            Self::Low => "L",
        }
    }
}

/// The signal of a call that the filter kills for, as an errno is written in [`Expect::Refused`].
pub(crate) const KILLED: i32 = -libc::SIGSYS;

/// The answer that holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expect {
    /// The last refusal among the answers is one of these; a negative one is a signal.
    Refused(&'static [i32]),
    /// Every entry of the answer is refused with one of these.
    AllRefused(&'static [i32]),
    /// At this JSON pointer, this JSON.
    At(&'static str, &'static str),
    /// What this says.
    Meets(fn(&Value) -> Result<(), String>),
}

/// Where a question can be asked besides in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    /// Also by an unprivileged process of the host.
    Asked,
    /// Not there, where it would take what other programs need.
    Harmful,
}

/// One question and the answer that holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask {
    pub(crate) question: &'static str,
    pub(crate) expect: Expect,
    pub(crate) outside: Outside,
}

/// A question that an unprivileged process of the host is asked too.
pub(crate) const fn ask(question: &'static str, expect: Expect) -> Ask {
    Ask { question, expect, outside: Outside::Asked }
}

/// A question for inside alone.
pub(crate) const fn inside(question: &'static str, expect: Expect) -> Ask {
    Ask { question, expect, outside: Outside::Harmful }
}

/// What a host has to have for a row to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lacking {
    /// Nothing: a row that is not met has failed.
    Nothing,
    /// An id that is not the service's own.
    DistinctUid,
    /// A writable cgroup v2 hierarchy.
    CgroupV2,
}

/// A look from the host; a failure is what is wrong.
pub(crate) type Look = fn(&Stage) -> Result<Finding, String>;

/// A row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) id: &'static str,
    pub(crate) severity: Severity,
    /// What holds, in a few words.
    pub(crate) what: &'static str,
    pub(crate) asks: &'static [Ask],
    pub(crate) look: Option<Look>,
    /// What shows that the row can fail where an unprivileged process outside meets it too.
    pub(crate) shown: &'static str,
    /// Why an unprivileged process outside meets it, where nothing else shows a difference.
    pub(crate) fact: &'static str,
    pub(crate) lacking: Lacking,
}

/// A row of questions.
pub(crate) const fn guest(
    id: &'static str,
    severity: Severity,
    what: &'static str,
    asks: &'static [Ask],
) -> Row {
    let lacking = Lacking::Nothing;
    Row { id, severity, what, asks, look: None, shown: "", fact: "", lacking }
}

/// A row that the host looks at.
pub(crate) const fn host(
    id: &'static str,
    severity: Severity,
    what: &'static str,
    look: Look,
) -> Row {
    Row { look: Some(look), ..guest(id, severity, what, &[]) }
}

impl Row {
    /// The host looks too.
    pub(crate) const fn and(self, look: Look) -> Row {
        Row { look: Some(look), ..self }
    }

    /// Another proof than the answers outside.
    pub(crate) const fn shown(self, by: &'static str) -> Row {
        Row { shown: by, ..self }
    }

    /// The kernel fact that keeps an unprivileged process from it everywhere.
    pub(crate) const fn fact(self, fact: &'static str) -> Row {
        Row { fact, ..self }
    }

    /// What it needs of the host.
    pub(crate) const fn needs(self, lacking: Lacking) -> Row {
        Row { lacking, ..self }
    }
}
