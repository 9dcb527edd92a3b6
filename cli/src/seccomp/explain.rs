//! `postern seccomp explain`: one call, the answer, the rule and its reason.

use std::fmt::Write as _;
use std::io;

use postern::seccomp::{
    Action, Arch, Because, Call, Level, Policy, UserBecause, UserPolicy, Verdict,
};
use serde::Serialize;

use super::symbols::number;
use super::{errno, json, listed, native, refused};
use crate::arguments::ExplainVerb;
use crate::failure::Failure;

/// What is said of one call.
#[derive(Debug, Serialize)]
struct Explanation {
    /// The name, where the number is a call's.
    call: Option<&'static str>,
    number: u32,
    arch: String,
    arguments: Vec<u64>,
    level: &'static str,
    /// What the kernel does, `depends` where only the arguments can tell.
    answer: String,
    errno: Option<u32>,
    /// What the level says, and the policy.
    level_says: Said,
    policy_says: Option<Said>,
    /// All rules of the level for the call, in their order.
    rules: Vec<Said>,
}

/// One filter's answer.
#[derive(Debug, Serialize)]
struct Said {
    answer: String,
    errno: Option<u32>,
    /// `rule`, `guard`, `no-rule`, `skipped` or `no-filter`.
    by: &'static str,
    /// The guard, or the place of the rule in a policy.
    name: Option<String>,
    conditions: Vec<String>,
    reason: Option<String>,
}

impl Said {
    fn plain(action: Action, by: &'static str) -> Said {
        let (name, reason, conditions) = (None, None, Vec::new());
        Said { answer: action.to_string(), errno: errno(action), by, name, conditions, reason }
    }
}

/// The answer, as text or JSON.
pub(super) fn explain(verb: &ExplainVerb) -> Result<String, Failure> {
    let arch = native()?;
    let policy = match &verb.policy {
        Some(path) => Some(crate::profile::policy_text(path)?),
        None => None,
    };
    let policy = policy.map(|text| UserPolicy::from_json(&text, arch)).transpose();
    let policy = policy.map_err(refused)?;
    if let Some(policy) = &policy {
        policy.check_tightens(verb.level).map_err(refused)?;
    }
    let number = call_number(arch, &verb.call)?;
    let arguments = arguments(&verb.arguments)?;
    let explanation = said(arch, verb.level, policy.as_ref(), number, &arguments);
    match verb.json {
        true => json(&explanation),
        false => text(&explanation).map_err(|error| Failure::Stream {
            what: "word the answer",
            source: io::Error::other(error),
        }),
    }
}

/// A call by its name, or any number.
fn call_number(arch: Arch, word: &str) -> Result<u32, Failure> {
    if let Some(number) = arch.call_number(word) {
        return Ok(number);
    }
    if let Some(found) = number(word).and_then(|number| u32::try_from(number).ok()) {
        return Ok(found);
    }
    let near = arch.nearest_calls(word);
    let hint = if near.is_empty() {
        format!("see `postern seccomp list`, or give its number; calls of {arch} are known")
    } else {
        format!("did you mean {}?", near.join(", "))
    };
    Err(Failure::Usage(format!("no system call {word:?}; {hint}")))
}

fn arguments(words: &[String]) -> Result<Vec<u64>, Failure> {
    let one = |word: &String| {
        number(word).ok_or_else(|| {
            Failure::Usage(format!(
                "{word:?} is no argument: write a number as in C (13, 0xd, 015), or names of \
                 constants such as AF_VSOCK or O_CREAT|O_WRONLY"
            ))
        })
    };
    words.iter().map(one).collect()
}

fn said(
    arch: Arch,
    level: Level,
    own: Option<&UserPolicy>,
    number: u32,
    arguments: &[u64],
) -> Explanation {
    let mut registers = [0; 6];
    registers.iter_mut().zip(arguments).for_each(|(register, argument)| *register = *argument);
    let call = Call::native(arch, number, registers);
    let policy = level.policy(arch);
    let verdict = policy.map(|policy| policy.explain(&call));
    let level_action = verdict.map_or(Action::Allow, |verdict| verdict.action);
    let own_verdict = own.map(|own| own.explain(&call));
    let action = own_verdict.map_or(level_action, |own| level_action.and_then(own.action));
    let name = arch.call_name(number);
    let rules = rules(policy.as_ref(), name);
    let depends = |conditional: bool| arguments.is_empty() && conditional;
    let is_conditional = rules.iter().any(|rule| !rule.conditions.is_empty())
        || own.is_some_and(|own| {
            let mut rules = own.rules().iter().filter(|rule| Some(rule.call) == name);
            rules.any(|rule| !rule.conditions.is_empty())
        });
    let is_open = depends(is_conditional);
    Explanation {
        call: name,
        number,
        arch: arch.to_string(),
        arguments: arguments.to_vec(),
        level: level.name(),
        answer: if is_open { "depends".to_owned() } else { action.to_string() },
        errno: errno(action).filter(|_| !is_open),
        level_says: verdict.map_or_else(|| Said::plain(Action::Allow, "no-filter"), by_level),
        policy_says: own.zip(own_verdict).map(|(own, verdict)| by_policy(own, verdict)),
        rules,
    }
}

fn rules(policy: Option<&Policy>, name: Option<&str>) -> Vec<Said> {
    let rules = policy.into_iter().flat_map(Policy::rules);
    let own = rules.filter(|rule| Some(rule.call) == name);
    let said =
        own.map(|rule| by_level(Verdict { action: rule.action, because: Because::Rule(rule) }));
    said.collect()
}

fn by_level(verdict: Verdict) -> Said {
    let plain = |by| Said::plain(verdict.action, by);
    match verdict.because {
        Because::Skipped => plain("skipped"),
        Because::NoRule => plain("no-rule"),
        Because::Guard(guard) => Said {
            name: Some(guard.name.to_owned()),
            reason: Some(guard.reason.to_owned()),
            ..plain("guard")
        },
        Because::Rule(rule) => Said {
            conditions: rule.conditions.iter().map(ToString::to_string).collect(),
            reason: Some(rule.reason.to_owned()),
            ..plain("rule")
        },
    }
}

fn by_policy(own: &UserPolicy, verdict: postern::seccomp::UserVerdict<'_>) -> Said {
    let plain = |by| Said::plain(verdict.action, by);
    match verdict.because {
        UserBecause::Skipped => plain("skipped"),
        UserBecause::NoRule => plain("no-rule"),
        UserBecause::Guard(guard) => Said {
            name: Some(guard.name.to_owned()),
            reason: Some(guard.reason.to_owned()),
            ..plain("guard")
        },
        UserBecause::Rule(index, rule) => Said {
            name: Some(format!("{}.filter[{index}]", own.name())),
            conditions: rule.conditions.iter().map(ToString::to_string).collect(),
            reason: rule.comment.clone(),
            ..plain("rule")
        },
    }
}

fn text(found: &Explanation) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let name = found.call.map_or_else(|| found.number.to_string(), str::to_owned);
    let arguments: Vec<_> = found.arguments.iter().map(|value| format!("{value:#x}")).collect();
    let number = found.number;
    writeln!(
        text,
        "{name}({}), number {number} on {}, level {}: {}",
        listed(&arguments),
        found.arch,
        found.level,
        found.answer
    )?;
    match found.answer.as_str() {
        "depends" => {
            for rule in &found.rules {
                line(&mut text, "", rule)?;
            }
            writeln!(text, "  otherwise allow")?;
        }
        _ => line(&mut text, "", &found.level_says)?,
    }
    if let Some(policy) = &found.policy_says {
        line(&mut text, "policy: ", policy)?;
    }
    Ok(text)
}

/// One filter's answer, what gave it, and why.
fn line(text: &mut String, who: &str, said: &Said) -> std::fmt::Result {
    let Said { answer, by, name, conditions, reason, .. } = said;
    let what = match (*by, conditions.is_empty()) {
        ("rule", true) => "always".to_owned(),
        ("rule", false) => format!("where {}", listed(conditions)),
        ("guard", _) => "a guard".to_owned(),
        ("no-filter", _) => "there is no filter".to_owned(),
        ("skipped", _) => "-1 is no call".to_owned(),
        _ => "no rule is about this".to_owned(),
    };
    let name = name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    writeln!(text, "  {who}{answer}, {what}{name}{reason}")
}
