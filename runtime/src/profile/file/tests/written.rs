//! Profiles as text: what is written is read back, and what cannot be written is told.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use super::{EVERYTHING, ProfileFileError, SandboxProfile, sentence};
use crate::profile::{Bind, MountSpec, SandboxProfileBuilder};

#[test]
fn profiles_survive_both_formats() {
    let profile = SandboxProfile::from_toml_str(EVERYTHING).unwrap();
    assert_eq!((profile.guest_uid, profile.guest_gid), (None, Some(7)));
    assert_eq!(profile.limits.nproc, None);
    for profile in [profile, SandboxProfile::default()] {
        let text = profile.to_toml_string().unwrap();
        assert_eq!(SandboxProfile::from_toml_str(&text).unwrap(), profile, "{text}");
        let text = profile.to_json_string().unwrap();
        assert_eq!(SandboxProfile::from_json_str(&text).unwrap(), profile, "{text}");
    }
}

#[test]
fn defaults_are_written_too() {
    let text = SandboxProfile::default().to_toml_string().unwrap();
    for line in ["hostname = \"sandbox\"", "nproc = 1024", "cpu_seconds = \"unlimited\""] {
        assert!(text.lines().any(|other| other == line), "{text}");
    }
}

#[test]
fn the_example_leaves_no_field_at_its_default() {
    let all = |profile: &SandboxProfile| serde_json::to_value(profile).unwrap();
    let profile = SandboxProfile::from_toml_str(EVERYTHING).unwrap();
    let (changed, default) = (all(&profile), all(&SandboxProfile::default()));
    let fields = changed.as_object().unwrap();
    let same: Vec<_> =
        fields.iter().filter(|(name, value)| default.get(name) == Some(value)).collect();
    // `rootfs` is not among them: it excludes the host view.
    assert_eq!((same.as_slice(), fields.len()), (&[][..], 33), "{fields:?}");
}

/// Adds something to a profile.
type Change = fn(SandboxProfileBuilder) -> SandboxProfileBuilder;

/// A path that is not UTF-8.
fn odd() -> OsString {
    OsString::from_vec(b"/\xff".to_vec())
}

fn file(target: OsString, contents: &[u8]) -> MountSpec {
    MountSpec::File { target: target.into(), contents: contents.to_vec(), mode: 0o644 }
}

#[test]
fn what_is_not_utf8_is_told_by_its_field() {
    let rows: [(&str, Change); 10] = [
        ("workspace", |profile| profile.workspace_directory(odd())),
        ("rootfs", |profile| profile.rootfs(odd())),
        ("venv", |profile| profile.venv(odd())),
        ("cwd", |profile| profile.cwd(odd())),
        ("ro_binds[1]", |profile| profile.ro_binds([Bind::same("/a"), Bind::new("/a", odd())])),
        ("required_ro_binds[0]", |profile| profile.required_ro_binds([Bind::new(odd(), "/a")])),
        ("rw_binds[0]", |profile| profile.rw_binds([Bind::same(odd())])),
        ("mounts[0]", |profile| profile.mounts([file(odd(), b"")])),
        ("mounts[0]", |profile| profile.mounts([file("/a".into(), b"\xff")])),
        ("stubs[0]", |profile| profile.stubs([odd()])),
    ];
    for (field, change) in rows {
        let profile = change(SandboxProfile::builder()).build().unwrap();
        let words = format!("{field}: is not UTF-8, which a profile file cannot say");
        assert_eq!(sentence(profile.to_toml_string()), words);
        assert_eq!(sentence(profile.to_json_string()), words);
    }
}

#[test]
fn a_profile_that_would_not_be_read_back_is_not_written() {
    let profile = SandboxProfile { hostname: String::new(), ..SandboxProfile::default() };
    for written in [profile.to_toml_string(), profile.to_json_string()] {
        assert!(matches!(written, Err(ProfileFileError::Refused { .. })), "{written:?}");
    }
}

#[test]
fn odd_texts_survive_both_formats() {
    let texts = ["", " ", "a\nb\r\t\u{1}\u{7f}", "\u{feff}", "'\"\"\"'''\\", "\u{10ffff}", "0x1"];
    let mut profile = SandboxProfile::default();
    for (index, text) in texts.into_iter().enumerate() {
        profile.env.insert(format!("A{index}{text}"), text.to_owned());
        let (source, target) = (format!("/{text}:{index}"), format!("/a/{index}{text}\\"));
        profile.ro_binds.push(Bind::new(source, target));
    }
    let text = profile.to_toml_string().unwrap();
    assert_eq!(SandboxProfile::from_toml_str(&text).unwrap(), profile, "{text}");
    let text = profile.to_json_string().unwrap();
    assert_eq!(SandboxProfile::from_json_str(&text).unwrap(), profile, "{text}");
}
