//! Section M, as the host meets it: what a guest uses up is its own, and the host still has some.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use postern::profile::Workspace;
use postern::{Command, Sandbox, SandboxProfile};
use postern_tests::{Held, Residue, ask as ask_probe, command, hold, install};
use serde_json::Value;

use crate::host::{build, hostprog, hostprog_by};
use crate::stage::{Stage, program};
use crate::verdict::{Finding, Need, errno_of, held};

fn needs_cgroup(evidence: &str) -> Result<Finding, String> {
    let kinds = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers");
    let host = match kinds {
        Ok(kinds) => format!("controllers {}", kinds.trim()),
        Err(error) => format!("/sys/fs/cgroup/cgroup.controllers: {error}"),
    };
    Ok(Finding::Needs(
        Need::CgroupV2,
        format!("{evidence}; {host}; the default profile asks for none"),
    ))
}

const SMALL: u64 = 1 << 20;

/// Small places, so that filling them takes no time.
fn small() -> Result<Sandbox, String> {
    let workspace = Workspace::Owned { size_bytes: 8 * SMALL, inodes: 128 };
    let profile = SandboxProfile::builder().workspace(workspace);
    let profile = profile.tmp_bytes(SMALL).tmp_inodes(64).shm_bytes(SMALL).shm_inodes(64);
    let sandbox = build(profile.build().unwrap())?;
    install(&sandbox);
    Ok(sandbox)
}

pub(crate) fn places(stage: &Stage) -> Result<Finding, String> {
    let mounts = ask_probe(&stage.sandbox, &["mounts"]);
    let writable: Vec<String> = mounts
        .as_array()
        .ok_or("no list")?
        .iter()
        .filter(|mount| {
            mount["options"].as_str().is_some_and(|options| options.split(',').any(|o| o == "rw"))
        })
        .filter(|mount| mount["kind"] != "devpts" && mount["target"] != "/proc")
        .map(|mount| format!("{} {}", mount["target"], mount["super"]))
        .collect();
    let unbounded: Vec<_> = writable
        .iter()
        .filter(|mount| !(mount.contains("size=") && mount.contains("nr_inodes=")))
        .collect();
    if !unbounded.is_empty() || writable.len() > 6 {
        return Err(format!("{writable:?}"));
    }
    let sandbox = small()?;
    for path in ["/tmp/full", "/dev/shm/full", "/workspace/full"] {
        let answer = ask_probe(&sandbox, &["fill", path]);
        if answer["errno"] != libc::ENOSPC || answer["bytes"].as_u64() > Some(8 * SMALL) {
            return Err(format!("{path}: {answer}"));
        }
    }
    held(format!("{writable:?}; filled in small: ENOSPC at the bound"))
}

pub(crate) fn inodes(_: &Stage) -> Result<Finding, String> {
    let sandbox = small()?;
    for directory in ["/tmp", "/dev/shm", "/workspace"] {
        let answer = ask_probe(&sandbox, &["fill-inodes", directory]);
        if answer["errno"] != libc::ENOSPC || answer["files"].as_u64() >= Some(128) {
            return Err(format!("{directory}: {answer}"));
        }
    }
    let deep = ask_probe(&small()?, &["deep", "/workspace", "1000"]);
    match deep["errno"] == libc::ENOSPC && deep["made"].as_u64() < Some(128) {
        true => held("files, directories: ENOSPC at nr_inodes in all three places"),
        false => Err(deep.to_string()),
    }
}

pub(crate) fn space(_: &Stage) -> Result<Finding, String> {
    let sandbox = small()?;
    let workspace = sandbox.workspace().ok_or("no workspace")?;
    let free = || rustix::fs::fstatvfs(workspace.as_fd()).map(|found| found.f_bfree).unwrap_or(0);
    let before = free();
    let rows = [
        "repeat 40 openat -100 s:/workspace/m05 0x42 0x1a4 ; fallocate $0 0 0 0x1000000",
        "repeat 40 openat -100 s:/workspace/m05 0x42 0x1a4 ; fallocate $0 1 0 0x1000000",
        "repeat 40 openat -100 s:/workspace/m05 0x42 0x1a4 ; unlink s:/workspace/m05 ; fallocate $0 0 0 0x100000",
    ];
    for row in rows {
        let question = crate::question::spelled(row, &[]);
        let answer = ask_probe(&sandbox, &question.split(' ').collect::<Vec<_>>());
        if answer["errno"] != libc::ENOSPC {
            return Err(format!("{row}: {answer}"));
        }
    }
    let removed = sandbox.run(["rm", "-f", "/workspace/m05"]).map_err(|error| error.to_string())?;
    match removed.ok() && free() == before {
        true => held(format!(
            "fallocate, kept size, unlinked and open: ENOSPC; {before} blocks free again"
        )),
        false => Err(format!("{} blocks free, {before} before", free())),
    }
}

pub(crate) fn processes(stage: &Stage) -> Result<Finding, String> {
    let mut forks = [0; 2];
    for made in &mut forks {
        let answer = ask_probe(&stage.sandbox, &["fork", "5000"]);
        if answer["errno"] != libc::EAGAIN {
            return Err(answer.to_string());
        }
        *made = answer["made"].as_u64().unwrap_or(0);
    }
    match forks.iter().all(|made| (1..1024).contains(made)) {
        true => held(format!(
            "EAGAIN after {forks:?}: NPROC counted in the run's own namespace; pids.max comes with cgroup v2"
        )),
        false => Err(format!("{forks:?}")),
    }
}

/// A guest that has used something up and waits, and what the host says meanwhile.
fn meanwhile(
    stage: &Stage,
    question: &str,
    host: impl FnOnce() -> Result<String, String>,
) -> Result<(Value, Result<String, String>), String> {
    let spelled = crate::question::spelled(question, &stage.names("/workspace"));
    let words: Vec<&str> = ["hold"].into_iter().chain(spelled.split(' ')).collect();
    let run: Held = hold(&stage.sandbox, command(&words));
    let told = host();
    let answer = run.answer.clone();
    run.release();
    Ok((answer, told))
}

fn both(answer: &Value, host: Result<String, String>, most: u64) -> Result<Finding, String> {
    let made = answer["made"].as_u64().unwrap_or(u64::MAX);
    if answer["errno"].as_i64().unwrap_or(0) <= 0 || made > most {
        return Err(format!("inside {answer}"));
    }
    match host {
        Ok(host) => held(format!("inside {answer}; meanwhile on the host {host}")),
        Err(error) => Err(format!("inside {answer}; meanwhile on the host {error}")),
    }
}

pub(crate) fn watches(stage: &Stage) -> Result<Finding, String> {
    let (answer, host) = meanwhile(stage, "repeat 1000 inotify_init1 0", || {
        let made = rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::CLOEXEC);
        made.map(|_| "inotify_init works".to_owned())
            .map_err(|errno| format!("inotify_init: {errno}"))
    })?;
    both(&answer, host, 128)
}

pub(crate) fn pipes(stage: &Stage) -> Result<Finding, String> {
    let question = "repeat 400 pipe2 z:8 0 ; fcntl @0:4 1031 0x100000";
    let (answer, host) = meanwhile(stage, question, || {
        let (_read, write) = rustix::pipe::pipe().map_err(|errno| errno.to_string())?;
        let set = rustix::pipe::fcntl_setpipe_size(&write, 1 << 20);
        set.map(|size| format!("F_SETPIPE_SZ gives {size}"))
            .map_err(|errno| format!("F_SETPIPE_SZ: {errno}"))
    })?;
    both(&answer, host, 400)
}

/// One message with as many descriptors as one may carry, again and again, never received.
pub(crate) fn in_flight(stage: &Stage) -> Result<Finding, String> {
    const MOST: usize = 253;
    let header = "04040000000000000100000001000000";
    let control = format!("{header}{}", "00000000".repeat(MOST));
    let send = "; sendmsg @0:0 &4 0 ".repeat(8);
    let question = format!(
        "calls socketpair 1 1 0 z:8 ; getpid s:x b:{control} ; getpid w:&1,1 ; \
         getpid w:0,0,&3,1,&2,{},0 {}",
        0x404,
        send.trim_end()
    );
    let (answer, host) = meanwhile(stage, &question, || {
        let (one, other) = UnixStream::pair().map_err(|error| error.to_string())?;
        pass(&one, other.as_fd())
    })?;
    let refused = answer.as_array().and_then(|all| all.iter().find_map(errno_of));
    match (refused, host) {
        (Some(libc::ETOOMANYREFS), Ok(host)) => {
            held(format!("inside ETOOMANYREFS; meanwhile on the host {host}"))
        }
        (Some(libc::ETOOMANYREFS), Err(error)) => {
            Err(format!("inside ETOOMANYREFS; meanwhile on the host {error}"))
        }
        _ => Err(answer.to_string()),
    }
}

fn pass(socket: &UnixStream, fd: BorrowedFd<'_>) -> Result<String, String> {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [fd];
    control.push(SendAncillaryMessage::ScmRights(&fds));
    let bytes = [std::io::IoSlice::new(b"x")];
    let sent = sendmsg(socket, &bytes, &mut control, SendFlags::empty());
    sent.map(|_| "a descriptor is sent".to_owned()).map_err(|errno| format!("sendmsg: {errno}"))
}

pub(crate) fn timers(stage: &Stage) -> Result<Finding, String> {
    let (answer, host) = meanwhile(stage, "repeat 5000 timer_create 1 0 z:8", || {
        let ask =
            crate::table::ask("calls timer_create 1 0 z:8", crate::table::Expect::At("/0", "0"));
        let answers = stage.outside(&[ask]);
        match &answers[0] {
            Some(answer) if answer[0] == 0 => Ok("timer_create works".to_owned()),
            other => Err(format!("timer_create: {other:?}")),
        }
    })?;
    both(&answer, host, 1024)
}

pub(crate) fn requests(stage: &Stage) -> Result<Finding, String> {
    let count = || fs::read_to_string("/proc/sys/fs/aio-nr").unwrap_or_default().trim().to_owned();
    let before = count();
    let (answer, during) = meanwhile(stage, "repeat 1000 io_setup 128 z:8", || Ok(count()))?;
    match (answer["errno"].as_i64(), during) {
        (Some(1), Ok(during)) if during == before => {
            held(format!("io_setup EPERM, aio-nr {before} before and during"))
        }
        (_, during) => Err(format!("{answer}; aio-nr {before} before, {during:?} during")),
    }
}

pub(crate) fn keys(stage: &Stage) -> Result<Finding, String> {
    let uid = stage.sandbox.enforcement().unwrap().kernel_uid;
    let line = || {
        let text = fs::read_to_string("/proc/key-users").unwrap_or_default();
        let own = text.lines().find(|line| line.trim_start().starts_with(&format!("{uid}:")));
        own.unwrap_or("no key").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let before = line();
    let (answer, during) =
        meanwhile(stage, "repeat 300 add_key s:user s:m16 b:78 1 -1", || Ok(line()))?;
    match (answer["made"].as_i64(), during) {
        (Some(0), Ok(during)) if during == before => {
            held(format!("add_key {answer}; key-users {before:?} before and during"))
        }
        (_, during) => Err(format!("{answer}; {before:?} before, {during:?} during")),
    }
}

pub(crate) fn locks(_: &Stage) -> Result<Finding, String> {
    needs_cgroup("a lock is charged to memory alone: RLIMIT_LOCKS is void since Linux 2.4.25")
}

pub(crate) fn names(_: &Stage) -> Result<Finding, String> {
    needs_cgroup("an entry for a name that does not exist is charged to memory.max alone")
}

pub(crate) fn processor(_: &Stage) -> Result<Finding, String> {
    needs_cgroup("the scheduler shares fairly by process; a bound is cpu.max")
}

pub(crate) fn disk(_: &Stage) -> Result<Finding, String> {
    needs_cgroup("an owned workspace is memory; in a caller's directory a bound is io.max")
}

pub(crate) fn cache(_: &Stage) -> Result<Finding, String> {
    needs_cgroup("pages that a guest reads are charged to memory.max alone")
}

pub(crate) fn huge_pages(_: &Stage) -> Result<Finding, String> {
    let pool = fs::read_to_string("/proc/sys/vm/nr_hugepages").unwrap_or_default();
    match pool.trim() {
        "" => Ok(Finding::Vacuous("this kernel has no pool of huge pages".to_owned())),
        "0" => Ok(Finding::Vacuous("vm.nr_hugepages is 0 on this host".to_owned())),
        pages => needs_cgroup(&format!("vm.nr_hugepages is {pages}; a bound is hugetlb.max")),
    }
}

pub(crate) fn during_launch(_: &Stage) -> Result<Finding, String> {
    let processes = hostprog("no-more-processes", &[])?;
    let descriptors = hostprog_by("prlimit", &["--nofile=14:14"], "launch", &[]);
    let told = descriptors.unwrap_or_else(|error| error);
    match processes.starts_with("step ") && !told.contains("works") && !told.contains("panicked") {
        true => {
            held(format!("without processes: {processes:.60}; without descriptors: {told:.80}"))
        }
        false => Err(format!("{processes}; {told}")),
    }
}

pub(crate) fn output(_: &Stage) -> Result<Finding, String> {
    let peak = || crate::stage::status_kib("VmHWM");
    let sandbox = build(SandboxProfile::default())?;
    let before = peak();
    let result =
        sandbox.run(["head", "-c", "300000000", "/dev/zero"]).map_err(|error| error.to_string())?;
    let grown = peak().saturating_sub(before);
    match result.truncated && result.stdout.len() == 64 << 20 && grown < 256 << 10 {
        true => held(format!("300 MB written: 64 MiB kept, the host grew by {} MiB", grown >> 10)),
        false => Err(format!("{} bytes, {grown} KiB", result.stdout.len())),
    }
}

pub(crate) fn dropped_output(stage: &Stage) -> Result<Finding, String> {
    let flood = Command::new("head").args(["-c", "50000000", "/dev/zero"]).output_bytes_max(1000);
    let result = stage.sandbox.run(flood).map_err(|error| error.to_string())?;
    match (result.truncated, result.stdout.len(), result.ok()) {
        (true, 1000, true) => {
            let evidence = "what is over the bound is read and dropped until the program ends or its time is up";
            Ok(Finding::Needs(Need::Later("stop_at_the_bound"), evidence.to_owned()))
        }
        other => Err(format!("{other:?}")),
    }
}

pub(crate) fn many(stage: &Stage) -> Result<Finding, String> {
    let before = Residue::snapshot();
    for _ in 0..100 {
        stage.sandbox.run(["true"]).map_err(|error| error.to_string())?;
    }
    for _ in 0..10 {
        drop(build(SandboxProfile::default())?);
    }
    // A dropped sandbox's processes may be a moment behind.
    let end = Instant::now() + Duration::from_secs(5);
    while Residue::snapshot() != before && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    match Residue::snapshot() == before {
        true => held(
            "100 runs and 10 sandboxes: descriptors, children, mounts, leases, files as before",
        ),
        false => Err(format!("{:?} after, {before:?} before", Residue::snapshot())),
    }
}

pub(crate) fn sleeps(stage: &Stage) -> Result<Finding, String> {
    let code = "import os, time, threading\nthreading.Thread(target=lambda: time.sleep(300)).start()\n\
                os.posix_spawn('/bin/sleep', ['sleep', '300'], {})\nos.wait()";
    let start = Instant::now();
    let sleeper = Command::new("python3").args(["-c", code]).timeout(Duration::from_millis(600));
    let result = stage.sandbox.run(sleeper).map_err(|error| error.to_string())?;
    let took = start.elapsed();
    match result.timed_out && took < Duration::from_secs(5) {
        true => held(format!(
            "asleep in a thread, a child and a wait: over {took:?} after 0.6 s were given"
        )),
        false => Err(format!("{:?} after {took:?}", result.ending)),
    }
}

pub(crate) fn host_is_well(_: &Stage) -> Result<Finding, String> {
    let start = Instant::now();
    program("true", &[]);
    match start.elapsed() {
        took if took < Duration::from_secs(2) => {
            held(format!("EAGAIN below 1,024; a program starts on the host in {took:?}"))
        }
        took => Err(format!("{took:?}")),
    }
}
