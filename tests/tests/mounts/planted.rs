//! Targets in a workspace that an earlier hostile guest has prepared, and what a guest can do to
//! the mount points it is given.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use postern::profile::Workspace;
use postern::{Command, Error, Sandbox, SandboxProfile};
use postern_tests::{Scratch, Watch, run};

use crate::{canary, stage};

/// A workspace with every kind of link in it, beside a directory that nobody may touch.
struct Planted {
    scratch: Scratch,
}

impl Planted {
    fn new() -> Planted {
        let scratch = Scratch::new();
        scratch.file("canary/inner/file", b"untouched", 0o644);
        let workspace = scratch.directory("job", 0o777);
        // What is bound on is made by the host's user; the guest has another uid on a root host.
        stage::open(&workspace);
        fs::create_dir_all(workspace.join("real/inner")).unwrap();
        fs::write(workspace.join("real/file"), "").unwrap();
        let canary = scratch.path().join("canary");
        let links: [(&str, PathBuf); 7] = [
            ("absolute", canary.clone()),
            ("relative", "../canary".into()),
            ("up", "../..".into()),
            ("root", "/".into()),
            ("process", "/proc/self/root".into()),
            ("old", "/oldroot/x".into()),
            ("loop", "loop".into()),
        ];
        for (name, to) in links {
            symlink(to, workspace.join(name)).unwrap();
        }
        symlink("real", workspace.join("within")).unwrap();
        symlink(canary.join("inner/file"), workspace.join("file")).unwrap();
        Planted { scratch }
    }

    fn build(&self, text: &str) -> Result<Sandbox, Error> {
        let mut profile = SandboxProfile::from_toml_str(text).unwrap();
        let path = self.scratch.path().join("job");
        profile.workspace = Workspace::Directory { path, access: Default::default() };
        Sandbox::builder(profile).build()
    }
}

/// An entry of `mounts`, or `cwd`, with the planted path for `PATH`.
const ACTS: [&str; 7] = [
    "mounts = [{ bind = { source = '/usr', target = 'PATH/usr' } }]",
    "mounts = [{ bind = { source = '/usr', target = 'PATH' } }]",
    "mounts = [{ tmpfs = { target = 'PATH' } }]",
    "mounts = [{ dir = { target = 'PATH/new' } }]",
    "mounts = [{ file = { target = 'PATH/new', contents = 'x' } }]",
    "mounts = [{ symlink = { target = 'PATH/new', to = 'x' } }]",
    "cwd = 'PATH'",
];

#[test]
fn nothing_is_put_behind_a_planted_link() {
    let _watch = Watch::begin();
    let planted = Planted::new();
    let place = planted.scratch.path().join("canary");
    let before = canary(&place);
    let mut allowed = Vec::new();
    for name in ["absolute", "relative", "up", "root", "process", "old", "loop"] {
        for act in ACTS {
            let text = act.replace("PATH", &format!("/workspace/{name}"));
            match planted.build(&text) {
                Err(Error::Refused(refusal)) => {
                    let rules = [
                        "target-behind-link",
                        "target-missing",
                        "target-not-ours",
                        "target-kind",
                        "cwd-missing",
                    ];
                    assert!(rules.contains(&refusal.rule()), "{text}: {refusal}");
                }
                Err(Error::Launch(error)) => {
                    // A link is not followed, or is no place for a directory.
                    let (words, errnos) = (error.to_string(), ["(os error 40)", "(os error 22)"]);
                    assert!(errnos.iter().any(|e| words.contains(e)), "{text}: {words}");
                }
                Err(other) => panic!("{text}: {other}"),
                Ok(_) => allowed.push(text.clone()),
            }
            assert_eq!(canary(&place), before, "{text}");
        }
    }
    assert_eq!(allowed, [""; 0]);
}

/// A link that stays in the workspace is no way out: what is named is the place it leads to.
#[test]
fn a_link_within_the_workspace_leads_to_its_place() {
    let _watch = Watch::begin();
    let planted = Planted::new();
    let text = "mounts = [{ tmpfs = { target = '/workspace/within/inner' } }]\n\
                cwd = '/workspace/within'";
    let sandbox = planted.build(text).unwrap();
    let script = "pwd -P; grep -c ' /workspace/real/inner ' /proc/self/mountinfo; touch inner/x";
    let answer = run(&sandbox, Command::new("sh").args(["-c", script]));
    assert_eq!(answer.stdout_text(), "/workspace/real\n1\n");
    let inner = planted.scratch.path().join("job/real/inner");
    assert_eq!(fs::read_dir(inner).unwrap().count(), 0, "it was written beneath the mount");
}

/// Renames, exchanges, whiteouts and removals of what is mounted, in Python: a name, two paths, the
/// flags of renameat2, and the errnos that are right.
const RENAMES: &str = r#"
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
rows = [
    ("the workspace", "/workspace", "/tmp/x", 0),
    ("over the workspace", "/tmp/d", "/workspace", 0),
    ("exchange", "/workspace", "/tmp", 2),
    ("a mount in the workspace", "/workspace/real/inner", "/workspace/x", 0),
    ("over it", "/workspace/real/spare", "/workspace/real/inner", 0),
    ("exchange in the workspace", "/workspace/real/inner", "/workspace/real/spare", 2),
    ("a file that is bound over", "/workspace/real/file", "/workspace/x", 0),
    ("whiteout", "/workspace/real/inner", "/workspace/x", 4),
    ("the hatches", "/run/postern", "/run/x", 0),
    ("out of the hatches", "/run/postern/note", "/tmp/x", 0),
    ("the temporary directory", "/tmp", "/workspace/x", 0),
    ("a mask", "/proc/cmdline", "/tmp/x", 0),
    ("the root", "/", "/tmp/x", 0),
]
os.mkdir("/tmp/d"); os.mkdir("/workspace/real/spare")
right = {errno.EBUSY, errno.EXDEV, errno.EROFS, errno.EINVAL, errno.EPERM, errno.EACCES}
for name, old, new, flags in rows:
    done = libc.renameat2(-100, old.encode(), -100, new.encode(), flags)
    code = ctypes.get_errno()
    if done == 0 or code not in right: print(name, done, code)
for path in ["/workspace", "/workspace/real/inner", "/tmp", "/run/postern", "/proc"]:
    try: os.rmdir(path); print("removed", path)
    except OSError as error:
        if error.errno not in right: print("rmdir", path, error)
try: os.unlink("/workspace/real/file"); print("unlinked")
except OSError as error:
    if error.errno != errno.EBUSY: print("unlink", error)
print("end")
"#;

#[test]
fn a_guest_moves_no_mount_point() {
    let _watch = Watch::begin();
    let planted = Planted::new();
    for open in ["real", "real/inner"] {
        stage::open(&planted.scratch.path().join("job").join(open));
    }
    let text = "mounts = [{ tmpfs = { target = '/workspace/real/inner' } },\n\
                { bind = { source = '/etc/hostname', target = '/workspace/real/file' } }]";
    let text = match Path::new("/etc/hostname").exists() {
        true => text.to_owned(),
        false => text.replace("/etc/hostname", "/etc/passwd"),
    };
    let mut profile = SandboxProfile::from_toml_str(&text).unwrap();
    let path = planted.scratch.path().join("job");
    profile.workspace = Workspace::Directory { path, access: Default::default() };
    let sandbox = Sandbox::builder(profile).run_directories(true).build().unwrap();
    let python = Command::new("python3").args(["-I", "-c", RENAMES]);
    let answer = run(&sandbox, python.private_file("note", "of the run"));
    assert_eq!(answer.stdout_text(), "end\n", "{}", answer.stderr_text());
}

/// Where launches of this process keep nothing: no directory under a place that a reaper empties,
/// no mount that another process sees.
#[test]
fn a_launch_stages_nothing_on_the_host() {
    let _watch = Watch::begin();
    let listed = || {
        let places = ["/tmp", "/var/tmp", "/run", "/dev/shm"];
        let names = places.iter().filter_map(|place| fs::read_dir(place).ok());
        let names = names.flat_map(|entries| entries.flatten().map(|entry| entry.path()));
        let own = |path: &PathBuf| path.to_string_lossy().contains(&std::process::id().to_string());
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        (names.filter(own).collect::<Vec<_>>(), mounts)
    };
    let before = listed();
    let sandbox = crate::sandbox(SandboxProfile::default());
    let held = postern_tests::hold(&sandbox, postern_tests::command(&["hold", "mounts"]));
    assert_eq!(listed(), before);
    assert!(held.release().ok());
}
