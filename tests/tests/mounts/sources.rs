//! What a bind shows: submounts of its source as closed as the source, nothing that the host mounts
//! later, no flag of the host's mounts taken back, and symbolic links resolved when it is planned.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use postern::profile::Bind;
use postern::{Error, Sandbox, SandboxProfile};
use postern_tests::{Scratch, Watch, ask};
use serde_json::{Value, json};

use crate::{sandbox, stage};

/// The mounts that a guest sees at and beneath a place: where, and their options.
fn mounts_at(sandbox: &Sandbox, place: &str) -> Vec<(String, Vec<String>)> {
    let answer = ask(sandbox, &["mounts"]);
    let beneath = answer.as_array().unwrap().iter().filter_map(|mount| {
        let target = mount["target"].as_str().unwrap();
        let options = mount["options"].as_str().unwrap().split(',').map(str::to_owned);
        Path::new(target).starts_with(place).then(|| (target.to_owned(), options.collect()))
    });
    beneath.collect()
}

const SUBMOUNTS: &str = "sources::submounts_are_as_closed_as_the_source";

/// A tmpfs in the source, one more in that, and a file over a file.
#[test]
fn submounts_are_as_closed_as_the_source() {
    let _watch = Watch::begin();
    let Some(stage) = stage::here() else {
        return stage::play(
            SUBMOUNTS,
            "mkdir -m 777 -p src/sub other
             mount -t tmpfs -o suid,dev,exec,mode=777 sub src/sub
             mkdir -m 777 src/sub/deep
             mount -t tmpfs -o suid,dev,exec,mode=777 deep src/sub/deep
             echo a > src/file; echo b > other/file
             mount --bind other/file src/file
             if [ $(id -u) = 0 ]; then mknod -m 666 src/sub/null c 1 3; fi",
        );
    };
    let source = stage.join("src");
    let profile = SandboxProfile::builder()
        .required_ro_binds([Bind::new(&source, "/srv/closed")])
        .rw_binds([Bind::new(&source, "/srv/open")])
        .build()
        .unwrap();
    let sandbox = sandbox(profile);
    let places = ["", "/sub", "/sub/deep", "/file"];
    for (root, access) in [("/srv/closed", "ro"), ("/srv/open", "rw")] {
        let found = mounts_at(&sandbox, root);
        let targets: Vec<_> = found.iter().map(|(target, _)| target.as_str()).collect();
        assert_eq!(targets, places.map(|place| format!("{root}{place}")), "{root}");
        for (target, options) in &found {
            for option in [access, "nosuid", "nodev"] {
                assert!(options.contains(&option.to_owned()), "{target} {options:?}");
            }
        }
    }
    let errno = |number: i32| json!({ "errno": number });
    let new = ask(&sandbox, &["open", "c", "/srv/closed/sub/x", "/srv/closed/sub/deep/x"]);
    assert!(new.as_object().unwrap().values().all(|found| *found == errno(libc::EROFS)), "{new}");
    let read = ask(&sandbox, &["read", "/srv/closed/file"]);
    assert_eq!(read["/srv/closed/file"], json!("b\n"));
    if source.join("sub/null").exists() {
        for path in ["/srv/closed/sub/null", "/srv/open/sub/null"] {
            assert_eq!(ask(&sandbox, &["open", "r", path])[path], errno(libc::EACCES));
        }
    }
}

const LATER: &str = "sources::what_the_host_mounts_later_is_not_seen";

/// On a host whose mounts are shared, as systemd has them.
#[test]
fn what_the_host_mounts_later_is_not_seen() {
    // What the host mounts on the stage is there afterwards.
    let Some(stage) = stage::here() else {
        let _watch = Watch::begin();
        return stage::play(
            LATER,
            "mkdir -m 777 -p src/late signs
             chmod 777 .
             mount --make-rshared /
             (for turn in $(seq 3000); do [ -e signs/go ] && break; sleep 0.01; done
              mount -t tmpfs late src/late; echo late > src/late/file; touch signs/done) >/dev/null 2>&1 &",
        );
    };
    let profile = SandboxProfile::builder()
        .required_ro_binds([Bind::new(stage.join("src"), "/srv/src")])
        .build()
        .unwrap();
    let sandbox = sandbox(profile);
    let file = "/srv/src/late/file";
    let missing = json!({ "errno": libc::ENOENT });
    assert_eq!(ask(&sandbox, &["read", file])[file], missing);
    let held = postern_tests::hold(&sandbox, postern_tests::command(&["hold", "mounts"]));
    fs::write(stage.join("signs/go"), "").unwrap();
    while !stage.join("signs/done").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(fs::read_to_string(stage.join("src/late/file")).unwrap(), "late\n");
    // Neither in a run that was there, nor in one that comes after.
    let table = fs::read_to_string(format!("/proc/{}/mountinfo", held.init)).unwrap();
    assert!(!table.contains("/srv/src/late"), "{table}");
    assert!(held.release().ok());
    assert_eq!(ask(&sandbox, &["read", file])[file], missing);
    let answer = ask(&sandbox, &["mounts"]);
    let tagged = answer.as_array().unwrap().iter().filter(|mount| mount["tags"] != json!([]));
    assert_eq!(tagged.count(), 0, "{answer}");
}

const FLAGS: &str = "sources::flags_of_the_hosts_mounts_stay";

#[test]
fn flags_of_the_hosts_mounts_stay() {
    let _watch = Watch::begin();
    let Some(stage) = stage::here() else {
        return stage::play(
            FLAGS,
            "mkdir -m 777 ro noexec
             mount -t tmpfs -o mode=777 a ro
             cp /bin/true ro/true; mount -o remount,ro ro
             mount -t tmpfs -o mode=777,noexec b noexec
             cp /bin/true noexec/true",
        );
    };
    let binds = ["ro", "noexec"].map(|name| Bind::new(stage.join(name), format!("/srv/{name}")));
    let sandbox = sandbox(SandboxProfile::builder().rw_binds(binds).build().unwrap());
    let answer = ask(&sandbox, &["open", "c", "/srv/ro/x", "/srv/noexec/x"]);
    assert_eq!(answer["/srv/ro/x"], json!({ "errno": libc::EROFS }));
    assert_eq!(answer["/srv/noexec/x"], json!(true));
    let result = sandbox.run(["/srv/noexec/true"]).unwrap();
    assert_eq!(result.ending, postern::Ending::ExecFailed(libc::EACCES), "{result:?}");
    assert!(sandbox.run(["/srv/ro/true"]).unwrap().ok());
}

/// What a source is, and what the guest reads in its place or the rule that refuses it.
type Row = (&'static str, fn(&Path), Result<&'static str, &'static str>);

/// A link of the host's is followed once, when the plan is made, which then names the end of it.
#[test]
fn links_are_resolved_when_they_are_planned() {
    let _watch = Watch::begin();
    let rows: [Row; 9] = [
        ("a directory", |at| assert!(directory(at).exists()), Ok("inside")),
        ("a link to one", |at| linked(at, "end"), Ok("inside")),
        (
            "a link to a link",
            |at| {
                linked(&at.with_file_name("middle"), "end");
                symlink("middle", at).unwrap();
            },
            Ok("inside"),
        ),
        (
            "an absolute link",
            |at| {
                let end = at.with_file_name("end");
                symlink(directory(&end), at).unwrap();
            },
            Ok("inside"),
        ),
        ("a link to nothing", |at| symlink("nothing", at).unwrap(), Err("source-missing")),
        ("a loop", |at| symlink("source", at).unwrap(), Err("source-unreachable")),
        ("the root", |at| symlink("/", at).unwrap(), Err("source-root")),
        (
            "the root by way of /proc",
            |at| symlink("/proc/self/root", at).unwrap(),
            Err("source-root"),
        ),
        ("a process", |at| symlink("/proc/1", at).unwrap(), Err("source-proc")),
    ];
    for (name, make, expected) in rows {
        let scratch = Scratch::new();
        let source = scratch.path().join("source");
        make(&source);
        let profile = SandboxProfile::builder()
            .required_ro_binds([Bind::new(&source, "/srv/source")])
            .build()
            .unwrap();
        let found = match Sandbox::builder(profile).build() {
            Ok(sandbox) => {
                postern_tests::install(&sandbox);
                let file = "/srv/source/file";
                Ok(ask(&sandbox, &["read", file])[file].clone())
            }
            Err(Error::Refused(refusal)) => Err(refusal.rule()),
            Err(other) => panic!("{name}: {other}"),
        };
        assert_eq!(found, expected.map(Value::from), "{name}");
    }
}

fn directory(at: &Path) -> &Path {
    fs::create_dir(at).unwrap();
    fs::write(at.join("file"), "inside").unwrap();
    at
}

fn linked(at: &Path, end: &str) {
    directory(&at.with_file_name(end));
    symlink(end, at).unwrap();
}
