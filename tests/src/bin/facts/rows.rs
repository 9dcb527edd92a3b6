//! What is asked of the world inside and of the host's kernel; which kernel answers is not known here.

use std::path::PathBuf;
use std::time::Duration;

use postern::profile::Limits;
use postern::{Command, Ending, Sandbox, SandboxProfile};
use postern_tests::{PROBE_PATH, install, namespaces, status, try_hold};
use serde_json::{Value, json};

use super::world::{Evidence, World, ask};

/// A fact's name, and how it is found out: the evidence that it holds, or that it does not.
type Fact = (&'static str, fn(&World) -> Evidence);

pub(super) const ALL: [Fact; 11] = [
    ("verify", verify),
    ("namespaces", own_namespaces),
    ("identity", identity),
    ("privilege", privilege),
    ("inside", inside),
    ("root", root),
    ("proc", proc),
    ("quotas", quotas),
    ("nproc-per-sandbox", processes_per_sandbox),
    ("time-limit", time_limit),
    ("cgroup", cgroup),
];

fn verify(world: &World) -> Evidence {
    match world.sandbox.verify() {
        Ok(walls) => {
            let digest =
                walls.seccomp_digest.map_or_else(|| "none".to_owned(), |own| own.to_string());
            Ok(format!("seccomp {digest}, fallbacks {:?}", walls.fallbacks))
        }
        Err(error) => Err(error.to_string()),
    }
}

fn own_namespaces(world: &World) -> Evidence {
    let run = try_hold(&world.sandbox, probe(&["hold", "namespaces"]))?;
    let own = namespaces(i32::try_from(std::process::id()).map_err(|error| error.to_string())?);
    let guest = namespaces(run.guest);
    let shared: Vec<_> = own.iter().filter(|(name, link)| guest.get(*name) == Some(link)).collect();
    drop(run.release());
    match shared.is_empty() {
        true => Ok(format!("{} of the run's own", guest.len())),
        false => Err(format!("shared with the host: {shared:?}")),
    }
}

/// As the host's kernel has it: never its root, and the service's own only where that is said.
fn identity(world: &World) -> Evidence {
    let run = try_hold(&world.sandbox, probe(&["hold", "identity"]))?;
    let seen = status(run.guest);
    drop(run.release());
    let said = world.sandbox.enforcement().map_err(|error| error.to_string())?;
    let ids = |id: u32| [id; 4].map(|id| id.to_string()).join(" ");
    let is_said = seen.get("Uid") == Some(&ids(said.kernel_uid))
        && seen.get("Gid") == Some(&ids(said.kernel_gid));
    let words = format!(
        "uid {:?}, gid {:?}, groups {:?}, shared uid {}",
        seen.get("Uid"),
        seen.get("Gid"),
        seen.get("Groups"),
        said.shared_uid
    );
    if is_said && said.kernel_uid != 0 { Ok(words) } else { Err(words) }
}

/// Of PID 1 and the guest, as the host's kernel has it.
fn privilege(world: &World) -> Evidence {
    const NONE: &str = "0000000000000000";
    let wanted = [
        ("CapInh", NONE),
        ("CapPrm", NONE),
        ("CapEff", NONE),
        ("CapBnd", NONE),
        ("CapAmb", NONE),
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
    ];
    let run = try_hold(&world.sandbox, probe(&["hold", "identity"]))?;
    let seen = [run.init, run.guest].map(status);
    drop(run.release());
    let different = seen.iter().flat_map(|status| {
        wanted.iter().filter(|(field, value)| status.get(*field).is_none_or(|seen| seen != value))
    });
    match different.map(|(field, _)| *field).collect::<Vec<_>>() {
        none if none.is_empty() => Ok("no capability, no new privileges, filtered".to_owned()),
        fields => Err(format!("{fields:?}: {seen:?}")),
    }
}

fn inside(world: &World) -> Evidence {
    compare(
        world,
        &[
            (&["identity"], "/uid", json!(65_534)),
            (&["identity"], "/parent", json!(1)),
            (&["identity"], "/hostname", json!("sandbox")),
            (&["capabilities"], "/securebits", json!(0xef)),
            (&["fds"], "", json!([0, 1, 2])),
            (&["loopback"], "/v4", json!("word")),
            (&["syscall", "272", "0x10000000"], "/errno", json!(libc::EPERM)),
            (&["syscall", "435", "0", "0"], "/errno", json!(libc::ENOSYS)),
            (
                &["read", "/proc/sys/user/max_user_namespaces"],
                "/~1proc~1sys~1user~1max_user_namespaces",
                json!("0\n"),
            ),
        ],
    )
}

fn root(world: &World) -> Evidence {
    compare(
        world,
        &[
            (&["open", "c", "/x"], "/~1x/errno", json!(libc::EROFS)),
            (&["open", "c", "/usr/x"], "/~1usr~1x/errno", json!(libc::EROFS)),
            (&["open", "c", "/tmp/x"], "/~1tmp~1x", json!(true)),
            (&["open", "r", "/root"], "/~1root/errno", json!(libc::ENOENT)),
            (&["open", "r", "/sys"], "/~1sys/errno", json!(libc::ENOENT)),
            (&["sweep", "/usr/bin"], "/writable", json!([])),
        ],
    )
}

fn proc(world: &World) -> Evidence {
    let answer = ask(
        &world.sandbox,
        &["open", "w", "/proc/sys/kernel/core_pattern", "/proc/self/oom_score_adj"],
    )?;
    let opened = ["/proc/sys/kernel/core_pattern", "/proc/self/oom_score_adj"]
        .into_iter()
        .filter(|path| answer[path] == json!(true));
    let opened: Vec<_> = opened.collect();
    let masked =
        ask(&world.sandbox, &["open", "r", "/proc/kcore", "/proc/keys", "/proc/kallsyms"])?;
    let readable =
        masked.as_object().into_iter().flatten().filter(|(_, answer)| **answer == json!(true));
    let readable: Vec<_> = readable.map(|(path, _)| path).collect();
    match opened.is_empty() && readable.is_empty() {
        true => Ok("nothing opens for writing, what leaks is masked".to_owned()),
        false => Err(format!("open for writing {opened:?}, for reading {readable:?}")),
    }
}

/// By what the kernel says of file systems and limits.
fn quotas(world: &World) -> Evidence {
    let mib = |number: u64| json!(number << 20);
    let limits = Limits::default();
    let pair = |limit: u64| json!([limit, limit]);
    compare(
        world,
        &[
            (&["statfs", "/tmp"], "/~1tmp/bytes", mib(64)),
            (&["statfs", "/dev/shm"], "/~1dev~1shm/bytes", mib(64)),
            (&["statfs", "/workspace"], "/~1workspace/bytes", mib(256)),
            (&["rlimits"], "/1", pair(limits.fsize_bytes)),
            (&["rlimits"], "/4", pair(1)),
            (&["rlimits"], "/6", pair(limits.nproc.unwrap_or_default())),
            (&["rlimits"], "/7", pair(limits.nofile)),
        ],
    )
}

/// Two sandboxes of few processes at once: where the kernel counts by its own uid, the second one
/// has what the first has left.
fn processes_per_sandbox(_: &World) -> Evidence {
    let few = || {
        let limits = Limits { nproc: Some(20), ..Limits::default() };
        let profile = SandboxProfile::builder().limits(limits).build();
        let sandbox = Sandbox::builder(profile.map_err(|error| error.to_string())?).build();
        let sandbox = sandbox.map_err(|error| error.to_string())?;
        install(&sandbox);
        Ok::<_, String>(sandbox)
    };
    let (one, other) = (few()?, few()?);
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1000 & done; exec $0 hold fork 100";
    let busy = try_hold(&one, Command::new("sh").args(["-c", script, PROBE_PATH]))?;
    let beside = ask(&other, &["fork", "100"])?;
    let own = busy.answer.clone();
    drop(busy.release());
    let words = format!("beside ten sleepers {own}, in another sandbox {beside}");
    match (own["made"].as_u64(), beside["made"].as_u64()) {
        (Some(8), Some(18)) => Ok(words),
        _ => Err(words),
    }
}

fn time_limit(world: &World) -> Evidence {
    let command = Command::new("sleep").args(["1000"]).timeout(Duration::from_millis(200));
    let result = world.sandbox.run(command).map_err(|error| error.to_string())?;
    let words = format!("{:?} after {:?}", result.ending, result.duration());
    match (result.timed_out, result.ending) {
        (true, Ending::Killed(_)) => Ok(words),
        _ => Err(words),
    }
}

/// The control group that the runner has delegated, for what later is bounded by one.
fn cgroup(_: &World) -> Evidence {
    let Some(directory) = std::env::var_os("POSTERN_TEST_CGROUP_DIR") else {
        return Err("no control group is delegated here".to_owned());
    };
    let directory = PathBuf::from(directory);
    let made = directory.join(format!("facts-{}", std::process::id()));
    let controllers = std::fs::create_dir(&made)
        .and_then(|()| std::fs::write(made.join("pids.max"), "100"))
        .and_then(|()| std::fs::write(made.join("memory.max"), "100000000"))
        .and_then(|()| std::fs::write(made.join("cpu.max"), "50000 100000"))
        .and_then(|()| std::fs::read_to_string(made.join("cgroup.controllers")));
    let removed = std::fs::remove_dir(&made);
    match (controllers, removed) {
        (Ok(controllers), Ok(())) => Ok(format!("delegated, with {}", controllers.trim())),
        (Err(error), _) | (_, Err(error)) => Err(format!("{}: {error}", directory.display())),
    }
}

fn probe(question: &[&str]) -> Command {
    postern_tests::command(question)
}

/// Questions to the probe, each with the place in its answer and what must be there.
fn compare(world: &World, rows: &[(&[&str], &str, Value)]) -> Evidence {
    let mut different = Vec::new();
    for (question, at, wanted) in rows {
        let answer = ask(&world.sandbox, question)?;
        let found = answer.pointer(at).unwrap_or(&Value::Null);
        if found != wanted {
            different.push(format!("{question:?} {at}: {found} and not {wanted}"));
        }
    }
    match different.is_empty() {
        true => Ok(format!("{} answers as promised", rows.len())),
        false => Err(different.join("; ")),
    }
}
