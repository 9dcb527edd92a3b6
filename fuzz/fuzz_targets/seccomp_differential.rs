//! Whatever the call, the program of a level answers as the table that it was made from.
#![no_main]

mod calls;

use std::sync::LazyLock;

use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use postern_seccomp::{Arch, Condition, Level, Policy, Program, simulate};

static LEVELS: LazyLock<Vec<(Level, Policy, Program)>> = LazyLock::new(|| {
    let levels = Level::ALL.into_iter();
    let with_policy = levels.filter_map(|level| Some((level, level.policy(Arch::X86_64)?)));
    with_policy.map(|(level, policy)| (level, policy, policy.assemble().unwrap())).collect()
});

static CONDITIONS: LazyLock<Vec<Condition>> = LazyLock::new(|| {
    let rules = LEVELS.iter().flat_map(|(_, policy, _)| policy.rules());
    rules.flat_map(|rule| rule.conditions).copied().collect()
});

fuzz_target!(|data: &[u8]| {
    let mut bytes = Unstructured::new(data);
    while let Ok(call) = calls::call(&mut bytes, &CONDITIONS) {
        for (level, policy, program) in LEVELS.iter() {
            let expected = Ok(policy.evaluate(&call).word());
            assert_eq!(simulate(program, &call), expected, "{level}: {call:x?}");
        }
        if bytes.is_empty() {
            break;
        }
    }
});
