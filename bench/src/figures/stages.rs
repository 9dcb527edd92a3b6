//! Where one run's time goes, from the kernel's own trace; the trace's own cost is in the figures.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::time::Duration;

use postern_seccomp::Arch;

use super::Setting;
use crate::measure::{Outcome, Spread};
use crate::report::Table;
use crate::world::run_ours;

const TRACE: &str = "/sys/kernel/tracing";
const EVENTS: [&str; 5] = [
    "raw_syscalls/sys_enter",
    "raw_syscalls/sys_exit",
    "sched/sched_process_fork",
    "sched/sched_process_exec",
    "sched/sched_process_exit",
];
const RUNS: u32 = 40;
/// Rows of the table of system calls.
const CALLS: usize = 25;

/// Milestones of a run and the calls between them.
pub(crate) fn stages(setting: &Setting) -> Outcome<Vec<Table>> {
    let trace = Path::new(TRACE);
    if !rustix::process::geteuid().is_root() || !trace.join("trace").exists() {
        let mut table = Table::new("stages of a run", "us");
        table.note("SKIPPED: needs root and tracefs at /sys/kernel/tracing");
        return Ok(vec![table]);
    }
    let recorded = record(setting, trace);
    let stopped = switch(trace, "0").and_then(|()| set(trace, "set_event_pid", ""));
    recorded?;
    stopped?;
    let text = fs::read_to_string(trace.join("trace"))?;
    let mut runs = Runs::default();
    text.lines().filter_map(Event::read).for_each(|event| runs.learn(&event));
    Ok(vec![runs.milestones(), runs.calls()?])
}

fn set(trace: &Path, file: &str, value: &str) -> Outcome<()> {
    fs::write(trace.join(file), value).map_err(|error| format!("{file}: {error}").into())
}

fn switch(trace: &Path, value: &str) -> Outcome<()> {
    set(trace, "tracing_on", value)?;
    EVENTS.iter().try_for_each(|event| set(trace, &format!("events/{event}/enable"), value))
}

fn record(setting: &Setting, trace: &Path) -> Outcome<()> {
    set(trace, "tracing_on", "0")?;
    set(trace, "trace", "")?;
    set(trace, "trace_clock", "mono")?;
    set(trace, "buffer_size_kb", "8192")?;
    set(trace, "options/event-fork", "1")?;
    set(trace, "set_event_pid", &std::process::id().to_string())?;
    switch(trace, "1")?;
    let sandbox = setting.world.sandbox()?;
    let marker = fs::File::options().write(true).open(trace.join("trace_marker"))?;
    let mark = |word: &str| std::io::Write::write_all(&mut &marker, word.as_bytes());
    for _ in 0..RUNS {
        std::thread::sleep(Duration::from_millis(5));
        mark("run-starts")?;
        run_ours(&sandbox)?;
        mark("run-is-over")?;
    }
    Ok(())
}

/// One line of the trace: `COMM-PID [CPU] FLAGS SECONDS: NAME: DETAIL`.
struct Event<'a> {
    pid: u32,
    at_us: f64,
    name: &'a str,
    detail: &'a str,
}

impl<'a> Event<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (task, rest) = line.split_once(" [")?;
        let pid = task.trim().rsplit('-').next()?.parse().ok()?;
        let (place, rest) = rest.split_once(": ")?;
        let at_us = place.split_whitespace().next_back()?.parse::<f64>().ok()? * 1e6;
        let (name, detail) = rest.split_once(": ")?;
        Some(Self { pid, at_us, name, detail })
    }

    /// The number after `key` in the detail.
    fn number(&self, key: &str) -> Option<u32> {
        let (_, rest) = self.detail.split_once(key)?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Host,
    Launcher,
    Init,
    Guest,
}

/// What the trace says so far.
#[derive(Default)]
struct Runs {
    start_us: Option<f64>,
    roles: HashMap<u32, Role>,
    entered: HashMap<u32, (u32, f64)>,
    milestones: BTreeMap<&'static str, Vec<f64>>,
    calls: BTreeMap<(Role, u32), (u32, f64)>,
}

impl Runs {
    fn learn(&mut self, event: &Event<'_>) {
        match event.name {
            "tracing_mark_write" if event.detail.contains("run-starts") => {
                self.roles.insert(event.pid, Role::Host);
                self.start_us = Some(event.at_us);
            }
            "tracing_mark_write" => {
                self.reach("9 the result is in the host", event);
                self.start_us = None;
            }
            "sched_process_fork" => {
                let role = match (self.roles.get(&event.pid), self.start_us) {
                    (Some(Role::Init), _) => Role::Guest,
                    (Some(Role::Launcher), _) => Role::Init,
                    // The first to fork in a run is the launcher, which was there before it.
                    (_, Some(_)) => {
                        self.roles.insert(event.pid, Role::Launcher);
                        Role::Init
                    }
                    (_, None) => return,
                };
                self.roles.extend(event.number("child_pid=").map(|child| (child, role)));
                let stage =
                    if role == Role::Init { "1 PID 1 is made" } else { "4 guest is forked" };
                self.reach(stage, event);
            }
            "sched_process_exec" => self.reach("5 guest is exec'ed", event),
            "sched_process_exit" => match self.roles.get(&event.pid) {
                Some(Role::Guest) => self.reach("6 guest exits", event),
                Some(Role::Init) => self.reach("7 PID 1 exits", event),
                Some(Role::Host | Role::Launcher) | None => {}
            },
            "sys_enter" => {
                let entered = event.number("NR ").map(|number| (event.pid, (number, event.at_us)));
                self.entered.extend(entered);
            }
            "sys_exit" => self.leave(event),
            _ => {}
        }
    }

    fn reach(&mut self, milestone: &'static str, event: &Event<'_>) {
        if let Some(start) = self.start_us {
            self.milestones.entry(milestone).or_default().push(event.at_us - start);
        }
    }

    fn leave(&mut self, event: &Event<'_>) {
        const SETSID: u32 = 112;
        const SECCOMP: u32 = 317;
        let Some((number, since)) = self.entered.remove(&event.pid) else { return };
        let Some(role) = self.roles.get(&event.pid).copied() else { return };
        if self.start_us.is_none() {
            return;
        }
        match (role, number) {
            (Role::Init, SETSID) => self.reach("2 PID 1 has its mounts", event),
            (Role::Init, SECCOMP) => self.reach("3 PID 1 is confined", event),
            _ => {}
        }
        let (count, sum_us) = self.calls.entry((role, number)).or_default();
        *count += 1;
        *sum_us += event.at_us - since;
    }

    fn milestones(&self) -> Table {
        let mut table = Table::new("stages of a run, since its request", "us");
        for (name, times) in &self.milestones {
            table.row(*name, times.len(), Spread::of(times.iter().copied()));
        }
        table
    }

    fn calls(&self) -> Outcome<Table> {
        let arch = Arch::native()?;
        let mut table =
            Table::new("system calls of a run, waiting included", "us in one run; n in one run");
        let mut calls: Vec<_> = self.calls.iter().collect();
        calls.sort_by(|(_, (_, one)), (_, (_, other))| other.total_cmp(one));
        for ((role, number), (count, sum_us)) in calls.into_iter().take(CALLS) {
            let name = arch.call_name(*number).unwrap_or("?");
            let mean = sum_us / f64::from(RUNS);
            let count = usize::try_from(count.div_ceil(RUNS))?;
            let value = Spread { p10: mean, p50: mean, p90: mean };
            table.row(format!("{role:?} {name}"), count, value);
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_trace_are_read() {
        let line = "  memfd:postern-l-2658  [000] d..2.  31.446469: sched_process_fork: \
                    comm=a pid=2658 child_comm=b child_pid=77";
        let event = Event::read(line).unwrap();
        assert_eq!((event.pid, event.name), (2658, "sched_process_fork"));
        assert!((event.at_us - 31_446_469.0).abs() < 0.5);
        assert_eq!(event.number("child_pid="), Some(77));
        assert!(Event::read("# tracer: nop").is_none());
    }
}
