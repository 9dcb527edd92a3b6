//! What a program starts with, what it may use up, and who looks after its children.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;

use postern::profile::Limits;
use postern::{Command, Ending, Sandbox, SandboxProfile, Signal};
use postern_seccomp::Level;
use postern_tests::{
    PROBE_PATH, Row, Scratch, Watch, ask, check, command, descriptors, guest_of, hold, run,
};
use rustix::process::Resource;
use serde_json::{Value, json};

use crate::{default_sandbox, sandbox};

/// The environment of the default profile, whole.
const ENVIRONMENT: [&str; 4] =
    ["HOME=/workspace", "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=/tmp"];

#[test]
fn nothing_is_inherited_from_the_host() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let stray: Vec<OwnedFd> = {
        let null = File::open("/dev/null").unwrap();
        // Such a duplicate is open across an exec.
        (0..50).map(|_| rustix::io::dup(&null).unwrap()).collect()
    };
    let none = "0000000000000000";
    // A service with a higher score may not lower it.
    let score: i32 =
        std::fs::read_to_string("/proc/self/oom_score_adj").unwrap().trim().parse().unwrap();
    let score = format!("{}\n", score.max(500));
    let rows: [Row<'_>; 8] = [
        ("descriptors", &["fds"], "", json!([0, 1, 2])),
        ("environment", &["env"], "", json!(ENVIRONMENT)),
        ("umask", &["identity"], "/umask", json!(0o022)),
        ("blocked signals", &["status"], "/SigBlk", json!(none)),
        ("ignored signals", &["status"], "/SigIgn", json!(none)),
        ("caught signals", &["status"], "/SigCgt", json!(none)),
        ("pending signals", &["status"], "/ShdPnd", json!(none)),
        (
            "badness",
            &["read", "/proc/self/oom_score_adj"],
            "/~1proc~1self~1oom_score_adj",
            json!(score),
        ),
    ];
    check(&sandbox, &rows);
    drop(stray);
}

/// The test above, on a host that ignores and blocks signals, has 200 variables and a tight umask.
#[test]
fn a_host_with_odd_habits_passes_none_of_them_on() {
    let _watch = Watch::begin();
    #[expect(clippy::disallowed_methods, reason = "a test starts itself as another host would")]
    let mut host = std::process::Command::new("sh");
    let script =
        "umask 077; exec env --block-signal=TERM,USR1 --ignore-signal=HUP,INT \"$0\" \"$@\"";
    host.args(["-c", script]).arg(std::env::current_exe().unwrap());
    let runtime = Scratch::new();
    host.env(postern::RUNTIME_DIRECTORY_VARIABLE, runtime.path());
    host.args(["--exact", "process::nothing_is_inherited_from_the_host"]);
    host.envs((0..200).map(|number| (format!("STRAY_{number}"), "x".repeat(number))));
    let output = host.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn the_run_adds_to_the_environment_and_overrides_it() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let question = command(&["env"]).env("A", "1").env("LANG", "C");
    let result = run(&sandbox, question);
    let mut found: Vec<String> = serde_json::from_slice(&result.stdout).unwrap();
    found.sort();
    let path = ENVIRONMENT[2];
    assert_eq!(found, ["A=1", "HOME=/workspace", "LANG=C", path, "TMPDIR=/tmp"]);
}

/// As the profile says, but never above the host's own hard limit.
#[test]
fn resource_limits_are_the_profiles() {
    let _watch = Watch::begin();
    let limits = ask(&default_sandbox(), &["rlimits"]);
    let rows: [(&str, usize, Resource, u64); 8] = [
        ("file size", 1, Resource::Fsize, 1 << 30),
        ("stack", 3, Resource::Stack, 8 << 20),
        ("core", 4, Resource::Core, 1),
        ("processes", 6, Resource::Nproc, 1024),
        ("descriptors", 7, Resource::Nofile, 1024),
        ("locked memory", 8, Resource::Memlock, 64 << 10),
        ("queued signals", 11, Resource::Sigpending, 1024),
        ("message queues", 12, Resource::Msgqueue, 256 << 10),
    ];
    for (name, number, resource, limit) in rows {
        let hosts = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let limit = limit.min(hosts);
        assert_eq!(limits[number], json!([limit, limit]), "{name}");
    }
}

/// Programs that switch core dumps off themselves, such as gpg, must not fail for it.
#[test]
fn a_core_limit_can_be_lowered_in_word_only() {
    let _watch = Watch::begin();
    let answer = ask(&default_sandbox(), &["lower-core"]);
    assert_eq!(answer, json!({ "set": 0, "limit": [1, 1] }));
}

fn few_processes() -> SandboxProfile {
    let limits = Limits { nproc: Some(20), ..Limits::default() };
    SandboxProfile::builder().limits(limits).build().unwrap()
}

/// PID 1 and the probe count: 18 more make 20.
#[test]
fn processes_are_limited_for_each_run_alone() {
    let _watch = Watch::begin();
    let (one, other) = (sandbox(few_processes()), sandbox(few_processes()));
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1000 & done; exec $0 hold fork 100";
    let busy = hold(&one, Command::new("sh").args(["-c", script, PROBE_PATH]));
    assert_eq!(busy.answer, json!({ "made": 8, "errno": libc::EAGAIN }), "the busy run itself");
    for (name, sandbox) in [("the same sandbox", &one), ("another sandbox", &other)] {
        let answer = ask(sandbox, &["fork", "100"]);
        assert_eq!(answer, json!({ "made": 18, "errno": libc::EAGAIN }), "{name}");
    }
    assert!(busy.release().ok());
}

#[test]
fn no_new_namespace_can_be_made() {
    let _watch = Watch::begin();
    let refused = |errno: i32| json!({ "errno": errno });
    let rows: [Row<'_>; 8] = [
        ("unshare user", &["syscall", "272", "0x10000000"], "", refused(libc::EPERM)),
        ("unshare mount", &["syscall", "272", "0x20000"], "", refused(libc::EPERM)),
        ("clone user", &["syscall", "56", "0x10000011"], "", refused(libc::EPERM)),
        ("clone net", &["syscall", "56", "0x40000011"], "", refused(libc::EPERM)),
        ("clone3", &["syscall", "435", "0", "0"], "", refused(libc::ENOSYS)),
        ("setns", &["syscall", "308", "0", "0"], "", refused(libc::EPERM)),
        ("keyctl", &["syscall", "250", "0", "0"], "", refused(libc::EPERM)),
        (
            "limit",
            &["read", "/proc/sys/user/max_user_namespaces"],
            "/~1proc~1sys~1user~1max_user_namespaces",
            json!("0\n"),
        ),
    ];
    check(&default_sandbox(), &rows);
}

/// The walls behind the filter hold without it.
#[test]
fn without_a_filter_namespaces_and_keys_stay_out_of_reach() {
    let _watch = Watch::begin();
    let open = SandboxProfile::builder().seccomp(Level::Off).build().unwrap();
    let refused = |errno: i32| json!({ "errno": errno });
    let (session, user) = ("0xfffffffd", "0xfffffffc");
    let rows: [Row<'_>; 7] = [
        ("unshare user", &["syscall", "272", "0x10000000"], "", refused(libc::ENOSPC)),
        ("clone user", &["syscall", "56", "0x10000011"], "", refused(libc::ENOSPC)),
        ("unshare mount", &["syscall", "272", "0x20000"], "", refused(libc::EPERM)),
        (
            "describe the session keyring",
            &["syscall", "250", "6", session],
            "",
            refused(libc::EACCES),
        ),
        // Whoever has a keyring may list it, whatever its permissions: there is nothing in it.
        ("read the session keyring", &["syscall", "250", "11", session], "", json!(0)),
        (
            "link to the session keyring",
            &["syscall", "250", "8", user, session],
            "",
            refused(libc::EACCES),
        ),
        ("clear the session keyring", &["syscall", "250", "7", session], "", refused(libc::EACCES)),
    ];
    check(&sandbox(open), &rows);
}

#[test]
fn there_is_no_controlling_terminal() {
    let _watch = Watch::begin();
    let answer = ask(&default_sandbox(), &["open", "w", "/dev/tty"]);
    assert_eq!(answer["/dev/tty"]["errno"], json!(libc::ENXIO));
}

#[test]
fn pid_1_shows_nothing_of_itself() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let secrets = ["environ", "mem", "maps", "root", "cwd", "exe", "fd/3", "auxv", "pagemap"];
    let secrets = secrets.map(|name| format!("/proc/1/{name}"));
    let question: Vec<&str> =
        ["open", "r"].into_iter().chain(secrets.iter().map(|s| &**s)).collect();
    let answer = ask(&sandbox, &question);
    for secret in &secrets {
        assert_eq!(answer[secret]["errno"], json!(libc::EPERM), "{secret}");
    }
    let search = ask(&sandbox, &["search-memory", "1", "anything"]);
    assert_eq!(search, json!({ "errno": libc::EPERM }));
    // The same search of its own memory finds its own argument.
    let own = ask(&sandbox, &["search-memory", "self", "anything"]);
    assert!(own.as_i64() >= Some(1), "{own}");
}

/// Its line to the host, the host's process, and its signals; nothing of the launcher's and nothing
/// of the run beside it.
#[test]
fn pid_1_keeps_three_descriptors() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let beside = hold(&sandbox, command(&["hold", "fds"]));
    let run = hold(&sandbox, command(&["hold", "fds"]));
    for pid in [run.init, beside.init] {
        let found = descriptors(pid);
        let targets = ["socket:", "anon_inode:[pidfd]", "anon_inode:[signalfd]"];
        let same =
            |((_, target), expected): (&(String, String), &str)| target.starts_with(expected);
        assert_eq!(found.len(), targets.len(), "{found:?}");
        assert!(found.iter().zip(targets).all(same), "{found:?}");
    }
    assert!(run.release().ok() && beside.release().ok());
}

#[test]
fn pid_1_cannot_be_killed_from_inside() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    for signal in ["KILL", "SEGV", "STOP", "ABRT"] {
        let script = format!("kill -{signal} 1; echo still here");
        let result = run(&sandbox, Command::new("bash").args(["-c", &script]));
        assert_eq!(result.stdout_text(), "still here\n", "{signal}");
    }
}

#[test]
fn orphans_are_reaped() {
    let _watch = Watch::begin();
    let answer = ask(&default_sandbox(), &["orphans", "5000"]);
    assert_eq!(answer, json!({ "made": 5000, "left": 0 }));
}

#[test]
fn stragglers_end_with_the_program() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let script = "setsid sleep 1000 & setsid sh -c 'trap \"\" TERM HUP; sleep 1000' & exit 3";
    let result = sandbox.run(["sh", "-c", script]).unwrap();
    assert_eq!(result.ending, Ending::Exited(3));
}

#[test]
fn signals_from_the_host_reach_the_program() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let rows = [
        ("TERM", Signal::TERM),
        ("INT", Signal::INT),
        ("HUP", Signal::HUP),
        ("QUIT", Signal::QUIT),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
    ];
    for (name, signal) in rows {
        let script = format!(
            "trap 'echo got {name}; exit 7' {name}; echo ready; \
             for turn in {{1..3000}}; do sleep 0.02; done"
        );
        let mut process = sandbox.start(["bash", "-c", &script]).unwrap();
        let mut stdout = BufReader::new(process.take_stdout().unwrap());
        let mut text = String::new();
        stdout.read_line(&mut text).unwrap();
        process.signal(signal);
        stdout.read_to_string(&mut text).unwrap();
        let ending = process.wait().unwrap().ending;
        assert_eq!((&*text, ending), (&*format!("ready\ngot {name}\n"), Ending::Exited(7)));
    }
}

#[test]
fn no_process_of_the_host_is_visible() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let held = hold(&sandbox, command(&["hold", "list", "/proc"]));
    let entries = held.answer["/proc"].as_array().unwrap().iter();
    let pids: Vec<u32> = entries
        .filter_map(|entry| entry["name"].as_str().and_then(|name| name.parse().ok()))
        .collect();
    assert_eq!(pids.len(), 2, "PID 1 and the probe: {pids:?}");
    assert_eq!(guest_of(held.init), held.guest);
    assert!(held.release().ok());
    let signalled = ask(&sandbox, &["syscall", "62", &std::process::id().to_string(), "0"]);
    assert_eq!(signalled, Value::from_iter([("errno", json!(libc::ESRCH))]));
}

/// The launcher goes to another processor while it makes namespaces; no run may be kept from one.
#[test]
fn every_run_may_use_every_processor_of_the_host() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let own = own.lines().find(|line| line.starts_with("Cpus_allowed_list:")).unwrap();
    for run in 0..5 {
        let command = ["grep", "Cpus_allowed_list:", "/proc/self/status"];
        let found = sandbox.run(command).unwrap();
        assert_eq!(found.stdout_text().trim_end(), own, "run {run}");
    }
}

#[test]
fn a_sandbox_for_one_run_can_do_more() {
    let _watch = Watch::begin();
    let sandbox = Sandbox::builder(SandboxProfile::default()).single_use(true).build().unwrap();
    for code in [3, 4, 5] {
        let result = sandbox.run(["sh", "-c", &format!("exit {code}")]).unwrap();
        assert_eq!(result.ending, Ending::Exited(code));
    }
}

#[test]
fn this_host_says_that_it_is_available() {
    let _watch = Watch::begin();
    postern::available().unwrap();
}
