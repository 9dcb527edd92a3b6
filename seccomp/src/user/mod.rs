//! A user's own policy, in the JSON of the crate `seccompiler`; it goes beside a level's filter and
//! can only tighten, since the kernel takes the strictest answer of all filters.
//!
//! Read here and not by that crate, which cannot say which rule decided, knows fewer calls, and
//! drops a rule without conditions where another one names the same call.

use std::collections::BTreeSet;

use crate::action::{Action, Errno};
use crate::arch::Arch;
use crate::assemble::{Line, Table};
use crate::call::{Call, SKIPPED, X32_BIT};
use crate::condition::{Argument, Condition, Order, Test};
use crate::level::Level;
use crate::policies::GUARDS;
use crate::policy::Guard;
use crate::program::Program;

mod error;
mod json;

pub use error::UserPolicyError;

/// A policy that came as JSON, and its program.
///
/// Calls of another ABI are answered as by every level. Where the policy is a list of refused
/// calls, so are x32 calls and unreviewed numbers; a list of allowed calls has none of those.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserPolicy {
    arch: Arch,
    name: String,
    matched: Action,
    mismatched: Action,
    rules: Vec<UserRule>,
    program: Program,
}

/// One rule of a [`UserPolicy`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRule {
    /// The call by name.
    pub call: &'static str,
    /// All must hold; none means always.
    pub conditions: Vec<Condition>,
    /// What its author says about it.
    pub comment: Option<String>,
}

/// An answer, and what in a [`UserPolicy`] gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserVerdict<'p> {
    /// The answer.
    pub action: Action,
    /// What gave it.
    pub because: UserBecause<'p>,
}

/// What in a [`UserPolicy`] decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserBecause<'p> {
    /// Number -1, which is no call.
    Skipped,
    /// A guard, whatever the rules say.
    Guard(Guard),
    /// A rule, at this place of the list.
    Rule(usize, &'p UserRule),
    /// No rule: the mismatch action.
    NoRule,
}

impl UserPolicy {
    /// The longest text that is read, 1 MiB.
    pub const BYTES_MAX: usize = 1 << 20;

    /// Reads a policy and compiles it for `arch`.
    ///
    /// # Errors
    ///
    /// The first rule that it breaks; all but [`UserPolicyError::Loosens`], for which there is
    /// [`UserPolicy::check_tightens`].
    pub fn from_json(text: &str, arch: Arch) -> Result<Self, UserPolicyError> {
        if text.len() > Self::BYTES_MAX {
            return Err(UserPolicyError::Size { bytes: text.len() });
        }
        let json::Filters(filters) = serde_json::from_str(text)
            .map_err(|error| UserPolicyError::Syntax { message: error.to_string() })?;
        let [(name, filter)] = <[_; 1]>::try_from(filters).map_err(|filters| {
            UserPolicyError::Filters { names: filters.into_iter().map(|(name, _)| name).collect() }
        })?;
        let mismatched = action("mismatch_action", &filter.mismatch_action)?;
        let matched = action("match_action", &filter.match_action)?;
        match (mismatched == Action::Allow, matched == Action::Allow) {
            (true, true) => return Err(UserPolicyError::RefusesNothing),
            (false, false) => return Err(UserPolicyError::RefusesAll),
            (true, false) | (false, true) => {}
        }
        let rules = filter.rules.into_iter().enumerate();
        let rules: Vec<_> =
            rules.map(|(index, rule)| user_rule(arch, index, rule)).collect::<Result<_, _>>()?;
        unambiguous(&rules)?;
        let program = table(arch, matched, mismatched, &rules)
            .assemble()
            .map_err(UserPolicyError::Program)?;
        let policy = Self { arch, name, matched, mismatched, rules, program };
        policy.check_exec()?;
        Ok(policy)
    }

    /// Without `execve` nothing could be started.
    fn check_exec(&self) -> Result<(), UserPolicyError> {
        const SOME_ADDRESS: u64 = 0x7ffc_0000_1000;
        let number = self.arch.call_number("execve").unwrap_or(SKIPPED);
        let call = Call::native(self.arch, number, [SOME_ADDRESS; 6]);
        match self.evaluate(&call) == Action::Allow {
            true => Ok(()),
            false => Err(UserPolicyError::RefusesExec),
        }
    }

    /// Whether nothing is asked for that `level` refuses.
    ///
    /// The kernel would not give it anyhow: this is for the author of a list of allowed calls, who
    /// would look for the reason in vain. Calls that the level answers like a kernel without them
    /// may be in the list, so that callers fall back as they do without the policy.
    ///
    /// # Errors
    ///
    /// [`UserPolicyError::Loosens`] with all calls of the list that the level always refuses with
    /// `EPERM`.
    pub fn check_tightens(&self, level: Level) -> Result<(), UserPolicyError> {
        let Some(policy) = level.policy(self.arch) else { return Ok(()) };
        if self.matched != Action::Allow {
            return Ok(());
        }
        let is_refused = |call: &str| {
            let first = policy.rules().find(|rule| rule.call == call);
            first.is_some_and(|rule| {
                rule.conditions.is_empty() && rule.action == Action::Errno(Errno::EPERM)
            })
        };
        let calls = self.rules.iter().map(|rule| rule.call).filter(|call| is_refused(call));
        let calls: Vec<_> = calls.collect::<BTreeSet<_>>().into_iter().collect();
        match calls.is_empty() {
            true => Ok(()),
            false => Err(UserPolicyError::Loosens { level, calls }),
        }
    }

    /// The architecture it was compiled for.
    #[must_use]
    pub const fn arch(&self) -> Arch {
        self.arch
    }

    /// The name that the filter has in the text.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The answer to a call that a rule is about.
    #[must_use]
    pub const fn matched(&self) -> Action {
        self.matched
    }

    /// The answer to every other call.
    #[must_use]
    pub const fn mismatched(&self) -> Action {
        self.mismatched
    }

    /// The rules; one that holds is enough.
    #[must_use]
    pub fn rules(&self) -> &[UserRule] {
        &self.rules
    }

    /// The compiled policy.
    #[must_use]
    pub const fn program(&self) -> &Program {
        &self.program
    }

    /// What the policy answers to a call.
    #[must_use]
    pub fn evaluate(&self, call: &Call) -> Action {
        self.explain(call).action
    }

    /// What the policy answers to a call, and why.
    #[must_use]
    pub fn explain(&self, call: &Call) -> UserVerdict<'_> {
        let no_rule = UserVerdict { action: self.mismatched, because: UserBecause::NoRule };
        if call.arch != self.arch.audit() {
            let because = UserBecause::Guard(GUARDS.foreign_abi);
            return UserVerdict { action: GUARDS.foreign_abi.action, because };
        }
        if call.number == SKIPPED {
            return UserVerdict { action: Action::Allow, because: UserBecause::Skipped };
        }
        let name = match call.number & X32_BIT {
            0 => self.arch.call_name(call.number).ok_or(GUARDS.unreviewed),
            _ => Err(GUARDS.x32),
        };
        let name = match name {
            Ok(name) => name,
            Err(guard) if self.mismatched == Action::Allow => {
                let because = UserBecause::Guard(guard);
                return UserVerdict { action: guard.action, because };
            }
            Err(_) => return no_rule,
        };
        let mut rules = self.rules.iter().enumerate();
        let holds = |rule: &UserRule| rule.conditions.iter().all(|c| c.holds(&call.arguments));
        rules.find(|(_, rule)| rule.call == name && holds(rule)).map_or(no_rule, |(index, rule)| {
            UserVerdict { action: self.matched, because: UserBecause::Rule(index, rule) }
        })
    }
}

fn table(arch: Arch, matched: Action, mismatched: Action, rules: &[UserRule]) -> Table<'_> {
    // A list of allowed calls has no unreviewed ones.
    let is_list_of_refused = mismatched == Action::Allow;
    let or_mismatch = |guard: Guard| if is_list_of_refused { guard.action } else { mismatched };
    let lines = rules.iter().filter_map(|rule| {
        let number = arch.call_number(rule.call)?;
        Some(Line { number, conditions: &rule.conditions, action: matched })
    });
    Table {
        arch,
        foreign_abi: GUARDS.foreign_abi.action,
        x32: or_mismatch(GUARDS.x32),
        unreviewed: or_mismatch(GUARDS.unreviewed),
        otherwise: mismatched,
        lines: lines.collect(),
    }
}

/// An action by its word, or an error number.
fn action(field: &'static str, value: &serde_json::Value) -> Result<Action, UserPolicyError> {
    let word = match value.as_str() {
        Some("allow") => Some(Action::Allow),
        Some("trap") => Some(Action::Trap),
        Some("kill_thread") => Some(Action::KillThread),
        Some("kill_process") => Some(Action::KillProcess),
        Some(_) | None => errno(value),
    };
    word.ok_or_else(|| UserPolicyError::Action { field, found: value.to_string() })
}

/// `{"errno": 1}`; 0 is an answer without an error.
fn errno(value: &serde_json::Value) -> Option<Action> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    let number = u16::try_from(object.get("errno")?.as_u64()?).ok()?;
    match number {
        0 => Some(Action::Succeed),
        number => Errno::new(number).map(Action::Errno),
    }
}

fn user_rule(arch: Arch, index: usize, rule: json::Rule) -> Result<UserRule, UserPolicyError> {
    let Some((_, call)) = arch.calls().find(|(_, name)| *name == rule.syscall) else {
        let nearest = arch.nearest_calls(&rule.syscall);
        return Err(UserPolicyError::UnknownCall { index, call: rule.syscall, nearest });
    };
    if rule.args.as_ref().is_some_and(Vec::is_empty) {
        return Err(UserPolicyError::NoArguments { index, call });
    }
    let arguments = rule.args.unwrap_or_default();
    let conditions =
        arguments.iter().map(|argument| condition(index, call, argument)).collect::<Result<_, _>>();
    Ok(UserRule { call, conditions: conditions?, comment: rule.comment })
}

fn condition(
    index: usize,
    call: &'static str,
    wanted: &json::Argument,
) -> Result<Condition, UserPolicyError> {
    let argument = u8::try_from(wanted.index).ok().and_then(Argument::at);
    let argument =
        argument.ok_or(UserPolicyError::ArgumentIndex { index, call, argument: wanted.index })?;
    let test = match wanted.width {
        json::Width::Qword => full(wanted.op, wanted.val),
        json::Width::Dword => {
            let small = |value: u64| {
                let wide = UserPolicyError::ArgumentValue { index, call, value };
                u32::try_from(value).map_err(|_wide| wide)
            };
            low(wanted.op, small(wanted.val)?, small)?
        }
    };
    Ok(Condition { argument, test })
}

fn full(operator: json::Operator, value: u64) -> Test {
    match operator {
        json::Operator::Eq => Test::FullIs(value),
        json::Operator::Ne => Test::FullIsNot(value),
        json::Operator::Ge => Test::Full(Order::GreaterOrEqual, value),
        json::Operator::Gt => Test::Full(Order::Greater, value),
        json::Operator::Le => Test::Full(Order::LessOrEqual, value),
        json::Operator::Lt => Test::Full(Order::Less, value),
        // Bits of the value outside the mask do not count.
        json::Operator::MaskedEq(mask) => Test::FullMaskedIs { mask, value: value & mask },
    }
}

fn low<E>(
    operator: json::Operator,
    value: u32,
    small: impl Fn(u64) -> Result<u32, E>,
) -> Result<Test, E> {
    Ok(match operator {
        json::Operator::Eq => Test::Is(value),
        json::Operator::Ne => Test::IsNot(value),
        json::Operator::Ge => Test::Low(Order::GreaterOrEqual, value),
        json::Operator::Gt => Test::Low(Order::Greater, value),
        json::Operator::Le => Test::Low(Order::LessOrEqual, value),
        json::Operator::Lt => Test::Low(Order::Less, value),
        json::Operator::MaskedEq(mask) => {
            let mask = small(mask)?;
            Test::MaskedIs { mask, value: value & mask }
        }
    })
}

/// A rule without conditions leaves nothing for another one of the same call.
fn unambiguous(rules: &[UserRule]) -> Result<(), UserPolicyError> {
    let of = |call: &str| rules.iter().filter(move |rule| rule.call == call).count();
    let whole = rules.iter().filter(|rule| rule.conditions.is_empty());
    let mut several = whole.filter(|rule| of(rule.call) > 1);
    match several.next() {
        None => Ok(()),
        Some(rule) => Err(UserPolicyError::Ambiguous { call: rule.call }),
    }
}
