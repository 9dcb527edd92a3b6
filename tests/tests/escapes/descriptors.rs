//! Section F: descriptors, streams, the working directory, memory and environment of a guest.

use std::fs;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{EACCES, EPERM, EROFS, ETXTBSY};
use postern_tests::{children, command, descriptors, hold, memory_holds};
use serde_json::Value;

use super::procfs::is_clean_or_closed;
use super::{inheritance, streams};
use crate::host::hostprog_by;
use crate::stage::Stage;
use crate::table::Expect::{AllRefused, At, Meets, Refused};
use crate::table::Severity::{Critical, High, Low, Medium};
use crate::table::{Row, ask, guest, host};
use crate::verdict::{Finding, Need, held};

pub(crate) const ROWS: &[Row] = &[
    guest(
        "F-01",
        Critical,
        "no descriptor of the service reaches PID 1 or guest",
        &[ask("via exec fds", At("", "[0,1,2]"))],
    )
    .and(fifty_descriptors),
    host("F-02", Critical, "none does while the service opens more", racing_descriptors),
    guest(
        "F-03",
        Critical,
        "the working directory is inside",
        &[ask("identity", At("/cwd", r#""/workspace""#)), ask("up .", At("/.", "true"))],
    ),
    host("F-04", High, "root and working directory of PID 1 are inside too", places_from_outside),
    host("F-05", Critical, "no memory of the service is mapped in PID 1 or guest", own_images),
    host("F-06", Critical, "no secret of the service is in memory that a guest reaches", no_secret),
    host("F-08", High, "the host's own files as streams cannot be touched", streams::own_files),
    host("F-09", Medium, "flags of the host's streams stay as they are", streams::own_flags),
    host("F-10", Medium, "no signal reaches the host by way of a descriptor", streams::own_signals),
    guest(
        "F-12",
        Critical,
        "the programs that run a sandbox cannot be written",
        &[
            ask(
                "open w /proc/self/exe /proc/1/exe /proc/1/task/1/exe",
                AllRefused(&[EROFS, EACCES, EPERM, ETXTBSY]),
            ),
            ask(
                "open w /usr/bin/python3 /usr/bin/sh /usr/bin/env /lib64/ld-linux-x86-64.so.2",
                AllRefused(&[EROFS, EACCES, ETXTBSY, libc::ENOENT]),
            ),
            ask("calls rename s:/usr/bin/sh s:/usr/bin/sh2", Refused(&[EROFS])),
            ask("calls unlink s:/usr/bin/python3", Refused(&[EROFS])),
        ],
    ),
    host("F-13", High, "the launcher's image cannot change between check and exec", sealed_image),
    host("F-14", Critical, "entering a running sandbox loads nothing of the guest's", no_way_in),
    host(
        "F-15",
        High,
        "nothing of the service's environment is inherited",
        inheritance::no_environment,
    ),
    host(
        "F-16",
        Medium,
        "nothing secret is in a launcher's arguments or environment",
        launcher_shows_nothing,
    ),
    host(
        "F-17",
        High,
        "the host's side of a hatch sends no descriptor",
        streams::no_descriptor_sent,
    ),
    guest(
        "F-18",
        Low,
        "masks, priorities and timers are a fresh process's",
        &[
            ask("status", Meets(no_signals)),
            ask("identity", At("/umask", "18")),
            ask("own", At("/priority", "20")),
            ask("own", At("/scheduler", "0")),
            ask("own", At("/ioprio", "0")),
            ask("own", At("/death_signal", "0")),
            ask("own", At("/thp_disable", "0")),
            ask("own", At("/timer_slack", "50000")),
        ],
    )
    .and(odd_host),
    guest(
        "F-19",
        Medium,
        "every limit is the documented one, hard as soft",
        &[ask("rlimits", Meets(documented_limits))],
    ),
    host(
        "F-20",
        Medium,
        "long and odd argument lists are passed exactly or refused",
        inheritance::odd_arguments,
    ),
];

/// Answers of a host with a habit.
pub(crate) fn with_habits(
    stage: &Stage,
    habits: &[&str],
    starter: (&str, &[&str]),
    questions: &[&str],
) -> Result<Vec<Value>, String> {
    let file = |name: &str| stage.scratch.path().join(name).display().to_string();
    fs::write(file("questions"), questions.join("\n")).unwrap();
    let mut words = vec![format!("questions={}", file("questions"))];
    words.push(format!("answers={}", file("answers")));
    words.extend(habits.iter().map(|habit| habit.to_string()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    fs::remove_file(file("answers")).ok();
    hostprog_by(starter.0, starter.1, "ask", &words)?;
    let text = fs::read_to_string(file("answers")).map_err(|error| error.to_string())?;
    let told: Value = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
    told["answers"].as_array().cloned().ok_or(text)
}

fn fifty_descriptors(stage: &Stage) -> Result<Finding, String> {
    let questions = ["via exec fds", "magic"];
    let answers = with_habits(stage, &["habit=descriptors"], ("env", &[]), &questions)?;
    let open = answers[0].as_array().ok_or("no list")?;
    if open.len() != 3 || answers[1]["foreign"] != Value::Array(vec![]) {
        return Err(format!("{answers:?}"));
    }
    let run = hold(&stage.sandbox, command(&["hold", "fds"]));
    let (init, guest) = (descriptors(run.init), run.answer.clone());
    run.release();
    match init.len() == 3 && guest == serde_json::json!([0, 1, 2]) {
        true => held(format!(
            "52 descriptors open in the service: the guest has {guest}, PID 1 {init:?}"
        )),
        false => Err(format!("guest {guest}, PID 1 {init:?}")),
    }
}

fn racing_descriptors(stage: &Stage) -> Result<Finding, String> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = fs::File::open("/etc/hostname").unwrap();
            while !over.load(Ordering::Relaxed) {
                // Such a duplicate stays open across an exec.
                let copies: Vec<_> = (0..8).map(|_| rustix::io::dup(&file).unwrap()).collect();
                drop(copies);
            }
        });
        let mut wrong = None;
        for turn in 0..60 {
            let sandbox = (turn % 20 == 0).then(|| crate::host::build(Default::default()));
            let answer = match sandbox {
                Some(Ok(sandbox)) => {
                    postern_tests::install(&sandbox);
                    postern_tests::ask(&sandbox, &["fds"])
                }
                _ => postern_tests::ask(&stage.sandbox, &["fds"]),
            };
            if answer != serde_json::json!([0, 1, 2]) {
                wrong = Some(answer);
            }
        }
        over.store(true, Ordering::Relaxed);
        match wrong {
            Some(answer) => Err(answer.to_string()),
            None => held("60 launches beside a thread that duplicates: 0, 1, 2 each time"),
        }
    })
}

fn places_from_outside(stage: &Stage) -> Result<Finding, String> {
    use std::os::unix::fs::MetadataExt;
    let run = hold(&stage.sandbox, command(&["hold", "identity"]));
    let place = |pid: i32, link: &str| {
        let path = format!("/proc/{pid}/{link}");
        let found = fs::metadata(&path).map(|found| found.dev()).unwrap_or(0);
        (fs::read_link(&path).unwrap_or_default().display().to_string(), found)
    };
    let all: Vec<_> = [run.init, run.guest]
        .iter()
        .flat_map(|pid| [place(*pid, "root"), place(*pid, "cwd")])
        .collect();
    run.release();
    let host = fs::metadata("/").unwrap().dev();
    match all.iter().all(|(path, dev)| path.starts_with('/') && ![0, host].contains(dev)) {
        true => held(format!("{all:?}, and the host's root is on device {host}")),
        false => Err(format!("{all:?}")),
    }
}

fn own_images(stage: &Stage) -> Result<Finding, String> {
    let run = hold(&stage.sandbox, command(&["hold", "identity"]));
    let maps = [run.init, run.guest].map(|pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let files = text.lines().filter_map(|line| line.split_ascii_whitespace().nth(5));
        let mut files: Vec<_> =
            files.filter(|file| file.starts_with('/')).map(str::to_owned).collect();
        files.dedup();
        files
    });
    run.release();
    let own = std::env::current_exe().unwrap().display().to_string();
    // The plan, which PID 1 was made by, holds what the profile says and no more.
    let image = |file: &String| {
        ["/memfd:postern-launcher", "/memfd:postern-plan"].contains(&&**file)
            || file.ends_with("postern-launcher")
    };
    match (maps[0].iter().all(image), maps[1].contains(&own)) {
        (true, false) if !maps[0].is_empty() => {
            held(format!("PID 1 maps {:?}, the guest {:?}", maps[0], maps[1]))
        }
        _ => Err(format!("{maps:?}")),
    }
}

fn no_secret(stage: &Stage) -> Result<Finding, String> {
    let run = hold(&stage.sandbox, command(&["hold", "identity"]));
    let canary = stage.canary.as_bytes();
    let own = memory_holds(i32::try_from(std::process::id()).unwrap(), canary);
    let found = [run.init, run.guest].map(|pid| memory_holds(pid, canary));
    run.release();
    match (&own, &found) {
        (Ok(true), [Ok(false), guest]) if is_clean_or_closed(guest) => {
            held("a word in the service's memory: found there, and not in PID 1 or guest")
        }
        _ => Err(format!("service {own:?}, PID 1 and guest {found:?}")),
    }
}

fn sealed_image(_: &Stage) -> Result<Finding, String> {
    let all = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let image = all.filter_map(|entry| {
        let target = fs::read_link(entry.path()).ok()?;
        target.to_str()?.starts_with("/memfd:postern-launcher").then_some(())?;
        fs::File::open(entry.path()).ok()
    });
    let image = image.last().ok_or("no image in memory")?;
    let seals = rustix::fs::fcntl_get_seals(&image).map_err(|error| error.to_string())?;
    use rustix::fs::SealFlags;
    let wanted = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    let written =
        fs::File::options().write(true).open(format!("/proc/self/fd/{}", image.as_raw_fd()));
    let written = written.and_then(|mut file| std::io::Write::write(&mut file, b"x"));
    match seals.contains(wanted) && written.is_err() {
        true => held(format!(
            "a memfd with {seals:?}; the service's own write: {}",
            written.unwrap_err()
        )),
        false => Err(format!("{seals:?}, {written:?}")),
    }
}

fn no_way_in(_: &Stage) -> Result<Finding, String> {
    let evidence =
        "there is no way to enter a running sandbox: every run is made before its program";
    Ok(Finding::Needs(Need::Later("sessions"), evidence.to_owned()))
}

fn launcher_shows_nothing(stage: &Stage) -> Result<Finding, String> {
    let secret = command(&["hold", "identity"]).env("TOKEN", &stage.canary).arg(&stage.canary);
    let run = hold(&stage.sandbox, secret);
    let own = i32::try_from(std::process::id()).unwrap();
    let launcher = children(own).into_iter().find(|pid| children(*pid).contains(&run.init));
    let file = |pid: i32, name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let told: Vec<_> = [launcher.unwrap_or(0), run.init]
        .iter()
        .flat_map(|pid| [file(*pid, "cmdline"), file(*pid, "environ")])
        .collect();
    run.release();
    let shows = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).contains(&stage.canary);
    match launcher {
        Some(_) if !told.iter().any(shows) => {
            let lens: Vec<_> = told.iter().map(Vec::len).collect();
            held(format!(
                "arguments and environment of launcher and PID 1: {lens:?} bytes, no secret"
            ))
        }
        _ => Err(format!("launcher {launcher:?}: {told:?}")),
    }
}

fn no_signals(status: &Value) -> Result<(), String> {
    let none = |field: &&str| status[*field] == "0000000000000000";
    let wrong: Vec<_> =
        ["SigBlk", "SigIgn", "SigCgt", "SigPnd"].into_iter().filter(|f| !none(f)).collect();
    if wrong.is_empty() { Ok(()) } else { Err(format!("{wrong:?}")) }
}

fn odd_host(stage: &Stage) -> Result<Finding, String> {
    let script =
        "umask 077; exec env --block-signal=TERM,USR1 --ignore-signal=HUP,INT nice -n 5 \"$@\"";
    let answers = with_habits(stage, &[], ("sh", &["-c", script, "sh"]), &["status", "identity"])?;
    no_signals(&answers[0])?;
    match answers[1]["umask"].as_i64() {
        Some(0o022) => {
            held("a host with signals blocked and ignored and umask 077 passes none of it on")
        }
        _ => Err(answers[1].to_string()),
    }
}

/// Soft and hard by resource number; `None` is the host's own.
const LIMITS: [Option<u64>; 16] = [
    None,
    Some(1 << 30),
    None,
    Some(8 << 20),
    Some(1),
    None,
    Some(1024),
    Some(1024),
    Some(64 << 10),
    None,
    None,
    Some(1024),
    Some(256 << 10),
    None,
    None,
    None,
];

fn documented_limits(answer: &Value) -> Result<(), String> {
    let found = answer.as_array().ok_or("no list")?;
    for (number, (limit, found)) in LIMITS.iter().zip(found).enumerate() {
        let Some(limit) = limit else { continue };
        let [soft, hard] = [&found[0], &found[1]].map(|value| value.as_u64().unwrap_or(u64::MAX));
        // Never above the host's own hard limit.
        if soft != hard || soft > *limit {
            return Err(format!("resource {number}: {soft} and {hard}, not {limit}"));
        }
    }
    Ok(())
}
