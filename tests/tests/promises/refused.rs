//! Bad profiles and bad commands: refused by the rule's name, before anything is started.

use std::time::Duration;

use postern::error::{CommandError, Error};
use postern::profile::{ProfileFileError, SandboxProfile};
use postern::{Command, Sandbox};
use postern_tests::{Residue, Watch, ask};
use serde_json::json;

use crate::default_sandbox;

/// A rule, and a profile that breaks it on every host.
const PROFILES: [(&str, &str); 24] = [
    ("empty", "rootfs = ''"),
    ("nul-byte", r#"cwd = "/a\u0000""#),
    ("path-relative", "ro_binds = ['usr']"),
    ("path-dots", "ro_binds = ['/usr:/a/../b']"),
    ("target-reserved", "ro_binds = ['/usr:/proc']"),
    ("target-reserved", "ro_binds = ['/usr:/']"),
    ("target-reserved", "mounts = [{ tmpfs = { target = '/run/postern' } }]"),
    ("target-duplicate", "ro_binds = ['/usr:/a', '/etc:/a']"),
    ("source-missing", "required_ro_binds = ['/no/such/path']"),
    ("source-root", "ro_binds = ['/:/host']"),
    ("source-proc", "ro_binds = ['/proc/self:/mine']"),
    ("not-directory", "workspace.directory = { path = '/etc/passwd' }"),
    ("usr-missing", "rootfs = '/etc'"),
    ("rootfs-with-host-view", "rootfs = '/etc'\nroot = 'host_view'"),
    ("id-impossible", "guest_uid = 4294967295"),
    ("host-id-zero", "host_uid = 0"),
    ("too-small", "limits.nofile = 0"),
    ("too-small", "tmp_bytes = 0"),
    ("too-large", "oom_score_adj = 1001"),
    ("mode-bits", "mounts = [{ dir = { target = '/a', mode = 65536 } }]"),
    ("env-name", "env = { 'A=B' = '' }"),
    ("env-nul-byte", r#"env = { A = "\u0000" }"#),
    ("hostname-length", "hostname = ''"),
    ("cwd-missing", "cwd = '/no/such/directory'"),
];

fn rule_of(text: &str) -> &'static str {
    let refusal = match SandboxProfile::from_toml_str(text) {
        Err(ProfileFileError::Refused { source, .. }) => *source,
        Err(other) => panic!("{text}: {other}"),
        Ok(profile) => match Sandbox::builder(profile).build() {
            Err(Error::Refused(refusal)) => refusal,
            other => panic!("{text}: {other:?}"),
        },
    };
    refusal.rule()
}

#[test]
fn bad_profiles_are_refused_by_rule_and_nothing_is_started() {
    let _watch = Watch::begin();
    let before = Residue::snapshot();
    for (rule, text) in PROFILES {
        assert_eq!(rule_of(text), rule, "{text}");
        assert_eq!(Residue::snapshot(), before, "{text}");
    }
}

#[test]
fn bad_commands_are_refused_by_rule_and_nothing_is_started() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let rows: [(CommandError, Command); 13] = [
        (CommandError::NoProgram, Command::from(Vec::<String>::new())),
        (CommandError::EmptyProgram, Command::new("")),
        (CommandError::NulInArgument("a\0b".into()), Command::new("true").arg("a\0b")),
        (CommandError::NulInEnvironment("A=\0".into()), Command::new("true").env("A", "\0")),
        (CommandError::EnvironmentName("A=B".into()), Command::new("true").env("A=B", "")),
        (CommandError::WorkingDirectory("tmp".into()), Command::new("true").cwd("tmp")),
        (CommandError::WorkingDirectory("/tmp/..".into()), Command::new("true").cwd("/tmp/..")),
        (CommandError::ZeroTimeout, Command::new("true").timeout(Duration::ZERO)),
        (CommandError::NulInScript { line: 2 }, Command::python("a = 1\nb = '\0'\n")),
        (CommandError::NulInScript { line: 1 }, Command::bash("\0")),
        (CommandError::EmptyProgram, Command::shell("", "true")),
        (
            CommandError::PrivateFileName("main.py".into()),
            Command::python("").private_file("main.py", ""),
        ),
        (CommandError::EnvironmentName("".into()), Command::new("true").env("", "")),
    ];
    let before = Residue::snapshot();
    for (expected, command) in rows {
        match sandbox.start(command) {
            Err(Error::Command(refused)) => assert_eq!(refused, expected),
            other => panic!("{expected:?}: {other:?}"),
        }
        assert_eq!(Residue::snapshot(), before, "{expected:?}");
    }
    assert_eq!(ask(&sandbox, &["fds"]), json!([0, 1, 2]), "the sandbox is as good as before");
}

#[test]
fn a_sandbox_without_run_directories_takes_no_files() {
    let _watch = Watch::begin();
    let sandbox = Sandbox::builder(SandboxProfile::default()).run_directories(false).build();
    let sandbox = sandbox.unwrap();
    let commands =
        [Command::new("true").private_file("name", ""), Command::python(""), Command::bash("")];
    for command in commands {
        let refused = sandbox.start(command);
        let expected = CommandError::NoRunDirectories;
        assert!(matches!(refused, Err(Error::Command(ref found)) if *found == expected));
    }
    assert_eq!(sandbox.run(["true"]).unwrap().returncode(), 0);
}

#[test]
fn bad_private_names_are_refused() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let before = Residue::snapshot();
    for name in ["", ".", "..", "a/b", "/a", "a\0b", &"a".repeat(256)] {
        let refused = sandbox.start(Command::new("true").private_file(name, ""));
        let expected = CommandError::PrivateFileName(name.into());
        assert!(
            matches!(refused, Err(Error::Command(ref found)) if *found == expected),
            "{name:?}"
        );
        assert_eq!(Residue::snapshot(), before, "{name:?}");
    }
}
