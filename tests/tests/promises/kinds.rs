//! Every golden profile, carried out: the run has the mounts of its plan and no other, and the
//! namespaces that the profile does not share.

use std::collections::BTreeSet;
use std::fs;

use postern::error::Error;
use postern::plan::Plan;
use postern::{Command, Sandbox};
use postern_seccomp::Level;
use postern_tests::{
    Held, Mount, Scratch, Watch, mounts_in, mounts_of, namespaces, try_hold, workspace_in,
};
use serde_json::{Value, json};

use crate::fixture::{GOLDEN, Golden, fixture};

/// A golden profile's sandbox, and where its guest finds the probe.
struct World {
    sandbox: Sandbox,
    probe: String,
    _scratch: Scratch,
}

impl World {
    fn of(name: &str) -> World {
        let golden = GOLDEN.iter().find(|golden| golden.name == name);
        World::build(golden.unwrap_or_else(|| panic!("{name} is no golden profile")))
    }

    fn build(golden: &Golden) -> World {
        let scratch = fixture(golden.name);
        let profile = golden.profile(&scratch);
        let sandbox = Sandbox::builder(profile).run_directories(golden.run_directories).build();
        let sandbox = sandbox.unwrap_or_else(|error| panic!("{}: {error}", golden.name));
        let owned = workspace_in(sandbox.plan()).map(|workspace| format!("{workspace}/probe"));
        if owned.is_some() {
            postern_tests::install(&sandbox);
        }
        let probe = owned.unwrap_or_else(|| golden.directory_probe(&scratch));
        World { sandbox, probe, _scratch: scratch }
    }

    fn try_hold(&self, question: &[&str]) -> Result<Held, String> {
        let question = question.iter().copied();
        try_hold(&self.sandbox, Command::new(&self.probe).arg("hold").args(question))
    }

    fn hold(&self, question: &[&str]) -> Held {
        self.try_hold(question).unwrap_or_else(|failure| panic!("{failure}"))
    }

    fn ask(&self, question: &[&str]) -> Value {
        let held = self.hold(question);
        let answer = held.answer.clone();
        assert!(held.release().ok());
        answer
    }

    fn plan(&self) -> &Plan {
        self.sandbox.plan()
    }
}

/// What is wrong with any golden profile: of each, a run that has answered is looked at.
fn wrong(question: &[&str], look: fn(&World, &Held) -> Vec<String>) -> Vec<String> {
    let look_at = |golden: &Golden| {
        let world = World::build(golden);
        let wrong = match world.try_hold(question) {
            Ok(held) => {
                let wrong = look(&world, &held);
                assert!(held.release().ok(), "{}", golden.name);
                wrong
            }
            Err(failure) => vec![failure],
        };
        wrong.into_iter().map(|wrong| format!("{}: {wrong}", golden.name)).collect::<Vec<_>>()
    };
    GOLDEN.iter().flat_map(look_at).collect()
}

#[test]
fn every_golden_profile_has_the_mounts_of_its_plan() {
    let _watch = Watch::begin();
    let wrong = wrong(&["capabilities"], |world, held| {
        let found = mounts_of(held.guest);
        let suid = found.iter().filter(|(_, options)| !options.contains(&"nosuid".to_owned()));
        let mut wrong: Vec<_> = suid.map(|(mount, _)| format!("not nosuid: {mount:?}")).collect();
        let found: Vec<Mount> = found.iter().map(|(mount, _)| mount.clone()).collect();
        wrong.extend(different(&mounts_in(world.plan()), &found));
        wrong
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Mounts of one list that have no partner in the other.
fn different(planned: &[Mount], found: &[Mount]) -> Vec<String> {
    let mut left = found.to_vec();
    let mut differences = Vec::new();
    for mount in planned {
        let same = |other: &Mount| {
            let kind = mount.kind.is_empty() || mount.kind == other.kind;
            (&other.target, other.read_only, kind) == (&mount.target, mount.read_only, true)
        };
        match left.iter().position(same) {
            Some(index) => drop(left.remove(index)),
            None => differences.push(format!("planned and not there: {mount:?}")),
        }
    }
    differences.extend(left.iter().map(|mount| format!("there and not planned: {mount:?}")));
    differences
}

#[test]
fn every_golden_profile_has_the_namespaces_it_does_not_share() {
    let _watch = Watch::begin();
    let wrong = wrong(&["capabilities"], |world, held| {
        let host = namespaces(i32::try_from(std::process::id()).unwrap());
        let guest = namespaces(held.guest);
        let set = world.plan().namespaces;
        let rows = [
            ("user", true),
            ("mnt", true),
            // A shared one is the launcher's.
            ("pid", true),
            ("net", set.net),
            ("ipc", set.ipc),
            ("uts", set.uts),
            ("cgroup", set.cgroup),
        ];
        let wrong = rows.into_iter().filter(|(name, own)| (guest[*name] != host[*name]) != *own);
        wrong.map(|(name, own)| format!("{name}: its own is not {own}")).collect()
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_golden_profile_empties_the_capability_sets() {
    let _watch = Watch::begin();
    let wrong = wrong(&["capabilities"], |_, held| {
        let none = json!({ "effective": 0, "permitted": 0, "inheritable": 0 });
        let rows = [("sets", none), ("bounding", json!(0)), ("ambient", json!(0))];
        let rows = rows.into_iter().chain([("no_new_privs", json!(1)), ("dumpable", json!(1))]);
        let wrong = rows.filter(|(name, expected)| held.answer[name] != *expected);
        wrong.map(|(name, _)| format!("{name}: {}", held.answer[name])).collect()
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_golden_profile_is_verified_unless_it_has_no_filter() {
    let _watch = Watch::begin();
    let mut wrong = Vec::new();
    for golden in &GOLDEN {
        let world = World::build(golden);
        let found = match world.sandbox.verify() {
            Ok(_) => Vec::new(),
            Err(Error::Unconfined(violations)) => violations.iter().map(|v| v.what).collect(),
            Err(error) => {
                wrong.push(format!("{}: {error}", golden.name));
                continue;
            }
        };
        let off = ["the seccomp level"];
        let expected = if world.plan().seccomp == Level::Off { &off[..] } else { &[] };
        if found != expected {
            wrong.push(format!("{}: {found:?}", golden.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn without_a_procfs_there_is_none() {
    let _watch = Watch::begin();
    let world = World::of("proc-none");
    let listing = world.ask(&["list", "/proc"]);
    assert_eq!(listing["/proc"], json!({ "errno": libc::ENOENT }));
    assert_eq!(world.ask(&["fds"]), json!([0, 1, 2]));
    assert_eq!(world.ask(&["loopback"])["v4"], json!("word"));
}

#[test]
fn a_minimal_procfs_holds_processes_only() {
    let _watch = Watch::begin();
    let world = World::of("proc-minimal");
    let listing = world.ask(&["list", "/proc"]);
    let names =
        listing["/proc"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap());
    let other: BTreeSet<_> = names.filter(|name| name.parse::<u32>().is_err()).collect();
    assert_eq!(other, BTreeSet::from(["self", "thread-self"]));
    let own = world.ask(&["open", "w", "/proc/self/comm"]);
    assert_eq!(own["/proc/self/comm"]["errno"], json!(libc::EROFS));
}

#[test]
fn a_masked_procfs_is_writable_for_the_processes_alone() {
    let _watch = Watch::begin();
    let world = World::of("proc-masked");
    let own = world.ask(&["open", "w", "/proc/self/comm"]);
    assert_eq!(own["/proc/self/comm"], json!(true));
    let sweep = world.ask(&["sweep", "/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs"]);
    assert_eq!(sweep["writable"], json!([]));
    assert!(sweep["tried"].as_i64() > Some(300), "{sweep}");
}

#[test]
fn without_an_etc_the_loaders_cache_is_all_there_is() {
    let _watch = Watch::begin();
    let listing = World::of("etc-none").ask(&["list", "/etc"]);
    let names: Vec<_> =
        listing["/etc"].as_array().unwrap().iter().map(|entry| &entry["name"]).collect();
    assert_eq!(names, [&json!("ld.so.cache")]);
}

#[test]
fn a_rootfs_stands_in_for_the_hosts_system() {
    let _watch = Watch::begin();
    let world = World::of("rootfs");
    let listing = world.ask(&["list", "/usr/bin"]);
    let names: Vec<_> =
        listing["/usr/bin"].as_array().unwrap().iter().map(|entry| &entry["name"]).collect();
    assert_eq!(names, [&json!("probe")]);
    let by_name = world.sandbox.run(["probe", "argv", "found by name"]).unwrap();
    assert_eq!(by_name.stdout_text(), "[\"found by name\"]\n");
}

#[test]
fn a_virtual_environment_is_the_python_that_runs() {
    let _watch = Watch::begin();
    let world = World::of("venv");
    let script =
        "import os, sys; print(sys.prefix == os.environ['VIRTUAL_ENV'] != sys.base_prefix)";
    let result = world.sandbox.run(["python", "-c", script]).unwrap();
    assert_eq!(result.stdout_text(), "True\n", "{}", result.stderr_text());
}

#[test]
fn a_host_view_shows_the_host_and_opens_one_directory() {
    let _watch = Watch::begin();
    let world = World::of("host-view");
    let own = world.sandbox.plan().cwd.to_str().unwrap().to_owned();
    let new = format!("{own}/new");
    let answer = world.ask(&["open", "c", "/usr/new", "/etc/new", "/var/tmp/new", &new]);
    for path in ["/usr/new", "/etc/new", "/var/tmp/new"] {
        assert_eq!(answer[path]["errno"], json!(libc::EROFS), "{path}");
    }
    assert_eq!(answer[&new], json!(true));
    assert!(fs::exists(&new).unwrap(), "the host does not see it");
    let read = world.ask(&["read", "/etc/nsswitch.conf", "/proc/net/dev"]);
    let hosts = fs::read_to_string("/etc/nsswitch.conf").unwrap();
    assert_eq!(read["/etc/nsswitch.conf"], json!(hosts));
    let interfaces = |text: &str| text.lines().count();
    let shared = interfaces(read["/proc/net/dev"].as_str().unwrap());
    assert_eq!(shared, interfaces(&fs::read_to_string("/proc/net/dev").unwrap()));
}

#[test]
fn a_host_view_hides_the_hosts_run_tmp_and_processes() {
    let _watch = Watch::begin();
    let world = World::of("host-view-owned");
    let names = |listing: &Value| -> BTreeSet<String> {
        let entries = listing.as_array().unwrap().iter();
        entries.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    let answer = world.ask(&["list", "/run", "/run/postern", "/tmp", "/dev/shm", "/proc"]);
    let rows: [(&str, &[&str]); 5] = [
        ("/run", &["postern", "workspace"]),
        ("/run/postern", &[]),
        ("/tmp", &[]),
        ("/dev/shm", &[]),
        ("/proc", &[]),
    ];
    for (directory, expected) in rows {
        let expected = expected.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(names(&answer[directory]), expected, "{directory}");
    }
}

#[test]
fn a_shared_pid_namespace_is_the_launchers() {
    let _watch = Watch::begin();
    let world = World::of("bwrap-like");
    let held = world.hold(&["identity"]);
    // Neither PID 1 nor its first child, and not the host's number either.
    let pid = held.answer["pid"].as_i64().unwrap();
    assert!(pid > 2 && pid != i64::from(held.guest), "{pid}");
    assert_eq!(held.answer["cwd"], json!("/home/ada/project"));
    assert!(held.release().ok());
}

#[test]
fn profiles_say_how_much_and_how_many() {
    let _watch = Watch::begin();
    let world = World::of("limits");
    let limits = world.ask(&["rlimits"]);
    let rows = [(0, 60), (7, 8), (9, 1 << 30)];
    for (resource, limit) in rows {
        assert_eq!(limits[resource], json!([limit, limit]), "{resource}");
    }
    let tmp = world.ask(&["statfs", "/tmp"]);
    assert_eq!((&tmp["/tmp"]["bytes"], &tmp["/tmp"]["inodes"]), (&json!(4096), &json!(4)));
    let terminal = world.ask(&["open", "r", "/dev/ptmx"]);
    assert_eq!(terminal["/dev/ptmx"]["errno"], json!(libc::ENOENT));
    let badness = world.ask(&["read", "/proc/self/oom_score_adj"]);
    assert_eq!(badness["/proc/self/oom_score_adj"], json!("1000\n"));
}

#[test]
fn the_root_of_a_callers_workspace_profile_is_root_inside_only() {
    let _watch = Watch::begin();
    let world = World::of("caller-workspace");
    let held = world.hold(&["identity"]);
    let uid = postern_tests::status(held.guest)["Uid"].clone();
    assert_eq!(held.answer["uid"], json!(0));
    assert!(!uid.split(' ').any(|uid| uid == "0"), "root on the host: {uid}");
    assert!(held.release().ok());
    let sweep = world.ask(&["sweep", "/proc/sys"]);
    assert_eq!(sweep["writable"], json!([]));
}
