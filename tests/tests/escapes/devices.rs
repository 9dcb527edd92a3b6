//! Section E: device nodes, and terminals that are not the host's.

use libc::{EACCES, EINVAL, EIO, ENOSPC, ENOTTY, ENXIO, EPERM};
use postern::SandboxProfile;
use postern::profile::Workspace;
use postern_tests::{PROBE, Scratch};
use serde_json::Value;

use crate::host::{build, hostprog_by};
use crate::stage::{Stage, program};
use crate::table::Expect::{AllRefused, Meets, Refused};
use crate::table::Severity::{Critical, High, Low, Medium};
use crate::table::{Row, ask, guest, host, inside};
use crate::verdict::{Finding, Need, held};

pub(crate) const ROWS: &[Row] = &[
    guest(
        "E-01",
        High,
        "/dev holds six nodes and nothing that is the machine's",
        &[ask("list /dev /dev/pts /dev/shm", Meets(six_nodes))],
    ),
    guest(
        "E-02",
        High,
        "no device node can be made, not even the empty one",
        &[
            ask("calls mknod s:{w}/e02 0x2180 0x103", Refused(&[EPERM, EACCES])),
            ask("calls mknod s:{w}/e02 0x6180 0x800", Refused(&[EPERM, EACCES])),
            ask("calls mknod s:{w}/e02 0x2180 0xfe00", Refused(&[EPERM, EACCES])),
            ask("calls mknod s:{w}/e02 0x2180 0xac8", Refused(&[EPERM, EACCES])),
            ask("calls mknod s:{w}/e02 0x2180 0", Refused(&[EPERM, EACCES])),
            ask("calls mknod s:/tmp/e02 0x2180 0", Refused(&[EPERM, EACCES])),
            ask("calls mknod s:/dev/shm/e02 0x2180 0", Refused(&[EPERM, EACCES])),
            ask("calls mknodat -100 s:{w}/e02 0x2180 0", Refused(&[EPERM, EACCES])),
            ask(
                "calls openat -100 s:{w}/e02-a 0x41 0x1a4 ; renameat2 -100 s:{w}/e02-a -100 s:{w}/e02-b 4",
                Refused(&[EPERM, EINVAL, EACCES]),
            ),
        ],
    ),
    host("E-03", High, "a device node in the workspace does not open", planted_node),
    guest(
        "E-04",
        Medium,
        "terminals are the run's own, and few",
        &[
            ask("open w /dev/tty", AllRefused(&[ENXIO])),
            inside("repeat 100 openat -100 s:/dev/ptmx 2 0", Meets(few_terminals)),
        ],
    ),
    guest(
        "E-05",
        Medium,
        "no stream is a terminal",
        &[
            ask("calls ioctl 0 0x5401 z:64", Refused(&[ENOTTY])),
            ask("calls ioctl 1 0x5401 z:64", Refused(&[ENOTTY])),
            ask("calls ioctl 2 0x5401 z:64", Refused(&[ENOTTY])),
        ],
    )
    .and(no_terminal_of_the_host),
    host("E-06", Critical, "nothing can be typed into the host's terminal", no_typing),
    guest(
        "E-07",
        High,
        "no terminal of the host can be taken",
        &[
            ask("calls ioctl 0 0x540e 0", Refused(&[ENOTTY, EPERM])),
            ask("calls ioctl 1 0x540e 1", Refused(&[ENOTTY, EPERM])),
            ask("calls ioctl 0 0x5422 0", Refused(&[ENOTTY, EPERM])),
            ask("calls ioctl 0 0x5410 b:01000000", Refused(&[ENOTTY, EPERM])),
            ask("open r /dev/tty", AllRefused(&[ENXIO])),
        ],
    )
    .and(no_terminal_of_the_host),
    guest(
        "E-08",
        High,
        "consoles and their clipboards are out of reach",
        &[
            ask("calls ioctl p:0x102:/dev/ptmx 0x541c b:03", Refused(&[EPERM])),
            ask("calls ioctl p:0x102:/dev/ptmx 0x4b47 z:64", Refused(&[EPERM])),
            ask("calls ioctl p:0x102:/dev/ptmx 0x5606 1", Refused(&[EPERM])),
            ask("calls ioctl p:0x102:/dev/ptmx 0x541d 0", Refused(&[EPERM])),
        ],
    ),
    host(
        "E-09",
        Medium,
        "what a guest prints cannot drive the user's terminal",
        control_characters,
    ),
    host("E-10", Medium, "no text of a guest's forges a message of ours", forged_messages),
    guest(
        "E-11",
        Low,
        "no terminal's modes can be left behind",
        &[
            ask("calls ioctl 0 0x5402 z:64", Refused(&[ENOTTY])),
            ask("calls ioctl 1 0x540c 0", Refused(&[ENOTTY])),
            ask("calls ioctl 1 0x540a 0", Refused(&[ENOTTY])),
        ],
    )
    .and(no_terminal_of_the_host),
    guest(
        "E-12",
        Low,
        "no window can be resized",
        &[
            ask("calls ioctl 0 0x5414 z:8", Refused(&[ENOTTY])),
            ask("calls ioctl 1 0x5414 z:8", Refused(&[ENOTTY])),
        ],
    )
    .and(no_terminal_of_the_host),
];

fn six_nodes(answer: &Value) -> Result<(), String> {
    let devices = |place: &str| -> Result<Vec<(String, u64)>, String> {
        let entries = answer[place].as_array().ok_or_else(|| answer.to_string())?;
        let nodes = entries
            .iter()
            .filter(|entry| ["char", "block"].contains(&entry["kind"].as_str().unwrap_or("")));
        let node = |entry: &Value| {
            (entry["name"].as_str().unwrap_or("").to_owned(), entry["device"].as_u64().unwrap_or(0))
        };
        Ok(nodes.map(node).collect())
    };
    let found = devices("/dev")?;
    let wanted = [
        ("full", 0x107),
        ("null", 0x103),
        ("random", 0x108),
        ("tty", 0x500),
        ("urandom", 0x109),
        ("zero", 0x105),
    ];
    let same = found.iter().map(|(name, device)| (&**name, *device)).eq(wanted);
    let pts: Vec<_> = devices("/dev/pts")?;
    match same && pts.iter().all(|(name, _)| name == "ptmx") && devices("/dev/shm")?.is_empty() {
        true => Ok(()),
        false => Err(format!("{found:x?} {pts:?}")),
    }
}

fn few_terminals(answer: &Value) -> Result<(), String> {
    match (answer["made"].as_i64(), answer["errno"].as_i64()) {
        (Some(1..=16), Some(errno)) if errno == i64::from(ENOSPC) => Ok(()),
        _ => Err(answer.to_string()),
    }
}

/// A node that an earlier run or an archive has left in a caller's workspace: only root can make it.
fn planted_node(stage: &Stage) -> Result<Finding, String> {
    if !stage.is_root {
        let fact = "the kernel makes device nodes for CAP_MKNOD alone, so none can be planted here";
        return Ok(Finding::Vacuous(fact.to_owned()));
    }
    let scratch = Scratch::new();
    let directory = scratch.directory("ws", 0o777);
    scratch.file("ws/probe", PROBE, 0o755);
    let node = directory.join("node");
    program("mknod", &["-m", "666", node.to_str().unwrap(), "c", "1", "3"]);
    let workspace = Workspace::Directory { path: directory, access: Default::default() };
    let sandbox = build(SandboxProfile::builder().workspace(workspace).build().unwrap())?;
    let answer = postern_tests::ask(&sandbox, &["open", "r", "/workspace/node"]);
    match answer["/workspace/node"]["errno"].as_i64() {
        Some(errno) if errno == i64::from(EACCES) => held("char 1:3 of mode 666: EACCES"),
        _ => Err(answer.to_string()),
    }
}

/// A host whose streams are a terminal: none of it is the guest's.
fn no_terminal_of_the_host(stage: &Stage) -> Result<Finding, String> {
    let answers = on_a_terminal(
        stage,
        &[
            "calls 16 0 0x5401 z:64",
            "calls 16 1 0x5401 z:64",
            "calls 16 2 0x5401 z:64",
            "open w /dev/tty",
        ],
    )?;
    let tty = |answer: &Value| answer[0]["errno"] == ENOTTY;
    match answers.iter().take(3).all(tty) && answers[3]["/dev/tty"]["errno"] == ENXIO {
        true => held("launched from a terminal: ENOTTY on all three streams, /dev/tty is ENXIO"),
        false => Err(format!("{answers:?}")),
    }
}

fn no_typing(stage: &Stage) -> Result<Finding, String> {
    let questions = [
        "calls 16 0 0x5412 s:x",
        "calls 16 1 0x5412 s:x",
        "calls 16 2 0x100005412 s:x",
        "calls 16 p:2:/dev/tty 0x5412 s:x",
    ];
    let answers = on_a_terminal(stage, &questions)?;
    let refused = |answer: &Value| {
        [EPERM, ENOTTY, ENXIO, EIO].iter().any(|errno| answer[0]["errno"] == *errno)
    };
    match answers.iter().all(refused) {
        true => held(format!("launched from a terminal: {answers:?}")),
        false => Err(format!("{answers:?}")),
    }
}

/// Answers of a run that a host on a terminal has started.
fn on_a_terminal(stage: &Stage, questions: &[&str]) -> Result<Vec<Value>, String> {
    let (file, answers) =
        (stage.scratch.path().join("questions"), stage.scratch.path().join("answers"));
    std::fs::write(&file, questions.join("\n")).unwrap();
    // `script` gives its command a terminal of its own.
    let words = ["--quiet", "--return", "--command", "\"$SHELL_COMMAND\"", "/dev/null"];
    let told = format!("answers={}", answers.display());
    hostprog_by(
        "sh",
        &["-c", TERMINAL, &words.join(" ")],
        "ask",
        &[&format!("questions={}", file.display()), &told],
    )?;
    let text = std::fs::read_to_string(&answers).map_err(|error| error.to_string())?;
    let told: Value = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
    told["answers"].as_array().cloned().ok_or(text)
}

const TERMINAL: &str = r#"command=''; for word; do command="$command '$word'"; done
exec script --quiet --return --command "$command" /dev/null"#;

fn control_characters(_: &Stage) -> Result<Finding, String> {
    let evidence = "the command passes a guest's bytes on as they are, as pipes do";
    Ok(Finding::Needs(Need::Later("terminal_filter"), evidence.to_owned()))
}

/// Control characters of what a guest may have named, such as a directory to go on in, and of its
/// program's name, come escaped or not at all.
fn forged_messages(stage: &Stage) -> Result<Finding, String> {
    let hostile = "/workspace/\x1b[2J\npostern: all is well\u{202e}";
    let cwd = stage.sandbox.run(postern::Command::new("true").cwd(hostile));
    let cwd = cwd.map(|result| format!("{:?}", result.ending)).unwrap_or_else(|e| e.to_string());
    let program = stage.sandbox.run([hostile]).map_err(|error| error.to_string())?;
    let told = [cwd, format!("{:?}", program.ending)];
    let is_forged = |text: &String| {
        text.chars().any(|c| c.is_control() && c != '\n') || text.contains("\npostern: all is well")
    };
    match told.iter().any(is_forged) {
        true => Err(format!("{told:?}")),
        false => held(format!("{told:.200?}")),
    }
}
