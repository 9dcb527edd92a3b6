//! From answers to a verdict of a closed list; it asks nothing and knows no row.

use std::fmt;

use serde_json::{Value, json};

use crate::table::{Ask, Expect, Lacking, Row};

/// What a row that does not hold for want of something needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Kernel ids other than the service's own: privileges, or subordinate ids.
    DistinctUid,
    /// A writable cgroup v2 hierarchy.
    CgroupV2,
    /// This Landlock ABI.
    LandlockAbi(u32),
    /// Something that postern does not offer yet, by its name.
    Later(&'static str),
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DistinctUid => f.write_str("distinct_uid"),
            Self::CgroupV2 => f.write_str("cgroup_v2"),
            Self::LandlockAbi(abi) => write!(f, "landlock_abi {abi}"),
            Self::Later(name) => write!(f, "later: {name}"),
        }
    }
}

/// What a look from the host came to, when nothing is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    Held(String),
    Vacuous(String),
    Needs(Need, String),
}

/// A look that found the row to hold.
pub(crate) fn held(evidence: impl Into<String>) -> Result<Finding, String> {
    Ok(Finding::Held(evidence.into()))
}

/// What became of a row, with its evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Held(String),
    Failed(String),
    Vacuous(String),
    Needs(Need, String),
}

impl Verdict {
    pub(crate) const NAMES: [&str; 4] = ["held", "failed", "vacuous", "needs"];

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Held(_) => "held",
            Self::Failed(_) => "failed",
            Self::Vacuous(_) => "vacuous",
            Self::Needs(..) => "needs",
        }
    }

    pub(crate) fn evidence(&self) -> String {
        match self {
            Self::Held(text) | Self::Failed(text) | Self::Vacuous(text) => text.clone(),
            Self::Needs(need, text) => format!("{need}: {text}"),
        }
    }
}

/// Why an answer is not the one that holds.
pub(crate) fn unmet(ask: &Ask, answer: &Value) -> Option<String> {
    let wrong = match ask.expect {
        Expect::Refused(errnos) => refused(answer, errnos).err(),
        Expect::AllRefused(errnos) => all_refused(answer, errnos).err(),
        Expect::At(at, text) => {
            let wanted: Value = serde_json::from_str(text).unwrap();
            let found = answer.pointer(at).cloned().unwrap_or(Value::Null);
            (found != wanted).then(|| format!("{found} and not {wanted}"))
        }
        Expect::Meets(meets) => meets(answer).err(),
    };
    wrong.map(|wrong| format!("`{}`: {wrong:.300}", ask.question))
}

/// The errno of an answer, or the signal that came instead as a negative number.
pub(crate) fn errno_of(answer: &Value) -> Option<i32> {
    let number = |name: &str| i32::try_from(answer.get(name)?.as_i64()?).ok();
    number("errno").or_else(|| number("signal").map(|signal| -signal))
}

fn refused(answer: &Value, errnos: &[i32]) -> Result<(), String> {
    let last = match answer {
        Value::Array(answers) => answers.iter().rev().find_map(errno_of),
        other => errno_of(other),
    };
    // What counts is the last call; one before it may be refused only where that ends it all.
    let went_on = matches!(answer, Value::Array(answers)
        if answers.last().is_some_and(|last| errno_of(last).is_none()));
    match last {
        Some(errno) if errnos.contains(&errno) && !went_on => Ok(()),
        Some(_) | None => Err(format!("{answer} and not refused with {}", names(errnos))),
    }
}

fn all_refused(answer: &Value, errnos: &[i32]) -> Result<(), String> {
    let entries = answer.as_object().ok_or_else(|| format!("{answer}"))?;
    let is_refused = |value: &&Value| errno_of(value).is_some_and(|errno| errnos.contains(&errno));
    let open: Vec<String> = entries
        .iter()
        .filter(|(_, value)| !is_refused(value))
        .map(|(name, value)| format!("{name} {value:.60}"))
        .collect();
    match open.is_empty() && !entries.is_empty() {
        true => Ok(()),
        false => Err(format!("{} and not {}", open.join(", "), names(errnos))),
    }
}

fn names(errnos: &[i32]) -> String {
    let name = |errno: &i32| match *errno {
        signal @ ..0 => format!("signal {}", -signal),
        errno => std::io::Error::from_raw_os_error(errno).to_string(),
    };
    errnos.iter().map(name).collect::<Vec<_>>().join(" or ")
}

/// What is known of a row.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    /// By the order of the row's questions.
    pub(crate) inside: &'a [Value],
    /// Likewise; `None` where it was not asked.
    pub(crate) outside: &'a [Option<Value>],
    pub(crate) look: Option<Result<Finding, String>>,
    /// What this host lacks of what rows need.
    pub(crate) lacks: &'a [Lacking],
}

/// The verdict.
pub(crate) fn judge(row: &Row, seen: Seen<'_>) -> Verdict {
    let wrong: Vec<String> =
        row.asks.iter().zip(seen.inside).filter_map(|(a, v)| unmet(a, v)).collect();
    let looked = match seen.look {
        None => Ok(None),
        Some(Ok(finding)) => Ok(Some(finding)),
        Some(Err(reason)) => Err(reason),
    };
    let wrong = match &looked {
        Err(reason) => wrong.into_iter().chain([reason.clone()]).collect::<Vec<_>>(),
        Ok(_) => wrong,
    };
    if !wrong.is_empty() {
        let wrong = wrong.join("; ");
        return match seen.lacks.contains(&row.lacking) {
            true => Verdict::Needs(need(row.lacking), wrong),
            false => Verdict::Failed(wrong),
        };
    }
    match looked.unwrap_or(None) {
        Some(Finding::Held(evidence)) => return Verdict::Held(evidence),
        Some(Finding::Vacuous(fact)) => return Verdict::Vacuous(fact),
        Some(Finding::Needs(need, evidence)) => return Verdict::Needs(need, evidence),
        None => {}
    }
    without_a_look(row, seen.outside)
}

fn need(lacking: Lacking) -> Need {
    match lacking {
        Lacking::DistinctUid => Need::DistinctUid,
        Lacking::CgroupV2 => Need::CgroupV2,
        Lacking::Nothing => Need::Later("nothing"),
    }
}

/// All questions are met: by the sandbox, or by any host.
fn without_a_look(row: &Row, outside: &[Option<Value>]) -> Verdict {
    let asked: Vec<_> =
        row.asks.iter().zip(outside).filter_map(|(a, v)| Some((a, v.as_ref()?))).collect();
    let differs = asked.iter().find_map(|(ask, answer)| unmet(ask, answer));
    match differs {
        Some(outside) => Verdict::Held(format!("outside {outside:.160}")),
        None if !row.shown.is_empty() => Verdict::Held(row.shown.to_owned()),
        None if asked.len() < row.asks.len() => {
            Verdict::Held("the bound itself is seen".to_owned())
        }
        None => Verdict::Vacuous(row.fact.to_owned()),
    }
}

/// A report's line as JSON.
pub(crate) fn as_json(row: &Row, verdict: &Verdict) -> Value {
    json!({
        "id": row.id,
        "severity": row.severity.letter(),
        "what": row.what,
        "verdict": verdict.name(),
        "evidence": verdict.evidence(),
    })
}
