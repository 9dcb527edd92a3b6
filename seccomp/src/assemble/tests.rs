//! Policies that no level has: every test kind, many rules for one call, and ones that are wrong.

use crate::condition::Argument::{A0, A1, A5};
use crate::condition::Test::{
    Full, FullIs, FullIsNot, FullMaskedIs, HasAny, Is, IsNot, Low, MaskedIs, MaskedIsNot, NotNull,
};
use crate::{Action, Arch, Argument, Call, Condition, Errno, Error, Instruction, Level};
use crate::{Order, Policy, Program, Rule, Test, simulate};

const EPERM: Action = Action::Errno(Errno::EPERM);
const IOCTL: u32 = 16;
const HIGH: u64 = 1 << 32;

fn policy(rules: Vec<Rule>) -> Policy {
    let groups: &[&[Rule]] = vec![&*rules.leak()].leak();
    Policy { groups, ..Level::Compat.policy(Arch::X86_64).unwrap() }
}

fn rule(call: &'static str, conditions: &[(Argument, Test)], action: Action) -> Rule {
    let conditions =
        conditions.iter().map(|(argument, test)| Condition { argument: *argument, test: *test });
    Rule { call, conditions: conditions.collect::<Vec<_>>().leak(), action, reason: "" }
}

/// Rules for `ioctl` that refuse the requests 0, 2, 4 and so on.
fn even_requests(rules: u32) -> Policy {
    policy((0..rules).map(|n| rule("ioctl", &[(A1, Is(2 * n))], EPERM)).collect())
}

fn has_long_jump(program: &Program) -> bool {
    count(program, |instruction| instruction.code == Instruction::JUMP) > 0
}

/// A name, the conditions, and which values of the first argument they refuse.
type Kind = (&'static str, &'static [(Argument, Test)], &'static [(u64, bool)]);

const KINDS: &[Kind] = &[
    (
        "Is",
        &[(A0, Is(5))],
        &[(4, false), (5, true), (6, false), (HIGH | 5, true), (5 << 32, false)],
    ),
    ("IsNot", &[(A0, IsNot(5))], &[(4, true), (5, false), (6, true), (HIGH | 5, false)]),
    (
        "HasAny",
        &[(A0, HasAny(6))],
        &[(1, false), (2, true), (7, true), (8, false), (6 << 32, false), (HIGH | 4, true)],
    ),
    (
        "MaskedIs",
        &[(A0, MaskedIs { mask: 0xf0, value: 0x50 })],
        &[(0x50, true), (0x5f, true), (0x40, false), (HIGH | 0x150, true), (0x50 << 32, false)],
    ),
    (
        "MaskedIsNot",
        &[(A0, MaskedIsNot { mask: 0xf0, value: 0x50 })],
        &[(0x50, false), (0x5f, false), (0x40, true), (HIGH | 0x150, false), (0, true)],
    ),
    (
        "Low less",
        &[(A0, Low(Order::Less, 5))],
        &[(4, true), (5, false), (6, false), (HIGH | 4, true), (0xffff_ffff, false)],
    ),
    (
        "Low less or equal",
        &[(A0, Low(Order::LessOrEqual, 5))],
        &[(4, true), (5, true), (6, false), (HIGH | 5, true), (HIGH | 6, false)],
    ),
    (
        "Low greater",
        &[(A0, Low(Order::Greater, 5))],
        &[(4, false), (5, false), (6, true), (HIGH, false), (0xffff_ffff, true)],
    ),
    (
        "Low greater or equal",
        &[(A0, Low(Order::GreaterOrEqual, 5))],
        &[(4, false), (5, true), (6, true), (HIGH | 4, false), (HIGH | 5, true)],
    ),
    ("FullIs", &[(A0, FullIs(HIGH | 5))], &[(5, false), (HIGH | 5, true), (HIGH, false)]),
    ("FullIsNot", &[(A0, FullIsNot(HIGH | 5))], &[(5, true), (HIGH | 5, false), (HIGH, true)]),
    (
        "FullMaskedIs",
        &[(A0, FullMaskedIs { mask: HIGH | 0xf, value: HIGH | 5 })],
        &[(5, false), (HIGH | 5, true), (3 << 32 | 0x15, true), (HIGH | 6, false)],
    ),
    (
        "Full less",
        &[(A0, Full(Order::Less, HIGH | 5))],
        &[(9, true), (HIGH | 4, true), (HIGH | 5, false), (2 << 32, false)],
    ),
    (
        "Full less or equal",
        &[(A0, Full(Order::LessOrEqual, HIGH | 5))],
        &[(9, true), (HIGH | 5, true), (HIGH | 6, false), (2 << 32, false)],
    ),
    (
        "Full greater",
        &[(A0, Full(Order::Greater, HIGH | 5))],
        &[(9, false), (HIGH | 5, false), (HIGH | 6, true), (2 << 32, true)],
    ),
    (
        "Full greater or equal",
        &[(A0, Full(Order::GreaterOrEqual, HIGH | 5))],
        &[(9, false), (HIGH | 4, false), (HIGH | 5, true), (2 << 32, true)],
    ),
    ("NotNull", &[(A0, NotNull)], &[(0, false), (1, true), (HIGH, true), (u64::MAX, true)]),
    (
        "two on one",
        &[(A0, HasAny(4)), (A0, IsNot(5))],
        &[(4, true), (5, false), (6, true), (3, false)],
    ),
    ("two arguments", &[(A0, Is(5)), (A5, Is(0))], &[(5, true), (4, false)]),
    ("other argument", &[(A0, Is(5)), (A5, Is(1))], &[(5, false), (4, false)]),
];

#[test]
fn each_test_kind() {
    for (name, conditions, rows) in KINDS {
        let policy = policy(vec![rule("ioctl", conditions, EPERM)]);
        let program = policy.assemble().unwrap();
        for (value, refused) in *rows {
            let call = Call::native(Arch::X86_64, IOCTL, [*value, 0, 0, 0, 0, 0]);
            let expected = if *refused { EPERM } else { Action::Allow };
            assert_eq!(policy.evaluate(&call), expected, "table, {name} {value:#x}");
            assert_eq!(
                simulate(&program, &call),
                Ok(expected.word()),
                "program, {name} {value:#x}"
            );
        }
    }
}

#[test]
fn first_rule_that_holds_decides() {
    let rules = vec![
        rule("ioctl", &[(A0, Is(1)), (A1, Is(1))], Action::Succeed),
        rule("ioctl", &[(A0, Is(1))], EPERM),
        rule("ioctl", &[], Action::KillProcess),
        rule("ioctl", &[(A0, Is(2))], EPERM),
    ];
    let table = [
        ([1, 1], Action::Succeed),
        ([1, 0], EPERM),
        ([0, 1], Action::KillProcess),
        ([2, 1], Action::KillProcess),
    ];
    let policy = policy(rules);
    let program = policy.assemble().unwrap();
    for ([a, b], expected) in table {
        let call = Call::native(Arch::X86_64, IOCTL, [a, b, 0, 0, 0, 0]);
        assert_eq!(policy.evaluate(&call), expected, "table, {a} {b}");
        assert_eq!(simulate(&program, &call), Ok(expected.word()), "program, {a} {b}");
    }
}

#[test]
fn jumps_of_any_length() {
    // The two around 255 lie on both sides of the reach of a test.
    for (rules, long) in [(1, false), (200, false), (250, false), (260, true), (1000, true)] {
        let policy = even_requests(rules);
        let program = policy.assemble().unwrap();
        assert_eq!(has_long_jump(&program), long, "{rules} rules");
        for number in 0..=600 {
            for request in (0..2 * rules + 4).step_by(if number == IOCTL { 1 } else { 97 }) {
                let arguments = [0, u64::from(request), 0, 0, 0, 0];
                let call = Call::native(Arch::X86_64, number, arguments);
                let expected = Ok(policy.evaluate(&call).word());
                assert_eq!(simulate(&program, &call), expected, "{rules} rules, {call:x?}");
            }
        }
    }
}

#[test]
fn what_cannot_be_assembled() {
    let unknown = policy(vec![rule("ioctl", &[], EPERM), rule("no_such_call", &[], EPERM)]);
    let error = Error::UnknownCall { call: "no_such_call", arch: Arch::X86_64 };
    assert_eq!(unknown.assemble(), Err(error));
    assert_eq!(even_requests(4096).assemble(), Err(Error::ProgramTooLong));
    assert!(even_requests(4000).assemble().unwrap().len() <= Program::MAX_LEN);
}

#[test]
fn no_rules_at_all() {
    let policy = policy(vec![]);
    let program = policy.assemble().unwrap();
    for number in 0..=600 {
        let call = Call::native(Arch::X86_64, number, [0; 6]);
        assert_eq!(simulate(&program, &call), Ok(policy.evaluate(&call).word()), "{number}");
    }
}

fn count(program: &Program, is_counted: impl Fn(Instruction) -> bool) -> usize {
    let instructions = (0..program.len()).filter_map(|index| program.instruction(index));
    instructions.filter(|instruction| is_counted(*instruction)).count()
}

#[test]
fn equal_parts_are_there_once() {
    let same = |call| rule(call, &[(A0, HasAny(6)), (A1, Is(1))], EPERM);
    let program = policy(["ioctl", "fcntl", "flock"].map(same).into()).assemble().unwrap();
    assert_eq!(count(&program, |one| one.code == Instruction::JSET), 1);
}

#[test]
fn what_is_known_is_not_asked_again() {
    let rules = vec![
        rule("ioctl", &[(A0, Is(2)), (A1, IsNot(1))], EPERM),
        rule("ioctl", &[(A0, Is(3)), (A1, IsNot(1))], EPERM),
        rule("ioctl", &[(A0, Is(2)), (A5, Is(1))], Action::Succeed),
    ];
    let program = policy(rules).assemble().unwrap();
    let loads = |offset| count(&program, |one| one.code == Instruction::LOAD && one.k == offset);
    // Once the first argument, and the second for 2 and for 3.
    assert_eq!([loads(16), loads(24), loads(56)], [1, 2, 1]);
}
