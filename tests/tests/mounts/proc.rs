//! The masks of `/proc`: what they are made of, and that nothing can be read or written, or be taken
//! away, through them; and which kinds of `/proc` have none.

use std::collections::BTreeSet;
use std::path::Path;

use postern::plan::MountOp;
use postern::profile::ProcKind;
use postern::{Command, SandboxProfile};
use postern_tests::{Watch, ask, run};
use serde_json::json;

use crate::sandbox;

fn profile(kind: ProcKind) -> SandboxProfile {
    SandboxProfile::builder().proc(kind).build().unwrap()
}

/// What a plan masks, and this kernel has.
fn masked(plan: &postern::plan::Plan) -> Vec<(String, bool)> {
    let masks = plan.run.iter().filter_map(|operation| {
        let MountOp::Mask { target, cover } = operation else { return None };
        let target = target.to_str().unwrap().to_owned();
        let is_file = cover.to_bytes().ends_with(b".mask");
        Path::new(&target).exists().then_some((target, is_file))
    });
    masks.collect()
}

#[test]
fn masks_are_closed_and_empty_and_of_our_own_making() {
    let _watch = Watch::begin();
    for kind in [ProcKind::ReadOnly, ProcKind::Masked] {
        let sandbox = sandbox(profile(kind));
        let masked = masked(sandbox.plan());
        assert!(masked.len() > 10, "{masked:?}");
        let mounts = ask(&sandbox, &["mounts"]);
        for (target, is_file) in masked {
            let at = |mount: &&serde_json::Value| mount["target"] == json!(target);
            let mount = mounts.as_array().unwrap().iter().rfind(at).expect(&target);
            // A file system that a guest cannot write to, and not a device.
            assert_eq!(mount["kind"], json!("tmpfs"), "{mount}");
            assert!(mount["options"].as_str().unwrap().split(',').any(|o| o == "ro"), "{mount}");
            let answers = ["r", "w", "c"].map(|how| ask(&sandbox, &["open", how, &target]));
            let errnos = answers.map(|answer| answer[&target]["errno"].as_i64().unwrap_or(0));
            let refused = [libc::EACCES, libc::EROFS, libc::EISDIR, libc::EEXIST].map(i64::from);
            let first = usize::from(!is_file);
            assert!(errnos[first..].iter().all(|e| refused.contains(e)), "{target} {errnos:?}");
            if !is_file {
                assert_eq!(ask(&sandbox, &["list", &target])[&target], json!([]));
            }
        }
    }
}

/// By other names, by a descriptor, and by whatever was open before; in Python.
const WAYS: &str = r#"
import os
names = ["/proc/cmdline", "/proc//cmdline", "/proc/./cmdline", "/proc/self/../cmdline",
         "/proc/thread-self/../../../cmdline", "/proc/self/root/proc/cmdline",
         "/proc/self/cwd/../proc/cmdline"]
for name in names:
    try: print(name, open(name).read(9))
    except PermissionError: pass
fd = os.open("/proc/cmdline", os.O_PATH)
for name in [f"/proc/self/fd/{fd}", f"/dev/fd/{fd}"]:
    try: print(name, open(name).read(9))
    except PermissionError: pass
directory = os.open("/proc", os.O_PATH)
try: print(os.open("cmdline", os.O_RDONLY, dir_fd=directory))
except PermissionError: pass
for act in [lambda: os.chmod("/proc/cmdline", 0o777), lambda: os.unlink("/proc/cmdline"),
            lambda: os.rename("/proc/cmdline", "/tmp/x"), lambda: os.truncate("/proc/cmdline", 0),
            lambda: os.link("/proc/cmdline", "/tmp/x"), lambda: os.mkdir("/proc/bus/x"),
            lambda: os.utime("/proc/cmdline")]:
    try: act(); print("done")
    except OSError: pass
print("end")
"#;

#[test]
fn no_other_name_leads_beneath_a_mask() {
    let _watch = Watch::begin();
    for kind in [ProcKind::ReadOnly, ProcKind::Masked] {
        let sandbox = sandbox(profile(kind));
        let answer = run(&sandbox, Command::new("python3").args(["-I", "-c", WAYS]));
        assert_eq!(answer.stdout_text(), "end\n", "{}", answer.stderr_text());
    }
}

/// What ordinary programs read is there.
#[test]
fn what_programs_ask_for_is_left() {
    let _watch = Watch::begin();
    let sandbox = sandbox(profile(ProcKind::ReadOnly));
    for name in ["meminfo", "cpuinfo", "stat", "uptime", "loadavg", "version", "filesystems"] {
        let path = format!("/proc/{name}");
        assert_eq!(ask(&sandbox, &["open", "r", &path])[&path], json!(true), "{path}");
    }
    let sysctl = "/proc/sys/kernel/pid_max";
    assert_eq!(ask(&sandbox, &["open", "r", sysctl])[sysctl], json!(true));
}

/// `minimal` has processes and nothing to mask; `none` has nothing at all.
#[test]
fn the_smaller_kinds_hold_processes_or_nothing() {
    let _watch = Watch::begin();
    let rows = [(ProcKind::Minimal, &["self", "thread-self"][..]), (ProcKind::None, &[])];
    for (kind, expected) in rows {
        let sandbox = sandbox(profile(kind));
        assert_eq!(masked(sandbox.plan()), []);
        let answer = ask(&sandbox, &["list", "/proc"]);
        let names = answer["/proc"].as_array().map(Vec::as_slice).unwrap_or_default();
        let names = names.iter().map(|entry| entry["name"].as_str().unwrap());
        let other: BTreeSet<_> =
            names.filter(|name| !name.bytes().all(|byte| byte.is_ascii_digit())).collect();
        assert_eq!(other, expected.iter().copied().collect(), "{kind:?}");
    }
}
