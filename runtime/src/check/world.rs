//! Mounts, `/proc`, workspace, loopback and launcher: what the kernel says of a run against the plan.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::evidence::{Init, Mount};
use super::finding::{Findings, Name, Status};
use super::text::{bytes, shell_word};
use crate::enforcement::Enforcement;
use crate::launch::{ImageSource, installed_image};
use crate::plan::{Access, MountOp, Plan};
use crate::profile::{ProcKind, SandboxProfile, Workspace, WorkspaceAccess};

/// Everything that a guest sees of files and networks.
pub(super) fn say(findings: &mut Findings, profile: &SandboxProfile, plan: &Plan, init: &Init) {
    match &init.mounts {
        Some(table) => {
            root(findings, table);
            mounts(findings, &writable(plan), table);
            proc(findings, profile, table);
        }
        None => {
            for name in [Name::Root, Name::Mounts, Name::Proc] {
                findings.say(name, Status::Unknown, "the kernel does not show PID 1's mounts");
            }
        }
    }
    workspace(findings, profile);
    loopback(findings, plan, init);
}

fn root(findings: &mut Findings, table: &[Mount]) {
    match table.iter().rfind(|mount| mount.target == Path::new("/")) {
        Some(root) if root.read_only => {
            findings.say(Name::Root, Status::Enforced, format!("read-only {}", root.kind));
        }
        Some(_) => findings.say(Name::Root, Status::Failed, "writable"),
        None => findings.say(Name::Root, Status::Unknown, "no mount at / is shown"),
    }
}

/// Where the plan lets the guest write.
fn writable(plan: &Plan) -> BTreeMap<PathBuf, Access> {
    let path =
        |target: &std::ffi::CStr| PathBuf::from(std::ffi::OsStr::from_bytes(target.to_bytes()));
    let mut access = BTreeMap::new();
    for operation in plan.template.iter().chain(&plan.run) {
        match operation {
            MountOp::Bind { target, access: how, .. }
            | MountOp::Tmpfs { target, access: how, .. }
            | MountOp::Proc { target, access: how, .. } => access.insert(path(target), *how),
            MountOp::Devpts { target, .. } => access.insert(path(target), Access::ReadWrite),
            MountOp::ReadOnly { target }
            | MountOp::ReadOnlySelf { target }
            | MountOp::RunDirectory { target, .. }
            | MountOp::Mask { target, .. } => access.insert(path(target), Access::ReadOnly),
            MountOp::Root { .. }
            | MountOp::HostRoot
            | MountOp::Dir { .. }
            | MountOp::File { .. }
            | MountOp::Symlink { .. } => None,
        };
    }
    access
}

/// What the plan says of a mount: of itself, or of the nearest one above it that a bind brought.
fn planned(plan: &BTreeMap<PathBuf, Access>, target: &Path) -> Access {
    let nearest = target.ancestors().find_map(|above| plan.get(above));
    nearest.copied().unwrap_or(Access::ReadOnly)
}

fn mounts(findings: &mut Findings, plan: &BTreeMap<PathBuf, Access>, table: &[Mount]) {
    let shown = |mounts: &[&Mount]| {
        let targets = mounts.iter().map(|mount| mount.target.display().to_string());
        targets.collect::<Vec<_>>().join(" ")
    };
    let is_covered = |(at, mount): &(usize, &Mount)| {
        table.iter().skip(at + 1).any(|later| later.target == mount.target)
    };
    let seen = table.iter().enumerate().filter(|entry| !is_covered(entry)).map(|entry| entry.1);
    let open: Vec<_> = seen.filter(|mount| !mount.read_only).collect();
    let is_wrong = |mount: &&Mount| planned(plan, &mount.target) == Access::ReadOnly;
    let wrong: Vec<_> = open.iter().copied().filter(is_wrong).collect();
    let set_id: Vec<_> = table.iter().filter(|mount| !mount.nosuid).collect();
    let (count, open) = (table.len(), shown(&open));
    let (status, detail) = match (wrong.is_empty(), set_id.is_empty()) {
        (true, true) => (Status::Enforced, format!("{count}, all nosuid; writable: {open}")),
        (false, _) => (Status::Failed, format!("writable by mistake: {}", shown(&wrong))),
        (true, false) => (Status::Failed, format!("not nosuid: {}", shown(&set_id))),
    };
    findings.say(Name::Mounts, status, detail);
}

fn proc(findings: &mut Findings, profile: &SandboxProfile, table: &[Mount]) {
    let kind = profile.proc;
    let name = proc_name(kind);
    let found = table.iter().rfind(|mount| mount.target == Path::new("/proc"));
    let masks = table
        .iter()
        .filter(|mount| mount.target.starts_with("/proc") && mount.target != Path::new("/proc"));
    let masks = masks.count();
    let is_there = found.filter(|mount| mount.kind == "proc");
    let fits = match (kind, is_there) {
        (ProcKind::None, there) => there.is_none(),
        (ProcKind::ReadOnly, Some(mount)) => mount.read_only && masks > 0,
        (ProcKind::Minimal, Some(mount)) => mount.read_only && mount.only_pids,
        (ProcKind::Masked, Some(mount)) => !mount.read_only && masks > 0,
        (ProcKind::ReadOnly | ProcKind::Minimal | ProcKind::Masked, None) => false,
    };
    let what = match kind {
        ProcKind::None => "no procfs anywhere".to_owned(),
        ProcKind::ReadOnly => format!("a fresh one, read-only, {masks} entries masked"),
        ProcKind::Minimal => "a fresh one, read-only, processes only".to_owned(),
        ProcKind::Masked => format!("a fresh one, writable, {masks} entries masked or read-only"),
    };
    match fits {
        true => findings.say(Name::Proc, Status::Enforced, format!("{name}: {what}")),
        false => findings.say(Name::Proc, Status::Failed, format!("not {name}: {what}")),
    }
}

/// As profiles write it.
pub(super) const fn proc_name(kind: ProcKind) -> &'static str {
    match kind {
        ProcKind::ReadOnly => "read_only",
        ProcKind::Minimal => "minimal",
        ProcKind::Masked => "masked",
        ProcKind::None => "none",
    }
}

fn workspace(findings: &mut Findings, profile: &SandboxProfile) {
    match &profile.workspace {
        Workspace::Owned { size_bytes, inodes } => {
            let detail = format!("bounded: {}, {inodes} inodes", bytes(*size_bytes));
            findings.say(Name::Workspace, Status::Enforced, detail);
        }
        Workspace::Directory { path, access } => {
            let mut detail = format!("unbounded: {}", path.display());
            if *access == WorkspaceAccess::Shared {
                detail.push_str(", which a launch makes mode 1777 (not done by this check)");
            }
            findings.explain(
                Name::Workspace,
                (Status::Weaker, detail),
                "a directory of the caller's is as large as its file system",
                "leave the workspace to postern (profile: no `workspace` line), or put the \
                 directory on a file system or project quota of its own",
            );
        }
    }
}

fn loopback(findings: &mut Findings, plan: &Plan, init: &Init) {
    let name = Name::Loopback;
    match (plan.namespaces.net, plan.loopback, init.loopback) {
        (false, ..) => findings.say(name, Status::NotUsed, "the service's network is shared"),
        (true, true, Some(true)) => {
            findings.say(name, Status::Enforced, "up: 127.0.0.1 works, within the run");
        }
        (true, true, Some(false)) => findings.say(name, Status::Failed, "down"),
        (true, false, Some(true)) => findings.say(name, Status::Failed, "up"),
        (true, false, Some(false)) => {
            findings.say(name, Status::NotUsed, "down, as the profile says");
        }
        (true, _, None) => {
            findings.say(name, Status::Unknown, "the kernel does not show the run's addresses");
        }
    }
}

/// The launcher's image, and why it is not a better one.
pub(super) fn launcher(findings: &mut Findings, enforcement: &Enforcement, memfd_noexec: bool) {
    let passed_over = |source: ImageSource| enforcement.fallbacks.contains(&source.passed_over());
    let source = enforcement.launcher.name();
    if passed_over(ImageSource::Installed) {
        let (path, why) = match installed_image() {
            Some((path, Err(error))) if error.kind() == std::io::ErrorKind::InvalidData => {
                return findings.explain(
                    Name::Launcher,
                    (Status::Weaker, format!("{source}: {} was passed over", path.display())),
                    error.to_string(),
                    "install the launcher of this version there",
                );
            }
            Some((path, Err(error))) => (path.display().to_string(), error.to_string()),
            Some((path, Ok(()))) => {
                (path.display().to_string(), "it cannot be executed".to_owned())
            }
            None => ("the installed launcher".to_owned(), "it is gone".to_owned()),
        };
        findings.explain(
            Name::Launcher,
            (Status::Weaker, format!("{source}: {path} was passed over")),
            format!("{path}: {why}"),
            format!("chown root:root {0} && chmod 755 {0}", shell_word(&path)),
        );
    } else if passed_over(ImageSource::Memfd) {
        let why = match memfd_noexec {
            true => "vm.memfd_noexec is 2: no memfd can be executed",
            false => "executing a memfd was refused",
        };
        findings.explain(
            Name::Launcher,
            (Status::Weaker, format!("{source}: written anew for each sandbox, then unlinked")),
            why,
            "sysctl vm.memfd_noexec=1, or install the launcher and name it in POSTERN_LAUNCHER",
        );
    } else {
        let detail = match (enforcement.launcher, installed_image()) {
            (ImageSource::Installed, Some((path, _))) => format!("{source}: {}", path.display()),
            (ImageSource::Installed | ImageSource::Memfd | ImageSource::PrivateFile, _) => {
                format!("{source}: sealed, made once for this process")
            }
        };
        findings.say(Name::Launcher, Status::Enforced, detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(target: &str, read_only: bool, nosuid: bool) -> Mount {
        Mount { target: target.into(), kind: "x".into(), read_only, nosuid, only_pids: false }
    }

    #[test]
    fn a_mount_that_the_plan_does_not_open_fails() {
        let plan =
            [("/tmp", Access::ReadWrite), ("/a", Access::ReadWrite), ("/a/b", Access::ReadOnly)];
        let plan = plan.map(|(target, access)| (PathBuf::from(target), access)).into();
        let rows: [(&[Mount], Status); 7] = [
            (&[mount("/", true, true), mount("/tmp", false, true)], Status::Enforced),
            (&[mount("/", false, true)], Status::Failed),
            (&[mount("/usr", false, true)], Status::Failed),
            // A mount of the host's beneath a bind came with it.
            (&[mount("/a/c", false, true)], Status::Enforced),
            (&[mount("/a/b/c", false, true)], Status::Failed),
            (&[mount("/tmpx", false, true)], Status::Failed),
            (&[mount("/usr", true, false)], Status::Failed),
        ];
        for (table, status) in rows {
            let mut findings = Findings::new();
            mounts(&mut findings, &plan, table);
            let targets: Vec<_> = table.iter().map(|mount| &mount.target).collect();
            assert_eq!(findings.status_of(Name::Mounts), Some(status), "{targets:?}");
        }
    }

    #[test]
    fn a_procfs_of_another_kind_than_asked_for_fails() {
        let procfs = |read_only, only_pids| Mount {
            kind: "proc".into(),
            only_pids,
            ..mount("/proc", read_only, true)
        };
        let mask = || mount("/proc/kcore", true, true);
        let rows: [(ProcKind, &[Mount], Status); 9] = [
            (ProcKind::ReadOnly, &[procfs(true, false), mask()], Status::Enforced),
            (ProcKind::ReadOnly, &[procfs(true, false)], Status::Failed),
            (ProcKind::ReadOnly, &[procfs(false, false), mask()], Status::Failed),
            (ProcKind::ReadOnly, &[mask()], Status::Failed),
            (ProcKind::Minimal, &[procfs(true, true)], Status::Enforced),
            (ProcKind::Minimal, &[procfs(true, false)], Status::Failed),
            (ProcKind::Masked, &[procfs(false, false), mask()], Status::Enforced),
            (ProcKind::None, &[], Status::Enforced),
            (ProcKind::None, &[procfs(true, false)], Status::Failed),
        ];
        for (kind, table, status) in rows {
            let mut findings = Findings::new();
            let profile = SandboxProfile { proc: kind, ..SandboxProfile::default() };
            proc(&mut findings, &profile, table);
            assert_eq!(findings.status_of(Name::Proc), Some(status), "{kind:?} {}", table.len());
        }
    }
}
