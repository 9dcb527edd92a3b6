//! A rootfs that somebody else has filled: only its system directories are shown, and no link of it
//! leads out.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use postern::{Command, Error, Sandbox, SandboxProfile};
use postern_tests::{PROBE, Scratch, Watch, run};
use serde_json::{Value, json};

use crate::canary;

/// A directory with a program in it, and one beside it that nobody may touch or see.
fn image() -> Scratch {
    let scratch = Scratch::new();
    scratch.file("canary/bin/probe", b"the host's", 0o755);
    scratch.file("canary/secret", b"the host's", 0o644);
    scratch.file("image/usr/bin/probe", PROBE, 0o755);
    scratch
}

fn build(scratch: &Scratch) -> Result<Sandbox, Error> {
    let rootfs = scratch.path().join("image");
    Sandbox::builder(SandboxProfile::builder().rootfs(rootfs).build().unwrap()).build()
}

fn ask(sandbox: &Sandbox, question: &[&str]) -> Value {
    let answer = run(sandbox, Command::new("/usr/bin/probe").args(question.iter().copied()));
    serde_json::from_slice(&answer.stdout).unwrap()
}

/// Where the sandbox puts something of its own.
const PLACES: [&str; 11] = [
    "proc",
    "dev",
    "dev/null",
    "dev/pts",
    "dev/shm",
    "tmp",
    "run",
    "run/postern",
    "workspace",
    "proc/sys",
    "etc",
];

/// Where links lead that a hostile image would hold; `CANARY` is the host's directory.
const LINKS: [&str; 6] =
    ["CANARY", "../../../../../../../../CANARY", "/proc/self/root/CANARY", "/", "../..", "ITSELF"];

#[test]
fn what_a_rootfs_has_in_our_places_is_not_looked_at() {
    let _watch = Watch::begin();
    const PROC_SUPER_MAGIC: u64 = 0x9fa0;
    for place in PLACES {
        for link in LINKS {
            let scratch = image();
            let place = scratch.path().join("image").join(place);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            symlink(target(&scratch, link, &place), &place).unwrap();
            let before = canary(scratch.path());
            let sandbox = build(&scratch).unwrap_or_else(|error| panic!("{place:?}: {error}"));
            let kinds = ask(&sandbox, &["statfs", "/proc"]);
            assert_eq!(kinds["/proc"]["kind"], json!(PROC_SUPER_MAGIC), "{place:?} {link}");
            let devices = ask(&sandbox, &["list", "/dev"]);
            let null = devices["/dev"].as_array().unwrap().iter().find(|e| e["name"] == "null");
            let null = null.map(|entry| (entry["kind"].clone(), entry["device"].clone()));
            assert_eq!(null, Some((json!("char"), json!(libc::makedev(1, 3)))), "{place:?} {link}");
            drop(sandbox);
            assert_eq!(canary(scratch.path()), before, "{place:?} {link}");
        }
    }
}

fn target(scratch: &Scratch, link: &str, place: &Path) -> PathBuf {
    let canary = scratch.path().join("canary");
    match link {
        "ITSELF" => PathBuf::from(place.file_name().unwrap()),
        link => PathBuf::from(
            link.replace("/CANARY", canary.to_str().unwrap())
                .replace("CANARY", canary.to_str().unwrap()),
        ),
    }
}

/// A system directory that is a link is one within the image, or missing.
#[test]
fn system_directories_are_found_within_the_rootfs() {
    let _watch = Watch::begin();
    for name in ["bin", "sbin", "lib", "lib64"] {
        for link in LINKS {
            let scratch = image();
            let place = scratch.path().join("image").join(name);
            symlink(target(&scratch, link, &place), &place).unwrap();
            let before = canary(&scratch.path().join("canary"));
            let sandbox = build(&scratch).unwrap_or_else(|error| panic!("{place:?}: {error}"));
            let paths = [format!("/{name}/secret"), format!("/{name}/bin/probe")];
            let answer = ask(&sandbox, &["read", &paths[0], &paths[1]]);
            for path in &paths {
                assert_ne!(answer[path], json!("the host's"), "{name} {link}");
            }
            drop(sandbox);
            assert_eq!(canary(&scratch.path().join("canary")), before, "{name} {link}");
        }
    }
}

/// Without its own there is nothing to take in its place.
#[test]
fn a_rootfs_whose_usr_leads_out_is_refused() {
    let _watch = Watch::begin();
    for link in ["CANARY", "../../../../../../../../CANARY", "ITSELF", "nothing"] {
        let scratch = image();
        let usr = scratch.path().join("image/usr");
        fs::remove_dir_all(&usr).unwrap();
        symlink(target(&scratch, link, &usr), &usr).unwrap();
        match build(&scratch) {
            Err(Error::Refused(refusal)) => assert_eq!(refusal.rule(), "usr-missing", "{link}"),
            other => panic!("{link}: {other:?}"),
        }
    }
}

/// Links within what is shown are the guest's to follow, in the guest's own tree.
#[test]
fn links_within_the_rootfs_stay_in_the_guests_tree() {
    let _watch = Watch::begin();
    let scratch = image();
    let usr = scratch.path().join("image/usr");
    for (name, link) in [("absolute", "CANARY"), ("up", "../../canary"), ("process", LINKS[2])] {
        symlink(target(&scratch, link, &usr), usr.join(name)).unwrap();
    }
    let sandbox = build(&scratch).unwrap();
    let paths = ["/usr/absolute/secret", "/usr/up/secret", "/usr/process/secret"];
    let answer = ask(&sandbox, &["read", paths[0], paths[1], paths[2]]);
    for path in paths {
        assert_eq!(answer[path], json!({ "errno": libc::ENOENT }), "{path}");
    }
}
