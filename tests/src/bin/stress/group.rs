//! A share of the machine for one run, by the product's own limits. What the share is worth is the
//! canary's to say.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Half of a processor, and less than any stressor asks for.
pub(crate) const BOUNDS: [&str; 8] =
    ["--cpus", "0.5", "--memory", "256M", "--pids", "256", "--set", "cgroup.need=require"];

/// How long what killed processes leave may take to be gone.
const SOON: Duration = Duration::from_secs(30);

/// The delegated group in which the product makes others.
#[derive(Debug)]
pub(crate) struct Share {
    parent: PathBuf,
}

impl Share {
    pub(crate) fn new(parent: &Path) -> Share {
        Share { parent: parent.to_owned() }
    }

    /// Waits until the product has removed what it made.
    ///
    /// # Errors
    /// A group is still there.
    pub(crate) fn close(self) -> io::Result<()> {
        let start = Instant::now();
        loop {
            let mut entries = fs::read_dir(&self.parent)?.flatten();
            let left =
                entries.find(|entry| entry.file_name().to_string_lossy().starts_with("postern."));
            match left {
                None => return Ok(()),
                Some(_) if start.elapsed() < SOON => std::thread::sleep(Duration::from_millis(20)),
                Some(left) => return Err(io::Error::other(format!("{:?} is left", left.path()))),
            }
        }
    }
}

/// How each bound was felt, as the product tells it.
pub(crate) fn felt(object: &Value) -> String {
    let used = &object["usage"]["cgroup"];
    let peak = used["peak_memory_bytes"].as_u64().map_or(0, |bytes| bytes >> 20);
    format!(
        "throttled {} periods, peak {peak} MiB, out of memory {}, at its processes {}",
        used["throttled_periods"], object["oom"], object["pids_limit"]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_felt_is_read_from_the_product() {
        let object = serde_json::json!({
            "oom": true, "pids_limit": false,
            "usage": {"cgroup": {"peak_memory_bytes": 268_435_456, "throttled_periods": 7}},
        });
        let words = "throttled 7 periods, peak 256 MiB, out of memory true, at its processes false";
        assert_eq!(felt(&object), words);
    }

    #[test]
    fn a_group_that_is_left_is_no_end() {
        let parent = std::env::temp_dir().join(format!("postern-share-{}", std::process::id()));
        fs::create_dir(&parent).unwrap();
        assert!(Share::new(&parent).close().is_ok());
        fs::remove_dir(&parent).unwrap();
        assert!(Share::new(&parent).close().is_err());
    }
}
