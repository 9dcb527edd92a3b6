//! Each verdict can be otherwise: by the guest's word, and by what the host saw.

use super::*;

fn seen() -> Seen {
    Seen {
        refused: 1,
        removals: 0,
        rows: [344, 344],
        connections: 0,
        has_own_network: true,
        is_secret_told: false,
        is_secret_kept: true,
        shown: Shown::default(),
        homes: vec![("/home/ada".to_owned(), vec![".pyenv".to_owned()])],
        is_core_pattern_kept: true,
        seccomp: "compat".to_owned(),
        processes: [200, 0],
        nproc: 256,
    }
}

fn home() -> String {
    seen().homes.remove(0).0
}

fn claims() -> Claims {
    let keys = TRIALS.iter().map(|trial| trial.0.to_owned());
    let keys = keys.chain([home(), "fork bomb".to_owned()]);
    keys.map(|key| (key, Claim { did: false, says: "EPERM".to_owned() })).collect()
}

fn verdicts(claims: &Claims, seen: &Seen) -> Vec<(String, Verdict)> {
    judge(claims, seen).into_iter().map(|attempt| (attempt.name, attempt.verdict)).collect()
}

/// The names of those that are not held.
fn others(claims: &Claims, seen: &Seen) -> Vec<String> {
    let verdicts = verdicts(claims, seen).into_iter();
    verdicts.filter(|(_, verdict)| *verdict != Verdict::Held).map(|(name, _)| name).collect()
}

#[test]
fn all_is_held_when_both_say_so() {
    assert_eq!(others(&claims(), &seen()), [""; 0]);
    assert_eq!(verdicts(&claims(), &seen()).len(), 13);
}

#[test]
fn what_the_guest_did_or_never_tried_is_not_held() {
    for key in claims().into_keys() {
        let mut done = claims();
        done.insert(key.clone(), Claim { did: true, says: "done".to_owned() });
        assert_eq!(others(&done, &seen()).len(), 1, "{key}");
        let mut missing = claims();
        missing.remove(&key);
        let verdicts = verdicts(&missing, &seen()).into_iter();
        assert_eq!(verdicts.filter(|(_, one)| *one == Verdict::NotTried).count(), 1, "{key}");
    }
}

/// A guest that says it was refused is not believed.
#[test]
fn what_the_host_saw_happen_is_not_held() {
    type Change = fn(&mut Seen);
    let rows: [(Change, &[&str]); 16] = [
        (|seen| seen.refused = 0, &["call Penguins/Remove"]),
        (|seen| seen.removals = 1, &["call Penguins/Remove"]),
        (|seen| seen.rows[1] = 0, &["call Penguins/Remove"]),
        (|seen| seen.connections = 1, &["connect to loopback"]),
        (|seen| seen.has_own_network = false, &["connect to 192.0.2.1"]),
        (|seen| seen.is_secret_told = true, &["read a 0666 file"]),
        (|seen| seen.shown.secret = true, &["read a 0666 file"]),
        (|seen| seen.is_secret_kept = false, &["write a 0666 file"]),
        (|seen| seen.shown.database = true, &["read the database"]),
        (|seen| seen.shown.shadow = true, &["read /etc/shadow"]),
        (|seen| seen.is_core_pattern_kept = false, &["write core_pattern"]),
        (
            |seen| seen.seccomp = "off".to_owned(),
            &["ptrace PID 1", "mount a file system", "make a user namespace"],
        ),
        (|seen| seen.processes[0] = 257, &["fork without end"]),
        (|seen| seen.processes[0] = 0, &["fork without end"]),
        (|seen| seen.processes[1] = 1, &["fork without end"]),
        (|seen| seen.homes.clear(), &[]),
    ];
    for (at, (change, expected)) in rows.into_iter().enumerate() {
        let mut seen = seen();
        change(&mut seen);
        assert_eq!(others(&claims(), &seen), expected, "row {at}");
    }
}

#[test]
fn a_home_shows_what_mounts_show_and_no_more() {
    let rows = [
        (false, "ENOENT", Verdict::Held),
        (true, "listed []", Verdict::Held),
        (true, "listed [\".pyenv\"]", Verdict::Held),
        (true, "listed [\".pyenv\", \".ssh\"]", Verdict::NotHeld),
        (true, "listed something", Verdict::NotHeld),
    ];
    for (did, says, verdict) in rows {
        let mut claims = claims();
        claims.insert(home(), Claim { did, says: says.to_owned() });
        let found = judge(&claims, &seen()).into_iter().find(|one| one.name.starts_with("list "));
        assert_eq!(found.unwrap().verdict, verdict, "{says}");
    }
}

#[test]
fn nothing_that_the_guest_says_moves_the_terminal() {
    let rows = [
        ("plain 'text' \"here\"", "plain 'text' \"here\""),
        ("\x1b]0;title\x07\n", "\\u{1b}]0;title\\u{7}\\n"),
        ("abc\u{202e}cba", "abc\\u{202e}cba"),
    ];
    for (words, shown) in rows {
        assert_eq!(harmless(words), shown);
    }
    assert_eq!(harmless(&"x".repeat(1000)).len(), WORDS_MAX);
}
