//! Policy to program: a balanced search over ranges of call numbers, then the conditions of the
//! call found; it decides nothing about what is refused.
//!
//! The search is short for every number because the kernel runs the program once per number when
//! it is installed, to fill its cache of calls that are always allowed.

use crate::action::Action;
use crate::arch::Arch;
use crate::call::{SKIPPED, X32_BIT, halves};
use crate::condition::{Condition, Order, Test};
use crate::error::Error;
use crate::program::{Instruction, Program};

#[cfg(test)]
mod tests;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGUMENTS: u32 = 16;

/// The bit above the x32 bit.
const SIGN_BIT: u32 = 0x8000_0000;

/// What a program is made from, for one architecture.
pub(crate) struct Table<'t> {
    pub(crate) arch: Arch,
    /// The answer to calls of another ABI.
    pub(crate) foreign_abi: Action,
    /// The answer to native calls with the x32 bit.
    pub(crate) x32: Action,
    /// The answer to numbers that are no call of the architecture.
    pub(crate) unreviewed: Action,
    /// The answer to calls that no line is about.
    pub(crate) otherwise: Action,
    /// Among those of one call the first whose conditions hold decides.
    pub(crate) lines: Vec<Line<'t>>,
}

/// One call, when, and the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'t> {
    pub(crate) number: u32,
    pub(crate) conditions: &'t [Condition],
    pub(crate) action: Action,
}

impl Table<'_> {
    /// Assembles the table; the same one always gives the same program.
    pub(crate) fn assemble(mut self) -> Result<Program, Error> {
        // Stable, so that the lines of one call keep their order.
        self.lines.sort_by_key(|line| line.number);
        let numbers = Numbers::new(&self);
        let mut code = Code { otherwise: self.otherwise, ..Code::default() };
        code.search(&numbers.lowest, &numbers.above)?;
        // Runs on into the search, whose entry was pushed last.
        let native = code.load(NUMBER)?;
        let foreign = code.answer(self.foreign_abi)?;
        code.test(ARCH, Instruction::JEQ, self.arch.audit(), native, foreign)?;
        Ok(Program::new(code.backward.into_iter().rev()))
    }
}

/// What happens to a range of call numbers.
#[derive(PartialEq)]
enum Fate<'r> {
    Answer(Action),
    /// The lines of one call, in order; the table's own answer if none holds.
    Lines(&'r [Line<'r>]),
}

impl<'r> Fate<'r> {
    fn of_call(lines: &'r [Line<'r>], otherwise: Action) -> Self {
        match lines {
            [] => Self::Answer(otherwise),
            [line, ..] if line.conditions.is_empty() => Self::Answer(line.action),
            _ => Self::Lines(lines),
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
    fn new(table: &'r Table<'r>) -> Self {
        let Table { unreviewed, x32, otherwise, .. } = *table;
        let mut lines = table.lines.as_slice();
        let mut numbers = Self { lowest: Fate::Answer(unreviewed), above: Vec::new() };
        let mut next = 0;
        for (number, _) in table.arch.calls() {
            if number > next {
                numbers.push(next, Fate::Answer(unreviewed));
            }
            let (own, later) = lines.split_at(lines.partition_point(|line| line.number <= number));
            numbers.push(number, Fate::of_call(own, otherwise));
            lines = later;
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
struct Code {
    backward: Vec<Instruction>,
    len: u16,
    answers: Vec<(Action, Label)>,
    /// The answer where no line of a call holds.
    otherwise: Action,
}

impl Default for Code {
    fn default() -> Self {
        Self { backward: Vec::new(), len: 0, answers: Vec::new(), otherwise: Action::Allow }
    }
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
        let lines = match fate {
            Fate::Answer(action) => return self.answer(*action),
            Fate::Lines(lines) => lines,
        };
        let mut otherwise = self.answer(self.otherwise)?;
        for line in lines.iter().rev() {
            let mut matched = self.answer(line.action)?;
            for condition in line.conditions.iter().rev() {
                matched = self.condition(condition, matched, otherwise)?;
            }
            otherwise = matched;
        }
        Ok(otherwise)
    }

    fn condition(&mut self, condition: &Condition, yes: Label, no: Label) -> Result<Label, Error> {
        let low = ARGUMENTS + 8 * u32::from(condition.argument.index());
        match condition.test {
            Test::Is(value) => self.test(low, Instruction::JEQ, value, yes, no),
            Test::IsNot(value) => self.test(low, Instruction::JEQ, value, no, yes),
            Test::HasAny(mask) => self.test(low, Instruction::JSET, mask, yes, no),
            Test::MaskedIs { mask, value } => self.masked(low, mask, value, yes, no),
            Test::MaskedIsNot { mask, value } => self.masked(low, mask, value, no, yes),
            Test::Low(order, value) => {
                self.ordered(order, value, yes, no)?;
                self.load(low)
            }
            Test::NotNull => self.equal(low, 0, no, yes),
            Test::FullIs(value) => self.equal(low, value, yes, no),
            Test::FullIsNot(value) => self.equal(low, value, no, yes),
            Test::FullMaskedIs { mask, value } => {
                let ([mask_low, mask_high], [value_low, value_high]) =
                    (halves(mask), halves(value));
                let low_half = self.masked(low, mask_low, value_low, yes, no)?;
                self.masked(low + 4, mask_high, value_high, low_half, no)
            }
            Test::Full(order, value) => self.ordered_in_full(low, order, value, yes, no),
        }
    }

    /// A test of all 64 bits at `low` for equality.
    fn equal(&mut self, low: u32, value: u64, yes: Label, no: Label) -> Result<Label, Error> {
        let [value_low, value_high] = halves(value);
        let low_half = self.test(low, Instruction::JEQ, value_low, yes, no)?;
        self.test(low + 4, Instruction::JEQ, value_high, low_half, no)
    }

    /// A test of some bits of the word at `offset`.
    fn masked(
        &mut self,
        offset: u32,
        mask: u32,
        value: u32,
        yes: Label,
        no: Label,
    ) -> Result<Label, Error> {
        self.branch(Instruction::JEQ, value, yes, no)?;
        self.push(Instruction::AND, 0, 0, mask)?;
        self.load(offset)
    }

    /// A comparison of the accumulator.
    fn ordered(&mut self, order: Order, k: u32, yes: Label, no: Label) -> Result<Label, Error> {
        match order {
            Order::Less => self.branch(Instruction::JGE, k, no, yes),
            Order::LessOrEqual => self.branch(Instruction::JGT, k, no, yes),
            Order::Greater => self.branch(Instruction::JGT, k, yes, no),
            Order::GreaterOrEqual => self.branch(Instruction::JGE, k, yes, no),
        }
    }

    /// A comparison of all 64 bits at `low`: the high half decides unless it is equal.
    fn ordered_in_full(
        &mut self,
        low: u32,
        order: Order,
        value: u64,
        yes: Label,
        no: Label,
    ) -> Result<Label, Error> {
        let [value_low, value_high] = halves(value);
        self.ordered(order, value_low, yes, no)?;
        let low_half = self.load(low)?;
        let (above, below) = match order {
            Order::Less | Order::LessOrEqual => (no, yes),
            Order::Greater | Order::GreaterOrEqual => (yes, no),
        };
        let not_above = self.branch(Instruction::JEQ, value_high, low_half, below)?;
        self.branch(Instruction::JGT, value_high, above, not_above)?;
        self.load(low + 4)
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
