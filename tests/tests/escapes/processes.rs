//! Section K: processes that fight PID 1, outlive their run, or die with their host.

use std::time::{Duration, Instant};

use libc::{EACCES, EINVAL, EPERM, EROFS, ESRCH};
use postern::{Command, Ending, SandboxProfile};
use postern_seccomp::Level;
use postern_tests::{children, command, hold, install};
use serde_json::Value;

use super::deadlines;
use crate::host::{build, hostprog};
use crate::question::spelled;
use crate::stage::{Stage, answers_in};
use crate::table::Expect::{AllRefused, Meets, Refused};
use crate::table::Severity::{High, Low, Medium};
use crate::table::{Lacking, Row, ask, guest, host, inside};
use crate::verdict::{Finding, errno_of, held};

pub(crate) const ROWS: &[Row] = &[
    host(
        "K-01",
        Medium,
        "PID 1 survives every signal of the guest's, and so does the verdict",
        signals_to_init,
    ),
    guest(
        "K-02",
        High,
        "PID 1 cannot be looked into or taken over",
        &[
            ask("open r /proc/1/mem /proc/1/maps /proc/1/fd/3", AllRefused(&[EACCES, EPERM])),
            ask("calls ptrace 16 1 0 0", Refused(&[EPERM])),
            ask("calls pidfd_open 1 0 ; pidfd_getfd $0 0 0", Refused(&[EPERM])),
            ask("calls process_vm_readv 1 w:z:8,8 1 w:0x400000,8 1 0", Refused(&[EPERM])),
            ask("calls process_vm_writev 1 w:z:8,8 1 w:0x400000,8 1 0", Refused(&[EPERM])),
            ask("calls pidfd_open 1 0 ; setns $0 0x20000000", Refused(&[EPERM])),
        ],
    )
    .and(init_is_not_dumpable),
    host("K-03", High, "no daemon outlives its run", daemons_end),
    host("K-04", Medium, "stopped and waiting processes do not hold up the end", stopped_end),
    host("K-05", Medium, "orphans are reaped", orphans_are_reaped),
    guest(
        "K-06",
        Low,
        "a subreaper of the guest's keeps nothing from PID 1",
        &[inside("calls prctl 36 1 0 0 0 ; getppid", Meets(parent_is_inside))],
    )
    .and(subreapers_end),
    host(
        "K-07",
        High,
        "when the service is killed, every guest ends and nothing is left",
        host_killed,
    ),
    host("K-08", Medium, "the thread that launched may end", launching_thread_ends),
    host("K-09", Medium, "only pidfds are ever signalled", only_pidfds),
    host("K-10", High, "nobody else's process can trace a sandbox being built", set_up_is_closed),
    host("K-11", Medium, "no exit code and no text forges what happened", no_forged_end),
    guest(
        "K-13",
        Medium,
        "no priority over others can be had",
        &[
            ask("calls sched_setscheduler 0 1 b:01000000", Refused(&[EPERM])),
            ask("calls sched_setscheduler 0 2 b:01000000", Refused(&[EPERM])),
            ask(
                "calls sched_setattr 0 w:0x600000030,0,0,0,0x989680,0x1312d00,0 0",
                Refused(&[EPERM, EINVAL]),
            ),
            ask("calls setpriority 0 0 -20", Refused(&[EACCES, EPERM])),
            ask("calls ioprio_set 1 0 0x2000", Refused(&[EPERM])),
            ask("calls prctl 62 1 {hostpid} 0 0", Refused(&[EPERM, EINVAL, ESRCH])),
            ask("open w /proc/self/autogroup", AllRefused(&[EROFS, EACCES, libc::ENOENT])),
        ],
    ),
    host("K-14", High, "a fork bomb ends inside", deadlines::fork_bomb),
    host(
        "K-15",
        Medium,
        "a storm of short processes uses up no numbers of the host's",
        deadlines::exec_storm,
    )
    .needs(Lacking::CgroupV2),
    host(
        "K-16",
        High,
        "the deadline holds against a guest that ignores and holds on",
        deadlines::deadline_holds,
    ),
    host(
        "K-17",
        Medium,
        "a run can be killed from anywhere, twice, and after its end",
        deadlines::killed_twice,
    ),
    host(
        "K-18",
        Low,
        "a PID 1 that the host has stopped is bounded by the deadline",
        deadlines::stopped_init,
    ),
];

pub(crate) fn run(stage: &Stage, command: Command) -> Result<postern::ProcResult, String> {
    stage.sandbox.run(command).map_err(|error| error.to_string())
}

pub(crate) fn shell(script: &str) -> Command {
    Command::new("bash").args(["-c", script])
}

fn signals_to_init(stage: &Stage) -> Result<Finding, String> {
    let script = "for i in $(seq 1 64); do kill -$i 1 2>/dev/null; done; \
        for i in $(seq 20); do setsid sh -c 'while kill -HUP 1; do :; done' & done; \
        for i in $(seq 3000); do kill -USR1 1; kill -35 1 2>/dev/null; done; \
        trap '' HUP TERM USR1 USR2 INT QUIT WINCH; exit 41";
    let result =
        run(stage, shell(&format!("trap '' HUP TERM USR1 USR2 INT QUIT WINCH; {script}")))?;
    match result.ending {
        Ending::Exited(41) => {
            held("64 signals, 20 flooders, 6,000 more: the run ends with its own code 41")
        }
        ending => Err(format!("{ending:?} {}", result.stderr_text())),
    }
}

/// Without a filter the kernel itself refuses to trace it, and lets a child be traced.
fn init_is_not_dumpable(_: &Stage) -> Result<Finding, String> {
    let sandbox = build(SandboxProfile::builder().seccomp(Level::Off).build().unwrap())?;
    install(&sandbox);
    let questions = [
        "calls ptrace 16 1 0 0",
        "calls process_vm_readv 1 w:z:8,8 1 w:0x400000,8 1 0",
        "calls pidfd_open 1 0 ; pidfd_getfd $0 3 0",
        "calls ptrace 16 kid 0 0",
    ];
    let questions = questions.map(|question| spelled(question, &[]));
    let answers = answers_in(&sandbox, &questions);
    let errnos: Vec<_> = answers
        .iter()
        .map(|answer| answer.as_array().and_then(|all| all.last()).and_then(errno_of))
        .collect();
    match errnos == [Some(EPERM), Some(EPERM), Some(EPERM), None] {
        true => {
            held("EPERM of the filter; without one EPERM of the kernel, and a child can be traced")
        }
        false => Err(format!("without a filter: {answers:?}")),
    }
}

/// Processes anywhere on the host with this text in their command line.
fn survivors(mark: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let line = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).ok();
    let lines = all.filter_map(line).map(|line| String::from_utf8_lossy(&line).into_owned());
    lines.filter(|line| line.contains(mark) && !line.contains("batch")).count()
}

fn all_gone(mark: &str, since: Instant) -> Result<Duration, String> {
    while survivors(mark) > 0 {
        if since.elapsed() > Duration::from_secs(5) {
            return Err(format!("{} processes are left", survivors(mark)));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(since.elapsed())
}

fn mark(name: &str) -> String {
    format!("postern-escapes-{name}-{}", std::process::id())
}

fn daemons_end(stage: &Stage) -> Result<Finding, String> {
    let mark = mark("daemon");
    let script = format!(
        "trap '' HUP TERM INT QUIT; for i in $(seq 200); do \
         (setsid sh -c 'trap \"\" HUP TERM INT QUIT; sleep 300; : {mark}' &) ; done; exit 7"
    );
    let result = run(stage, shell(&script))?;
    let gone = all_gone(&mark, Instant::now())?;
    match result.ending {
        Ending::Exited(7) => {
            held(format!("200 that ignore every signal: gone {gone:?} after the result"))
        }
        ending => Err(format!("{ending:?}")),
    }
}

fn stopped_end(stage: &Stage) -> Result<Finding, String> {
    let mark = mark("stopped");
    let script = format!(
        "for i in 1 2 3 4; do sh -c 'kill -STOP $$; : {mark}' & done; \
         python3 -c 'import os; os.spawnlp(os.P_NOWAIT, \"sleep\", \"sleep\", \"300\")' 2>/dev/null; exit 5"
    );
    let start = Instant::now();
    let result = run(stage, shell(&script).timeout(Duration::from_secs(20)))?;
    let gone = all_gone(&mark, Instant::now())?;
    match result.ending {
        Ending::Exited(5) => held(format!(
            "four stopped processes: over after {:?}, gone {gone:?} later",
            start.elapsed()
        )),
        ending => Err(format!("{ending:?} {}", result.stderr_text())),
    }
}

fn orphans_are_reaped(stage: &Stage) -> Result<Finding, String> {
    let answer = postern_tests::ask(&stage.sandbox, &["orphans", "2000"]);
    match (answer["made"].as_i64(), answer["left"].as_i64()) {
        (Some(2000), Some(0)) => held("2,000 orphans, none left; NPROC counts them"),
        _ => Err(answer.to_string()),
    }
}

fn parent_is_inside(answer: &Value) -> Result<(), String> {
    match answer[1].as_i64() {
        Some(1..) => Ok(()),
        _ => Err(answer.to_string()),
    }
}

fn subreapers_end(stage: &Stage) -> Result<Finding, String> {
    let mark = mark("subreaper");
    let code = format!(
        "import ctypes, os\nctypes.CDLL(None).prctl(36, 1)\nfor i in range(20):\n \
         os.fork() or (os.setsid(), os.execlp('sh', 'sh', '-c', 'sleep 300; : {mark}'))\n"
    );
    let result = run(stage, Command::new("python3").args(["-c", &code]))?;
    let gone = all_gone(&mark, Instant::now())?;
    match result.ok() {
        true => held(format!("20 children of a subreaper: gone {gone:?} after it")),
        false => Err(format!("{:?} {}", result.ending, result.stderr_text())),
    }
}

fn host_killed(_: &Stage) -> Result<Finding, String> {
    // The scenario kills hosts at random moments and counts what is left; endings.rs has its long form.
    // It counts on moments within a tenth of a second, which a busy machine may miss.
    let mut told = hostprog("kills", &["30", "0"]);
    for _ in 0..3 {
        if told.as_ref().is_err_and(|wrong| wrong.contains("too early")) {
            told = hostprog("kills", &["30", "0"]);
        }
    }
    match told {
        // Gone it is: how soon is for the test of endings to say.
        Err(late) if late.contains("the last process was gone after") => held(late),
        told => held(told?),
    }
}

fn launching_thread_ends(stage: &Stage) -> Result<Finding, String> {
    let sandbox = std::thread::spawn(|| build(SandboxProfile::default())).join().unwrap()?;
    install(&sandbox);
    let process = std::thread::scope(|scope| {
        scope.spawn(|| stage.sandbox.start(shell("sleep 0.3; exit 9"))).join().unwrap()
    });
    let result = process.and_then(postern::Process::wait).map_err(|error| error.to_string())?;
    let later = sandbox.run(["true"]).map_err(|error| error.to_string())?;
    match (result.ending, later.ok()) {
        (Ending::Exited(9), true) => {
            held("builder and starter threads ended first: code 9, and a further run")
        }
        other => Err(format!("{other:?}")),
    }
}

/// Signals to a run whose PID 1 is long gone go nowhere: there is no number to be used again.
fn only_pidfds(stage: &Stage) -> Result<Finding, String> {
    let process = stage.sandbox.start(["true"]).map_err(|error| error.to_string())?;
    let handle = process.handle();
    let result = process.wait().map_err(|error| error.to_string())?;
    for _ in 0..100 {
        handle.kill();
    }
    match result.ok() {
        true => held("100 kills after the end reach nobody: the handle holds a pidfd"),
        false => Err(format!("{:?}", result.ending)),
    }
}

/// Another user's process: it may look into neither the launcher nor PID 1.
fn set_up_is_closed(stage: &Stage) -> Result<Finding, String> {
    let run = hold(&stage.sandbox, command(&["hold", "identity"]));
    let own = i32::try_from(std::process::id()).unwrap();
    let launcher = children(own).into_iter().find(|pid| children(*pid).contains(&run.init));
    let launcher = launcher.ok_or("no launcher")?;
    let questions: Vec<String> = [launcher, run.init]
        .iter()
        .flat_map(|pid| ["mem", "environ", "maps"].map(|name| format!("open r /proc/{pid}/{name}")))
        .chain([format!("calls 101 16 {launcher} 0 0")])
        .collect();
    let answers = crate::stage::as_stranger(&stage.scratch, &questions);
    run.release();
    let Some(answers) = answers else {
        let fact = "this host is not root and has no other user to look from";
        return Ok(Finding::Vacuous(fact.to_owned()));
    };
    let text = Value::from(answers).to_string();
    match text.contains("true") || text.contains("[0]") {
        true => Err(text),
        false => held(format!("a third user: {text:.150}")),
    }
}

fn no_forged_end(stage: &Stage) -> Result<Finding, String> {
    for code in [124, 125, 126, 127, 137] {
        let script = format!(
            "echo '[postern] timed out' >&2; echo 'postern: launcher lost' >&2; exit {code}"
        );
        let result = run(stage, shell(&script))?;
        if result.ending != Ending::Exited(code) || result.timed_out || result.terminated {
            return Err(format!("{code}: {:?}, timed out {}", result.ending, result.timed_out));
        }
    }
    let killed = run(stage, shell("kill -KILL $$"))?;
    let missing = run(stage, Command::new("/nowhere"))?;
    match (killed.ending, missing.ending) {
        (Ending::Signaled(9), Ending::ExecFailed(libc::ENOENT)) => held(
            "codes 124 to 127 and 137 are the program's own; a signal and a failed exec are told apart",
        ),
        other => Err(format!("{other:?}")),
    }
}
