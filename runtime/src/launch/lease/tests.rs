//! Leases among threads of one process, and directories that somebody has planted.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// Ids that no process on any machine has.
const FIRST: u32 = 1_999_999_900;

/// A directory of this test's own, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("postern-lease-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn one_lock_has_one_holder_until_it_is_dropped() {
    let scratch = Scratch::new("lock");
    let directory = directory(&scratch.0).unwrap();
    let first = lock(directory.as_fd(), "2000000000").unwrap();
    assert!(first.is_some());
    assert!(lock(directory.as_fd(), "2000000000").unwrap().is_none());
    drop(first);
    assert!(lock(directory.as_fd(), "2000000000").unwrap().is_some());
}

#[test]
fn an_id_with_processes_is_not_free() {
    assert!(!has_no_process(geteuid().as_raw()));
    assert!(has_no_process(1_999_999_999));
    let scratch = Scratch::new("own");
    let own = geteuid().as_raw();
    assert!(matches!(take_in(&scratch.0, own, own), Err(LeaseError::Exhausted)));
    assert_eq!(fs::read_dir(scratch.0.join(IDS)).unwrap().count(), 0);
}

/// Eight at a time, over and over, of eight ids: no two ever hold one.
#[test]
fn racing_leases_never_share_an_id() {
    let scratch = Scratch::new("race");
    let held = std::sync::Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    // Whoever asks while a file is being removed may find one id fewer.
                    let Ok(lease) = take_in(&scratch.0, FIRST, FIRST + 7) else { continue };
                    assert!(held.lock().unwrap().insert(lease.id), "{} twice", lease.id);
                    std::thread::yield_now();
                    assert!(held.lock().unwrap().remove(&lease.id));
                }
            });
        }
    });
    let left = fs::read_dir(scratch.0.join(IDS)).unwrap().count();
    assert_eq!(left, 0, "files of leases that are over");
}

#[test]
fn a_range_ends() {
    let scratch = Scratch::new("end");
    let leases: Vec<_> = (0..3).map(|_| take_in(&scratch.0, FIRST, FIRST + 2).unwrap()).collect();
    let ids: BTreeSet<_> = leases.iter().map(|lease| lease.id).collect();
    assert_eq!(ids, BTreeSet::from([FIRST, FIRST + 1, FIRST + 2]));
    assert!(matches!(take_in(&scratch.0, FIRST, FIRST + 2), Err(LeaseError::Exhausted)));
}

/// What stands in the place of the directory or of a lock.
#[test]
fn what_is_planted_is_refused_or_harmless() {
    type Plant = fn(&Path);
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let rows: [(&str, Plant, Option<&str>); 8] = [
        ("nothing", |_| {}, None),
        (
            "a stale lock",
            |root| {
                fs::create_dir(root.join(IDS)).unwrap();
                fs::write(root.join(IDS).join(FIRST.to_string()), "").unwrap();
            },
            None,
        ),
        (
            "a link for the directory",
            |root| {
                fs::create_dir(root.join("elsewhere")).unwrap();
                symlink("elsewhere", root.join(IDS)).unwrap();
            },
            Some("ids"),
        ),
        ("a file for the directory", |root| fs::write(root.join(IDS), "").unwrap(), Some("ids")),
        (
            "a directory that others write",
            |root| {
                fs::create_dir(root.join(IDS)).unwrap();
                fs::set_permissions(root.join(IDS), fs::Permissions::from_mode(0o777)).unwrap();
            },
            Some("ids"),
        ),
        (
            "a link for the lock",
            |root| {
                fs::create_dir(root.join(IDS)).unwrap();
                symlink("/nonexistent", root.join(IDS).join(FIRST.to_string())).unwrap();
            },
            Some("ids/1999999900"),
        ),
        (
            "a directory for the lock",
            |root| {
                fs::create_dir_all(root.join(IDS).join(FIRST.to_string())).unwrap();
            },
            Some("ids/1999999900"),
        ),
        (
            "a pipe for the lock",
            |root| {
                fs::create_dir(root.join(IDS)).unwrap();
                let pipe = root.join(IDS).join(FIRST.to_string());
                rustix::fs::mknodat(CWD, pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
            },
            Some("ids/1999999900"),
        ),
    ];
    for (name, plant, refused) in rows {
        let scratch = Scratch::new("planted");
        plant(&scratch.0);
        let place = match take_in(&scratch.0, FIRST, FIRST) {
            Ok(_) => None,
            Err(LeaseError::Directory(path, _)) => Some(path),
            Err(LeaseError::Exhausted) => panic!("{name}: exhausted"),
        };
        let wanted = refused.map(|place| scratch.0.join(place));
        assert_eq!(place, wanted, "{name}");
    }
    let scratch = Scratch::new("root");
    mode(&scratch.0, 0o777);
    assert!(matches!(take_in(&scratch.0, FIRST, FIRST), Err(LeaseError::Directory(..))));
}

/// Names the directory for a process that leases an id in it and waits to be killed.
const HOLDER: &str = "POSTERN_TESTS_LEASE_DIRECTORY";

/// Another process of this program that holds a lease of these ids; it says which.
struct Holder(std::process::Child, u32);

impl Holder {
    fn start(root: &Path) -> std::process::Child {
        #[expect(clippy::disallowed_methods, reason = "a test starts itself as another service")]
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "launch::lease::tests::another_service", "--nocapture"]);
        command.env(HOLDER, root).stdout(std::process::Stdio::piped()).spawn().unwrap()
    }

    fn holding(mut child: std::process::Child) -> Holder {
        use std::io::BufRead;
        let lines = io::BufReader::new(child.stdout.take().unwrap()).lines();
        let id = lines.map(Result::unwrap).find_map(|line| line.strip_prefix("id ")?.parse().ok());
        Holder(child, id.unwrap())
    }

    /// As the kernel's out-of-memory killer ends it.
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn another_service() {
    use std::io::Write;
    let Some(root) = std::env::var_os(HOLDER) else { return };
    let lease = take_in(Path::new(&root), FIRST, FIRST + 3).unwrap();
    writeln!(io::stdout(), "\nid {}", lease.id).unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn services_that_start_at_once_have_an_id_each_and_leave_none_behind_when_they_crash() {
    let scratch = Scratch::new("services");
    let started: Vec<_> = (0..4).map(|_| Holder::start(&scratch.0)).collect();
    let holders: Vec<_> = started.into_iter().map(Holder::holding).collect();
    let ids: BTreeSet<_> = holders.iter().map(|holder| holder.1).collect();
    assert_eq!(ids, (FIRST..FIRST + 4).collect());
    assert!(matches!(take_in(&scratch.0, FIRST, FIRST + 3), Err(LeaseError::Exhausted)));
    for holder in holders {
        let id = holder.1;
        holder.kill();
        assert!(scratch.0.join(IDS).join(id.to_string()).exists(), "a crash removes no file");
        assert_eq!(take_in(&scratch.0, id, id).unwrap().id, id);
    }
}

#[test]
fn what_crashed_services_leave_is_removed_and_a_live_ones_lease_is_not() {
    let scratch = Scratch::new("swept");
    let started: Vec<_> = (0..3).map(|_| Holder::start(&scratch.0)).collect();
    let mut holders: Vec<_> = started.into_iter().map(Holder::holding).collect();
    let alive = holders.pop().unwrap();
    fs::write(scratch.0.join(IDS).join("notes"), "").unwrap();
    let names = || {
        let entries = fs::read_dir(scratch.0.join(IDS)).unwrap().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect::<BTreeSet<_>>()
    };
    holders.into_iter().for_each(Holder::kill);
    assert_eq!(names().len(), 4);
    sweep_in(&scratch.0);
    assert_eq!(names(), BTreeSet::from([alive.1.to_string(), "notes".to_owned()]));
    assert!(matches!(take_in(&scratch.0, alive.1, alive.1), Err(LeaseError::Exhausted)));
    alive.kill();
}
