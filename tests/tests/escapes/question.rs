//! From a row's words to the probe's: names of calls become numbers, names in braces what they
//! stand for on this stage.

use postern_seccomp::Arch;

/// Names in braces and what they stand for.
pub(crate) type Names = [(&'static str, String)];

/// The bit that makes a call an x32 one.
const X32: u32 = 0x4000_0000;

/// A question in the probe's words.
pub(crate) fn spelled(question: &str, names: &Names) -> String {
    let filled = names.iter().fold(question.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), value)
    });
    let mut spelled = Vec::new();
    // Whether the next word is a call.
    let mut is_call = false;
    let mut is_count = false;
    for word in filled.split(' ') {
        let counts = matches!(word, "repeat");
        spelled.push(match is_call && !is_count {
            true => number(word),
            false => word.to_owned(),
        });
        is_call = matches!(word, "calls" | ";" | "repeat" | "frame") || is_count;
        is_count = counts;
    }
    spelled.join(" ")
}

/// The number of a call that is named; numbers and the probe's own words stay.
fn number(word: &str) -> String {
    let (x32, name) = word.strip_prefix("x32:").map_or((0, word), |name| (X32, name));
    match Arch::X86_64.call_number(name) {
        Some(number) => (number | x32).to_string(),
        None => word.to_owned(),
    }
}

#[test]
fn names_become_numbers() {
    let names = [("w", "/workspace".to_owned())];
    let rows = [
        ("calls unshare 0 ; x32:unshare 0 ; show &0 4", "calls 272 0 ; 1073742096 0 ; show &0 4"),
        ("rooted calls mkdir s:{w}/read 0", "rooted calls 83 s:/workspace/read 0"),
        ("repeat 10 read 0 ; read 1", "repeat 10 0 0 ; 0 1"),
        ("via thread calls int80:20 ; 500", "via thread calls int80:20 ; 500"),
        ("open r read", "open r read"),
    ];
    for (question, spelling) in rows {
        assert_eq!(spelled(question, &names), spelling);
    }
}
