//! What a sandbox weighs: its image, and the memory of its processes while a guest sleeps.

use std::fs;
use std::os::fd::AsRawFd;
use std::process::Stdio;
use std::time::Duration;

use super::Setting;
use crate::measure::Outcome;
use crate::report::Table;

/// Longer than a launch takes.
const LAUNCHED: Duration = Duration::from_millis(200);
const SLEEP: [&str; 2] = ["/bin/sleep", "30"];

pub(crate) fn weight(setting: &Setting) -> Outcome<Vec<Table>> {
    let sandbox = setting.world.sandbox()?;
    let run = sandbox.start(SLEEP)?;
    // Lives until bubblewrap has read the filter.
    let mut peer = setting.world.peer()?;
    let mut bwrap = peer.command(SLEEP)?.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    std::thread::sleep(LAUNCHED);

    let mut table = Table::new("weight while one guest sleeps", "KiB");
    let image = postern_launcher::IMAGE.len();
    let image = f64::from(u32::try_from(image)?) / 1024.0;
    table.single("postern, static image", image);
    table.promise("KiB of image", image, 32.0, 16.0);
    let pidfd = run.pidfd().ok_or("the run has no pidfd")?;
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))?;
    let init = field(&info, "Pid:").ok_or("fdinfo names no pid")?;
    let launcher = status(init, "PPid:")?;
    if let Some(private) = weigh(&mut table, "postern, PID 1", init) {
        table.promise("KiB of private memory of PID 1", private, 48.0, 24.0);
    }
    weigh(&mut table, "postern, launcher", launcher);
    weigh(&mut table, "bwrap, monitor", bwrap.id().into());
    for pid in children_of(bwrap.id().into()) {
        weigh(&mut table, "bwrap, C init as PID 1", pid);
    }
    run.kill();
    bwrap.kill()?;
    bwrap.wait()?;
    Ok(vec![table])
}

/// Adds what `smaps_rollup` says; the private memory, where the kernel lets us read it.
fn weigh(table: &mut Table, name: &str, pid: u64) -> Option<f64> {
    match status(pid, "VmRSS:") {
        Ok(kib) => table.single(format!("{name}, resident, shared pages too"), number(kib)),
        Err(failure) => table.note(format!("{name}: not read: {failure}")),
    }
    match fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) {
        Ok(text) => {
            let private = number(field(&text, "Private_Dirty:")?);
            table.single(format!("{name}, private and dirty"), private);
            Some(private)
        }
        Err(error) => {
            table.note(format!("NOT READ: {name}, private and dirty: {error}"));
            None
        }
    }
}

fn number(kib: u64) -> f64 {
    f64::from(u32::try_from(kib).unwrap_or(u32::MAX))
}

fn status(pid: u64, name: &str) -> Outcome<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    field(&text, name).ok_or_else(|| format!("no {name} in the status of {pid}").into())
}

/// The first number of the line that starts with `name`.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn children_of(parent: u64) -> Vec<u64> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| status(*pid, "PPid:").is_ok_and(|found| found == parent)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_the_first_number_of_its_line() {
        let text = "Rss:  12 kB\nPrivate_Dirty:      40 kB\nPid:\t-1\n";
        let rows = [("Private_Dirty:", Some(40)), ("Rss:", Some(12)), ("Pid:", None), ("x", None)];
        for (name, expected) in rows {
            assert_eq!(field(text, name), expected, "{name}");
        }
    }
}
