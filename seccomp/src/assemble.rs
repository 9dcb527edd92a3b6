//! Policy to program: a balanced search over ranges of call numbers, then the conditions of the
//! call found; it decides nothing about what is refused.
//!
//! The search is short for every number because the kernel runs the program once per number when
//! it is installed, to fill its cache of calls that are always allowed. The program is short
//! because every instruction costs a launch its translation.

use crate::action::Action;
use crate::arch::Arch;
use crate::call::{SKIPPED, X32_BIT};
use crate::condition::Condition;
use crate::error::Error;
use crate::program::{Instruction, Program};

mod conditions;
mod emit;
mod graph;
#[cfg(test)]
mod tests;

use graph::{Graph, Node, Test, Word};

/// Offsets in `struct seccomp_data`.
const NUMBER: Word = Word::of(0);
const ARCH: Word = Word::of(4);

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
        let mut search = Search { graph: Graph::default(), otherwise: self.otherwise };
        let native = search.spans(&spans(&self))?;
        let foreign = search.graph.answer(self.foreign_abi)?;
        let audit = self.arch.audit();
        let entry = search.test(ARCH, Instruction::JEQ, audit, [native, foreign])?;
        emit::program(&search.graph, entry)
    }
}

/// What happens to a range of call numbers.
#[derive(Clone, Copy, PartialEq)]
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

/// A range of numbers.
struct Span<'r> {
    first: u32,
    last: u32,
    fate: Fate<'r>,
}

impl Span<'_> {
    fn count(&self) -> u64 {
        u64::from(self.last) - u64::from(self.first) + 1
    }
}

/// The fate of every number there is, in order.
fn spans<'r>(table: &'r Table<'r>) -> Vec<Span<'r>> {
    let Table { unreviewed, x32, otherwise, .. } = *table;
    let mut lines = table.lines.as_slice();
    let mut spans = Vec::new();
    let mut next = 0;
    for (number, _) in table.arch.calls() {
        if number > next {
            push(&mut spans, next, Fate::Answer(unreviewed));
        }
        let (own, later) = lines.split_at(lines.partition_point(|line| line.number <= number));
        push(&mut spans, number, Fate::of_call(own, otherwise));
        lines = later;
        next = number + 1;
    }
    push(&mut spans, next, Fate::Answer(unreviewed));
    push(&mut spans, X32_BIT, Fate::Answer(x32));
    push(&mut spans, SIGN_BIT, Fate::Answer(unreviewed));
    push(&mut spans, SIGN_BIT | X32_BIT, Fate::Answer(x32));
    push(&mut spans, SKIPPED, Fate::Answer(Action::Allow));
    spans
}

/// Adds the range from `first` on, joined to the one below it where both fare the same.
fn push<'r>(spans: &mut Vec<Span<'r>>, first: u32, fate: Fate<'r>) {
    match spans.last_mut() {
        Some(below) if below.fate == fate => return,
        Some(below) => below.last = first - 1,
        None => {}
    }
    spans.push(Span { first, last: u32::MAX, fate });
}

/// The most numbers that are compared one by one at the end of the search.
const SINGLES: u64 = 2;

struct Search {
    graph: Graph,
    /// The answer where no line of a call holds.
    otherwise: Action,
}

impl Search {
    /// Finds the fate of a number that lies in one of `spans`.
    fn spans(&mut self, spans: &[Span<'_>]) -> Result<Node, Error> {
        let widest = spans.iter().max_by_key(|span| span.count());
        let Some(widest) = widest else { return self.graph.answer(self.otherwise) };
        let others = || spans.iter().filter(|span| span.fate != widest.fate);
        if others().map(Span::count).sum::<u64>() <= SINGLES {
            let mut node = self.fate(widest.fate)?;
            for span in others() {
                let own = self.fate(span.fate)?;
                for number in span.first..=span.last {
                    node = self.test(NUMBER, Instruction::JEQ, number, [own, node])?;
                }
            }
            return Ok(node);
        }
        let (below, above) = spans.split_at(spans.len() / 2);
        let pivot = above.first().map_or(0, |span| span.first);
        let high = self.spans(above)?;
        let low = self.spans(below)?;
        self.test(NUMBER, Instruction::JGE, pivot, [high, low])
    }

    fn test(&mut self, word: Word, code: u16, k: u32, [yes, no]: [Node; 2]) -> Result<Node, Error> {
        self.graph.test(Test { word, code, k, yes, no })
    }

    fn fate(&mut self, fate: Fate<'_>) -> Result<Node, Error> {
        let lines = match fate {
            Fate::Answer(action) => return self.graph.answer(action),
            Fate::Lines(lines) => lines,
        };
        let mut otherwise = self.graph.answer(self.otherwise)?;
        for line in lines.iter().rev() {
            let mut matched = self.graph.answer(line.action)?;
            for condition in line.conditions.iter().rev() {
                matched = self.graph.condition(condition, matched, otherwise)?;
            }
            otherwise = matched;
        }
        Ok(otherwise)
    }
}
