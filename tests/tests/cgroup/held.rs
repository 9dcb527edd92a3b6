//! What a delegated group holds a run to, and what the kernel counts of it.

use std::fs;
use std::time::Duration;

use postern::check::{self, Name, Status};
use postern::profile::{Cgroup, CgroupNeed, CgroupService, Sharing};
use postern::{Command, Ending, LimitHit, Sandbox};

use crate::stage::{Stage, below, only_run, profile, shell, soon};

const MIB: u64 = 1 << 20;

fn memory(bytes: u64) -> Cgroup {
    Cgroup { memory_bytes: Some(bytes), ..Cgroup::default() }
}

/// The kernel picks one process and kills all, PID 1 among them, so that nothing is half done.
pub(crate) fn out_of_memory(stage: &Stage) {
    let sandbox = stage.sandbox(memory(48 * MIB));
    let result = shell(&sandbox, "sleep 1000 & echo before; tail /dev/zero; echo after");
    assert_eq!((result.ending, result.oom), (Ending::Killed(9), LimitHit::Yes), "{result:?}");
    assert_eq!((result.stdout_text().as_ref(), result.returncode()), ("before\n", 137));
    assert_eq!(result.pids_limit, LimitHit::No);
    let peak = result.usage.cgroup.unwrap().peak_memory_bytes;
    assert!(peak.is_none_or(|peak| (16 * MIB..=48 * MIB).contains(&peak)), "{peak:?}");
    // The next run is none the worse for it.
    let result = shell(&sandbox, "echo fine");
    assert_eq!((result.ending, result.oom), (Ending::Exited(0), LimitHit::No));
}

pub(crate) fn killed_otherwise(stage: &Stage) {
    let sandbox = stage.sandbox(memory(64 * MIB));
    let rows = [
        ("kill -9 $$", Ending::Signaled(9)),
        ("exit 137", Ending::Exited(137)),
        ("sh -c 'kill -9 $$'; exit 3", Ending::Exited(3)),
    ];
    for (script, ending) in rows {
        let result = shell(&sandbox, script);
        assert_eq!((result.ending, result.oom), (ending, LimitHit::No), "{script}");
    }
}

/// Files of a tmpfs are memory of whoever writes them.
pub(crate) fn full_tmpfs(stage: &Stage) {
    let sandbox = stage.sandbox(memory(32 * MIB));
    let result = shell(&sandbox, "head -c 60000000 /dev/zero > /tmp/file; echo after");
    assert_eq!((result.ending, result.oom), (Ending::Killed(9), LimitHit::Yes), "{result:?}");
}

pub(crate) fn limits_stand(stage: &Stage) {
    let limits = Cgroup {
        memory_bytes: Some(64 * MIB + 1),
        pids: Some(32),
        cpu_millis: Some(1500),
        cpu_weight: Some(50),
        ..Cgroup::default()
    };
    let sandbox = stage.sandbox(limits);
    let process = sandbox.start(["sleep", "1000"]).unwrap();
    let group = only_run(&sandbox);
    let rows = [
        ("memory.max", "67108864"),
        ("memory.swap.max", "0"),
        ("memory.oom.group", "1"),
        ("pids.max", "32"),
        ("cpu.max", "150000 100000"),
        ("cpu.weight", "50"),
    ];
    for (file, expected) in rows {
        assert_eq!(fs::read_to_string(group.join(file)).unwrap().trim(), expected, "{file}");
    }
    process.kill();
    let result = process.wait().unwrap();
    assert_eq!(result.ending, Ending::Killed(9));
    let quotas = &result.enforcement.quotas;
    for (name, limit) in [("memory", 64 * MIB + 1), ("swap", 0), ("processes", 32)] {
        let quota = quotas.iter().find(|quota| quota.name == name).unwrap();
        assert_eq!((quota.limit, quota.gap), (Some(limit), None), "{quota}");
    }
}

pub(crate) fn too_many_processes(stage: &Stage) {
    let sandbox = stage.sandbox(Cgroup { pids: Some(8), ..Cgroup::default() });
    let many = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1000 & done; exit 0";
    let result = shell(&sandbox, many);
    assert_eq!((result.pids_limit, result.oom), (LimitHit::Yes, LimitHit::No), "{result:?}");
    let result = shell(&sandbox, "sleep 0; exit 7");
    assert_eq!((result.ending, result.pids_limit), (Ending::Exited(7), LimitHit::No));
}

pub(crate) fn throttled(stage: &Stage) {
    let sandbox = stage.sandbox(Cgroup { cpu_millis: Some(200), ..Cgroup::default() });
    let script = "i=0; while :; do i=$((i+1)); done";
    let command = Command::new("sh").args(["-c", script]).timeout(Duration::from_secs(4));
    let result = sandbox.run(command).unwrap();
    assert!(result.timed_out, "{result:?}");
    let used = result.usage.cgroup.unwrap();
    let share = (used.user + used.system).as_secs_f64() / result.duration().as_secs_f64();
    assert!(used.throttled_periods > 0 && !used.throttled.is_zero(), "{used:?}");
    assert!(share < 0.3, "{share:.3} of a processor, {used:?}");
}

/// The kernel's own way to end a group ends the run, and its result says what happened.
pub(crate) fn killed_group(stage: &Stage) {
    let sandbox = stage.sandbox(memory(64 * MIB));
    let process = sandbox.start(["sh", "-c", "sleep 1000 & sleep 1000"]).unwrap();
    fs::write(only_run(&sandbox).join("cgroup.kill"), "1").unwrap();
    let result = process.wait().unwrap();
    assert_eq!((result.ending, result.oom), (Ending::Killed(9), LimitHit::No));
}

pub(crate) fn sees_nothing(stage: &Stage) {
    let sandbox = stage.sandbox(memory(64 * MIB));
    let result = shell(&sandbox, "cat /proc/self/cgroup; ls /sys/fs/cgroup 2>/dev/null");
    assert_eq!(result.stdout_text(), "0::/\n");
}

/// Groups of runs go with them, a sandbox's with it.
pub(crate) fn nothing_left(stage: &Stage) {
    let sandbox = stage.sandbox(Cgroup { pids: Some(64), ..memory(64 * MIB) });
    let own = sandbox.enforcement().unwrap().cgroup.clone().unwrap();
    for _ in 0..20 {
        assert!(shell(&sandbox, "sleep 1000 & exit 0").ok());
        let left = below(&own).len();
        assert!(left <= 2, "{left} groups of runs");
    }
    let process = sandbox.start(["sleep", "1000"]).unwrap();
    let group = only_run(&sandbox);
    drop(process);
    drop(sandbox);
    assert!(!group.exists() && !own.exists(), "{}", own.display());
}

/// What is too long for a message travels otherwise, and the group with it.
pub(crate) fn long_request(stage: &Stage) {
    let sandbox = stage.sandbox(memory(64 * MIB));
    let command = Command::new("cat").args(["/proc/self/cgroup"]).env("LONG", "x".repeat(100_000));
    let result = sandbox.run(command).unwrap();
    assert_eq!(result.stdout_text(), "0::/\n");
    assert_eq!(result.oom, LimitHit::No);
}

pub(crate) fn no_group(stage: &Stage) {
    let before = stage.groups();
    let sandbox =
        Sandbox::builder(profile(Cgroup { service: CgroupService::Move, ..Cgroup::default() }));
    let result = shell(&sandbox.build().unwrap(), "exit 0");
    assert!(matches!(result.oom, LimitHit::Unavailable(why) if why.contains("asks for no limit")));
    assert_eq!((result.usage.cgroup, &result.enforcement.cgroup), (None, &None));
    soon(|| Some(()).filter(|()| stage.groups().len() <= before.len()));
}

/// The group is found and felt whatever else is shared.
pub(crate) fn shared_namespaces(_: &Stage) {
    use Sharing::{Own, Shared};
    for (pid, cgroup) in [(Shared, Own), (Own, Shared)] {
        let mut wanted = profile(Cgroup { need: CgroupNeed::Require, ..memory(48 * MIB) });
        (wanted.namespaces.pid, wanted.namespaces.cgroup) = (pid, cgroup);
        let sandbox = Sandbox::builder(wanted).build().unwrap();
        let result = shell(&sandbox, "sleep 1000 & tail /dev/zero");
        let met = (result.ending, result.oom);
        assert_eq!(met, (Ending::Killed(9), LimitHit::Yes), "pid {pid:?} cgroup {cgroup:?}");
        let result = shell(&sandbox, "cat /proc/self/cgroup");
        assert_eq!(result.stdout_text() == "0::/\n", cgroup == Own, "{}", result.stdout_text());
    }
}

/// Uid 0 without the right to mount: its launcher has a user namespace of its own.
pub(crate) fn container_root(_: &Stage) {
    if rustix::process::geteuid().is_root() {
        let tests = ["memory_that_is_used_up_ends_the_whole_run", "nothing_is_left"];
        postern_tests::as_container_root(&[&["--exact"][..], &tests].concat());
    }
}

/// Each run is counted by itself: one that uses up its memory is no other's end.
pub(crate) fn many_at_once(stage: &Stage) {
    let sandbox = stage.sandbox(memory(32 * MIB));
    let own = sandbox.enforcement().unwrap().cgroup.clone().unwrap();
    let before = fs::read_dir("/proc/self/fd").unwrap().count();
    std::thread::scope(|scope| {
        for number in 0..6 {
            let sandbox = &sandbox;
            scope.spawn(move || {
                let is_greedy = number % 3 == 0;
                let script = if is_greedy { "tail /dev/zero" } else { "sleep 0.2; exit 4" };
                for _ in 0..3 {
                    let result = shell(sandbox, script);
                    let expected = match is_greedy {
                        true => (Ending::Killed(9), LimitHit::Yes),
                        false => (Ending::Exited(4), LimitHit::No),
                    };
                    assert_eq!((result.ending, result.oom), expected);
                }
            });
        }
    });
    assert!(shell(&sandbox, "exit 0").ok());
    soon(|| Some(()).filter(|()| shell(&sandbox, "exit 0").ok() && below(&own).len() <= 1));
    // Other tests open and close some meanwhile.
    let now = || fs::read_dir("/proc/self/fd").unwrap().count();
    soon(|| Some(()).filter(|()| now() <= before + 8));
    drop(sandbox);
    assert!(!own.exists(), "{}", own.display());
}

pub(crate) fn checked(_: &Stage) {
    let limits = Cgroup { pids: Some(64), cpu_millis: Some(1500), ..memory(256 * MIB) };
    let report = check::run(&profile(limits));
    let words = [
        (Name::Cgroup, "each run has one of its own in"),
        (Name::Memory, "256 MiB (memory.max), 0 bytes (memory.swap.max) for each run"),
        (Name::Cpu, "150.0 % of a processor (cpu.max) for each run"),
        (Name::Pids, "64 (pids.max) for each run"),
    ];
    for (name, expected) in words {
        let found = report.findings.iter().find(|finding| finding.name == name).unwrap();
        assert_eq!(found.status, Status::Enforced, "{found:?}");
        assert!(found.detail.starts_with(expected), "{found:?}");
    }
    let report = check::run(&profile(Cgroup::default()));
    let found = report.findings.iter().find(|finding| finding.name == Name::Cgroup).unwrap();
    assert_eq!(found.status, Status::NotUsed, "{found:?}");
    assert!(found.detail.contains("each run could have one beneath"), "{found:?}");
}
