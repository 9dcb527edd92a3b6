//! What there is around the program: the root, mounts, `/proc`, `/dev`, and room to write.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use postern::profile::Workspace;
use postern::{Command, SandboxProfile};
use postern_tests::{Row, Watch, ask, check, run};
use serde_json::{Value, json};

use crate::{default_sandbox, sandbox};

/// Directories that are there where the host has them.
const SYSTEM: [&str; 6] = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

fn names(answer: &Value) -> BTreeSet<&str> {
    answer.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect()
}

#[test]
fn the_root_holds_what_is_documented() {
    let _watch = Watch::begin();
    let answer = ask(&default_sandbox(), &["list", "/"]);
    let ours = ["dev", "etc", "proc", "run", "tmp", "usr", "workspace"];
    let hosts = SYSTEM.into_iter().filter(|name| Path::new("/").join(name).exists());
    assert_eq!(names(&answer["/"]), ours.into_iter().chain(hosts).collect());
    for entry in answer["/"].as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        let link = fs::read_link(Path::new("/").join(name)).unwrap_or_default();
        let link = if SYSTEM.contains(&name) { link } else { Default::default() };
        assert_eq!(entry["link"], json!(link), "{name}");
    }
}

#[test]
fn every_mount_is_nosuid_and_few_are_writable() {
    let _watch = Watch::begin();
    let answer = ask(&default_sandbox(), &["mounts"]);
    let devices = ["null", "zero", "full", "random", "urandom", "tty"].map(|n| format!("/dev/{n}"));
    let mut writable = BTreeSet::new();
    for mount in answer.as_array().unwrap() {
        let target = mount["target"].as_str().unwrap();
        let options: Vec<_> = mount["options"].as_str().unwrap().split(',').collect();
        assert!(options.contains(&"nosuid"), "{mount}");
        // devpts is a device file system, of terminals of its own.
        let device = devices.iter().any(|device| device == target) || target == "/dev/pts";
        assert_eq!(options.contains(&"nodev"), !device, "{mount}");
        let no_programs = ["/proc", "/dev/pts", "/run/postern"].contains(&target);
        assert!(!no_programs || options.contains(&"noexec"), "{mount}");
        assert_eq!(mount["tags"], json!([]), "it propagates: {mount}");
        // A later mount at the same place covers an earlier one.
        match options.contains(&"rw") {
            true => writable.insert(target),
            false => writable.remove(target),
        };
    }
    assert_eq!(writable, BTreeSet::from(["/dev/pts", "/dev/shm", "/tmp", "/workspace"]));
}

#[test]
fn system_directories_are_read_only() {
    let _watch = Watch::begin();
    let new = [
        "/new",
        "/usr/new",
        "/bin/new",
        "/etc/new",
        "/etc/ssl/certs/new",
        "/dev/new",
        "/run/new",
        "/run/postern/new",
    ];
    let answer = ask(&default_sandbox(), &[&["open", "c"][..], &new[..]].concat());
    for path in new {
        assert_eq!(answer[path]["errno"], json!(libc::EROFS), "{path}");
    }
}

#[test]
fn no_file_of_proc_is_writable() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    // The first belongs to root, who is nobody here; the others are the guest's own.
    let rows = [
        ("/proc/sys/kernel/core_pattern", libc::EACCES),
        ("/proc/self/oom_score_adj", libc::EROFS),
        ("/proc/self/mem", libc::EROFS),
        ("/proc/self/comm", libc::EROFS),
    ];
    for (path, errno) in rows {
        assert_eq!(ask(&sandbox, &["open", "w", path])[path]["errno"], json!(errno), "{path}");
    }
    let sweep = ask(&sandbox, &["sweep", "/proc"]);
    assert_eq!(sweep["writable"], json!([]));
    assert!(sweep["tried"].as_i64() > Some(500), "too few files: {}", sweep["tried"]);
}

#[test]
fn what_leaks_when_read_is_masked() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let masked = [
        "kcore",
        "kmsg",
        "kallsyms",
        "kpageflags",
        "kpagecount",
        "kpagecgroup",
        "vmallocinfo",
        "slabinfo",
        "timer_list",
        "sched_debug",
        "pagetypeinfo",
        "iomem",
        "ioports",
        "modules",
        "keys",
        "key-users",
        "latency_stats",
        "config.gz",
        "sysrq-trigger",
        "cmdline",
        "interrupts",
        "softirqs",
        "schedstat",
        "diskstats",
        "partitions",
        "swaps",
        "vmstat",
        "zoneinfo",
        "buddyinfo",
        "locks",
        "mdstat",
        "sys/kernel/random/boot_id",
    ];
    let mut there = 0;
    for name in masked {
        let path = format!("/proc/{name}");
        let answer = ask(&sandbox, &["open", "r", &path]);
        let exists = Path::new(&path).exists();
        let errno = if exists { libc::EACCES } else { libc::ENOENT };
        assert_eq!(answer[&path]["errno"], json!(errno), "{path}");
        there += u32::from(exists);
    }
    assert!(there > 5, "this kernel has next to nothing to mask: {there}");
    let directories = ["acpi", "asound", "bus", "driver", "fs", "irq", "pressure", "scsi"];
    for directory in directories.map(|name| format!("/proc/{name}")) {
        let directory = &*directory;
        let answer = ask(&sandbox, &["list", directory]);
        let missing = json!({ "errno": libc::ENOENT });
        let expected = if Path::new(directory).exists() { json!([]) } else { missing };
        assert_eq!(answer[directory], expected, "{directory}");
    }
}

#[test]
fn dev_holds_what_every_program_expects_and_no_more() {
    let _watch = Watch::begin();
    let answer = ask(&default_sandbox(), &["list", "/dev", "/dev/pts"]);
    let rows = [
        ("fd", "link", "/proc/self/fd"),
        ("full", "char", ""),
        ("null", "char", ""),
        ("ptmx", "link", "pts/ptmx"),
        ("pts", "dir", ""),
        ("random", "char", ""),
        ("shm", "dir", ""),
        ("stderr", "link", "/proc/self/fd/2"),
        ("stdin", "link", "/proc/self/fd/0"),
        ("stdout", "link", "/proc/self/fd/1"),
        ("tty", "char", ""),
        ("urandom", "char", ""),
        ("zero", "char", ""),
    ];
    let entries = answer["/dev"].as_array().unwrap();
    assert_eq!(names(&answer["/dev"]), rows.map(|(name, ..)| name).into());
    for (entry, (name, kind, link)) in entries.iter().zip(rows) {
        assert_eq!((&entry["kind"], &entry["link"]), (&json!(kind), &json!(link)), "{name}");
        let node = fs::metadata(Path::new("/dev").join(name)).map(|found| found.rdev());
        let number = if kind == "char" { node.unwrap() } else { 0 };
        assert_eq!(entry["device"], json!(number), "{name}");
    }
    assert_eq!(names(&answer["/dev/pts"]), BTreeSet::from(["ptmx"]));
}

#[test]
fn what_can_be_written_to_is_bounded() {
    let _watch = Watch::begin();
    const TMPFS: u64 = 0x0102_1994;
    let at = |path: &str| format!("/{}", path.replace('/', "~1"));
    let (tmp, shm, workspace) = (at("/tmp"), at("/dev/shm"), at("/workspace"));
    let part = |path: &str, name: &str| format!("{path}/{name}");
    let paths = [&tmp, &shm, &workspace]
        .map(|path| ["kind", "bytes", "inodes"].map(|name| part(path, name)));
    let question = &["statfs", "/tmp", "/dev/shm", "/workspace"][..];
    let expected =
        [[TMPFS, 64 << 20, 16_384], [TMPFS, 64 << 20, 16_384], [TMPFS, 256 << 20, 65_536]];
    let cells = paths.iter().flatten().zip(expected.into_iter().flatten());
    let rows: Vec<Row<'_>> =
        cells.map(|(at, expected)| (&**at, question, &**at, json!(expected))).collect();
    check(&default_sandbox(), &rows);
}

#[test]
fn shared_places_have_their_usual_modes() {
    let _watch = Watch::begin();
    let answer = ask(&default_sandbox(), &["list", "/", "/dev"]);
    let rows = [("/", "tmp", 0o1777), ("/dev", "shm", 0o1777), ("/", "workspace", 0o700)];
    for (parent, name, mode) in rows {
        let entries = answer[parent].as_array().unwrap();
        let entry = entries.iter().find(|entry| entry["name"] == json!(name)).expect(name);
        assert_eq!(entry["mode"], json!(mode), "{name}");
        assert_eq!(entry["uid"], json!(65_534), "{name}");
    }
}

#[test]
fn the_kernel_refuses_what_is_over_the_bound() {
    let _watch = Watch::begin();
    const BYTES: u64 = 8 << 20;
    let workspace = Workspace::Owned { size_bytes: BYTES, inodes: 64 };
    let profile = SandboxProfile::builder().workspace(workspace);
    let profile = profile.tmp_bytes(1 << 20).tmp_inodes(64).shm_bytes(1 << 20).shm_inodes(64);
    let sandbox = sandbox(profile.build().unwrap());
    let full = |bytes: u64| json!({ "bytes": bytes, "errno": libc::ENOSPC });
    let rows: [Row<'_>; 2] = [
        ("bytes of /tmp", &["fill", "/tmp/file"], "", full(1 << 20)),
        ("bytes of /dev/shm", &["fill", "/dev/shm/file"], "", full(1 << 20)),
    ];
    check(&sandbox, &rows);
    for directory in ["/tmp", "/dev/shm", "/workspace"] {
        let answer = ask(&sandbox, &["fill-inodes", directory]);
        assert_eq!(answer["errno"], json!(libc::ENOSPC), "{directory}");
        assert!(answer["files"].as_u64().unwrap() < 64, "{directory}: {answer}");
    }
    run(&sandbox, Command::new("sh").args(["-c", "rm inode-*"]));
    let answer = ask(&sandbox, &["fill", "/workspace/file"]);
    assert_eq!(answer["errno"], json!(libc::ENOSPC));
    assert!(answer["bytes"].as_u64().unwrap() < BYTES, "the probe is there too: {answer}");
}

#[test]
fn runs_share_the_workspace_with_each_other_and_the_host() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    run(&sandbox, Command::new("sh").args(["-c", "umask 077; echo from a run > note"]));
    let second = run(&sandbox, Command::new("cat").arg("note"));
    assert_eq!(second.stdout_text(), "from a run\n");
    let workspace = sandbox.workspace().unwrap();
    assert_eq!(workspace.read("note", 100).unwrap(), b"from a run\n");
    workspace.write("answer", "from the host").unwrap();
    let third = run(&sandbox, Command::new("sh").args(["-c", "cat answer; echo > answer"]));
    assert_eq!(third.stdout_text(), "from the host");
}

#[test]
fn the_host_follows_nothing_that_a_guest_plants() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let script = "ln -s /etc/passwd link; ln -s / root; mkfifo fifo; mkdir directory; \
                  head -c 101 /dev/zero > large; ln -s nowhere dangling";
    run(&sandbox, Command::new("sh").args(["-c", script]));
    let workspace = sandbox.workspace().unwrap();
    let rows = [
        ("link", Some(libc::ELOOP)),
        ("root/etc/passwd", Some(libc::ELOOP)),
        ("dangling", Some(libc::ELOOP)),
        ("../etc/passwd", Some(libc::EXDEV)),
        ("/etc/passwd", Some(libc::EXDEV)),
        ("missing", Some(libc::ENOENT)),
        ("fifo", None),
        ("directory", None),
        ("large", None),
    ];
    for (path, errno) in rows {
        let refused = workspace.read(path, 100).unwrap_err();
        assert_eq!(refused.raw_os_error(), errno, "read {path}: {refused}");
    }
    for path in ["link", "dangling", "root/tmp/new", "../new", "/tmp/new", "fifo", "directory"] {
        assert!(workspace.write(path, "x").is_err(), "write {path}");
    }
}
