//! Policy to program: a balanced search over ranges of call numbers, then the conditions of the
//! call found; it decides nothing about what is refused.
//!
//! The search is short for every number because the kernel runs the program once per number when
//! it is installed, to fill its cache of calls that are always allowed.

use crate::action::Action;
use crate::call::{SKIPPED, X32_BIT};
use crate::condition::{Condition, Test};
use crate::error::Error;
use crate::policy::{Policy, Rule};
use crate::program::{Instruction, Program};

#[cfg(test)]
mod tests;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGUMENTS: u32 = 16;

/// The bit above the x32 bit.
const SIGN_BIT: u32 = 0x8000_0000;

/// Assembles `policy`; the same policy always gives the same program.
pub(crate) fn assemble(policy: &Policy) -> Result<Program, Error> {
    let rules = numbered_rules(policy)?;
    let numbers = Numbers::new(policy, &rules);
    let mut code = Code::default();
    code.search(&numbers.lowest, &numbers.above)?;
    // Runs on into the search, whose entry was pushed last.
    let native = code.load(NUMBER)?;
    let foreign = code.answer(policy.guards.foreign_abi.action)?;
    code.test(ARCH, Instruction::JEQ, policy.arch.audit(), native, foreign)?;
    Ok(Program::new(code.backward.into_iter().rev()))
}

type Numbered = (u32, &'static Rule);

/// The rules by number; those of one call keep their order.
fn numbered_rules(policy: &Policy) -> Result<Vec<Numbered>, Error> {
    let arch = policy.arch;
    let number = |rule: &'static Rule| match arch.call_number(rule.call) {
        Some(number) => Ok((number, rule)),
        None => Err(Error::UnknownCall { call: rule.call, arch }),
    };
    let mut rules = policy.rules.iter().map(number).collect::<Result<Vec<_>, _>>()?;
    rules.sort_by_key(|(number, _)| *number);
    Ok(rules)
}

/// What happens to a range of call numbers.
#[derive(PartialEq)]
enum Fate<'r> {
    Answer(Action),
    /// The rules of one call, in order; [`Action::Allow`] if none holds.
    Rules(&'r [Numbered]),
}

impl<'r> Fate<'r> {
    fn of_call(rules: &'r [Numbered]) -> Self {
        match rules {
            [] => Self::Answer(Action::Allow),
            [(_, rule), ..] if rule.conditions.is_empty() => Self::Answer(rule.action),
            _ => Self::Rules(rules),
        }
    }
}

/// A range of numbers, up to where the next one starts.
struct Span<'r> {
    first: u32,
    fate: Fate<'r>,
}

/// The fate of every number there is.
struct Numbers<'r> {
    lowest: Fate<'r>,
    above: Vec<Span<'r>>,
}

impl<'r> Numbers<'r> {
    fn new(policy: &Policy, mut rules: &'r [Numbered]) -> Self {
        let unreviewed = policy.guards.unreviewed.action;
        let x32 = policy.guards.x32.action;
        let mut numbers = Self { lowest: Fate::Answer(unreviewed), above: Vec::new() };
        let mut next = 0;
        for (number, _) in policy.arch.calls() {
            if number > next {
                numbers.push(next, Fate::Answer(unreviewed));
            }
            let (own, later) = rules.split_at(rules.partition_point(|(n, _)| *n <= number));
            numbers.push(number, Fate::of_call(own));
            rules = later;
            next = number + 1;
        }
        numbers.push(next, Fate::Answer(unreviewed));
        numbers.push(X32_BIT, Fate::Answer(x32));
        numbers.push(SIGN_BIT, Fate::Answer(unreviewed));
        numbers.push(SIGN_BIT | X32_BIT, Fate::Answer(x32));
        numbers.push(SKIPPED, Fate::Answer(Action::Allow));
        numbers
    }

    /// Adds the range from `first` on, joined to the one below it where both fare the same.
    fn push(&mut self, first: u32, fate: Fate<'r>) {
        let below = self.above.last().map_or(&self.lowest, |span| &span.fate);
        match first {
            0 => self.lowest = fate,
            _ if *below == fate => {}
            _ => self.above.push(Span { first, fate }),
        }
    }
}

/// An instruction in [`Code`]: 1 for the last of the program, counting backward.
#[derive(Clone, Copy)]
struct Label(u16);

/// A program under construction, last instruction first: jumps only go forward, so the target of
/// every jump is there before the jump, and its distance is known.
#[derive(Default)]
struct Code {
    backward: Vec<Instruction>,
    len: u16,
    answers: Vec<(Action, Label)>,
}

impl Code {
    /// Finds the fate of the number in the accumulator, in `spans` or else below all of them.
    fn search(&mut self, below: &Fate<'_>, spans: &[Span<'_>]) -> Result<Label, Error> {
        let (left, right) = spans.split_at(spans.len() / 2);
        let [pivot, above @ ..] = right else {
            return self.fate(below);
        };
        let high = self.search(&pivot.fate, above)?;
        let low = self.search(below, left)?;
        self.branch(Instruction::JGE, pivot.first, high, low)
    }

    fn fate(&mut self, fate: &Fate<'_>) -> Result<Label, Error> {
        let rules = match fate {
            Fate::Answer(action) => return self.answer(*action),
            Fate::Rules(rules) => rules,
        };
        let mut otherwise = self.answer(Action::Allow)?;
        for (_, rule) in rules.iter().rev() {
            let mut matched = self.answer(rule.action)?;
            for condition in rule.conditions.iter().rev() {
                matched = self.condition(condition, matched, otherwise)?;
            }
            otherwise = matched;
        }
        Ok(otherwise)
    }

    fn condition(&mut self, condition: &Condition, yes: Label, no: Label) -> Result<Label, Error> {
        let low = ARGUMENTS + 8 * u32::from(condition.argument.index());
        let high = low + 4;
        match condition.test {
            Test::Is(value) => self.test(low, Instruction::JEQ, value, yes, no),
            Test::IsNot(value) => self.test(low, Instruction::JEQ, value, no, yes),
            Test::HasAny(mask) => self.test(low, Instruction::JSET, mask, yes, no),
            Test::NotNull => {
                let low_is_zero = self.test(high, Instruction::JEQ, 0, no, yes)?;
                self.test(low, Instruction::JEQ, 0, low_is_zero, yes)
            }
        }
    }

    /// A return of `action`, shared with earlier ones while a test can still reach them.
    fn answer(&mut self, action: Action) -> Result<Label, Error> {
        let known = self.answers.iter().rev().find(|(known, _)| *known == action);
        if let Some((_, label)) = known.filter(|(_, label)| self.short(*label).is_some()) {
            return Ok(*label);
        }
        let label = self.push(Instruction::RETURN, 0, 0, action.word())?;
        self.answers.push((action, label));
        Ok(label)
    }

    /// A test of the word at `offset`.
    fn test(
        &mut self,
        offset: u32,
        code: u16,
        k: u32,
        yes: Label,
        no: Label,
    ) -> Result<Label, Error> {
        self.branch(code, k, yes, no)?;
        self.load(offset)
    }

    fn load(&mut self, offset: u32) -> Result<Label, Error> {
        self.push(Instruction::LOAD, 0, 0, offset)
    }

    /// A test of the word in the accumulator; a side that its 8-bit distance cannot reach goes over
    /// a long jump.
    fn branch(&mut self, code: u16, k: u32, yes: Label, no: Label) -> Result<Label, Error> {
        match (self.short(yes), self.short(no)) {
            (Some(jt), Some(jf)) => self.push(code, jt, jf, k),
            (None, _) => {
                let yes = self.jump(yes)?;
                self.branch(code, k, yes, no)
            }
            (_, None) => {
                let no = self.jump(no)?;
                self.branch(code, k, yes, no)
            }
        }
    }

    fn jump(&mut self, to: Label) -> Result<Label, Error> {
        self.push(Instruction::JUMP, 0, 0, u32::from(self.distance(to)))
    }

    fn short(&self, to: Label) -> Option<u8> {
        u8::try_from(self.distance(to)).ok()
    }

    /// How many instructions the next one pushed must skip to get to `to`.
    fn distance(&self, Label(to): Label) -> u16 {
        self.len - to
    }

    fn push(&mut self, code: u16, jt: u8, jf: u8, k: u32) -> Result<Label, Error> {
        if self.backward.len() == Program::MAX_LEN {
            return Err(Error::ProgramTooLong);
        }
        self.backward.push(Instruction { code, jt, jf, k });
        self.len += 1;
        Ok(Label(self.len))
    }
}
