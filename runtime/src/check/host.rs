//! What is known of the host without launching anything: kernel, Landlock, the service's own limits.

use std::path::{Path, PathBuf};

use super::finding::{Findings, Name, Status};
use super::text::bytes;
use crate::host::{LandlockSupport, Release};

/// The first release with every mount call that a launch makes. Only to explain a failure.
pub(super) const OLDEST: Release = Release { major: 5, minor: 12 };

/// What holds whether or not anything can be launched.
pub(super) fn say(findings: &mut Findings, kernel: &str, architecture: &str) {
    let detail = format!("Linux {kernel} {architecture}");
    findings.say(Name::Kernel, Status::Unknown, detail);
    let landlock = format!("not seen: nothing was launched; {}", LandlockSupport::probe());
    findings.say(Name::Landlock, Status::Unknown, landlock);
    let group = Group::own();
    memory(findings, group.as_ref());
    cpu(findings, group.as_ref());
    pids(findings, group.as_ref());
}

fn pids(findings: &mut Findings, group: Option<&Group>) {
    let max = group.and_then(|group| group.lowest("pids.max", |text| text.trim().parse().ok()));
    limit(
        findings,
        Name::Pids,
        max.map(|max: u64| format!("{max} (pids.max)")),
        "profile: cgroup.pids; systemd: TasksMax=512; docker: --pids-limit 512",
    );
}

fn memory(findings: &mut Findings, group: Option<&Group>) {
    let max = group.and_then(|group| group.lowest("memory.max", |text| text.trim().parse().ok()));
    limit(
        findings,
        Name::Memory,
        max.map(|max: u64| format!("{} (memory.max)", bytes(max))),
        "profile: cgroup.memory_bytes; systemd: MemoryMax=2G; docker: --memory 2g; Kubernetes: resources: {limits: {memory: 2Gi}}",
    );
}

fn cpu(findings: &mut Findings, group: Option<&Group>) {
    /// Thousandths of a processor.
    fn quota(text: &str) -> Option<u64> {
        let (quota, period) = text.trim().split_once(' ')?;
        let quota: u64 = quota.parse().ok()?;
        quota.checked_mul(1000)?.checked_div(period.parse().ok()?)
    }
    let max = group.and_then(|group| group.lowest("cpu.max", quota));
    let percent = |max: u64| format!("{}.{} % of a processor (cpu.max)", max / 10, max % 10);
    limit(
        findings,
        Name::Cpu,
        max.map(percent),
        "profile: cgroup.cpu_millis; systemd: CPUQuota=200%; docker: --cpus 2; Kubernetes: resources: {limits: {cpu: \"2\"}}",
    );
}

fn limit(findings: &mut Findings, name: Name, own: Option<String>, fix: &str) {
    let not_ours = "not limited per run by the profile";
    match own {
        Some(own) => {
            let detail = format!("{not_ours}; {own} for the service and all its guests");
            findings.say(name, Status::NotUsed, detail);
        }
        None => findings.explain(
            name,
            (Status::NotUsed, not_ours.to_owned()),
            "no limit of a version 2 control group of the service's was found either",
            fix,
        ),
    }
}

/// The service's version 2 control group, as a directory and the ones above it.
struct Group {
    directories: Vec<PathBuf>,
}

impl Group {
    fn own() -> Option<Group> {
        let text = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let mount = table.lines().find_map(mount_point)?;
        Group::beneath(Path::new(mount), Path::new(path))
    }

    fn beneath(mount: &Path, path: &Path) -> Option<Group> {
        // A group outside the namespace's root is shown with `..` and cannot be reached.
        let is_plain = path.components().all(|part| part.as_os_str() != "..");
        let own = is_plain.then(|| mount.join(path))?;
        let directories = own.ancestors().take_while(|above| above.starts_with(mount));
        Some(Group { directories: directories.map(Path::to_owned).collect() })
    }

    /// The lowest of a limit's values up to the root; `None` where there is none.
    fn lowest(&self, file: &str, parse: impl Fn(&str) -> Option<u64>) -> Option<u64> {
        let files = self.directories.iter().map(|directory| directory.join(file));
        files.filter_map(|file| parse(&std::fs::read_to_string(file).ok()?)).min()
    }
}

/// Where a line of mountinfo has the version 2 hierarchy.
fn mount_point(line: &str) -> Option<&str> {
    let (mount, file_system) = line.split_once(" - ")?;
    file_system.starts_with("cgroup2 ").then(|| mount.split(' ').nth(4))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_limit_up_to_the_root_counts() {
        let root = std::env::temp_dir().join(format!("postern-cgroup-{}", std::process::id()));
        let own = root.join("a/b");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("memory.max"), "max\n").unwrap();
        std::fs::write(root.join("a/memory.max"), "1048576\n").unwrap();
        std::fs::write(root.join("memory.max"), "2097152\n").unwrap();
        let group = Group::beneath(&root, Path::new("a/b")).unwrap();
        let number = |text: &str| text.trim().parse().ok();
        assert_eq!(group.lowest("memory.max", number), Some(1 << 20));
        assert_eq!(group.lowest("cpu.max", number), None);
        let mut findings = Findings::new();
        memory(&mut findings, Some(&group));
        cpu(&mut findings, Some(&group));
        std::fs::write(own.join("cpu.max"), "50000 100000\n").unwrap();
        let mut later = Findings::new();
        cpu(&mut later, Some(&group));
        std::fs::remove_dir_all(&root).unwrap();
        let of = |findings: Findings, name| {
            let found = findings.into_vec().into_iter().find(|finding| finding.name == name);
            found.unwrap().detail
        };
        assert!(of(later, Name::Cpu).contains("50.0 % of a processor (cpu.max)"));
        assert!(of(findings, Name::Memory).contains("1 MiB (memory.max)"));
    }

    #[test]
    fn a_group_out_of_reach_is_none() {
        assert!(Group::beneath(Path::new("/sys/fs/cgroup"), Path::new("../..")).is_none());
        let line = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw";
        assert_eq!(mount_point(line), Some("/sys/fs/cgroup"));
        let line = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup cgroup rw";
        assert_eq!(mount_point(line), None);
    }
}
