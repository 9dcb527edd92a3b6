//! What a host program can see of itself and of the machine, to compare before and after.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use postern::{Command, Sandbox, SandboxProfile};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A line of figures, or what is wrong.
pub(crate) type Outcome = Result<String, String>;

/// Turns a failed expectation into words.
pub(crate) fn ensure(holds: bool, wrong: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(wrong()) }
}

/// Any error as words.
pub(crate) fn text(error: impl ToString) -> String {
    error.to_string()
}

/// A process, as its `stat` file has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Task {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) state: char,
    pub(crate) name: String,
}

/// One process; `None` when it is gone.
pub(crate) fn task(pid: i32) -> Option<Task> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, tail) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut words = tail.split_ascii_whitespace();
    let state = words.next()?.chars().next()?;
    let parent = words.next()?.parse().ok()?;
    Some(Task { pid, parent, state, name: name.to_owned() })
}

fn pids() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Processes whose parent is `pid`, zombies included.
pub(crate) fn children_of(pid: i32) -> Vec<Task> {
    pids().into_iter().filter_map(task).filter(|task| task.parent == pid).collect()
}

/// This process's children.
pub(crate) fn children() -> Vec<Task> {
    children_of(own_pid())
}

/// This process.
pub(crate) fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Processes with `marker` in their command line.
pub(crate) fn marked(marker: &str) -> Vec<i32> {
    let own = own_pid();
    let holds = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        *pid != own && String::from_utf8_lossy(&line).contains(marker)
    };
    pids().into_iter().filter(holds).collect()
}

/// The only child of this process that is alive: the launcher of its only sandbox.
pub(crate) fn launcher() -> Result<i32, String> {
    let alive: Vec<_> = children().into_iter().filter(|task| task.state != 'Z').collect();
    match alive.as_slice() {
        [one] => Ok(one.pid),
        others => Err(format!("{} children where one launcher was expected", others.len())),
    }
}

/// Everything of the machine that a launch may touch and must leave as it was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    descriptors: Vec<String>,
    /// Name and pid, and whether nobody has waited for it.
    children: Vec<(String, i32, bool)>,
    mounts: usize,
    files: BTreeSet<PathBuf>,
}

/// The directories that only this host program uses.
fn own_directories() -> [Option<PathBuf>; 2] {
    let runtime = std::env::var_os("POSTERN_RUNTIME_DIR").map(PathBuf::from);
    [runtime, Some(std::env::temp_dir())]
}

fn files_beneath(directory: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            files_beneath(&path, found);
        }
        // The directory of leases is made once and stays.
        if !path.ends_with("ids") {
            found.insert(path);
        }
    }
}

/// Open descriptors, each as what it leads to; numbers may differ, things may not.
fn descriptors() -> Vec<String> {
    let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let links = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    // The directory that is being read is open meanwhile.
    let kept = links.map(|link| link.to_string_lossy().into_owned());
    let mut all: Vec<_> = kept.filter(|link| !link.ends_with("/fd")).collect();
    all.sort();
    all
}

impl Snapshot {
    /// Everything as it is now.
    pub(crate) fn take() -> Snapshot {
        let mut files = BTreeSet::new();
        for directory in own_directories().into_iter().flatten() {
            files_beneath(&directory, &mut files);
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let child = |task: Task| (task.name, task.pid, task.state == 'Z');
        Snapshot {
            descriptors: descriptors(),
            children: children().into_iter().map(child).collect(),
            mounts: mounts.lines().count(),
            files,
        }
    }

    /// Fails when anything is otherwise than it was.
    pub(crate) fn compare(&self) -> Result<(), String> {
        self.compare_but("")
    }

    /// As [`Snapshot::compare`], but one descriptor of that name may be new.
    pub(crate) fn compare_but(&self, name: &str) -> Result<(), String> {
        let mut now = Snapshot::take();
        let new = now.descriptors.iter().position(|descriptor| descriptor == name);
        if let Some(new) = new.filter(|_| now.descriptors.len() > self.descriptors.len()) {
            now.descriptors.remove(new);
        }
        // A lock file that a killed host has left is anybody's to take over and remove.
        if now.files.is_subset(&self.files) {
            now.files.clone_from(&self.files);
        }
        ensure(*self == now, || format!("left behind: {self:?} before, {now:?} after"))
    }
}

/// How much of a process is in memory.
pub(crate) fn resident_kib(pid: u32) -> Result<u64, String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(text)?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let word = line.and_then(|line| line.split_ascii_whitespace().next());
    word.and_then(|word| word.parse().ok()).ok_or_else(|| "no VmRSS".to_owned())
}

/// The process that a pidfd is of.
pub(crate) fn pid_of(pidfd: BorrowedFd<'_>) -> Option<i32> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    info.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()
}

/// The limit of descriptor numbers that leaves so many to be opened.
pub(crate) fn limit_leaving(spare: usize) -> u64 {
    let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
    let open: BTreeSet<u64> = numbers.collect();
    let free = (0..).filter(|number| !open.contains(number));
    // That of the listing is free by now.
    free.take(spare.saturating_sub(1)).last().map_or(0, |last| last + 1)
}

/// A sandbox with the default profile, and what is open once one has been built before: the image
/// in its memfd and the directory of leases stay for the next.
pub(crate) fn warm() -> Result<Snapshot, String> {
    let sandbox = Sandbox::builder(SandboxProfile::default()).build().map_err(text)?;
    let result = sandbox.run(["/bin/true"]).map_err(text)?;
    ensure(result.ok(), || format!("/bin/true: {:?}", result.ending))?;
    drop(sandbox);
    Ok(Snapshot::take())
}

/// The default sandbox, not yet built.
pub(crate) fn default_builder() -> postern::SandboxBuilder {
    Sandbox::builder(SandboxProfile::default())
}

/// The default sandbox.
pub(crate) fn sandbox() -> Result<Sandbox, String> {
    Sandbox::builder(SandboxProfile::default()).build().map_err(text)
}

/// A directory of the caller's that any guest can write to.
pub(crate) fn open_directory(name: &str) -> Result<PathBuf, String> {
    let path = std::env::temp_dir().join(name);
    fs::create_dir_all(&path).map_err(text)?;
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(&path, open).map_err(text)?;
    Ok(path)
}

/// A guest that sleeps for an hour and bears a mark.
pub(crate) fn sleeper(marker: &str) -> Command {
    // Two commands, so that the shell stays and keeps its arguments.
    Command::new("/bin/sh").args(["-c", "sleep 3600; exit 3", marker])
}

/// A mark that no other process on this machine has.
pub(crate) fn marker(name: &str) -> String {
    format!("postern-{name}-{}", own_pid())
}

/// Waits until `holds`, `limit` at the most; how long it took.
pub(crate) fn until(
    limit: Duration,
    what: &str,
    mut holds: impl FnMut() -> bool,
) -> Result<Duration, String> {
    let start = Instant::now();
    while !holds() {
        ensure(start.elapsed() < limit, || format!("not within {limit:?}: {what}"))?;
        std::thread::sleep(Duration::from_micros(200));
    }
    Ok(start.elapsed())
}

/// The largest, the median and the 99th percentile of some durations, as text.
pub(crate) fn spread(durations: &mut [Duration]) -> String {
    durations.sort();
    let at = |percent: usize| {
        let index = durations.len().saturating_sub(1) * percent / 100;
        durations.get(index).copied().unwrap_or_default()
    };
    format!("p50 {:?} p90 {:?} p99 {:?} max {:?}", at(50), at(90), at(99), at(100))
}

/// Acts while this process may have descriptors with numbers below `limit` alone.
pub(crate) fn with_descriptors<T>(limit: u64, act: impl FnOnce() -> T) -> Result<T, String> {
    with_limit(Resource::Nofile, limit, act)
}

/// Acts under a lower soft limit.
pub(crate) fn with_limit<T>(
    resource: Resource,
    limit: u64,
    act: impl FnOnce() -> T,
) -> Result<T, String> {
    let usual = getrlimit(resource);
    let lowered = Rlimit { current: Some(limit), ..usual };
    setrlimit(resource, lowered).map_err(text)?;
    let outcome = act();
    setrlimit(resource, usual).map_err(text)?;
    Ok(outcome)
}
