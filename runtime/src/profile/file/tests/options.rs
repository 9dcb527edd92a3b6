//! Options: one key at a time, refused as a file would be, and the profile as it was.

use std::os::unix::ffi::OsStringExt;

use super::{ProfileFileError, SandboxProfile, sentence};

/// Options, each a key and its value.
type Options = &'static [(&'static str, &'static str)];

/// Options, and a file that says the same.
const SAME: [(Options, &str); 22] = [
    (&[("hostname", "box")], "hostname = 'box'"),
    (&[("hostname", "\"box\"")], "hostname = 'box'"),
    (&[("hostname", "'64'")], "hostname = '64'"),
    (&[("limits.nproc", "64")], "limits.nproc = 64"),
    (&[("limits.nproc", " 0x40 ")], "limits.nproc = 64"),
    (&[("limits.nproc", "unlimited")], "limits.nproc = 'unlimited'"),
    (&[("limits.nproc", "64"), ("limits.nofile", "9")], "limits = { nproc = 64, nofile = 9 }"),
    (&[("limits.nproc", "64"), ("limits", "{ nofile = 9 }")], "limits.nofile = 9"),
    (&[("env.TZ", "UTC"), ("env.A", "b c")], "env = { TZ = 'UTC', A = 'b c' }"),
    (&[("env.A.B", "=")], "env.'A.B' = '='"),
    (&[("env.A", "")], "env.A = ''"),
    (&[("ro_binds", "[\"/a\"]"), ("ro_binds", "['/b', '/c:/d']")], "ro_binds = ['/b', '/c:/d']"),
    (&[("mounts", "[{ dir = { target = '/a' } }]")], "mounts = [{ dir = { target = '/a' } }]"),
    (&[("python", "/a.b/c.d.e.f.g.h.i.j.k")], "python = '/a.b/c.d.e.f.g.h.i.j.k'"),
    (&[("python", "a[[[[[[[[[")], "python = 'a[[[[[[[[['"),
    (&[("venv", "/opt/a b")], "venv = '/opt/a b'"),
    (&[("workspace.owned.inodes", "99")], "workspace.owned.inodes = 99"),
    (&[("workspace.directory.path", "/w")], "workspace.directory.path = '/w'"),
    (
        &[("workspace.directory.path", "/w"), ("workspace.directory.access", "shared")],
        "workspace.directory = { path = '/w', access = 'shared' }",
    ),
    (
        &[("workspace.directory.path", "/w"), ("workspace.owned.inodes", "99")],
        "workspace.owned.inodes = 99",
    ),
    (&[("guest_uid", "0")], "guest_uid = 0"),
    (&[("seccomp", "off"), ("proc", "none")], "seccomp = 'off'\nproc = 'none'"),
];

#[test]
fn options_say_what_a_file_says() {
    for (options, text) in SAME {
        let mut profile = SandboxProfile::default();
        for (key, value) in options {
            profile.set(key, value).unwrap_or_else(|error| panic!("{key}={value}: {error}"));
        }
        assert_eq!(profile, SandboxProfile::from_toml_str(text).unwrap(), "{options:?}");
    }
}

/// A key, a value, and the whole sentence.
const WRONG: &[(&str, &str, &str)] = &[
    ("nproc", "1", "unknown key `nproc`; did you mean `limits.nproc`?"),
    ("hostnam", "a", "unknown key `hostnam`; did you mean `hostname`?"),
    ("limits.nprocs", "1", "unknown key `limits.nprocs`; did you mean `limits.nproc`?"),
    (
        "limits.nproc.soft",
        "1",
        "limits.nproc: found a table, expects a number of processes and threads, or \"unlimited\", e.g. 64",
    ),
    (
        "limits.nproc",
        "many",
        "limits.nproc: found the text \"many\", expects a number of processes and threads, or \"unlimited\", e.g. 64",
    ),
    (
        "hostname",
        "64",
        "hostname: found the number 64, expects a text of 1 to 64 bytes, e.g. \"box\"",
    ),
    ("hostname", "", "hostname: is 0 bytes long; 1 to 64 are allowed [hostname-length]"),
    (
        "proc",
        "masked_",
        "proc: unknown word \"masked_\"; did you mean \"masked\"? The words are \"read_only\", \"minimal\", \"masked\", \"none\"",
    ),
    (
        "ro_binds",
        "/a",
        "ro_binds: found the text \"/a\", expects a list of binds, each SOURCE or SOURCE:TARGET, e.g. [\"/srv/data:/data\"]",
    ),
    ("ro_binds", "[\"/a\"", "not TOML: unclosed array, expected `]`"),
    (
        "ro_binds.0",
        "/a",
        "ro_binds: found a table, expects a list of binds, each SOURCE or SOURCE:TARGET, e.g. [\"/srv/data:/data\"]",
    ),
    (
        "ro_binds",
        "['a']",
        "ro_binds[0].source: a is relative; write an absolute path [path-relative]",
    ),
    ("limits", "{ nproc = 1 }\nhostname = 'a'", "not TOML: unexpected content, expected nothing"),
    ("hostname", "a\nb", "hostname: holds '\\n' [hostname-character]"),
    (
        "workspace.directory.access",
        "shared",
        "the key `workspace.directory.path` is missing; it expects an absolute path on the host, e.g. \"/srv/job\"",
    ),
    (
        "rootfs",
        "/a",
        "rootfs: a rootfs and `root = \"host_view\"` exclude one another [rootfs-with-host-view]",
    ),
    ("env.", "a", "env: \"\" is not the name of a variable [env-name]"),
    ("env", "a", "env: found the text \"a\", expects a table of texts, e.g. { TZ = \"UTC\" }"),
    ("", "1", "unknown key ``; the keys there are ALL"),
    (".", "1", "unknown key ``; the keys there are ALL"),
    (
        "limits.",
        "1",
        "unknown key `limits.`; the keys there are `nproc`, `nofile`, `fsize_bytes`, `memlock_bytes`, `sigpending`, `msgqueue_bytes`, `stack_bytes`, `address_space_bytes`, `cpu_seconds`",
    ),
];

#[test]
fn a_wrong_option_is_told_and_changes_nothing() {
    let before =
        SandboxProfile { root: crate::profile::Root::HostView, ..SandboxProfile::default() };
    let mut wrong = Vec::new();
    for (key, value, words) in WRONG {
        let mut profile = before.clone();
        let told = sentence(profile.set(key, value));
        assert_eq!(profile, before, "{key}={value}");
        wrong.extend((told != *words).then(|| format!("{key}={value}: {told}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_a_file_cannot_say_is_in_no_options_way() {
    let path = std::ffi::OsString::from_vec(b"/w\xff".to_vec());
    let mut profile = SandboxProfile::builder().workspace_directory(path).build().unwrap();
    profile.set("limits.nproc", "64").unwrap();
    assert_eq!(profile.limits.nproc, Some(64));
    let told = sentence(profile.set("workspace.directory.access", "shared"));
    assert_eq!(told, "workspace: is not UTF-8, which a profile file cannot say");
    profile.set("workspace", "{ owned = { inodes = 99 } }").unwrap();
}

#[test]
fn a_broken_field_can_be_set_right() {
    let mut profile = SandboxProfile::default();
    profile.limits.nofile = 0;
    let told = sentence(profile.set("hostname", "a"));
    assert_eq!(told, "limits.nofile: 0 is less than 8 [too-small]");
    profile.set("limits.nofile", "64").unwrap();
}

#[test]
fn a_long_key_costs_no_stack() {
    let key = "a.".repeat(1 << 19);
    let told = SandboxProfile::default().set(&key, "1");
    assert!(matches!(told, Err(ProfileFileError::TooDeep { .. })), "{told:?}");
}
