//! A policy as data, and its verdicts read straight from that data, independent of the assembler.

use crate::action::Action;
use crate::arch::Arch;
use crate::assemble::{Line, Table};
use crate::call::{Call, SKIPPED, X32_BIT};
use crate::condition::Condition;
use crate::error::Error;
use crate::program::Program;

/// A line of a policy: one call, when, what is answered and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The call by name.
    pub call: &'static str,
    /// All must hold; none means always.
    pub conditions: &'static [Condition],
    /// The answer.
    pub action: Action,
    /// Why the rule exists, for people.
    pub reason: &'static str,
}

/// An answer that does not depend on the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    /// A short name.
    pub name: &'static str,
    /// The answer.
    pub action: Action,
    /// Why the guard exists, for people.
    pub reason: &'static str,
}

/// What is answered before the rules are looked at, in this order.
///
/// Between the first and the second, number -1 is let through: a tracer sets it to skip a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guards {
    /// Calls that came through another architecture's ABI.
    pub foreign_abi: Guard,
    /// Native calls with the x32 bit in their number.
    pub x32: Guard,
    /// Numbers outside the reviewed table: above its end or in one of its holes.
    pub unreviewed: Guard,
}

/// An answer, and what in a [`Policy`] gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The answer.
    pub action: Action,
    /// What gave it.
    pub because: Because,
}

/// What in a [`Policy`] decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// Number -1, which is no call.
    Skipped,
    /// A guard, whatever the rules say.
    Guard(Guard),
    /// A rule.
    Rule(&'static Rule),
    /// No rule: what no rule refuses is allowed.
    NoRule,
}

/// A default-allow policy for one architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    pub(crate) arch: Arch,
    pub(crate) guards: Guards,
    pub(crate) groups: &'static [&'static [Rule]],
}

impl Policy {
    /// The architecture the policy is for.
    #[must_use]
    pub const fn arch(&self) -> Arch {
        self.arch
    }

    /// The guards, in the order they are applied.
    pub fn guards(&self) -> impl ExactSizeIterator<Item = Guard> {
        let Guards { foreign_abi, x32, unreviewed } = self.guards;
        [foreign_abi, x32, unreviewed].into_iter()
    }

    /// The rules; among those of one call the first whose conditions hold decides.
    pub fn rules(&self) -> impl Iterator<Item = &'static Rule> {
        self.groups.iter().copied().flatten()
    }

    /// What the policy answers to a call.
    #[must_use]
    pub fn evaluate(&self, call: &Call) -> Action {
        self.explain(call).action
    }

    /// What the policy answers to a call, and why.
    #[must_use]
    pub fn explain(&self, call: &Call) -> Verdict {
        let guard = |guard: Guard| Verdict { action: guard.action, because: Because::Guard(guard) };
        if call.arch != self.arch.audit() {
            return guard(self.guards.foreign_abi);
        }
        if call.number == SKIPPED {
            return Verdict { action: Action::Allow, because: Because::Skipped };
        }
        if call.number & X32_BIT != 0 {
            return guard(self.guards.x32);
        }
        let Some(name) = self.arch.call_name(call.number) else {
            return guard(self.guards.unreviewed);
        };
        self.rules()
            .filter(|rule| rule.call == name)
            .find(|rule| rule.conditions.iter().all(|test| test.holds(&call.arguments)))
            .map_or(Verdict { action: Action::Allow, because: Because::NoRule }, |rule| Verdict {
                action: rule.action,
                because: Because::Rule(rule),
            })
    }

    /// Compiles the policy.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCall`] if a rule names a call the architecture lacks,
    /// [`Error::ProgramTooLong`] if the kernel would not take the result.
    pub fn assemble(&self) -> Result<Program, Error> {
        let line = |rule: &'static Rule| match self.arch.call_number(rule.call) {
            Some(number) => Ok(Line { number, conditions: rule.conditions, action: rule.action }),
            None => Err(Error::UnknownCall { call: rule.call, arch: self.arch }),
        };
        Table {
            arch: self.arch,
            foreign_abi: self.guards.foreign_abi.action,
            x32: self.guards.x32.action,
            unreviewed: self.guards.unreviewed.action,
            otherwise: Action::Allow,
            lines: self.rules().map(line).collect::<Result<_, _>>()?,
        }
        .assemble()
    }
}
