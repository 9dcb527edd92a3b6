//! A profile that a file can say is written as a file that says the same; any other text is
//! refused in one sentence.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern::SandboxProfile;

fuzz_target!(|data: &[u8]| {
    let Some((mode, rest)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    let read = match mode & 1 {
        0 => SandboxProfile::from_toml_str(&text),
        _ => SandboxProfile::from_json_str(&text),
    };
    let profile = match read {
        Ok(profile) => profile,
        Err(error) => {
            let sentence = error.to_string();
            assert!(!sentence.is_empty() && sentence.lines().count() == 1, "{sentence:?}");
            return;
        }
    };
    let toml = profile.to_toml_string().unwrap();
    assert_eq!(SandboxProfile::from_toml_str(&toml).unwrap(), profile, "{toml}");
    let json = profile.to_json_string().unwrap();
    assert_eq!(SandboxProfile::from_json_str(&json).unwrap(), profile, "{json}");
});
