//! Whose a guest's files are, in an owned workspace and in a caller's, and whose ids guests have.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use postern::host::Host;
use postern::plan::{Tier, WhyShared};
use postern::profile::{SharedUid, Workspace, WorkspaceAccess};
use postern::{Command, Sandbox, SandboxProfile};
use postern_seccomp::Level;
use postern_tests::{SUBORDINATE_IDS, Scratch, Watch, run};
use rustix::fs::{AtFlags, Mode, OFlags, openat, statat};

use crate::fixture::tier;
use crate::{default_sandbox, sandbox};

fn shell(script: &str) -> Command {
    Command::new("sh").args(["-c", script])
}

/// Files of any mode, and what is in directories of any mode: the host's way in is no other
/// program's, whatever the guest's kernel uid.
#[test]
fn the_host_reaches_everything_in_an_owned_workspace() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let script = "umask 077; mkdir -m 700 d; echo closed > d/f; echo none > n; chmod 000 n";
    run(&sandbox, shell(script));
    let workspace = sandbox.workspace().unwrap();
    assert_eq!(workspace.read("d/f", 64).unwrap(), b"closed\n");
    workspace.write("d/f", "the host's").unwrap();
    workspace.write("d/g", "new").unwrap();
    let answer = run(&sandbox, shell("cat d/f d/g; echo mine >> d/g; rm d/f; stat -c %u d/g"));
    assert_eq!(answer.stdout_text(), "the host'snew65534\n");
    // The host may also do what the guest's own mode forbids to the guest's id, by changing it.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW;
    rustix::fs::chmodat(workspace, "n", Mode::RUSR, AtFlags::empty()).unwrap();
    openat(workspace, "n", flags, Mode::empty()).unwrap();
    let own = statat(workspace, "n", AtFlags::SYMLINK_NOFOLLOW).unwrap();
    let uid = sandbox.enforcement().unwrap().kernel_uid;
    let service = Host::probe(&SandboxProfile::default()).unwrap().uid;
    match tier() {
        Tier::Subordinate | Tier::Unprivileged => assert_eq!(own.st_uid, service),
        Tier::Privileged | Tier::MapWriter => assert_eq!(own.st_uid, uid),
    }
}

/// An owner who is neither root nor the service, where the service may change owners at all.
const OWNER: (u32, u32) = (4321, 4322);

/// A directory of somebody's, and the profile whose guest stands for its owner.
fn mapped(scratch: &Scratch) -> SandboxProfile {
    let path = scratch.directory("job", 0o755);
    if tier() == Tier::Privileged {
        chown(&path, Some(OWNER.0), Some(OWNER.1)).unwrap();
    }
    let workspace = Workspace::Directory { path, access: WorkspaceAccess::Mapped };
    SandboxProfile::builder().workspace(workspace).build().unwrap()
}

#[test]
fn what_a_guest_makes_in_a_mapped_workspace_is_its_owners() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let profile = mapped(&scratch);
    let built = Sandbox::builder(profile).build();
    if tier() == Tier::MapWriter {
        let owner = fs::metadata(scratch.path().join("job")).unwrap().uid();
        let words = built.unwrap_err().to_string();
        assert!(words.contains(&format!("or uid {owner} itself")), "{words}");
        return;
    }
    let sandbox = built.unwrap();
    let before = scratch.file("job/old", b"the owner's", 0o600);
    if tier() == Tier::Privileged {
        chown(&before, Some(OWNER.0), Some(OWNER.1)).unwrap();
        // Nobody whom the map names: to the guest it belongs to the overflow id, and is closed.
        scratch.file("job/roots", b"root's", 0o600);
    }
    let script = "cat old; echo more >> old; echo new > f; mkdir d; ln -s f l; mkfifo p; ln f h; \
                  cat roots 2>/dev/null || echo closed; touch roots 2>/dev/null || echo closed; \
                  stat -c %u:%g . old f";
    let answer = run(&sandbox, shell(script));
    let closed = if tier() == Tier::Privileged { "closed\nclosed\n" } else { "closed\n" };
    let expected = format!("the owner's{closed}65534:65534\n65534:65534\n65534:65534\n");
    assert_eq!(answer.stdout_text(), expected);
    let (uid, gid) = match tier() {
        Tier::Privileged => OWNER,
        Tier::MapWriter | Tier::Subordinate | Tier::Unprivileged => {
            let own = fs::metadata(scratch.path()).unwrap();
            (own.uid(), own.gid())
        }
    };
    for name in ["old", "f", "d", "l", "p", "h"] {
        let found = fs::symlink_metadata(scratch.path().join("job").join(name)).unwrap();
        assert_eq!((found.uid(), found.gid()), (uid, gid), "{name}");
    }
    let shares = sandbox.enforcement().unwrap().shared_uid;
    assert_eq!(shares, tier() != Tier::Privileged, "only its owner's own id can do without a map");
}

/// A guest that stood for root could leave a set-uid program of root's on the host.
#[test]
fn a_mapped_workspace_is_never_roots() {
    let _watch = Watch::begin();
    if tier() != Tier::Privileged {
        return;
    }
    let scratch = Scratch::new();
    for (uid, gid) in [(0, 0), (0, OWNER.1), (OWNER.0, 0)] {
        let path = scratch.directory("job", 0o755);
        chown(&path, Some(uid), Some(gid)).unwrap();
        let workspace = Workspace::Directory { path, access: WorkspaceAccess::Mapped };
        // A level that lets set-id bits through; root's would be on the host.
        let profile = SandboxProfile::builder().workspace(workspace).seccomp(Level::Compat);
        let profile = profile.build().unwrap();
        let refused = Sandbox::builder(profile).build().unwrap_err().to_string();
        assert!(refused.ends_with("[workspace-of-root]"), "{uid}:{gid}: {refused}");
    }
}

#[test]
fn subordinate_ids_are_the_users_own_and_said_to_be() {
    let _watch = Watch::begin();
    if tier() != Tier::Subordinate {
        return;
    }
    let profile = SandboxProfile::builder().shared_uid(SharedUid::Refuse).build().unwrap();
    let sandbox = sandbox(profile);
    let held = sandbox.verify().unwrap();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    // Where this program was started by itself, and not by a user who has other ids.
    if mounts.lines().any(|line| line.split(' ').nth(4) == Some("/etc/subuid")) {
        let (first, count) = SUBORDINATE_IDS;
        assert!((first..first + count).contains(&held.kernel_uid), "{held:?}");
        assert!((first..first + count).contains(&held.kernel_gid), "{held:?}");
    }
    assert!(!held.shared_uid && held.shared_groups.is_empty() && held.warnings.is_empty());
}

/// A directory that the service alone may write to makes the guest the service, and it says why.
#[test]
fn a_uid_that_must_be_shared_is_reported_or_refused() {
    let _watch = Watch::begin();
    if tier() != Tier::Subordinate {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.directory("own", 0o755);
    let profile = || SandboxProfile::builder().rw_binds([(&path, "/srv/own")]);
    let sandbox = Sandbox::builder(profile().build().unwrap()).build().unwrap();
    let why = sandbox.plan().identity.why_shared.clone();
    assert_eq!(why, Some(WhyShared::Needs { path: path.clone() }));
    assert!(sandbox.enforcement().unwrap().shared_uid);
    run(&sandbox, shell("touch /srv/own/f"));
    let refuse = profile().shared_uid(SharedUid::Refuse).build().unwrap();
    let refused = Sandbox::builder(refuse).build().unwrap_err().to_string();
    assert!(refused.ends_with("[shared-uid]"), "{refused}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    let sandbox = Sandbox::builder(profile().build().unwrap()).build().unwrap();
    assert!(!sandbox.enforcement().unwrap().shared_uid, "others may write there now");
}
