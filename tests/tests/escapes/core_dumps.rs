//! Section L: crashes, logs, and what a guest makes the kernel start or load.

use std::time::Instant;

use libc::{EACCES, EAFNOSUPPORT, EPERM, EROFS};
use postern_tests::{Scratch, ask as ask_probe};
use serde_json::json;

use crate::stage::Stage;
use crate::table::Expect::{AllRefused, At, Refused};
use crate::table::Severity::{High, Low, Medium};
use crate::table::{Row, ask, guest, host};
use crate::verdict::{Finding, held};

pub(crate) const ROWS: &[Row] = &[
    host("L-01", High, "a crash starts no handler of the host's", no_handler),
    host("L-02", High, "no limit of the guest's brings the handler back", limit_stays),
    host("L-03", Medium, "a crash writes no file", no_core_file),
    guest(
        "L-04",
        Medium,
        "becoming dumpable dumps nothing",
        &[
            ask("calls prctl 4 1 0 0 0 ; prctl 3 0 0 0 0", At("/1", "1")),
            ask("rlimits", At("/4", "[1,1]")),
        ],
    ),
    host(
        "L-05",
        Medium,
        "a loop of crashes stays within the kernel's own bound of messages",
        crash_loop,
    ),
    guest(
        "L-06",
        Medium,
        "no module of the kernel is loaded for a guest",
        &[
            ask("calls socket 33 2 0", Refused(&[EAFNOSUPPORT])),
            ask("calls ioctl p:0x102:/dev/ptmx 0x5423 b:0d000000", Refused(&[EPERM])),
            ask("rooted calls mount s:none s:{w} s:9p 0 0", Refused(&[EPERM])),
            ask("calls socket 38 5 0", Refused(&[EAFNOSUPPORT])),
            ask("calls add_key s:asymmetric s:x b:78 1 -1", Refused(&[EPERM])),
        ],
    )
    .and(modules_stay),
    guest(
        "L-07",
        Low,
        "interpreters of foreign binaries cannot be registered",
        &[ask(
            "open w /proc/sys/fs/binfmt_misc/register /proc/sys/fs/binfmt_misc/status",
            AllRefused(&[EACCES, EROFS, libc::ENOENT]),
        )],
    )
    .and(foreign_binary),
];

/// The kernel runs a piped handler for every limit but 1, whatever the guest's soft one is.
fn no_handler(stage: &Stage) -> Result<Finding, String> {
    let limits = ask_probe(&stage.sandbox, &["rlimits"]);
    let first = stage.sandbox.run(["bash", "-c", "ulimit -c; kill -SEGV $$"]);
    let first = first.map_err(|error| error.to_string())?;
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    match (limits[4] == json!([1, 1]), first.ending) {
        (true, postern::Ending::Signaled(11)) => held(format!(
            "RLIMIT_CORE 1/1, for which the kernel starts no handler; core_pattern here {:?}",
            pattern.trim()
        )),
        other => Err(format!("{other:?} {limits}")),
    }
}

fn limit_stays(stage: &Stage) -> Result<Finding, String> {
    let questions = [
        "calls prlimit64 0 4 w:0,0 0 ; prlimit64 0 4 0 z:16 ; show &1 16",
        "calls setrlimit 4 w:0,1 ; prlimit64 0 4 0 z:16 ; show &1 16",
        "calls prlimit64 0 0x100000004 w:0,0 0 ; prlimit64 0 4 0 z:16 ; show &1 16",
        "calls prlimit64 0 4 w:-1,-1 0 ; prlimit64 0 4 0 z:16 ; show &1 16",
    ];
    let one = "\u{1}\0\0\0\0\0\0\0\u{1}\0\0\0\0\0\0\0";
    for question in questions {
        let answer = stage.ask(question);
        if answer[2] != json!(one) {
            return Err(format!("{question}: {answer}"));
        }
    }
    held(
        "setting it is answered with success or an errno and changes nothing: 1/1 after each of four ways",
    )
}

fn no_core_file(stage: &Stage) -> Result<Finding, String> {
    let script = "cd /workspace; ulimit -c unlimited 2>/dev/null; ulimit -S -c 0 2>/dev/null; \
                  for s in SEGV ABRT QUIT TRAP BUS; do bash -c 'kill -'$s' $$' 2>/dev/null; done; \
                  ls -a /workspace /tmp | grep -c core";
    let result = stage.sandbox.run(["bash", "-c", script]).map_err(|error| error.to_string())?;
    match result.stdout_text().trim() {
        "0" => held("five signals that dump, limits raised and lowered before: no file"),
        count => Err(format!("{count} files")),
    }
}

fn crash_loop(stage: &Stage) -> Result<Finding, String> {
    let lines = || {
        let log = crate::stage::program("dmesg", &[]);
        log.lines().count()
    };
    let before = lines();
    let start = Instant::now();
    let script = "for i in $(seq 300); do bash -c 'kill -SEGV $$'; done 2>/dev/null; exit 0";
    let result = stage.sandbox.run(["bash", "-c", script]).map_err(|error| error.to_string())?;
    let (grown, took) = (lines().saturating_sub(before), start.elapsed());
    match result.ok() && grown < 100 {
        true => held(format!("300 crashes in {took:?}: {grown} more lines in the kernel's log")),
        false => Err(format!("{:?}, {grown} lines", result.ending)),
    }
}

fn modules_stay(stage: &Stage) -> Result<Finding, String> {
    let names = || {
        let text = std::fs::read_to_string("/proc/modules").unwrap_or_default();
        text.lines()
            .filter_map(|line| line.split(' ').next().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    let before = names();
    // A file with the magic number of nothing that the kernel knows would ask for a module.
    let script =
        "printf '\\xfe\\xed\\xfa\\xce1234567890123456' > m; chmod +x m; ./m 2>/dev/null; exit 0";
    let result = stage.sandbox.run(["bash", "-c", script]).map_err(|error| error.to_string())?;
    match result.ok() && names() == before {
        true => held(format!("{} modules before and after", before.len())),
        false => Err(format!("{:?}: {before:?} {:?}", result.ending, names())),
    }
}

/// A program of another machine is no program here, unless the host has an interpreter for it.
fn foreign_binary(_: &Stage) -> Result<Finding, String> {
    let registered = std::fs::read_dir("/proc/sys/fs/binfmt_misc")
        .map(|all| {
            all.flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect::<Vec<_>>()
        })
        .unwrap_or_default();
    let scratch = Scratch::new();
    let mut elf = postern_tests::PROBE.to_vec();
    elf[18] = 0xb7;
    let path = scratch.file("foreign", &elf, 0o755);
    let profile =
        postern::SandboxProfile::builder().ro_binds([(path.to_str().unwrap(), "/srv/foreign")]);
    let result = crate::host::build(profile.build().unwrap())?.run(["/srv/foreign"]);
    match result.map_err(|error| error.to_string())?.ending {
        postern::Ending::ExecFailed(libc::ENOEXEC) => {
            held(format!("an aarch64 program: ENOEXEC; the host has registered {registered:?}"))
        }
        ending if !registered.is_empty() => {
            held(format!("the host's own interpreter ran it: {ending:?}, {registered:?}"))
        }
        ending => Err(format!("{ending:?}")),
    }
}
