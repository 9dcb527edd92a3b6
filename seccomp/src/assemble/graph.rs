//! The tests of a filter as a graph in which equal parts are one, and in which no test asks what
//! the way to it has answered; it knows no order of instructions.

use std::collections::HashMap;

use crate::action::Action;
use crate::error::Error;
use crate::program::Instruction;

/// How many tests down a known answer is used: enough for every policy of ours, and a bound for
/// those of others.
const DEPTH: u8 = 32;

/// Some of them end up unused; a policy that makes more makes too long a program.
const NODES_MAX: usize = 1 << 20;

/// A word of `struct seccomp_data`, or some of its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Word {
    pub(super) offset: u32,
    pub(super) mask: u32,
}

impl Word {
    /// All bits.
    pub(super) const fn of(offset: u32) -> Self {
        Self { offset, mask: u32::MAX }
    }

    pub(super) const fn is_whole(self) -> bool {
        self.mask == u32::MAX
    }
}

/// A place in the graph; those it leads to have lower numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Node(usize);

impl Node {
    pub(super) const fn index(self) -> usize {
        self.0
    }
}

/// What happens at a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Step {
    Answer(Action),
    Test(Test),
}

/// A comparison of a word with a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Test {
    pub(super) word: Word,
    /// One of the tests of [`Instruction`].
    pub(super) code: u16,
    pub(super) k: u32,
    pub(super) yes: Node,
    pub(super) no: Node,
}

/// What is known of a word where it has been compared for equality.
#[derive(Debug, Clone, Copy)]
struct Known {
    word: Word,
    value: u32,
    is_equal: bool,
}

impl Known {
    /// The outcome of a later test, if this decides it.
    const fn decides(self, test: &Test) -> Option<bool> {
        if self.word.offset != test.word.offset {
            return None;
        }
        if !self.is_equal {
            let is_same = self.word.mask == test.word.mask && self.value == test.k;
            return if is_same && test.code == Instruction::JEQ { Some(false) } else { None };
        }
        if self.word.mask & test.word.mask != test.word.mask {
            return None;
        }
        let value = self.value & test.word.mask;
        match test.code {
            Instruction::JEQ => Some(value == test.k),
            Instruction::JGT => Some(value > test.k),
            Instruction::JGE => Some(value >= test.k),
            Instruction::JSET if self.word.is_whole() => Some(value & test.k != 0),
            _ => None,
        }
    }
}

/// The graph; made from its answers upward.
#[derive(Debug, Default)]
pub(super) struct Graph {
    steps: Vec<Step>,
    known: HashMap<Step, Node>,
}

impl Graph {
    /// Every node is behind all that it leads to.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(super) fn answer(&mut self, action: Action) -> Result<Node, Error> {
        self.node(Step::Answer(action))
    }

    /// A test, if its outcome matters.
    pub(super) fn test(&mut self, test: Test) -> Result<Node, Error> {
        let Test { word, code, k, yes, no } = test;
        match (yes == no, code) {
            (true, _) => Ok(yes),
            (false, Instruction::JEQ) if word.mask == 0 => Ok(if k == 0 { yes } else { no }),
            (false, _) => self.node(Step::Test(test)),
        }
    }

    /// The same where what it leads to may test the word again.
    pub(super) fn decision(&mut self, test: Test) -> Result<Node, Error> {
        if test.code != Instruction::JEQ {
            return self.test(test);
        }
        let known = |is_equal| Known { word: test.word, value: test.k, is_equal };
        let yes = self.given(test.yes, known(true), DEPTH, &mut HashMap::new())?;
        let no = self.given(test.no, known(false), DEPTH, &mut HashMap::new())?;
        self.test(Test { yes, no, ..test })
    }

    /// What `node` comes to where something is known already.
    fn given(
        &mut self,
        node: Node,
        known: Known,
        depth: u8,
        seen: &mut HashMap<Node, Node>,
    ) -> Result<Node, Error> {
        let step = self.steps.get(node.0).copied();
        let (Some(Step::Test(test)), Some(depth)) = (step, depth.checked_sub(1)) else {
            return Ok(node);
        };
        if let Some(node) = seen.get(&node) {
            return Ok(*node);
        }
        let comes_to = match known.decides(&test) {
            Some(true) => self.given(test.yes, known, depth, seen)?,
            Some(false) => self.given(test.no, known, depth, seen)?,
            None => {
                let yes = self.given(test.yes, known, depth, seen)?;
                let no = self.given(test.no, known, depth, seen)?;
                self.test(Test { yes, no, ..test })?
            }
        };
        seen.insert(node, comes_to);
        Ok(comes_to)
    }

    fn node(&mut self, step: Step) -> Result<Node, Error> {
        if let Some(node) = self.known.get(&step) {
            return Ok(*node);
        }
        if self.steps.len() == NODES_MAX {
            return Err(Error::ProgramTooLong);
        }
        let node = Node(self.steps.len());
        self.steps.push(step);
        self.known.insert(step, node);
        Ok(node)
    }
}
