//! The program against the table it is made from, for every level.

use postern_seccomp::simulate;

use super::{LEVELS, Tally, policy, samples};

#[test]
fn program_agrees_with_table() {
    for level in LEVELS {
        let policy = policy(level);
        let program = policy.assemble().unwrap();
        let mut tally = Tally::default();
        for call in samples::of_policy(policy).chain(samples::foreign()) {
            let expected = Ok(policy.evaluate(&call).word());
            assert_eq!(simulate(&program, &call), expected, "{level}: {call:x?}");
            tally.equal();
        }
        tally.finish(&format!("table against program, {level}"), &[]);
    }
}

/// From the strictest on, no level lets a call through that the next one refuses, but for these.
#[test]
fn levels_are_ordered() {
    // Its plain question is let through by `default`.
    let milder = ["get_mempolicy"];
    for pair in LEVELS.windows(2) {
        let [stricter, other] = [pair[0], pair[1]].map(policy);
        for call in samples::of_policy(other) {
            let name = other.arch().call_name(call.number).unwrap_or("-");
            let refused = |action| action != postern_seccomp::Action::Allow;
            let holds = !refused(other.evaluate(&call)) || refused(stricter.evaluate(&call));
            assert!(holds || milder.contains(&name), "{pair:?}: {name} {call:x?}");
        }
    }
}
