//! Section B: the namespaces around a run, and that no other can be made or entered.

use libc::{EACCES, ECONNREFUSED, EINVAL, ENETUNREACH, ENOSYS, ENOTTY, EPERM, EROFS, ESRCH};
use postern_tests::{command, hold, namespaces};
use serde_json::Value;

use crate::host::hostprog;
use crate::stage::Stage;
use crate::table::Expect::{AllRefused, At, Meets, Refused};
use crate::table::Severity::{Critical, High, Low, Medium};
use crate::table::{Row, ask, guest, host};
use crate::verdict::{Finding, held};

pub(crate) const ROWS: &[Row] = &[
    host("B-01", Critical, "seven namespaces are the run's own", all_own),
    guest(
        "B-02",
        Critical,
        "/proc numbers only the run's own processes",
        &[ask("processes", Meets(few))],
    ),
    guest(
        "B-03",
        Critical,
        "no process of the host can be signalled",
        &[
            ask("calls kill {hostpid} 0", Refused(&[ESRCH])),
            ask("calls tgkill {hostpid} {hostpid} 0", Refused(&[ESRCH])),
            ask("calls pidfd_open {hostpid} 0", Refused(&[ESRCH])),
            ask("signalable 40000", Meets(few_signalable)),
        ],
    ),
    guest(
        "B-04",
        High,
        "loopback is the only interface, without a route",
        &[
            ask("read /proc/net/dev", Meets(only_loopback)),
            ask("read /proc/net/route", Meets(no_route)),
        ],
    )
    .fact("this host has no other interface"),
    guest(
        "B-05",
        Critical,
        "nothing that the host listens on is reached",
        &[
            ask("calls connect k:2:1:0 b:{tcp} 16", Refused(&[ECONNREFUSED, ENETUNREACH])),
            ask(
                "calls connect k:2:0x801:0 b:02000050a9fea9fe0000000000000000 16",
                Refused(&[ENETUNREACH]),
            ),
            ask(
                "calls connect k:2:2:0 b:02000035080808080000000000000000 16",
                Refused(&[ENETUNREACH]),
            ),
        ],
    )
    .and(nobody_came),
    guest(
        "B-08",
        Critical,
        "no namespace can be made",
        &[
            ask("calls unshare 0x10000000", Refused(&[EPERM])),
            ask("rooted calls unshare 0x00020000", Refused(&[EPERM])),
            ask("rooted calls unshare 0x40000000", Refused(&[EPERM])),
            ask("calls clone 0x10000011 0 0 0 0", Refused(&[EPERM])),
            ask("calls clone 0x00020011 0 0 0 0", Refused(&[EPERM])),
            ask("calls clone 0x02000011 0 0 0 0", Refused(&[EPERM])),
            ask("calls clone 0x04000011 0 0 0 0", Refused(&[EPERM])),
            ask("calls clone 0x08000011 0 0 0 0", Refused(&[EPERM])),
            ask("calls clone 0x20000011 0 0 0 0", Refused(&[EPERM])),
            ask("calls clone 0x40000011 0 0 0 0", Refused(&[EPERM])),
            ask("calls clone3 w:0x10000000,0,0,0,17,0,0,0 64", Refused(&[ENOSYS])),
        ],
    ),
    guest(
        "B-09",
        High,
        "high bits of the flags change nothing",
        &[
            ask("calls clone 0xffffffff10000011 0 0 0 0", Refused(&[EPERM])),
            ask("calls clone 0x110000011 0 0 0 0", Refused(&[EPERM])),
            ask("calls unshare 0x110000000", Refused(&[EPERM])),
        ],
    ),
    guest(
        "B-11",
        High,
        "no namespace can be entered",
        &[
            ask("rooted calls setns p:0:/proc/self/ns/net 0", Refused(&[EPERM])),
            ask("calls setns p:0:/proc/self/ns/user 0", Refused(&[EPERM])),
            ask("rooted calls setns kidfd 0x40000000", Refused(&[EPERM])),
            ask(
                "open r /proc/1/ns/user /proc/1/ns/net /proc/1/ns/mnt /proc/1/ns/pid",
                AllRefused(&[EACCES, EPERM]),
            ),
        ],
    ),
    guest(
        "B-12",
        Medium,
        "namespaces do not tell of those around them",
        &[
            ask("calls ioctl p:0:/proc/self/ns/user 0xb702", Refused(&[EPERM, EACCES])),
            ask("calls ioctl p:0:/proc/self/ns/pid 0xb702", Refused(&[EPERM, EACCES])),
            ask("calls ioctl p:0:/proc/self/ns/net 0xb701", Refused(&[EPERM, EACCES])),
            ask(
                "calls ioctl p:0:/proc/self/ns/net 0xb702",
                Refused(&[EPERM, EACCES, EINVAL, ENOTTY]),
            ),
        ],
    ),
    guest(
        "B-13",
        Medium,
        "no file handle is opened, of any file system",
        &[
            ask("calls open_by_handle_at -10002 b:0800000001000000 0", Refused(&[EPERM])),
            ask("calls open_by_handle_at -10003 b:0800000001000000 0", Refused(&[EPERM])),
            ask("calls name_to_handle_at -10003 s: b:80000000 z:8 0x1000", Refused(&[EPERM])),
        ],
    ),
    guest(
        "B-14",
        Medium,
        "the kernel itself allows no further user namespace",
        &[ask(
            "read /proc/sys/user/max_user_namespaces",
            At("/~1proc~1sys~1user~1max_user_namespaces", r#""0\n""#),
        )],
    ),
    host("B-15", Critical, "a host that forbids user namespaces gets no sandbox", fails_closed),
    guest(
        "B-17",
        Low,
        "clock offsets cannot be written",
        &[ask("open w /proc/self/timens_offsets", AllRefused(&[EACCES, EROFS, libc::ENOENT]))],
    ),
];

fn all_own(stage: &Stage) -> Result<Finding, String> {
    let hosts = namespaces(i32::try_from(std::process::id()).unwrap());
    let run = hold(&stage.sandbox, command(&["hold", "identity"]));
    let seen = [run.init, run.guest].map(namespaces);
    run.release();
    let shared: Vec<_> =
        hosts.iter().filter(|(name, link)| seen.iter().any(|s| s[*name] == **link)).collect();
    match shared.is_empty() {
        true => held(format!("{} of {}: no link equals the host's", hosts.len(), hosts.len())),
        false => Err(format!("the host's: {shared:?}")),
    }
}

/// PID 1, the probe that reads questions, the one that answers.
const OWN_PROCESSES: usize = 3;

fn few(processes: &Value) -> Result<(), String> {
    let pids: Vec<_> = processes.as_object().ok_or("no list")?.keys().collect();
    match pids.len() <= OWN_PROCESSES {
        true => Ok(()),
        false => Err(format!("{} processes", pids.len())),
    }
}

fn few_signalable(answer: &Value) -> Result<(), String> {
    let pids = answer["pids"].as_array().ok_or("no list")?;
    match pids.len() <= OWN_PROCESSES {
        true => Ok(()),
        false => Err(format!("{pids:?}")),
    }
}

fn only_loopback(answer: &Value) -> Result<(), String> {
    let text = answer["/proc/net/dev"].as_str().ok_or("no file")?;
    let names = text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim()));
    match names.clone().eq(["lo"]) {
        true => Ok(()),
        false => Err(names.collect::<Vec<_>>().join(" ")),
    }
}

fn no_route(answer: &Value) -> Result<(), String> {
    match answer["/proc/net/route"].as_str().map_or(0, |text| text.lines().count()) {
        0 | 1 => Ok(()),
        lines => Err(format!("{lines} lines")),
    }
}

fn nobody_came(stage: &Stage) -> Result<Finding, String> {
    match stage.was_visited() {
        true => Err("the host's listener was reached".to_owned()),
        false => held("refused, and the host's listener saw nobody"),
    }
}

fn fails_closed(_: &Stage) -> Result<Finding, String> {
    let told = hostprog("no-user-namespaces", &[])?;
    match told.starts_with("step ") && told.contains("errno") {
        true => held(format!("{told:.160}")),
        false => Err(told),
    }
}
