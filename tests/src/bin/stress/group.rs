//! A control group of version 2 with a share of the machine for one run. What the share is worth is
//! the canary's to say.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Half of a processor, and less than any stressor asks for.
const BOUNDS: [(&str, &str); 3] =
    [("cpu.max", "50000 100000"), ("memory.max", "268435456"), ("pids.max", "256")];
/// What the kernel counts where a bound was felt: file, key, words.
const COUNTS: [(&str, &str, &str); 4] = [
    ("cpu.stat", "nr_throttled", "throttled"),
    ("memory.events", "max", "at memory.max"),
    ("memory.events", "oom_kill", "killed for memory"),
    ("pids.events", "max", "at pids.max"),
];
/// What killed processes take to be gone.
const SOON: Duration = Duration::from_secs(30);

/// The group, with nobody in it at first.
#[derive(Debug)]
pub(crate) struct Group(PathBuf);

impl Group {
    /// Makes it, with its bounds.
    pub(crate) fn new(parent: &Path) -> io::Result<Self> {
        let group = Self(parent.join(format!("stress-{}", std::process::id())));
        fs::create_dir(&group.0)?;
        BOUNDS.iter().try_for_each(|(file, bound)| fs::write(group.0.join(file), bound))?;
        Ok(group)
    }

    /// The file that takes whoever joins.
    pub(crate) fn members(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }

    /// Removes it once it is empty, and says how often each bound was felt.
    ///
    /// # Errors
    /// Somebody is still in it.
    pub(crate) fn close(self) -> io::Result<String> {
        let counts = COUNTS.map(|(file, key, words)| {
            let text = fs::read_to_string(self.0.join(file)).unwrap_or_default();
            format!("{words} {}", value(&text, key).unwrap_or("unknown"))
        });
        let start = Instant::now();
        loop {
            match fs::remove_dir(&self.0) {
                Ok(()) => return Ok(counts.join(", ")),
                Err(_) if start.elapsed() < SOON => std::thread::sleep(Duration::from_millis(20)),
                Err(error) => return Err(error),
            }
        }
    }
}

fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_found_by_its_whole_key() {
        let text = "low 0\nmax_usage 9\nmax 3\noom_kill 1\n";
        for (key, expected) in [("max", Some("3")), ("oom_kill", Some("1")), ("oom", None)] {
            assert_eq!(value(text, key), expected, "{key}");
        }
    }
}
