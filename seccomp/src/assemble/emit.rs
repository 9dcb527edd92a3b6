//! A graph of tests as instructions: which words must be loaded, and how far jumps go.

use super::graph::{Graph, Node, Step, Test};
use crate::action::Action;
use crate::error::Error;
use crate::program::{Instruction, Program};

/// The program that starts at `entry`.
pub(super) fn program(graph: &Graph, entry: Node) -> Result<Program, Error> {
    let ways = Ways::to(graph, entry);
    let mut code = Code::new(graph);
    for (index, (step, way)) in graph.steps().iter().zip(ways.0).enumerate() {
        // An answer is put where a test needs it.
        if let (Step::Test(test), Some(way)) = (step, way) {
            let place = code.test(test, way)?;
            if let Some(slot) = code.places.get_mut(index) {
                *slot = Some(place);
            }
        }
    }
    code.label(entry, None)?;
    Ok(Program::new(code.backward.into_iter().rev()))
}

/// How a node is come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The accumulator always holds the whole word that the node tests.
    Loaded,
    Unknown,
}

/// Of every node; `None`: never.
struct Ways(Vec<Option<Way>>);

impl Ways {
    fn to(graph: &Graph, entry: Node) -> Self {
        let mut ways = Self(vec![None; graph.steps().len()]);
        ways.come(graph, entry, None);
        // Whatever leads to a node is behind it.
        for index in (0..graph.steps().len()).rev() {
            let is_met = ways.0.get(index).is_some_and(Option::is_some);
            if let (true, Some(Step::Test(test))) = (is_met, graph.steps().get(index)) {
                let held = test.word.is_whole().then_some(test.word.offset);
                ways.come(graph, test.yes, held);
                ways.come(graph, test.no, held);
            }
        }
        ways
    }

    fn come(&mut self, graph: &Graph, node: Node, held: Option<u32>) {
        let is_loaded = match graph.steps().get(node.index()) {
            Some(Step::Test(test)) => held == Some(test.word.offset),
            Some(Step::Answer(_)) | None => true,
        };
        if let Some(way) = self.0.get_mut(node.index()) {
            *way = match (is_loaded, *way) {
                (true, None | Some(Way::Loaded)) => Some(Way::Loaded),
                _ => Some(Way::Unknown),
            };
        }
    }
}

/// An instruction in [`Code`]: 1 for the last of the program, counting backward.
#[derive(Debug, Clone, Copy)]
struct Label(u16);

impl Label {
    /// The instruction after this one.
    const fn next(self) -> Self {
        Self(self.0 - 1)
    }
}

/// Where a test starts.
#[derive(Debug, Clone, Copy)]
struct Place {
    label: Label,
    /// Of the word that is tested.
    offset: u32,
    /// Whether the first instruction loads it.
    loads: bool,
}

/// A program under construction, last instruction first: jumps only go forward, so the target of
/// every jump is there before the jump, and its distance is known.
struct Code<'g> {
    graph: &'g Graph,
    backward: Vec<Instruction>,
    len: u16,
    places: Vec<Option<Place>>,
    answers: Vec<(Action, Label)>,
}

impl<'g> Code<'g> {
    fn new(graph: &'g Graph) -> Self {
        let places = vec![None; graph.steps().len()];
        Self { graph, backward: Vec::new(), len: 0, places, answers: Vec::new() }
    }

    fn test(&mut self, test: &Test, way: Way) -> Result<Place, Error> {
        let held = test.word.is_whole().then_some(test.word.offset);
        let yes = self.label(test.yes, held)?;
        let no = self.label(test.no, held)?;
        let mut label = self.branch(test.code, test.k, yes, no)?;
        if !test.word.is_whole() {
            label = self.push(Instruction::AND, 0, 0, test.word.mask)?;
        }
        let loads = way == Way::Unknown;
        if loads {
            label = self.push(Instruction::LOAD, 0, 0, test.word.offset)?;
        }
        Ok(Place { label, offset: test.word.offset, loads })
    }

    /// Where a node starts for whoever has the word at `held` in the accumulator.
    fn label(&mut self, node: Node, held: Option<u32>) -> Result<Label, Error> {
        let place = self.places.get(node.index()).copied().flatten();
        match (place, self.graph.steps().get(node.index())) {
            (Some(place), _) => {
                let is_held = place.loads && held == Some(place.offset);
                Ok(if is_held { place.label.next() } else { place.label })
            }
            (None, Some(Step::Answer(action))) => self.answer(*action),
            (None, Some(Step::Test(_)) | None) => Err(Error::ProgramTooLong),
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
