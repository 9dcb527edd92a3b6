//! Who the guest is: namespaces, ids, groups and capabilities, inside and as the host's kernel
//! tells them.

use std::collections::BTreeMap;

use postern::SandboxProfile;
use postern::plan::{Tier, Warning};
use postern::profile::SharedGroups;
use postern_tests::{Row, Scratch, Watch, check, command, hold, namespaces, status};
use serde_json::{Value, json};

use crate::{default_sandbox, sandbox};

#[test]
fn every_namespace_is_the_runs_own() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let host = namespaces(i32::try_from(std::process::id()).unwrap());
    let a = hold(&sandbox, command(&["hold", "namespaces"]));
    let b = hold(&sandbox, command(&["hold", "namespaces"]));
    let seen = [namespaces(a.init), namespaces(a.guest), namespaces(b.init)];
    assert_eq!(host.len(), 7);
    for (name, hosts) in &host {
        assert_ne!(&seen[0][name], hosts, "{name} is the host's");
        assert_eq!(seen[0][name], seen[1][name], "{name}: PID 1 and guest");
        assert_ne!(seen[0][name], seen[2][name], "{name} is shared by two runs");
        assert_eq!(a.answer[name], json!(seen[0][name]), "{name} as seen inside");
    }
    assert!(a.release().ok() && b.release().ok());
}

#[test]
fn nothing_is_permitted_to_pid_1_or_guest() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let run = hold(&sandbox, command(&["hold", "identity"]));
    let none = "0000000000000000";
    let rows = [
        ("CapInh", none),
        ("CapPrm", none),
        ("CapEff", none),
        ("CapBnd", none),
        ("CapAmb", none),
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
    ];
    for pid in [run.init, run.guest] {
        let status = status(pid);
        for (field, expected) in rows {
            assert_eq!(status[field], expected, "{field} of {pid}");
        }
    }
    assert!(run.release().ok());
}

#[test]
fn the_guest_sees_an_ordinary_user() {
    let _watch = Watch::begin();
    let rows: [Row<'_>; 16] = [
        ("uid", &["identity"], "/uid", json!(65_534)),
        ("effective uid", &["identity"], "/euid", json!(65_534)),
        ("gid", &["identity"], "/gid", json!(65_534)),
        ("effective gid", &["identity"], "/egid", json!(65_534)),
        ("umask", &["identity"], "/umask", json!(0o022)),
        ("working directory", &["identity"], "/cwd", json!("/workspace")),
        ("hostname", &["identity"], "/hostname", json!("sandbox")),
        ("parent", &["identity"], "/parent", json!(1)),
        ("permitted", &["capabilities"], "/sets/permitted", json!(0)),
        ("effective", &["capabilities"], "/sets/effective", json!(0)),
        ("inheritable", &["capabilities"], "/sets/inheritable", json!(0)),
        ("bounding", &["capabilities"], "/bounding", json!(0)),
        ("ambient", &["capabilities"], "/ambient", json!(0)),
        ("securebits", &["capabilities"], "/securebits", json!(0xef)),
        ("no new privileges", &["capabilities"], "/no_new_privs", json!(1)),
        (
            "setgroups",
            &["read", "/proc/self/setgroups"],
            "/~1proc~1self~1setgroups",
            json!("deny\n"),
        ),
    ];
    check(&default_sandbox(), &rows);
}

#[test]
fn supplementary_groups_are_dropped_or_reported() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let enforcement = sandbox.enforcement().unwrap();
    let ours = status(i32::try_from(std::process::id()).unwrap());
    let gid = ours["Gid"].split(' ').next().unwrap();
    // One's own group may be listed too, and is no additional one.
    let own = |status: &BTreeMap<String, String>| {
        let groups = status["Groups"].split(' ').filter(|group| !group.is_empty());
        groups
            .filter(|group| *group != gid)
            .map(|group| group.parse().unwrap())
            .collect::<Vec<u32>>()
    };
    let run = hold(&sandbox, command(&["hold", "identity"]));
    let (init, guest) = (own(&status(run.init)), own(&status(run.guest)));
    assert!(run.release().ok());
    let shared = enforcement.shared_groups.clone();
    match enforcement.tier {
        Tier::Privileged | Tier::MapWriter | Tier::Subordinate => {
            assert_eq!((init, guest, shared), Default::default());
        }
        Tier::Unprivileged => {
            let own = own(&ours);
            assert!(!own.is_empty(), "this host is to have supplementary groups");
            assert_eq!((&init, &guest, &shared), (&own, &own, &own));
            assert!(enforcement.warnings.contains(&Warning::SharedGroups(shared)));
            let refuse = SandboxProfile::builder().shared_groups(SharedGroups::Refuse);
            let refused = postern::Sandbox::builder(refuse.build().unwrap()).build().unwrap_err();
            assert!(refused.to_string().ends_with("[shared-groups]"), "{refused}");
        }
    }
}

/// A file that only a group of the service may read stays closed where the group was dropped.
#[test]
fn a_groups_file_is_closed_to_a_root_hosts_guest() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let file = scratch.file("of-the-group", b"for the group", 0o640);
    std::os::unix::fs::chown(&file, None, Some(5001)).unwrap();
    let path = file.to_str().unwrap();
    let profile = SandboxProfile::builder().ro_binds([(path, "/srv/of-the-group")]);
    let sandbox = sandbox(profile.build().unwrap());
    let answer = postern_tests::ask(&sandbox, &["read", "/srv/of-the-group"]);
    let expected = match sandbox.enforcement().unwrap().tier {
        Tier::Privileged | Tier::MapWriter => json!({ "errno": libc::EACCES }),
        // A bind that needs the service's own group makes the guest have its ids.
        Tier::Subordinate | Tier::Unprivileged => Value::from("for the group"),
    };
    assert_eq!(answer["/srv/of-the-group"], expected);
}

#[test]
fn two_sandboxes_have_two_kernel_uids_on_a_root_host() {
    let _watch = Watch::begin();
    let (one, other) = (default_sandbox(), default_sandbox());
    let of = |sandbox: &postern::Sandbox| {
        let run = hold(sandbox, command(&["hold", "identity"]));
        let uid = status(run.guest)["Uid"].clone();
        assert!(run.release().ok());
        uid
    };
    let unprivileged = one.enforcement().unwrap().tier == Tier::Unprivileged;
    assert_eq!(of(&one) == of(&other), unprivileged);
    assert_eq!(of(&one), of(&one), "one sandbox has one uid");
}
