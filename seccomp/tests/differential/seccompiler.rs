//! Every level against the compiler of the crate `seccompiler`, as far as it can say the same.
//!
//! One of its filters has one answer, and takes any rule that holds where ours takes the first: so
//! there is one filter for each place among the rules of a call and each answer, and the first
//! that does not allow decides.

use std::collections::{BTreeMap, BTreeSet};

use postern_seccomp::{Action, Call, Condition, Policy, Program, Rule, Test, simulate};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::{LEVELS, Tally, policy, samples};

const ALLOW: u32 = Action::Allow.word();

/// What it cannot say: its filters know no number that no rule is about.
const NO_GUARDS: &str = "x32 calls and unreviewed numbers";

/// A program of theirs in our type.
pub(crate) fn program(theirs: &BpfProgram) -> Program {
    let bytes = theirs.iter().flat_map(|line| {
        let ([c0, c1], [k0, k1, k2, k3]) = (line.code.to_le_bytes(), line.k.to_le_bytes());
        [c0, c1, line.jt, line.jf, k0, k1, k2, k3]
    });
    Program::from_bytes(&bytes.collect::<Vec<_>>()).unwrap()
}

fn action(action: Action) -> SeccompAction {
    match action {
        Action::Allow => SeccompAction::Allow,
        Action::Errno(errno) => SeccompAction::Errno(errno.number()),
        Action::Succeed => SeccompAction::Errno(0),
        Action::KillProcess => SeccompAction::KillProcess,
        _ => panic!("no level answers {action}"),
    }
}

/// The alternatives that come to one of our conditions.
fn alternatives(condition: &Condition) -> Vec<SeccompCondition> {
    use SeccompCmpArgLen::{Dword, Qword};
    use SeccompCmpOp::{Eq, MaskedEq, Ne};
    let one = |length, operator, value| {
        SeccompCondition::new(condition.argument.index(), length, operator, value).unwrap()
    };
    let bits = |mask: u32| (0..32).map(|bit| 1_u32 << bit).filter(move |bit| mask & bit != 0);
    match condition.test {
        Test::Is(value) => vec![one(Dword, Eq, value.into())],
        Test::IsNot(value) => vec![one(Dword, Ne, value.into())],
        Test::HasAny(mask) => {
            bits(mask).map(|bit| one(Dword, MaskedEq(bit.into()), bit.into())).collect()
        }
        Test::MaskedIs { mask, value } => vec![one(Dword, MaskedEq(mask.into()), value.into())],
        // One bit is other than it must not be.
        Test::MaskedIsNot { mask, value } => {
            bits(mask).map(|bit| one(Dword, MaskedEq(bit.into()), (!value & bit).into())).collect()
        }
        Test::NotNull => vec![one(Qword, Ne, 0)],
        _ => panic!("{condition}"),
    }
}

/// Their rules, any of which is as one of ours.
fn rules(rule: &Rule) -> Vec<SeccompRule> {
    let mut all: Vec<Vec<SeccompCondition>> = vec![vec![]];
    for condition in rule.conditions {
        let longer = all.iter().flat_map(|chosen| {
            let add = |one| chosen.iter().cloned().chain([one]).collect();
            alternatives(condition).into_iter().map(add).collect::<Vec<_>>()
        });
        all = longer.collect();
    }
    let all = all.into_iter().filter(|conditions| !conditions.is_empty());
    all.map(|conditions| SeccompRule::new(conditions).unwrap()).collect()
}

/// The programs, in the order in which they decide.
fn programs(policy: &Policy) -> Vec<Program> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut layers: BTreeMap<(usize, u32), (Action, Vec<&Rule>)> = BTreeMap::new();
    for rule in policy.rules() {
        let place = seen.entry(rule.call).or_default();
        let layer = layers.entry((*place, rule.action.word()));
        layer.or_insert((rule.action, Vec::new())).1.push(rule);
        *place += 1;
    }
    let compile = |(answer, layer): (Action, Vec<&Rule>)| {
        let numbered = layer
            .into_iter()
            .map(|rule| (policy.arch().call_number(rule.call).unwrap().into(), rules(rule)));
        let map = numbered.collect::<BTreeMap<i64, _>>();
        let filter =
            SeccompFilter::new(map, SeccompAction::Allow, action(answer), TargetArch::x86_64);
        program(&filter.unwrap().try_into().unwrap())
    };
    layers.into_values().map(compile).collect()
}

fn verdict(programs: &[Program], call: &Call) -> u32 {
    let answers = programs.iter().map(|program| simulate(program, call).unwrap());
    answers.into_iter().find(|answer| *answer != ALLOW).unwrap_or(ALLOW)
}

#[test]
fn levels_agree_with_another_compiler() {
    for level in LEVELS {
        let policy = policy(level);
        let reviewed: BTreeSet<_> = policy.arch().calls().map(|(number, _)| number).collect();
        let programs = programs(&policy);
        let mut tally = Tally::default();
        for call in samples::of_policy(policy).chain(samples::foreign()) {
            let (ours, theirs) = (policy.evaluate(&call).word(), verdict(&programs, &call));
            let is_guarded = call.arch == policy.arch().audit() && !reviewed.contains(&call.number);
            match (ours == theirs, is_guarded && theirs == ALLOW) {
                (true, _) => tally.equal(),
                (false, true) => tally.explained(NO_GUARDS),
                (false, false) => panic!("{level}: {ours:#x} and {theirs:#x}: {call:x?}"),
            }
        }
        let title = format!("seccompiler, {level}, {} filters", programs.len());
        tally.finish(&title, &[NO_GUARDS]);
    }
}
