//! What a process holds and has used, read from procfs.

use std::fs;
use std::path::PathBuf;
use std::process;

use rustix::process::Pid;

fn directory(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

/// Open descriptors of this process.
pub(crate) fn descriptors() -> usize {
    descriptors_of(process::id())
}

/// Open descriptors of a process; of this one, without the one that looks.
pub(crate) fn descriptors_of(pid: u32) -> usize {
    let count = fs::read_dir(directory(pid).join("fd")).unwrap().count();
    count - usize::from(pid == process::id())
}

/// Whether a thread of this process has a name.
pub(crate) fn has_thread(name: &str) -> bool {
    let threads = fs::read_dir(directory(process::id()).join("task")).unwrap();
    let names =
        threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.into_iter().any(|own| own.trim_end() == name)
}

/// The thread of a process that has a name.
pub(crate) fn thread_of(pid: u32, name: &str) -> Pid {
    let threads = fs::read_dir(directory(pid).join("task")).unwrap();
    let named = threads.map(|thread| thread.unwrap()).find(|thread| {
        fs::read_to_string(thread.path().join("comm")).is_ok_and(|own| own.trim_end() == name)
    });
    let number = named.unwrap().file_name().into_string().unwrap().parse().unwrap();
    Pid::from_raw(number).unwrap()
}

/// Resident memory of a process, in KiB.
pub(crate) fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(directory(pid).join("status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Processor time that a process has used, in ticks of 10 ms.
pub(crate) fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(directory(pid).join("stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum()
}
