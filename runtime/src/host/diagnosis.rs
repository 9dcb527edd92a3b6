//! Facts that explain a launch that failed; never read on the way to one that works.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What this host is known to forbid, read after a failure to name its likely cause.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnosis {
    /// `kernel.apparmor_restrict_unprivileged_userns`: whether AppArmor takes capabilities away
    /// in new user namespaces. `None` where the kernel has no such setting.
    pub apparmor_restricts_user_namespaces: Option<bool>,
    /// `kernel.unprivileged_userns_clone`, a setting of Debian's kernels.
    pub unprivileged_user_namespaces: Option<bool>,
    /// `user.max_user_namespaces`; 0 makes their creation fail with `ENOSPC`.
    pub user_namespaces_max: Option<u64>,
    /// Whether the service's root is not its mount namespace's root, in which case the kernel
    /// refuses it a user namespace. `None` where that cannot be told.
    pub chroot: Option<bool>,
    /// `vm.memfd_noexec`: at 2, a memfd can never be executed.
    pub memfd_noexec: Option<u64>,
    /// Paths of the service's `/proc` that something is mounted over, which makes the kernel
    /// refuse a fresh procfs in a new user namespace.
    pub proc_masks: Vec<OsString>,
    /// Whether the service runs under a seccomp filter, such as a container engine's.
    pub seccomp_filter: Option<bool>,
}

/// What container engines and service managers mount over in `/proc`.
const MASKABLE: [&str; 15] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/bus",
    "/proc/fs",
    "/proc/interrupts",
    "/proc/irq",
    "/proc/kcore",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/latency_stats",
    "/proc/meminfo",
    "/proc/scsi",
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
];

impl Diagnosis {
    /// Reads this machine. What cannot be read stays unknown.
    pub fn probe() -> Self {
        let number = |path: &str| -> Option<u64> {
            std::fs::read_to_string(Path::new("/proc/sys").join(path)).ok()?.trim().parse().ok()
        };
        let flag = |path: &str| number(path).map(|number| number != 0);
        Self {
            apparmor_restricts_user_namespaces: flag(
                "kernel/apparmor_restrict_unprivileged_userns",
            ),
            unprivileged_user_namespaces: flag("kernel/unprivileged_userns_clone"),
            user_namespaces_max: number("user/max_user_namespaces"),
            chroot: chroot(),
            memfd_noexec: number("vm/memfd_noexec"),
            proc_masks: proc_masks(),
            seccomp_filter: seccomp_filter(),
        }
    }
}

/// Whether `/` is missing as a mount point from the service's own mount table.
///
/// In a chroot the table shows only mounts beneath the new root. Where that root is a mount point
/// itself, nothing that an unprivileged process may read tells a chroot from a host.
fn chroot() -> Option<bool> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    Some(!table.lines().any(|line| line.split(' ').nth(4) == Some("/")))
}

/// What of `/proc` lies on another device than `/proc` itself, or is mounted from within it.
fn proc_masks() -> Vec<OsString> {
    let Ok(proc) = std::fs::symlink_metadata("/proc") else { return Vec::new() };
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let is_mounted = |path: &str| table.lines().any(|line| line.split(' ').nth(4) == Some(path));
    let is_masked = |path: &&&str| {
        let elsewhere = |status: std::fs::Metadata| status.dev() != proc.dev();
        std::fs::symlink_metadata(path).is_ok_and(elsewhere) || is_mounted(path)
    };
    MASKABLE.iter().filter(is_masked).map(OsString::from).collect()
}

/// The `Seccomp:` line of `/proc/self/status`: 2 is a filter.
fn seccomp_filter() -> Option<bool> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"))?;
    Some(mode.trim() == "2")
}

#[cfg(test)]
mod tests {
    use super::Diagnosis;

    #[test]
    fn this_machine_can_be_read() {
        let diagnosis = Diagnosis::probe();
        assert!(diagnosis.user_namespaces_max.is_some(), "{diagnosis:?}");
        assert!(diagnosis.seccomp_filter.is_some(), "{diagnosis:?}");
        assert!(diagnosis.chroot.is_some(), "{diagnosis:?}");
    }
}
