//! Conditions on arguments as tests of 32-bit words.

use super::graph::{Graph, Node, Test, Word};
use crate::call::halves;
use crate::condition::{Condition, Order, Test as Asked};
use crate::error::Error;
use crate::program::Instruction;

/// Where the arguments start in `struct seccomp_data`.
const ARGUMENTS: u32 = 16;

impl Graph {
    /// Goes to `yes` where the condition holds.
    pub(super) fn condition(
        &mut self,
        condition: &Condition,
        yes: Node,
        no: Node,
    ) -> Result<Node, Error> {
        let offset = ARGUMENTS + 8 * u32::from(condition.argument.index());
        let (low, high) = (Word::of(offset), Word::of(offset + 4));
        match condition.test {
            Asked::Is(value) => self.decide(low, Instruction::JEQ, value, yes, no),
            Asked::IsNot(value) => self.decide(low, Instruction::JEQ, value, no, yes),
            Asked::HasAny(mask) => self.decide(low, Instruction::JSET, mask, yes, no),
            Asked::MaskedIs { mask, value } => {
                self.decide(Word { mask, ..low }, Instruction::JEQ, value, yes, no)
            }
            Asked::MaskedIsNot { mask, value } => {
                self.decide(Word { mask, ..low }, Instruction::JEQ, value, no, yes)
            }
            Asked::Low(order, value) => self.ordered(low, order, value, yes, no),
            Asked::NotNull => self.equal([low, high], 0, no, yes),
            Asked::FullIs(value) => self.equal([low, high], value, yes, no),
            Asked::FullIsNot(value) => self.equal([low, high], value, no, yes),
            Asked::FullMaskedIs { mask, value } => {
                let [mask_low, mask_high] = halves(mask);
                let words = [Word { mask: mask_low, ..low }, Word { mask: mask_high, ..high }];
                self.equal(words, value, yes, no)
            }
            Asked::Full(order, value) => self.ordered_in_full([low, high], order, value, yes, no),
        }
    }

    fn decide(
        &mut self,
        word: Word,
        code: u16,
        k: u32,
        yes: Node,
        no: Node,
    ) -> Result<Node, Error> {
        self.decision(Test { word, code, k, yes, no })
    }

    /// A test of 64 bits for equality.
    fn equal(
        &mut self,
        [low, high]: [Word; 2],
        value: u64,
        yes: Node,
        no: Node,
    ) -> Result<Node, Error> {
        let [value_low, value_high] = halves(value);
        let low_half = self.decide(low, Instruction::JEQ, value_low, yes, no)?;
        self.decide(high, Instruction::JEQ, value_high, low_half, no)
    }

    fn ordered(
        &mut self,
        word: Word,
        order: Order,
        k: u32,
        yes: Node,
        no: Node,
    ) -> Result<Node, Error> {
        match order {
            Order::Less => self.decide(word, Instruction::JGE, k, no, yes),
            Order::LessOrEqual => self.decide(word, Instruction::JGT, k, no, yes),
            Order::Greater => self.decide(word, Instruction::JGT, k, yes, no),
            Order::GreaterOrEqual => self.decide(word, Instruction::JGE, k, yes, no),
        }
    }

    /// A comparison of 64 bits: the high half decides unless it is equal.
    fn ordered_in_full(
        &mut self,
        [low, high]: [Word; 2],
        order: Order,
        value: u64,
        yes: Node,
        no: Node,
    ) -> Result<Node, Error> {
        let [value_low, value_high] = halves(value);
        let low_half = self.ordered(low, order, value_low, yes, no)?;
        let (above, below) = match order {
            Order::Less | Order::LessOrEqual => (no, yes),
            Order::Greater | Order::GreaterOrEqual => (yes, no),
        };
        let not_above = self.decide(high, Instruction::JEQ, value_high, low_half, below)?;
        self.decide(high, Instruction::JGT, value_high, above, not_above)
    }
}
