//! Section A: ids, capabilities and privileges of the guest.

use libc::{EACCES, EINVAL, EOPNOTSUPP, EPERM, EROFS};
use postern::{Command, SandboxProfile};
use postern_tests::{Held, PROBE, command, hold, status};
use serde_json::Value;

use crate::host::{outcome_of, walk_workspace};
use crate::stage::Stage;
use crate::table::Expect::{AllRefused, At, Meets, Refused};
use crate::table::Severity::{Critical, High, Medium};
use crate::table::{Lacking, Row, ask, guest, host};
use crate::verdict::{Finding, Need, held};

const NONE: &str = "0000000000000000";

pub(crate) const ROWS: &[Row] = &[
    guest(
        "A-01",
        High,
        "the guest is uid and gid 65534, real, effective and saved",
        &[
            ask("identity", At("/uid", "65534")),
            ask("identity", At("/egid", "65534")),
            ask("status", At("/Uid", r#""65534\t65534\t65534\t65534""#)),
            ask("status", At("/Gid", r#""65534\t65534\t65534\t65534""#)),
        ],
    ),
    guest(
        "A-02",
        High,
        "no supplementary group of the host is left",
        &[ask("status", Meets(no_groups))],
    )
    .and(groups_from_outside)
    .needs(Lacking::DistinctUid),
    guest(
        "A-03",
        High,
        "all five capability sets of every process are empty",
        &[
            ask("capabilities", At("/sets/permitted", "0")),
            ask("capabilities", At("/sets/effective", "0")),
            ask("capabilities", At("/sets/inheritable", "0")),
            ask("capabilities", At("/bounding", "0")),
            ask("capabilities", At("/ambient", "0")),
            ask("processes", Meets(no_capabilities)),
        ],
    )
    .and(capabilities_from_outside),
    guest(
        "A-04",
        High,
        "no privilege comes by exec, and that is locked",
        &[
            ask("capabilities", At("/no_new_privs", "1")),
            ask("capabilities", At("/securebits", "239")),
        ],
    ),
    host(
        "A-05",
        Critical,
        "the kernel uid is nobody's: not root, not the service's",
        mapped_to_nobody,
    )
    .needs(Lacking::DistinctUid),
    guest(
        "A-06",
        Critical,
        "no set-id bit reaches the host",
        &[
            ask(
                "calls openat -100 s:{w}/a06 0x41 0x1a4 ; chmod s:{w}/a06 0x9ed",
                Refused(&[EPERM]),
            ),
            ask("calls openat -100 s:{w}/a06 0x41 0x1a4 ; fchmod $0 0x5ed", Refused(&[EPERM])),
            ask("calls fchmodat -100 s:{w}/a06 0x9ed", Refused(&[EPERM])),
            ask("calls fchmodat2 -100 s:{w}/a06 0x9ed 0", Refused(&[EPERM])),
            ask("calls openat -100 s:{w}/a06-o 0x41 0x9ed", Refused(&[EPERM])),
            ask("calls openat -100 s:{w} 0x410002 0x9ed", Refused(&[EPERM])),
            ask("calls creat s:{w}/a06-c 0x9ed", Refused(&[EPERM])),
            ask("calls mkdir s:{w}/a06-d 0x5ed", Refused(&[EPERM])),
            ask("calls mkdirat -100 s:{w}/a06-d 0x5ed", Refused(&[EPERM])),
            ask("calls mknod s:{w}/a06-n 0x89ed 0", Refused(&[EPERM])),
        ],
    )
    .and(no_set_id_file),
    host("A-07", High, "a set-id program of the host gives the guest nothing", set_id_program),
    guest(
        "A-08",
        Medium,
        "no file capability can be set",
        &[ask(
            "rooted calls openat -100 s:{w}/a08 0x41 0x1ed ; \
         setxattr s:{w}/a08 s:security.capability b:0100000200200000000000000000000000000000 20 0",
            Refused(&[EPERM, EINVAL, EOPNOTSUPP]),
        )],
    ),
    guest(
        "A-09",
        Medium,
        "no file can be given to another id",
        &[
            ask(
                "rooted calls openat -100 s:{w}/a09 0x41 0x1ed ; chown s:{w}/a09 0 0",
                Refused(&[EPERM, EINVAL]),
            ),
            ask("calls chown s:{w}/a09 1 1", Refused(&[EPERM, EINVAL])),
            ask(
                "calls symlink s:x s:{w}/a09-l ; lchown s:{w}/a09-l 0 0",
                Refused(&[EPERM, EINVAL]),
            ),
        ],
    ),
    guest(
        "A-10",
        High,
        "no id can be taken",
        &[
            ask("rooted calls setuid 0", Refused(&[EPERM, EINVAL])),
            ask("rooted calls setresuid 0 0 0", Refused(&[EPERM, EINVAL])),
            ask("rooted calls setgid 0", Refused(&[EPERM, EINVAL])),
            ask("calls setgroups 1 b:00000000", Refused(&[EPERM, EINVAL])),
            ask("calls setfsuid 0 ; setfsuid -1", Meets(fsuid_stays)),
        ],
    ),
    guest(
        "A-11",
        Medium,
        "id maps cannot be written again",
        &[ask(
            "open w /proc/self/uid_map /proc/self/gid_map /proc/self/setgroups",
            AllRefused(&[EACCES, EPERM, EROFS]),
        )],
    ),
    host(
        "A-12",
        Critical,
        "a root that cannot give the guest another id is refused",
        refused_without_ids,
    ),
    guest(
        "A-13",
        Medium,
        "the guest's label cannot be written",
        &[ask(
            "open w /proc/self/attr/current /proc/self/attr/exec",
            AllRefused(&[EACCES, EPERM, EROFS, libc::ENOENT]),
        )],
    ),
];

fn text<'a>(value: &'a Value, at: &str) -> &'a str {
    value.get(at).and_then(Value::as_str).unwrap_or("missing")
}

fn no_groups(status: &Value) -> Result<(), String> {
    match text(status, "Groups") {
        "" | "65534" => Ok(()),
        groups => Err(format!("groups {groups}")),
    }
}

fn no_capabilities(processes: &Value) -> Result<(), String> {
    let processes = processes.as_object().ok_or("no list")?;
    // PID 1 may show nothing of itself; the host sees it.
    let shown =
        processes.iter().filter(|(_, lines)| lines.as_object().is_some_and(|l| !l.is_empty()));
    for (pid, lines) in shown {
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            let found = text(lines, set);
            if found != NONE {
                return Err(format!("{set} of {pid} is {found}"));
            }
        }
    }
    Ok(())
}

fn fsuid_stays(answers: &Value) -> Result<(), String> {
    match answers.as_array().map(Vec::as_slice) {
        Some([before, after]) if before == after && *after != 0 => Ok(()),
        _ => Err(answers.to_string()),
    }
}

fn held_probe(stage: &Stage) -> Held {
    hold(&stage.sandbox, command(&["hold", "identity"]))
}

fn groups_from_outside(stage: &Stage) -> Result<Finding, String> {
    let run = held_probe(stage);
    let lines = [run.init, run.guest].map(status);
    run.release();
    let gid = stage.sandbox.enforcement().unwrap().kernel_gid.to_string();
    for status in lines {
        if !["", &*gid].contains(&&*status["Groups"]) {
            return Err(format!("the kernel has groups {}", status["Groups"]));
        }
    }
    held("Groups of PID 1 and guest are empty as the host's kernel has them")
}

fn capabilities_from_outside(stage: &Stage) -> Result<Finding, String> {
    let run = held_probe(stage);
    let lines = [run.init, run.guest].map(status);
    run.release();
    for status in lines {
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            if status[set] != NONE {
                return Err(format!("{set} is {} seen from the host", status[set]));
            }
        }
    }
    held("all zero inside, and for PID 1 and guest in the host's /proc")
}

fn mapped_to_nobody(stage: &Stage) -> Result<Finding, String> {
    let run = held_probe(stage);
    let map = std::fs::read_to_string(format!("/proc/{}/uid_map", run.guest));
    let uids = status(run.guest)["Uid"].clone();
    run.release();
    let words: Vec<String> = map.unwrap().split_ascii_whitespace().map(str::to_owned).collect();
    let own = rustix::process::geteuid().as_raw().to_string();
    let enforcement = stage.sandbox.enforcement().unwrap();
    let [inside, outside, count] = words.as_slice() else { return Err(format!("{words:?}")) };
    if enforcement.shared_uid != (*outside == own) {
        return Err(format!("shared_uid is not reported as it is: {outside} and {own}"));
    }
    let evidence = format!("uid_map {inside} {outside} {count}, Uid {uids}");
    match outside == "0" || *outside == own || inside != "65534" || count != "1" {
        true => Err(format!("{evidence}, reported as shared_uid {}", enforcement.shared_uid)),
        false => held(evidence),
    }
}

fn no_set_id_file(stage: &Stage) -> Result<Finding, String> {
    let mut found = Vec::new();
    walk_workspace(&stage.sandbox, &mut |name, status| {
        if status.mode & 0o6000 != 0 {
            found.push(format!("{name} {:o}", status.mode));
        }
    });
    match found.is_empty() {
        true => held("refused with EPERM, and no such bit in the workspace as the host sees it"),
        false => Err(format!("on the host: {found:?}")),
    }
}

/// A copy of the probe that belongs to the service and is set-id, beside one that is not.
fn set_id_program(stage: &Stage) -> Result<Finding, String> {
    let program = stage.scratch.file("set-id", PROBE, 0o6755);
    let path = program.to_str().unwrap();
    let profile = SandboxProfile::builder().ro_binds([(path, "/srv/set-id")]).build().unwrap();
    let answer = outcome_of(profile, Command::new("/srv/set-id").arg("identity"))?;
    let ids = ["uid", "euid", "gid", "egid"].map(|id| answer[id].as_i64().unwrap_or(-1));
    match ids == [65_534; 4] {
        true => held(format!("mode 6755 and owned by the service; inside it is {ids:?}")),
        false => Err(format!("{ids:?}")),
    }
}

/// Root without the capability to map ids, and with it gone.
fn refused_without_ids(stage: &Stage) -> Result<Finding, String> {
    if !stage.is_root {
        return Ok(Finding::Needs(Need::DistinctUid, "this host is not root".to_owned()));
    }
    let wall = ["--bounding-set=-all,+setuid,+setgid,+chown", "--inh-caps=-all"];
    let told = crate::host::hostprog_by("setpriv", &wall, "launch", &[])?;
    match told.starts_with("refused missing-capabilities") {
        true => held(format!("{told:.120}")),
        false => Err(told),
    }
}
