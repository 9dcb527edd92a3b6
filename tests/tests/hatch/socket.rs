//! What a guest can do to the socket of its hatch: connect to it.

use postern::profile::{ProcKind, SandboxProfileBuilder};
use postern::{Command, Sandbox, SandboxProfile};
use postern_seccomp::Level;
use serde_json::{Map, Value, json};

use crate::fixture::{HANG, begin, hatch, run};

/// The default profile, and each with one wall less.
pub(crate) fn profiles() -> [(&'static str, SandboxProfileBuilder); 4] {
    let with = SandboxProfile::builder;
    [
        ("default", with()),
        ("no filter", with().seccomp(Level::Off)),
        ("processes in /proc can be written", with().proc(ProcKind::Masked)),
        ("root inside", with().guest_uid(None).guest_gid(None)),
    ]
}

fn outcomes(profile: SandboxProfileBuilder) -> Map<String, Value> {
    let (hatch, _) = hatch();
    let sandbox = Sandbox::builder(profile.build().unwrap()).hatch(hatch).build();
    let sandbox = sandbox.unwrap_or_else(|error| panic!("{error}"));
    let attack = Command::python(include_str!("guests/attack.py")).timeout(HANG);
    let result = run(&sandbox, attack.script_name("attack.py"));
    serde_json::from_slice(&result.stdout).unwrap()
}

/// How an attempt may fail: the file system is read-only or another one, the name is taken, the guest
/// has no right, or its world has no such thing.
const REFUSED: [&str; 6] = ["EROFS", "EXDEV", "EADDRINUSE", "EPERM", "EACCES", "ENOSPC"];

#[test]
fn a_guest_can_connect_and_nothing_else() {
    let _watch = begin();
    for (name, profile) in profiles() {
        let mut outcomes = outcomes(profile);
        for connect in ["connect", "plain connect"] {
            assert_eq!(outcomes.remove(connect), Some(json!("done")), "{name}: {connect}");
        }
        let files = json!(["attack.py", "hatch.sock", "hatch.sock@localhost"]);
        assert_eq!(outcomes.remove("files"), Some(files), "{name}");
        assert_eq!(outcomes.len(), 32, "{name}: attempts");
        let refused = |outcome: &Value| REFUSED.iter().any(|errno| outcome == errno);
        let others: Vec<_> = outcomes.iter().filter(|(_, outcome)| !refused(outcome)).collect();
        assert!(others.is_empty(), "{name}: {others:?}");
    }
}
