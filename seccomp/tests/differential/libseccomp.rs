//! Every level against libseccomp, through its Python module; Debian has it as `python3-seccomp`.
//!
//! A rule of its has one test an argument, on chosen bits, and one filter takes any rule that
//! holds: so ours are written as alternatives of such tests, and there is one filter for each place
//! among the rules of a call, the first that does not allow deciding.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use postern_seccomp::{Action, Argument, Call, Policy, Program, Rule, Test, simulate};
use serde_json::{Value, json};

use super::{LEVELS, Tally, policy, samples, say};

const ALLOW: u32 = Action::Allow.word();

/// Debian's interpreter has the module; another one in the path need not.
const PYTHON: &str = "/usr/bin/python3";
const SCRIPT: &str = include_str!("libseccomp.py");

/// libseccomp knows neither; it ends what comes with the x32 bit or by another ABI.
const NO_GUARDS: &str = "x32 calls, unreviewed numbers and other ABIs";

/// Bits that must be these; or, without them, a register that is not 0.
type Bits = Option<(u32, u32)>;

/// The alternatives that come to all tests of one argument.
fn alternatives(tests: &[Test]) -> Vec<Bits> {
    let bits = |mask: u32| (0..32).map(|bit| 1_u32 << bit).filter(move |bit| mask & bit != 0);
    match tests {
        [Test::Is(value)] => vec![Some((u32::MAX, *value))],
        [Test::MaskedIs { mask, value }] => vec![Some((*mask, *value))],
        [Test::HasAny(mask)] => bits(*mask).map(|bit| Some((bit, bit))).collect(),
        [Test::NotNull] => vec![None],
        [Test::IsNot(_), ..] => {
            let excluded: Vec<u32> = tests
                .iter()
                .map(|test| {
                    let Test::IsNot(value) = test else { panic!("{test:?} beside IsNot") };
                    *value
                })
                .collect();
            let mut cover = Vec::new();
            all_but(&excluded, 0, 32, &mut cover);
            cover
        }
        [Test::MaskedIsNot { mask, .. }, ..] => {
            let (all, mask) = (0..=*mask, *mask);
            let is_allowed = |value: &u32| {
                value & !mask == 0 && tests.iter().all(|test| test.holds((*value).into()))
            };
            all.filter(is_allowed).map(|value| Some((mask, value))).collect()
        }
        other => panic!("no level tests {other:?}"),
    }
}

/// Prefixes that hold all numbers but these: of those that begin with the bits of `prefix` above
/// the lowest `free` ones.
fn all_but(excluded: &[u32], prefix: u32, free: u32, cover: &mut Vec<Bits>) {
    let mask = u32::MAX.checked_shl(free).unwrap_or(0);
    let is_clear = !excluded.iter().any(|value| value & mask == prefix);
    match (is_clear, free.checked_sub(1)) {
        (true, _) => cover.push(Some((mask, prefix))),
        (false, None) => {}
        (false, Some(bit)) => {
            all_but(excluded, prefix, bit, cover);
            all_but(excluded, prefix | 1 << bit, bit, cover);
        }
    }
}

/// One of our rules as theirs.
fn rules(policy: &Policy, rule: &Rule) -> Vec<Value> {
    let mut all: Vec<Vec<Value>> = vec![vec![]];
    for argument in Argument::ALL {
        let tests = rule.conditions.iter().filter(|condition| condition.argument == argument);
        let tests: Vec<_> = tests.map(|condition| condition.test).collect();
        if tests.is_empty() {
            continue;
        }
        let index = argument.index();
        let words = alternatives(&tests).into_iter().map(|bits| match bits {
            Some((mask, value)) => json!([index, mask, value]),
            None => json!([index]),
        });
        let words: Vec<_> = words.collect();
        let longer = all.iter().flat_map(|chosen| {
            words.iter().map(move |one| chosen.iter().cloned().chain([one.clone()]).collect())
        });
        all = longer.collect();
    }
    let number = policy.arch().call_number(rule.call).unwrap();
    let errno = rule.action.word() & 0xffff;
    assert_eq!(rule.action.word() - errno, Action::Succeed.word(), "{}: no error", rule.call);
    all.into_iter().map(|conditions| json!([number, errno, conditions])).collect()
}

/// The programs that libseccomp makes, in the order in which they decide.
fn programs(policy: &Policy) -> Vec<Program> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut layers: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
    for rule in policy.rules() {
        let place = seen.entry(rule.call).or_default();
        layers.entry(*place).or_default().extend(rules(policy, rule));
        *place += 1;
    }
    let layers = Value::Array(layers.into_values().map(Value::Array).collect()).to_string();
    #[expect(clippy::disallowed_methods, reason = "only this interpreter has the module")]
    let mut command = Command::new(PYTHON);
    command.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(layers.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    String::from_utf8(output.stdout).unwrap().lines().map(program).collect()
}

fn program(line: &str) -> Program {
    let byte = |place| u8::from_str_radix(&line[place..place + 2], 16).unwrap();
    Program::from_bytes(&(0..line.len()).step_by(2).map(byte).collect::<Vec<_>>()).unwrap()
}

fn is_installed() -> bool {
    #[expect(clippy::disallowed_methods, reason = "only this interpreter has the module")]
    let mut command = Command::new(PYTHON);
    command.args(["-c", "import seccomp"]).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[test]
fn levels_agree_with_libseccomp() {
    if !is_installed() {
        say("skipped: python3-seccomp is not installed");
        return;
    }
    for level in LEVELS {
        let policy = policy(level);
        let programs = programs(&policy);
        let mut tally = Tally::default();
        for call in samples::of_policy(policy).chain(samples::foreign()) {
            let ours = policy.evaluate(&call).word();
            let answers = programs.iter().map(|program| simulate(program, &call).unwrap());
            let theirs = answers.into_iter().find(|answer| *answer != ALLOW).unwrap_or(ALLOW);
            match (ours == theirs, is_guarded(&policy, &call)) {
                (true, _) => tally.equal(),
                (false, true) => tally.explained(NO_GUARDS),
                (false, false) => panic!("{level}: {ours:#x} and {theirs:#x}: {call:x?}"),
            }
        }
        let title = format!("libseccomp, {level}, {} filters", programs.len());
        tally.finish(&title, &[NO_GUARDS]);
    }
}

/// Whether a guard of ours answers, or lets number -1 through.
fn is_guarded(policy: &Policy, call: &Call) -> bool {
    call.arch != policy.arch().audit() || policy.arch().call_name(call.number).is_none()
}
