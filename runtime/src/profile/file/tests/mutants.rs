//! Texts nobody would write: whatever they are, they are read or refused in words.

use super::{EVERYTHING, SandboxProfile};

/// How many texts of each format.
const COUNT: usize = 10_000;

/// What is put into a text.
const PIECES: [&str; 24] = [
    "[", "]", "{", "}", "[[", "]]", "\"", "'", "\"\"\"", "'''", "=", ":", ",", ".", "\n", "\\",
    "#", "-1", "1e999", "null", "\\ud800", "\u{feff}", "\u{0}", "limits.",
];

/// A sequence of numbers that is the same each time (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bound = u64::try_from(bound).unwrap();
        usize::try_from((number ^ (number >> 31)) % bound).unwrap()
    }
}

/// The first place from here on that lies between two characters.
fn between(text: &str, place: usize) -> usize {
    (place..text.len()).find(|place| text.is_char_boundary(*place)).unwrap_or(text.len())
}

/// The text with one or two changes.
fn mutant(text: &str, numbers: &mut Numbers) -> String {
    let mut text = text.to_owned();
    for _ in 0..=numbers.below(2) {
        let start = between(&text, numbers.below(text.len() + 1));
        let end = between(&text, start + numbers.below(12));
        let elsewhere = between(&text, numbers.below(text.len() + 1));
        let copy = text.get(start..end).unwrap().to_owned();
        let piece = PIECES[numbers.below(PIECES.len())];
        match numbers.below(4) {
            0 => text.replace_range(start..end, ""),
            1 => text.insert_str(elsewhere, &copy),
            2 => text.insert_str(start, piece),
            _ => text.replace_range(start..end, piece),
        }
    }
    text
}

#[test]
fn no_mutant_does_harm() {
    let profile = SandboxProfile::from_toml_str(EVERYTHING).unwrap();
    let json = profile.to_json_string().unwrap();
    let numbers = &mut Numbers(5);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..COUNT {
        let (toml, json) = (mutant(EVERYTHING, numbers), mutant(&json, numbers));
        for result in [SandboxProfile::from_toml_str(&toml), SandboxProfile::from_json_str(&json)] {
            match result {
                Ok(profile) => {
                    let text = profile.to_toml_string().unwrap();
                    assert_eq!(SandboxProfile::from_toml_str(&text).unwrap(), profile, "{text}");
                    read += 1;
                }
                Err(error) => {
                    let words = error.to_string();
                    assert!(words.len() < 1000 && !words.contains(['\n', '\0']), "{words:?}");
                    refused += 1;
                }
            }
        }
    }
    // Both ways are taken by many.
    assert!(read > COUNT / 20 && refused > COUNT, "{read} {refused}");
}
