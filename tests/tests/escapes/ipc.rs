//! Section J: keys, System V and POSIX IPC, shared memory, and files that two can lock.

use libc::{EACCES, EINVAL, ENOENT, ENOSPC, ENOSYS, EPERM};
use postern_tests::ask as ask_probe;
use serde_json::{Value, json};

use super::descriptors::with_habits;
use crate::host::build;
use crate::stage::Stage;
use crate::table::Expect::{AllRefused, Meets, Refused};
use crate::table::Severity::{High, Low, Medium};
use crate::table::{Row, ask, guest, host, inside};
use crate::verdict::{Finding, Need, errno_of, held};

pub(crate) const ROWS: &[Row] = &[
    host("J-01", High, "no key of the service's session is reached", session_key),
    guest(
        "J-02",
        High,
        "no IPC object of the host is reached",
        &[
            ask("calls shmat {segment} 0 0x1000", Refused(&[EINVAL, EPERM, EACCES])),
            ask("calls shmctl {segment} 2 z:256", Refused(&[EINVAL, EPERM, EACCES])),
            ask("calls mq_open s:postern-escapes 0 0 0", Refused(&[ENOENT, EPERM, ENOSYS])),
        ],
    ),
    guest(
        "J-03",
        Medium,
        "IPC objects are bounded",
        &[
            inside(
                "calls shmget 0 0x40000000 0x380",
                Refused(&[ENOSPC, EINVAL, EPERM, libc::ENOMEM]),
            ),
            inside("repeat 33000 msgget 0 0x380", Meets(bounded)),
            inside("repeat 33000 shmget 0 4096 0x380", Meets(bounded)),
        ],
    ),
    host("J-04", Medium, "shared memory is each run's own and empty", fresh_each_run),
    host("J-05", Low, "a futex on a shared read-only file wakes nobody outside", shared_futex),
    host("J-06", Medium, "locks on read-only files of the host hold up nobody", shared_locks),
    host("J-07", Low, "watching read-only files of the host tells nothing", shared_watches),
    guest(
        "J-08",
        Medium,
        "no lease or delegation of a shared file",
        &[
            ask("calls fcntl p:0:/etc/ld.so.cache 1024 0", Refused(&[EPERM])),
            ask("calls fcntl p:0:/usr/bin/env 1024 0", Refused(&[EPERM])),
            ask("calls openat -100 s:{w}/j08 0x42 0x1a4 ; fcntl $0 1024 1", Refused(&[EPERM])),
            ask("open r /proc/locks", AllRefused(&[EACCES, ENOENT])),
        ],
    ),
];

fn bounded(answer: &Value) -> Result<(), String> {
    match (answer["made"].as_i64(), answer["errno"].as_i64()) {
        (Some(..=128), Some(1..)) => Ok(()),
        _ => Err(answer.to_string()),
    }
}

/// With the filter and without: the session keyring is another, and sealed.
fn session_key(stage: &Stage) -> Result<Finding, String> {
    let questions = [
        "calls 250 10 -3 s:user s:postern-canary 0",
        "calls 250 10 -4 s:user s:postern-canary 0",
        "calls 250 10 -5 s:user s:postern-canary 0",
        "calls 250 6 -3 z:256 256",
        "calls 249 s:user s:postern-canary 0 0",
        "open r /proc/keys",
    ];
    for habits in [&["habit=key"][..], &["habit=key", "seccomp=off"]] {
        let answers = with_habits(stage, habits, ("env", &[]), &questions)?;
        let open = answers.iter().take(5).any(|answer| errno_of(&answer[0]).is_none());
        if open || errno_of(&answers[5]["/proc/keys"]).is_none() {
            return Err(format!("{habits:?}: {answers:?}"));
        }
    }
    // The same search by a process that the service starts without a sandbox finds it.
    held("with a key in the service's session: EPERM, and without a filter EACCES or ENOKEY")
}

fn fresh_each_run(stage: &Stage) -> Result<Finding, String> {
    let write = stage.sandbox.run(["sh", "-c", "echo x >/dev/shm/left; ls /dev/shm"]);
    let seen = write.map_err(|error| error.to_string())?.stdout_text().into_owned();
    let after = ask_probe(&stage.sandbox, &["list", "/dev/shm"]);
    let size = ask_probe(&stage.sandbox, &["statfs", "/dev/shm"]);
    let bytes = size["/dev/shm"]["bytes"].as_u64();
    match seen == "left\n" && after["/dev/shm"] == json!([]) && bytes == Some(64 << 20) {
        true => held("written in one run, empty in the next, 64 MiB"),
        false => Err(format!("{seen:?} {after} {size}")),
    }
}

fn shared_futex(_: &Stage) -> Result<Finding, String> {
    let evidence = "a futex in a file that two map is keyed by its inode: docs/security/model.md";
    Ok(Finding::Needs(Need::Later("private_inputs"), evidence.to_owned()))
}

/// A guest locks a file that the host binds read-only: the host's own lock is held up by it, which
/// is not promised otherwise.
fn shared_locks(stage: &Stage) -> Result<Finding, String> {
    let file = stage.scratch.file("shared", b"input", 0o644);
    let path = file.to_str().unwrap();
    let profile = postern::SandboxProfile::builder().ro_binds([(path, "/srv/shared")]);
    let sandbox = build(profile.build().unwrap())?;
    postern_tests::install(&sandbox);
    let question = ["hold", "calls", "73", "p:0:/srv/shared", "6"];
    let run = postern_tests::hold(&sandbox, postern_tests::command(&question));
    let host = rustix::fs::flock(
        std::fs::File::open(&file).unwrap(),
        rustix::fs::FlockOperation::NonBlockingLockExclusive,
    );
    let answer = run.answer.clone();
    run.release();
    match (errno_of(&answer[0]), host) {
        (Some(errno), Ok(())) => held(format!("flock of a read-only bind answers errno {errno}")),
        (None, Ok(())) => held("the guest's lock is not the host's"),
        (_, Err(error)) => {
            let evidence =
                format!("the guest's flock holds, the host's says {error}: docs/security/model.md");
            Ok(Finding::Needs(Need::Later("private_inputs"), evidence))
        }
    }
}

fn shared_watches(_: &Stage) -> Result<Finding, String> {
    let evidence = "a guest may watch what it may read: docs/security/model.md";
    Ok(Finding::Needs(Need::Later("private_inputs"), evidence.to_owned()))
}
