//! A policy that is taken answers as its table does, starts programs, and loosens no level; one
//! that is not is refused by a rule's name.
#![no_main]

mod calls;

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use postern_seccomp::{Action, Arch, Call, Condition, Level, UserPolicy, simulate};

fuzz_target!(|data: &[u8]| {
    let Some((mode, rest)) = data.split_first() else { return };
    if mode & 1 == 0 {
        judge(&String::from_utf8_lossy(rest), &mut Unstructured::new(&[]));
        return;
    }
    let mut bytes = Unstructured::new(rest);
    if let Ok(text) = written(&mut bytes) {
        judge(&text, &mut bytes);
    }
});

fn judge(text: &str, bytes: &mut Unstructured<'_>) {
    let policy = match UserPolicy::from_json(text, Arch::X86_64) {
        Ok(policy) => policy,
        Err(error) => {
            assert!(error.rule().starts_with("policy-"), "{error:?}");
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let exec = Call::native(Arch::X86_64, 59, [0x7ffc_0000_1000; 6]);
    assert_eq!(policy.evaluate(&exec), Action::Allow, "{text}");
    let conditions: Vec<Condition> =
        policy.rules().iter().flat_map(|rule| rule.conditions.iter().copied()).collect();
    for _ in 0..32 {
        let Ok(call) = calls::call(bytes, &conditions) else { return };
        let answer = policy.evaluate(&call);
        assert_eq!(simulate(policy.program(), &call), Ok(answer.word()), "{text}: {call:x?}");
        let level = Level::Default.policy(Arch::X86_64).unwrap().evaluate(&call);
        let both = level.and_then(answer);
        assert!(level == Action::Allow || both != Action::Allow, "{level} {answer}");
    }
}

/// A text of the right shape, for the most part.
fn written(bytes: &mut Unstructured<'_>) -> Result<String> {
    const ACTIONS: [&str; 8] = [
        "\"allow\"",
        "\"allow\"",
        "{\"errno\":1}",
        "{\"errno\":0}",
        "\"trap\"",
        "\"kill_process\"",
        "\"kill_thread\"",
        "\"log\"",
    ];
    let (mismatch, matched) = (bytes.choose(&ACTIONS)?, bytes.choose(&ACTIONS)?);
    let mut rules = Vec::new();
    for _ in 0..bytes.int_in_range(0..=12)? {
        rules.push(rule(bytes)?);
    }
    let rules = rules.join(",");
    Ok(format!(
        r#"{{"a":{{"mismatch_action":{mismatch},"match_action":{matched},"filter":[{rules}]}}}}"#
    ))
}

fn rule(bytes: &mut Unstructured<'_>) -> Result<String> {
    let place = bytes.int_in_range(0..=480)?;
    let name = Arch::X86_64.call_name(place).unwrap_or("execve");
    let mut arguments = Vec::new();
    for _ in 0..bytes.int_in_range(0..=3)? {
        arguments.push(argument(bytes)?);
    }
    match arguments.is_empty() {
        true => Ok(format!(r#"{{"syscall":"{name}"}}"#)),
        false => Ok(format!(r#"{{"syscall":"{name}","args":[{}]}}"#, arguments.join(","))),
    }
}

fn argument(bytes: &mut Unstructured<'_>) -> Result<String> {
    const OPERATORS: [&str; 6] = ["\"eq\"", "\"ne\"", "\"lt\"", "\"le\"", "\"gt\"", "\"ge\""];
    let width = *bytes.choose(&["dword", "qword"])?;
    let index = bytes.int_in_range(0..=6)?;
    let value = if bytes.ratio(1, 3)? {
        bytes.arbitrary::<u64>()?
    } else {
        bytes.arbitrary::<u32>()?.into()
    };
    let mask = u64::from(bytes.arbitrary::<u32>()?);
    let operator = match bytes.ratio(1, 4)? {
        true => format!("{{\"masked_eq\":{mask}}}"),
        false => (*bytes.choose(&OPERATORS)?).to_owned(),
    };
    Ok(format!(r#"{{"index":{index},"type":"{width}","op":{operator},"val":{value}}}"#))
}
