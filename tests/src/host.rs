//! A run as the host's kernel sees it, through `/proc` and never through the library's own reports.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

use postern::Process;

use crate::scratch::Scratch;

/// How long a thing that happens soon may take on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// Tries until there is an answer.
pub(crate) fn soon<T>(mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + SOON;
    loop {
        match attempt() {
            None if Instant::now() < end => sleep(Duration::from_millis(2)),
            outcome => return outcome,
        }
    }
}

/// The host's number of a run's PID 1, which its pidfd tells.
pub fn init_of(process: &Process) -> i32 {
    pid_of(process.pidfd().expect("a started run"))
}

/// The process that a pidfd is of.
pub fn pid_of(pidfd: BorrowedFd<'_>) -> i32 {
    let pidfd = pidfd.as_raw_fd();
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{pidfd}")).unwrap();
    let pid = text.lines().find_map(|line| line.strip_prefix("Pid:")).expect("a pidfd");
    pid.trim().parse().unwrap()
}

/// The host's number of the guest that PID 1 has started.
pub fn guest_of(init: i32) -> i32 {
    let child = || children(init).into_iter().next();
    soon(child).unwrap_or_else(|| panic!("{init} has no child"))
}

/// The children of a process, zombies included.
pub fn children(parent: i32) -> Vec<i32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

/// The processes with a text in their command line, but for this one.
pub fn processes_with(text: &str) -> Vec<i32> {
    let own = i32::try_from(std::process::id()).unwrap();
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let holds = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        *pid != own && line.windows(text.len()).any(|part| part == text.as_bytes())
    };
    pids.filter(holds).collect()
}

/// Field 4 of `stat`; the name before it is in brackets and may hold anything.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The lines of `/proc/PID/status`.
pub fn status(pid: i32) -> BTreeMap<String, String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs
        .map(|(name, value)| {
            (name.to_owned(), value.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
        })
        .collect()
}

/// The namespaces of a process, by name: what its links say.
pub fn namespaces(pid: i32) -> BTreeMap<String, String> {
    let names = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"];
    let link = |name| fs::read_link(format!("/proc/{pid}/ns/{name}")).unwrap();
    names.map(|name| (name.to_owned(), link(name).to_string_lossy().into_owned())).into()
}

/// The open descriptors of a process: number and target.
pub fn descriptors(pid: i32) -> Vec<(String, String)> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let mut found: Vec<_> = entries
        .map(|entry| {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            (entry.file_name().to_string_lossy().into_owned(), target.display().to_string())
        })
        .collect();
    found.sort();
    found
}

/// Whether a process's readable memory holds the text.
///
/// # Errors
/// That of the open, or that nothing could be read: an answer of "no" means that memory was seen.
pub fn memory_holds(pid: i32, text: &[u8]) -> io::Result<bool> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let mut memory = File::open(format!("/proc/{pid}/mem"))?;
    let mut seen = 0;
    for line in maps.lines().filter(|line| !line.ends_with("[vvar]")) {
        let range =
            line.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
        let number = |digits| u64::from_str_radix(digits, 16).unwrap();
        let (from, to) = (number(range.0), number(range.1));
        let mut bytes = Vec::new();
        let read = memory
            .seek(SeekFrom::Start(from))
            .and_then(|_| Read::by_ref(&mut memory).take(to - from).read_to_end(&mut bytes));
        seen += read.unwrap_or(0);
        if bytes.windows(text.len()).any(|part| part == text) {
            return Ok(true);
        }
    }
    match seen {
        0 => Err(io::ErrorKind::PermissionDenied.into()),
        _ => Ok(false),
    }
}

/// Runs this test program once more as a container's root: uid 0 with what a container engine
/// leaves it, which is enough to write id maps and no more; with a runtime directory of its own.
///
/// # Panics
/// When a test fails there; its output is in the message.
pub fn as_container_root(arguments: &[&str]) {
    const BOUNDING: &str = "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,\
        +setpcap,+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap";
    let mut setpriv = program("setpriv");
    setpriv.arg(format!("--bounding-set={BOUNDING}")).arg("--groups=5001,5002").arg("--");
    again("a container's root", setpriv, &Scratch::new(), arguments);
}

/// A user of [`as_user_with_subordinates`]: its uid and gid.
pub const SUBORDINATE_USER: u32 = 51_235;

/// Where that user's subordinate ids begin, and how many there are.
pub const SUBORDINATE_IDS: (u32, u32) = (700_000, 4096);

/// Runs this test program once more as an ordinary user who has subordinate ids, in two groups:
/// root hides the machine's own files about users from it, and changes none.
///
/// # Panics
/// When a test fails there; its output is in the message.
pub fn as_user_with_subordinates(arguments: &[&str]) {
    let (uid, (first, count)) = (SUBORDINATE_USER, SUBORDINATE_IDS);
    let scratch = Scratch::new();
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let users = format!("{users}postern-test:x:{uid}:{uid}::/var/tmp:/bin/sh\n");
    let ids = format!("postern-test:{first}:{count}\n");
    let files = [("passwd", &users), ("subuid", &ids), ("subgid", &ids)];
    let mut script = String::from("set -e\n");
    for (name, text) in files {
        let file = scratch.file(name, text.as_bytes(), 0o644);
        let place = format!("/etc/{name}");
        if !std::path::Path::new(&place).exists() {
            fs::write(&place, "").unwrap();
        }
        script += &format!("mount --bind {} {place}\n", file.display());
    }
    script += &format!(
        "exec setpriv --reuid={uid} --regid={uid} --groups=5001,5002 --inh-caps=-all -- \"$@\"\n"
    );
    let runtime = Scratch::new();
    std::os::unix::fs::chown(runtime.path(), Some(uid), Some(uid)).unwrap();
    let mut unshare = program("unshare");
    unshare.args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"]);
    again("a user with subordinate ids", unshare, &runtime, arguments);
}

fn program(name: &str) -> std::process::Command {
    #[expect(clippy::disallowed_methods, reason = "a test starts itself as somebody else")]
    std::process::Command::new(name)
}

fn again(who: &str, mut becoming: std::process::Command, runtime: &Scratch, arguments: &[&str]) {
    becoming.env(postern::RUNTIME_DIRECTORY_VARIABLE, runtime.path());
    becoming.arg(std::env::current_exe().unwrap()).args(arguments);
    let output = becoming.output().expect("a program of package util-linux");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "as {who}:\n{stdout}\n{stderr}");
}
