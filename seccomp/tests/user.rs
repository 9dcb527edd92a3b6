//! User policies: what is refused, by which rule and in which words, and who answers a call.

use postern_seccomp::{
    Action, Arch, Call, Errno, Level, UserBecause, UserPolicy, UserPolicyError, simulate,
};

fn read(text: &str) -> Result<UserPolicy, UserPolicyError> {
    UserPolicy::from_json(text, Arch::X86_64)
}

/// A list of refused calls around some entries.
fn refusing(entries: &str) -> String {
    format!(
        r#"{{"own": {{"mismatch_action": "allow", "match_action": {{"errno": 1}}, "filter": [{entries}]}}}}"#
    )
}

/// A list of allowed calls around some entries.
fn allowing(entries: &str) -> String {
    format!(
        r#"{{"own": {{"mismatch_action": {{"errno": 1}}, "match_action": "allow", "filter": [
            {{"syscall": "execve"}}, {entries}]}}}}"#
    )
}

/// One filter with these two actions.
fn with_actions(mismatch: &str, matched: &str) -> String {
    format!(
        r#"{{"own": {{"mismatch_action": {mismatch}, "match_action": {matched}, "filter": []}}}}"#
    )
}

#[test]
#[expect(clippy::too_many_lines, reason = "one row a rule")]
fn what_is_refused() {
    let argument = |words: &str| refusing(&format!(r#"{{"syscall": "kill", "args": [{words}]}}"#));
    let rows: &[(String, &str, &str)] = &[
        ("{".to_owned(), "policy-syntax", "EOF while parsing an object at line 1 column 1"),
        ("[]".to_owned(), "policy-syntax", "an object with one filter"),
        (refusing(r#"{"syscal": "kill"}"#), "policy-syntax", "unknown field `syscal`"),
        (
            refusing(r#"{"syscall": "kill", "action": 1}"#),
            "policy-syntax",
            "unknown field `action`",
        ),
        (refusing(r#"{"syscall": 62}"#), "policy-syntax", "expected a string"),
        (
            r#"{"a": {"match_action": "allow", "filter": []}}"#.to_owned(),
            "policy-syntax",
            "missing field `mismatch_action`",
        ),
        (
            argument(r#"{"index": 0, "type": "word", "op": "eq", "val": 1}"#),
            "policy-syntax",
            "unknown variant `word`",
        ),
        (
            argument(r#"{"index": 0, "type": "dword", "op": "is", "val": 1}"#),
            "policy-syntax",
            "unknown variant `is`",
        ),
        (
            argument(r#"{"index": 0, "type": "dword", "op": "eq", "val": -1}"#),
            "policy-syntax",
            "invalid value: integer `-1`",
        ),
        ("{}".to_owned(), "policy-filters", "holds 0 filters"),
        (
            with_actions("\"allow\"", "\"trap\"").replacen(
                '{',
                r#"{"a": {"mismatch_action":
                "allow", "match_action": "trap", "filter": []}, "#,
                1,
            ),
            "policy-filters",
            "holds 2 filters (a, own)",
        ),
        (
            r#"{"a": {"mismatch_action": "allow", "match_action": "trap", "filter": []},
                "a": {"mismatch_action": "allow", "match_action": "trap", "filter": []}}"#
                .to_owned(),
            "policy-syntax",
            "the filter \"a\" comes twice",
        ),
        (with_actions("\"allow\"", "\"log\""), "policy-action", "match_action is \"log\""),
        (with_actions("{\"trace\": 1}", "\"allow\""), "policy-action", "mismatch_action is"),
        (
            with_actions("\"allow\"", "\"notify\""),
            "policy-action",
            "asks a tracer, refuses nothing",
        ),
        (with_actions("\"allow\"", "{\"errno\": 4096}"), "policy-action", "{\"errno\":4096}"),
        (with_actions("\"allow\"", "{\"errno\": 1, \"x\": 1}"), "policy-action", "match_action"),
        (with_actions("\"allow\"", "7"), "policy-action", "match_action is 7"),
        (with_actions("\"allow\"", "\"allow\""), "policy-refuses-nothing", "can only tighten"),
        (with_actions("\"trap\"", "\"kill_process\""), "policy-refuses-all", "nothing could run"),
        (
            refusing(r#"{"syscall": "read"}, {"syscall": "openatt"}"#),
            "policy-unknown-call",
            "filter[1]: no system call \"openatt\"; did you mean openat, openat2, open?",
        ),
        (refusing(r#"{"syscall": "zzzzzz"}"#), "policy-unknown-call", "no system call \"zzzzzz\""),
        (argument(""), "policy-no-arguments", "filter[0]: kill has args without a condition"),
        (
            argument(r#"{"index": 6, "type": "dword", "op": "eq", "val": 1}"#),
            "policy-argument-index",
            "argument 6; they are 0 to 5",
        ),
        (
            argument(r#"{"index": 0, "type": "dword", "op": "eq", "val": 4294967296}"#),
            "policy-argument-value",
            "0x100000000, which has more than 32 bits; use a qword",
        ),
        (
            argument(r#"{"index": 0, "type": "dword", "op": {"masked_eq": 4294967296}, "val": 1}"#),
            "policy-argument-value",
            "0x100000000",
        ),
        (
            refusing(
                r#"{"syscall": "kill"}, {"syscall": "kill", "args": [
                    {"index": 0, "type": "dword", "op": "eq", "val": 1}]}"#,
            ),
            "policy-ambiguous",
            "one rule for kill without args",
        ),
        (refusing(r#"{"syscall": "execve"}"#), "policy-refuses-exec", "refuses execve"),
        (with_actions("\"trap\"", "\"allow\""), "policy-refuses-exec", "refuses execve"),
        (refusing(&many(4096)), "policy-too-long", "needs more than 4096 instructions"),
        (" ".repeat(UserPolicy::BYTES_MAX + 1), "policy-size", "is 1048577 bytes long"),
    ];
    for (text, rule, words) in rows {
        let shown: String = text.chars().take(120).collect();
        let error = read(text).expect_err(&shown);
        assert_eq!(error.rule(), *rule, "{shown}: {error}");
        assert!(error.to_string().contains(words), "{shown}: {error}");
    }
}

/// As many rules, no two of which are the same.
fn many(count: u32) -> String {
    let rule = |value| {
        format!(
            r#"{{"syscall": "ioctl",
                "args": [{{"index": 1, "type": "dword", "op": "eq", "val": {value}}}]}}"#
        )
    };
    (0..count).map(rule).collect::<Vec<_>>().join(",")
}

#[test]
fn what_a_level_refuses_cannot_be_asked_for() {
    let rows = [
        (allowing(r#"{"syscall": "read"}"#), Level::Default, None),
        (
            allowing(r#"{"syscall": "mount"}, {"syscall": "bpf"}"#),
            Level::Default,
            Some("bpf, mount"),
        ),
        (allowing(r#"{"syscall": "mount"}"#), Level::Off, None),
        // Answered like a kernel without them, which callers are ready for.
        (allowing(r#"{"syscall": "clone3"}, {"syscall": "splice"}"#), Level::Default, None),
        // Refused for some arguments only.
        (allowing(r#"{"syscall": "socket"}"#), Level::Strict, None),
        (allowing(r#"{"syscall": "sync"}"#), Level::Default, None),
        (allowing(r#"{"syscall": "sync"}"#), Level::Strict, Some("sync")),
        (refusing(r#"{"syscall": "mount"}"#), Level::Default, None),
    ];
    for (text, level, refused) in rows {
        let outcome = read(&text).unwrap().check_tightens(level);
        match refused {
            None => assert_eq!(outcome, Ok(()), "{level}: {text}"),
            Some(calls) => {
                let error = outcome.unwrap_err();
                assert_eq!(error.rule(), "policy-loosens");
                let words = format!("allows {calls}, which level {level} refuses with EPERM");
                assert!(error.to_string().contains(&words), "{error}");
            }
        }
    }
}

#[test]
fn who_answers() {
    let text = refusing(
        r#"{"syscall": "kill", "comment": "none of its business"},
           {"syscall": "socket", "args": [{"index": 0, "type": "dword", "op": "eq", "val": 2}]}"#,
    );
    let refused = read(&text).unwrap();
    let allowed = read(&allowing(r#"{"syscall": "read"}"#)).unwrap();
    let errno = Action::Errno(Errno::EPERM);
    let native = Arch::X86_64.audit();
    type Row<'a> = (&'a UserPolicy, u32, u32, u64, Action, &'a str);
    let rows: [Row<'_>; 12] = [
        (&refused, native, 62, 0, errno, "rule 0 kill"),
        (&refused, native, 41, 2, errno, "rule 1 socket"),
        (&refused, native, 41, 1 << 32 | 2, errno, "rule 1 socket"),
        (&refused, native, 41, 1, Action::Allow, "no rule"),
        (&refused, native, 500, 0, Action::Errno(Errno::ENOSYS), "unreviewed number"),
        (&refused, native, 0x4000_0000, 0, Action::Errno(Errno::ENOSYS), "x32"),
        (&refused, native, u32::MAX, 0, Action::Allow, "skipped"),
        (&refused, 0x4000_0003, 0, 0, Action::KillProcess, "foreign ABI"),
        (&allowed, native, 0, 0, Action::Allow, "rule 1 read"),
        (&allowed, native, 1, 0, errno, "no rule"),
        (&allowed, native, 500, 0, errno, "no rule"),
        (&allowed, native, 0x4000_0000, 0, errno, "no rule"),
    ];
    for (policy, arch, number, first, action, because) in rows {
        let arguments = [first, 0, 0, 0, 0, 0];
        let call = Call { number, arch, instruction_pointer: 0, arguments };
        let verdict = policy.explain(&call);
        let found = match verdict.because {
            UserBecause::Skipped => "skipped".to_owned(),
            UserBecause::Guard(guard) => guard.name.to_owned(),
            UserBecause::Rule(index, rule) => format!("rule {index} {}", rule.call),
            UserBecause::NoRule => "no rule".to_owned(),
        };
        assert_eq!((verdict.action, found.as_str()), (action, because), "{call:x?}");
        assert_eq!(simulate(policy.program(), &call), Ok(action.word()), "{call:x?}");
    }
    assert_eq!(refused.rules()[0].comment.as_deref(), Some("none of its business"));
}

#[test]
fn the_stricter_of_two_answers_counts() {
    let (eperm, enosys) = (Action::Errno(Errno::EPERM), Action::Errno(Errno::ENOSYS));
    let table = [
        (Action::Allow, Action::Allow, Action::Allow),
        (eperm, Action::Allow, eperm),
        (Action::Allow, eperm, eperm),
        (eperm, enosys, enosys),
        (eperm, Action::Succeed, Action::Succeed),
        (eperm, Action::Trap, Action::Trap),
        (Action::KillProcess, Action::KillThread, Action::KillProcess),
        (Action::Trap, Action::KillThread, Action::KillThread),
    ];
    for (first, later, expected) in table {
        assert_eq!(first.and_then(later), expected, "{first} then {later}");
    }
}
