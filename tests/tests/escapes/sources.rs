//! Section C, as the host meets it: sources, rootfs directories and workspaces that are hostile.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use postern::plan::MountOp;
use postern::profile::Workspace;
use postern::{Command, Ending, Sandbox, SandboxProfile};
use postern_seccomp::Level;
use postern_tests::{PROBE, Scratch, ask, command, hold, install};
use serde_json::Value;

use crate::host::{build, outcome_of};
use crate::mounts;
use crate::stage::{Stage, answers_in};
use crate::table::{Expect, Row};
use crate::verdict::{Finding, Need, errno_of, held, unmet};

pub(crate) fn root_is_another(stage: &Stage) -> Result<Finding, String> {
    let run = hold(&stage.sandbox, command(&["hold", "identity"]));
    let theirs = fs::metadata(format!("/proc/{}/root", run.guest)).map(|m| (m.dev(), m.ino()));
    run.release();
    let ours = fs::metadata("/").map(|m| (m.dev(), m.ino())).unwrap();
    match theirs {
        Ok(theirs) if theirs != ours => {
            held(format!("a hundred steps end at {theirs:?}, which is not the host's {ours:?}"))
        }
        other => Err(format!("the guest's root is {other:?}, the host's {ours:?}")),
    }
}

/// `/sys` has the host's own file systems mounted beneath it.
pub(crate) fn submounts(_: &Stage) -> Result<Finding, String> {
    let profile = SandboxProfile::builder().ro_binds([("/sys", "/srv/sys"), ("/dev", "/srv/dev")]);
    let sandbox = build(profile.build().unwrap())?;
    install(&sandbox);
    let answer = ask(&sandbox, &["mounts"]);
    let all = answer.as_array().ok_or("no list")?;
    let below: Vec<_> = all
        .iter()
        .filter(|mount| mount["target"].as_str().is_some_and(|target| target.starts_with("/srv/")))
        .collect();
    let tight = |mount: &&&Value| {
        let options = mount["options"].as_str().unwrap_or("");
        ["ro", "nosuid", "nodev"].iter().all(|flag| options.split(',').any(|o| o == *flag))
    };
    let loose: Vec<_> = below.iter().filter(|mount| !tight(mount)).collect();
    match (below.len(), loose.as_slice()) {
        (0..=2, _) => Ok(Finding::Vacuous("nothing is mounted beneath /sys and /dev".to_owned())),
        (count, []) => held(format!("{count} mounts of two sources: all ro, nosuid, nodev")),
        (_, [first, ..]) => Err(format!("{first}")),
    }
}

/// A rootfs with the probe, and a file of the host's that nothing may touch.
struct Rootfs {
    scratch: Scratch,
}

impl Rootfs {
    fn new() -> Rootfs {
        let scratch = Scratch::new();
        scratch.file("canary/file", b"untouched", 0o666);
        scratch.directory("canary", 0o777);
        scratch.file("root/usr/bin/probe", PROBE, 0o755);
        Rootfs { scratch }
    }

    fn link(&self, to: &str, at: &str) {
        let to = to.replace("CANARY", self.scratch.path().join("canary").to_str().unwrap());
        let at = self.scratch.path().join("root").join(at);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(to, at).unwrap();
    }

    fn profile(&self) -> SandboxProfile {
        SandboxProfile::builder().rootfs(self.scratch.path().join("root")).build().unwrap()
    }

    fn canary_is_untouched(&self) -> Result<(), String> {
        let canary = self.scratch.path().join("canary");
        let names: Vec<_> =
            fs::read_dir(&canary).unwrap().flatten().map(|e| e.file_name()).collect();
        let file = fs::read(canary.join("file")).unwrap();
        match names.len() == 1 && file == b"untouched" {
            true => Ok(()),
            false => Err(format!("the host's directory now holds {names:?}")),
        }
    }

    /// Either a refusal, or a run that sees nothing of the canary.
    fn try_it(&self, question: &[&str]) -> Result<Result<Value, String>, String> {
        let told =
            outcome_of(self.profile(), Command::new("/usr/bin/probe").args(question.to_vec()));
        self.canary_is_untouched()?;
        Ok(told)
    }
}

pub(crate) fn hostile_rootfs(_: &Stage) -> Result<Finding, String> {
    const PROC_SUPER_MAGIC: i64 = 0x9fa0;
    let mut seen = Vec::new();
    for kind in ["link", "files"] {
        let rootfs = Rootfs::new();
        match kind {
            "link" => rootfs.link("CANARY", "proc"),
            _ => drop(rootfs.scratch.file("root/proc/self/uid_map", b"0 0 1\n", 0o666)),
        }
        match rootfs.try_it(&["statfs", "/proc"])? {
            Ok(answer) if answer["/proc"]["kind"] == PROC_SUPER_MAGIC => seen.push("a procfs"),
            Ok(answer) => return Err(format!("{kind}: {answer}")),
            Err(_) => seen.push("refused"),
        }
    }
    held(format!(
        "as a link: {}; as files: {}; the host's directory is untouched",
        seen[0], seen[1]
    ))
}

pub(crate) fn rootfs_of_links(_: &Stage) -> Result<Finding, String> {
    let names =
        ["dev", "dev/null", "dev/pts", "tmp", "run", "workspace", "proc/sys", "etc", "lib64"];
    let targets = ["CANARY", "../../canary", "/proc/self/root", "/"];
    let (mut runs, mut refusals) = (0, 0);
    for name in names {
        for target in targets {
            let rootfs = Rootfs::new();
            rootfs.link(target, name);
            match rootfs.try_it(&[
                "leaks",
                "untouched",
                "/dev",
                "/tmp",
                "/run",
                "/workspace",
                "/etc",
            ])? {
                Ok(answer) if answer["found"] == Value::Array(Vec::new()) => runs += 1,
                Ok(answer) => return Err(format!("{name} to {target}: {answer}")),
                Err(_) => refusals += 1,
            }
        }
    }
    held(format!("{runs} runs saw nothing of the host's, {refusals} were refused, nothing changed"))
}

/// A directory that is exchanged with a link to another, again and again.
fn swapping<T>(at: &Path, act: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    let [own, link] = ["own", "link"].map(|name| at.join(name));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                let here = rustix::fs::CWD;
                rustix::fs::renameat_with(here, &own, here, &link, flags).unwrap();
            }
        });
        let done = act();
        over.store(true, Ordering::Relaxed);
        done
    })
}

pub(crate) fn swapped_source(_: &Stage) -> Result<Finding, String> {
    let scratch = Scratch::new();
    scratch.file("secret/file", b"the host's secret", 0o644);
    scratch.file("own/file", b"for the guest", 0o644);
    symlink("secret", scratch.path().join("link")).unwrap();
    let (mut runs, mut refusals) = (0, 0);
    swapping(scratch.path(), || {
        for _ in 0..40 {
            let source = scratch.path().join("own");
            let profile = SandboxProfile::builder()
                .required_ro_binds([(source.to_str().unwrap(), "/srv/own")]);
            let built = build(profile.build().unwrap());
            let resolved = built.as_ref().is_ok_and(|sandbox| binds(sandbox, "secret"));
            let read = built.and_then(|sandbox| {
                sandbox.run(["cat", "/srv/own/file"]).map_err(|e| e.to_string())
            });
            match read {
                // A link that the plan itself saw and resolved is what the profile named.
                Ok(result) if result.stdout.starts_with(b"the host's") && !resolved => {
                    return Err("the target of the link was bound".to_owned());
                }
                Ok(_) => runs += 1,
                Err(_) => refusals += 1,
            }
        }
        Ok(())
    })?;
    match refusals {
        0 => Err(format!("{runs} runs and no refusal: nothing was swapped in time")),
        _ => held(format!("40 launches: {runs} had the directory, {refusals} were refused")),
    }
}

/// Whether the plan has a bind whose source ends so.
fn binds(sandbox: &Sandbox, name: &str) -> bool {
    sandbox.plan().template.iter().any(|operation| {
        matches!(operation, MountOp::Bind { source, .. } if source.path.ends_with(name))
    })
}

/// A caller's workspace in which an earlier run has left links, and a profile that mounts there.
pub(crate) fn planted_targets(_: &Stage) -> Result<Finding, String> {
    let targets = ["CANARY", "../canary", "/proc/self/root/tmp", "/oldroot/x", "/run"];
    let mut refusals = Vec::new();
    for target in targets {
        let rootfs = Rootfs::new();
        let workspace = rootfs.scratch.directory("ws", 0o777);
        let canary = rootfs.scratch.path().join("canary");
        symlink(target.replace("CANARY", canary.to_str().unwrap()), workspace.join("link"))
            .unwrap();
        let workspace = Workspace::Directory { path: workspace, access: Default::default() };
        let profile = SandboxProfile::builder()
            .workspace(workspace)
            .ro_binds([("/usr/share", "/workspace/link/bound")])
            .build();
        let told = profile.map_err(|error| error.to_string()).and_then(build);
        let told = told.and_then(|sandbox| sandbox.run(["true"]).map_err(|e| e.to_string()));
        rootfs.canary_is_untouched()?;
        match told {
            Ok(_) => return Err(format!("{target}: it was mounted there")),
            Err(reason) => refusals.push(reason),
        }
    }
    held(format!("{} refused, nothing changed: {:.120}", refusals.len(), refusals[0]))
}

/// One party of a shared workspace exchanges a directory with a link while others are launched that
/// mount below it.
pub(crate) fn racing_targets(_: &Stage) -> Result<Finding, String> {
    let rootfs = Rootfs::new();
    let workspace = rootfs.scratch.directory("ws", 0o777);
    rootfs.scratch.directory("ws/own/bound", 0o777);
    symlink("../canary", workspace.join("link")).unwrap();
    let (mut runs, mut refusals) = (0, 0);
    swapping(&workspace, || {
        for _ in 0..25 {
            let workspace =
                Workspace::Directory { path: workspace.clone(), access: Default::default() };
            let profile = SandboxProfile::builder()
                .workspace(workspace)
                .ro_binds([("/usr/share", "/workspace/own/bound")])
                .build();
            let told = profile.map_err(|e| e.to_string()).and_then(build);
            match told.and_then(|sandbox| sandbox.run(["true"]).map_err(|e| e.to_string())) {
                Ok(_) => runs += 1,
                Err(_) => refusals += 1,
            }
        }
    });
    rootfs.canary_is_untouched()?;
    held(format!(
        "25 launches: {runs} ran, {refusals} were refused, the host's directory is untouched"
    ))
}

/// The launcher builds in mounts of its own: a temporary directory that cannot be used is no matter.
pub(crate) fn no_staging(_: &Stage) -> Result<Finding, String> {
    let told = crate::host::hostprog_by("env", &["TMPDIR=/nowhere/at/all"], "launch", &[])?;
    match told.starts_with("works Exited(0)") {
        true => held(format!("{told} with a TMPDIR that does not exist; nothing left behind")),
        false => Err(told),
    }
}

pub(crate) fn private_inputs(_: &Stage) -> Result<Finding, String> {
    let evidence = "a read-only bind is the host's own inode: docs/security/model.md";
    Ok(Finding::Needs(Need::Later("private_inputs"), evidence.to_owned()))
}

pub(crate) fn denied_paths(_: &Stage) -> Result<Finding, String> {
    let evidence = "a profile names what is there, and has no list of what is not";
    Ok(Finding::Needs(Need::Later("denied_paths"), evidence.to_owned()))
}

pub(crate) fn deep_paths(_: &Stage) -> Result<Finding, String> {
    let sandbox = build(SandboxProfile::default())?;
    install(&sandbox);
    let answer = ask(&sandbox, &["deep", "/workspace", "10000"]);
    if answer["made"] != 10_000 || answer["cwd"]["errno"] != libc::ENAMETOOLONG {
        return Err(answer.to_string());
    }
    let after = sandbox.run(["true"]).map_err(|error| error.to_string())?;
    let start = std::time::Instant::now();
    drop(sandbox);
    let took = start.elapsed();
    match after.ok() && took.as_secs() < 5 {
        true => held(format!("10,000 levels; the next run works, the sandbox is gone in {took:?}")),
        false => Err(format!("{:?}, gone in {took:?}", after.ending)),
    }
}

/// A file of one's own in the exchange, which is noexec, and one in the workspace.
pub(crate) fn executable_places(stage: &Stage) -> Result<Finding, String> {
    let there = Command::new("/run/postern/program").private_file("program", PROBE);
    let refused = stage.sandbox.run(there).map_err(|error| error.to_string())?;
    let script = "cp probe /tmp/p && /tmp/p identity && cp probe /dev/shm/p && /dev/shm/p identity";
    let works = stage.sandbox.run(["sh", "-c", script]).map_err(|error| error.to_string())?;
    match (refused.ending, works.ok()) {
        (Ending::ExecFailed(libc::EACCES), true) => {
            held("EACCES in /run/postern; programs run in /workspace, /tmp and /dev/shm")
        }
        other => Err(format!("{other:?}")),
    }
}

/// A character device 0:0, which the kernel makes for anybody, is refused by the filter and, where
/// there is none, by Landlock alone.
pub(crate) fn landlock(stage: &Stage) -> Result<Finding, String> {
    let abi = stage.ask("calls landlock_create_ruleset 0 0 1");
    let Some(abi) = abi[0].as_u64() else {
        let need = Need::LandlockAbi(1);
        return Ok(Finding::Needs(need, format!("landlock_create_ruleset answers {abi}")));
    };
    let profile = SandboxProfile::builder().seccomp(Level::Off).build().unwrap();
    let sandbox = build(profile)?;
    install(&sandbox);
    // A block device: the kernel's own answer is EPERM.
    let answer = ask(&sandbox, &["calls", "133", "s:/workspace/node", "0x6180", "0"]);
    match errno_of(&answer[0]) {
        Some(libc::EACCES) => held(format!("ABI {abi}: without a filter mknod is EACCES")),
        _ => Err(format!("ABI {abi}, and without a filter mknod answers {answer}")),
    }
}

/// What the filter refuses is refused by other walls too, with whatever errno is theirs.
const WITHOUT_A_FILTER: [(&str, &[i32]); 8] = [
    ("unshare", &[libc::ENOSPC, libc::EPERM]),
    ("clone", &[libc::ENOSPC, libc::EPERM]),
    ("chroot", &[libc::EPERM]),
    ("pivot_root", &[libc::EPERM]),
    ("mount", &[libc::EPERM]),
    ("umount2", &[libc::EPERM, libc::EINVAL]),
    ("setns", &[libc::EPERM]),
    ("core_pattern", &[libc::EROFS, libc::EACCES]),
];

pub(crate) fn depth(_: &Stage) -> Result<Finding, String> {
    let profile = SandboxProfile::builder().seccomp(Level::Off).build().unwrap();
    let sandbox = build(profile)?;
    install(&sandbox);
    let questions = [
        "rooted calls 272 0x10000000",
        "calls 56 0x10000011 0 0 0 0",
        "rooted calls 161 s:/workspace",
        "rooted calls 155 s:/workspace s:/workspace",
        "rooted calls 165 s:none s:/workspace s:tmpfs 0 0",
        "rooted calls 166 s:/proc/kallsyms 2",
        "rooted calls 308 p:0:/proc/self/ns/net 0",
        "calls 257 -100 s:/proc/sys/kernel/core_pattern 1 0",
    ];
    let answers = answers_in(&sandbox, &questions.map(str::to_owned));
    for ((name, errnos), answer) in WITHOUT_A_FILTER.iter().zip(&answers) {
        let is_refused = errno_of(&answer[0]).is_some_and(|errno| errnos.contains(&errno));
        if !is_refused {
            return Err(format!("without a filter {name} answers {answer}"));
        }
    }
    // Rows about files need no filter at all.
    let files: Vec<&Row> =
        mounts::ROWS.iter().filter(|row| ["C-07", "C-10", "C-21"].contains(&row.id)).collect();
    let names = [("w", "/workspace".to_owned())];
    for ask in files.iter().flat_map(|row| row.asks) {
        let question = crate::question::spelled(ask.question, &names);
        let answer = answers_in(&sandbox, &[question]).remove(0);
        if !matches!(ask.expect, Expect::At(..))
            && let Some(wrong) = unmet(ask, &answer)
        {
            return Err(format!("without a filter: {wrong}"));
        }
    }
    held("seccomp off: 8 calls refused by capabilities, locks and limits, and the files rows hold")
}
