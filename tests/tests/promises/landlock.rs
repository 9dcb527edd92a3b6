//! The second wall: what it alone refuses, shown by the same question with it and without, and what
//! ordinary programs do that it must not refuse.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use postern::profile::{Landlock, Namespaces, ProcKind, Root, Sharing};
use postern::{LandlockUse, SandboxProfile};
use postern_seccomp::Level;
use postern_tests::{Row, Scratch, Watch, ask, check};
use serde_json::{Value, json};

use crate::{default_sandbox, sandbox};

/// With the wall and without; no filter, which would refuse some of it first.
fn both(profile: &SandboxProfile) -> [(LandlockUse, postern::Sandbox); 2] {
    [Landlock::Require(6), Landlock::Off].map(|landlock| {
        let mut profile = profile.clone();
        (profile.landlock, profile.seccomp) = (landlock, Level::Off);
        let sandbox = sandbox(profile);
        (sandbox.enforcement().unwrap().landlock, sandbox)
    })
}

fn sharing(namespaces: Namespaces) -> SandboxProfile {
    SandboxProfile::builder().namespaces(namespaces).build().unwrap()
}

fn errno(errno: i32) -> Value {
    json!({ "errno": errno })
}

#[test]
fn what_the_domain_alone_refuses() {
    let _watch = Watch::begin();
    let name = format!("postern-landlock-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let of_net = sharing(Namespaces { net: Sharing::Shared, ..Namespaces::default() });
    let of_pid = sharing(Namespaces { pid: Sharing::Shared, ..Namespaces::default() });
    let plain = SandboxProfile::default();
    let connect = ["act", "connect-abstract", name.as_str()];
    // PID 1 of a shared pid namespace is the launcher, whose kernel uid is the guest's.
    let signal = ["syscall", "62", "1", "0"];
    let queues = |made, errno: i32| json!({ "made": made, "errno": errno });
    // The kernel itself refuses a device node with EPERM, and after the domain.
    let rows: [(&SandboxProfile, &[&str], Value, Value); 6] = [
        (&plain, &["act", "block-device", "/workspace/w"], errno(libc::EACCES), errno(libc::EPERM)),
        (&plain, &["act", "block-device", "/tmp/w"], errno(libc::EACCES), errno(libc::EPERM)),
        (&plain, &["act", "block-device", "/dev/shm/w"], errno(libc::EACCES), errno(libc::EPERM)),
        (&of_net, &connect, errno(libc::EPERM), json!(true)),
        (&of_pid, &signal, errno(libc::EPERM), json!(0)),
        // No path leads to a queue, so that no rule can.
        (&plain, &["use-up", "posix-queues"], queues(0, libc::EACCES), queues(32, libc::ENOSPC)),
    ];
    for (profile, question, refused, allowed) in rows {
        let [(with, held), (without, open)] = both(profile);
        assert_eq!((with, without), (LandlockUse::Domain { abi: 6 }, LandlockUse::Off));
        assert_eq!(ask(&held, question), refused, "{question:?} with Landlock");
        assert_eq!(ask(&open, question), allowed, "{question:?} without Landlock");
    }
}

/// The launcher is dumpable, so that its children can write their id maps; in a shared pid
/// namespace a guest can name it, and the kernel keeps it from looking inside all the same.
#[test]
fn no_guest_looks_into_the_launcher() {
    let _watch = Watch::begin();
    let mut profile = sharing(Namespaces { pid: Sharing::Shared, ..Namespaces::default() });
    (profile.landlock, profile.seccomp) = (Landlock::Off, Level::Off);
    let sandbox = sandbox(profile);
    let files = ["/proc/1/mem", "/proc/1/environ", "/proc/1/maps", "/proc/1/auxv"];
    let answer = ask(&sandbox, &[&["open", "r"][..], &files].concat());
    for file in files {
        assert_eq!(answer[file], errno(libc::EPERM), "{file}");
    }
    // PTRACE_ATTACH
    assert_eq!(ask(&sandbox, &["syscall", "101", "16", "1", "0", "0"]), errno(libc::EPERM));
}

/// What cargo, git, npm and every shell do. Each in one run, from the shell that makes what it needs.
#[test]
fn what_ordinary_programs_do_stays_allowed() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let shared = scratch.directory("shared", 0o777);
    let with = SandboxProfile::builder;
    let profiles = [
        ("default", with()),
        ("masked", with().proc(ProcKind::Masked)),
        ("no proc", with().proc(ProcKind::None)),
        ("host view", with().root(Root::HostView)),
        ("bind", with().rw_binds([(shared, "/shared")])),
    ];
    for (name, profile) in profiles {
        // From the first version on that lets files be moved from one directory to another.
        let sandbox = sandbox(profile.landlock(Landlock::Require(2)).build().unwrap());
        let workspace = sandbox.plan().cwd.to_str().unwrap().to_owned();
        let mut places = vec![workspace.as_str(), "/tmp", "/dev/shm"];
        if name == "bind" {
            places.push("/shared");
        }
        for place in places {
            let script = script(place);
            let result = sandbox.run(["sh", "-euc", &script]).unwrap();
            assert!(result.ok(), "{name} {place}: {}", result.stderr_text());
            assert_eq!(result.stdout_text(), "moved\n", "{name} {place}");
        }
    }
}

fn script(place: &str) -> String {
    format!(
        "cd {place}; mkdir -p a/b c; echo moved >a/b/f; mv a/b/f c/g; mv a/b c/d; \
         ln c/g a/h; ln -s c/g l; mkfifo p; cp c/g c/copy; : >c/copy; test ! -s c/copy; \
         cat l; echo more >>c/g; sed -i s/more/less/ c/g; rm -r a c l p; echo x >/dev/null"
    )
}

#[test]
fn devices_and_sockets_stay_usable() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let yes = || json!(true);
    let rows: [Row<'_>; 7] = [
        ("a terminal answers", &["act", "terminal-mode", "/dev/ptmx"], "", yes()),
        // Not refused by the wall, and no terminal.
        ("null is asked", &["act", "terminal-mode", "/dev/null"], "", errno(libc::ENOTTY)),
        ("null is written", &["act", "write", "/dev/null"], "", yes()),
        ("a socket is bound", &["act", "listen", "/tmp/socket"], "", yes()),
        ("a fifo is made", &["act", "fifo", "/tmp/fifo"], "", yes()),
        ("loopback is reached", &["loopback"], "/v4", json!("word")),
        // Another mount, which is all that this says.
        (
            "a file is not moved to another mount",
            &["act", "rename", "/workspace/probe", "/tmp/probe"],
            "",
            errno(libc::EXDEV),
        ),
    ];
    check(&sandbox, &rows);
}

/// Where the guest's uid is another, nobody in the run can reach this bind, PID 1 included.
#[test]
fn a_place_out_of_reach_needs_no_rule() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    scratch.directory("closed", 0o700);
    let inner = scratch.directory("closed/inner", 0o777);
    let profile = SandboxProfile::builder()
        .root(Root::HostView)
        .rw_binds([(inner.clone(), inner)])
        .cwd("/tmp");
    let sandbox = sandbox(profile.landlock(Landlock::Require(2)).build().unwrap());
    assert!(sandbox.run(["true"]).unwrap().ok());
    sandbox.verify().unwrap();
}

#[test]
fn a_result_says_which_version_was_used() {
    let _watch = Watch::begin();
    let rows = [
        (Landlock::Use, LandlockUse::Domain { abi: 6 }),
        (Landlock::Require(2), LandlockUse::Domain { abi: 6 }),
        (Landlock::Off, LandlockUse::Off),
    ];
    for (wanted, expected) in rows {
        let sandbox = sandbox(SandboxProfile::builder().landlock(wanted).build().unwrap());
        let result = sandbox.run(["true"]).unwrap();
        assert_eq!(result.enforcement.landlock, expected, "{wanted:?}");
        let attestation = result.enforcement.attestation.as_ref().unwrap();
        assert_eq!(attestation.landlock, expected.abi().is_some(), "{wanted:?}");
    }
}
