//! Whatever the profile and the host, there is a plan that keeps every invariant, or a refusal by
//! a rule's name.
#![no_main]

#[path = "../../tests/tests/golden_plans/hosts.rs"]
#[allow(dead_code, reason = "the machines of the golden plans, not all of which are used here")]
mod hosts;
#[path = "../../tests/tests/golden_plans/invariants.rs"]
mod invariants;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use hosts::{Machine, Owned};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use postern::host::{FileFact, Host};
use postern::plan::{MountOp, Plan, Wants, resolve_with};
use postern::profile::{
    Bind, BindAccess, Etc, Loopback, Missing, MountSpec, ProcKind, Root, SandboxProfile,
    SharedGroups, Sharing, Workspace, WorkspaceAccess,
};
use postern::seccomp::Level;

fuzz_target!(|data: &[u8]| {
    let mut bytes = Unstructured::new(data);
    if let Ok((profile, machine, wants)) = asked(&mut bytes) {
        judge(&profile, machine, wants);
    }
});

fn judge(profile: &SandboxProfile, machine: Machine, wants: Wants) {
    let host = machine.facts(profile);
    match resolve_with(profile, &host, wants) {
        Err(refusal) => {
            let (rule, words) = (refusal.rule(), refusal.to_string());
            assert!(words.ends_with(&format!("[{rule}]")), "{words}");
            assert!(!words.chars().any(char::is_control), "{words:?}");
        }
        Ok(plan) => {
            let seen = with_links(profile, &host, &plan);
            for (name, holds) in invariants::ALL {
                assert!(holds(&seen, &plan), "{name}: {profile:?}\n{plan}");
            }
            let again = resolve_with(profile, &host, wants).map(|plan| plan.to_string());
            assert_eq!(again, Ok(plan.to_string()));
        }
    }
}

/// The same profile, with every target also as where a link leads, one of the host's or of ours,
/// which a plan follows where the guest would see it.
fn with_links(profile: &SandboxProfile, host: &Host, plan: &Plan) -> SandboxProfile {
    let root = profile.rootfs.as_deref().unwrap_or(Path::new("/"));
    let ours = |path: &Path| {
        plan.template.iter().find_map(|op| {
            let MountOp::Symlink { target, to } = op else { return None };
            let target = Path::new(OsStr::from_bytes(target.to_bytes()));
            let rest = path.strip_prefix(target).ok()?;
            let to = target.parent()?.join(OsStr::from_bytes(to.to_bytes()));
            Some(to.components().chain(rest.components()).collect::<PathBuf>())
        })
    };
    let theirs = |path: &Path| {
        let inside = root.join(path.strip_prefix("/").ok()?);
        let Some(FileFact::Found(found)) = host.file(&inside) else { return None };
        let inner = found.canonical.strip_prefix(root).ok()?;
        Some(Path::new("/").components().chain(inner.components()).collect::<PathBuf>())
    };
    let steps = |target: &Path| {
        let mut steps = vec![target.to_owned()];
        for _ in 0..40 {
            let Some(last) = steps.last() else { break };
            match ours(last).or_else(|| theirs(last)) {
                Some(next) if !steps.contains(&next) => steps.push(next),
                Some(_) | None => break,
            }
        }
        steps
    };
    let binds = profile.rw_binds.iter();
    let binds = binds.flat_map(|bind| {
        steps(&bind.target).into_iter().map(|target| Bind::new(&bind.source, target))
    });
    let mounts = profile.mounts.iter().flat_map(|mount| {
        steps(mount.target()).into_iter().map(|to| {
            let mut mount = mount.clone();
            match &mut mount {
                MountSpec::Bind { target, .. }
                | MountSpec::Tmpfs { target, .. }
                | MountSpec::Dir { target, .. }
                | MountSpec::Symlink { target, .. }
                | MountSpec::File { target, .. } => *target = to,
            }
            mount
        })
    });
    let mut seen = profile.clone();
    seen.rw_binds.extend(binds);
    seen.mounts.extend(mounts);
    // The guest's own `/tmp` is where the host's leads.
    let tmp = steps(Path::new("/tmp")).into_iter();
    let tmp = tmp.map(|target| MountSpec::Dir { target, mode: 0o1777 });
    seen.mounts.extend(tmp);
    seen
}

const PATHS: [&str; 29] = [
    "/",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/bin",
    "/lib64",
    "/etc",
    "/etc/ssl/certs",
    "/proc",
    "/proc/self",
    "/dev",
    "/dev/null",
    "/dev/shm",
    "/run",
    "/run/postern",
    "/run/postern/stubs",
    "/tmp",
    "/tmp/inside",
    "/workspace",
    "/workspace/inside",
    "/srv",
    "/srv/data",
    "/srv/data/deeper",
    "/opt/env",
    "/opt/env/bin",
    "/home/ada",
    "relative",
    "/srv/../etc",
    "/srv/new\nline",
];

fn path(bytes: &mut Unstructured<'_>) -> Result<&'static str> {
    Ok(*bytes.choose(&PATHS)?)
}

fn machine(bytes: &mut Unstructured<'_>) -> Result<Machine> {
    const MACHINES: [fn() -> Machine; 9] = [
        hosts::debian,
        hosts::desktop,
        hosts::container,
        hosts::rootless,
        hosts::fedora,
        hosts::unmerged,
        hosts::with_rootfs,
        hosts::with_checkout,
        hosts::with_home,
    ];
    Ok(bytes.choose(&MACHINES)?())
}

/// A fact about a path that the profile is interested in.
fn with_fact(bytes: &mut Unstructured<'_>, machine: Machine, path: &Path) -> Result<Machine> {
    let Some(text) = path.to_str() else { return Ok(machine) };
    // What a probe finds there has a name without them.
    if text.contains("..") {
        return Ok(machine.dir("/srv/target").link(text, "target", "/srv/target"));
    }
    let owned = Owned {
        uid: *bytes.choose(&[0, 1000, 4000, 65_534])?,
        gid: *bytes.choose(&[0, 1000, 27])?,
        mode: *bytes.choose(&[0o755, 0o700, 0o777, 0o1777, 0o750, 0])?,
    };
    Ok(match bytes.int_in_range(0..=7)? {
        0 => machine.fact(text, FileFact::Missing),
        1 => machine.fact(text, FileFact::Dangling { link: PathBuf::from(path_of(bytes)?) }),
        2 => machine.fact(text, FileFact::Unreachable { errno: 13 }),
        3 => machine.file(text),
        4 => machine.dir("/srv/target").link(text, "target", "/srv/target"),
        5 => machine.file_with(text, owned.mode),
        _ => machine.dir_of(text, owned),
    })
}

fn path_of(bytes: &mut Unstructured<'_>) -> Result<&'static str> {
    path(bytes)
}

fn asked(bytes: &mut Unstructured<'_>) -> Result<(SandboxProfile, Machine, Wants)> {
    let mut profile = SandboxProfile::default();
    choices(bytes, &mut profile)?;
    places(bytes, &mut profile)?;
    numbers(bytes, &mut profile)?;
    let mut machine = machine(bytes)?;
    for place in profile.paths_of_interest() {
        // System directories and devices stay mostly as they are.
        if bytes.ratio(1, 3)? {
            machine = with_fact(bytes, machine, &place)?;
        }
    }
    Ok((profile, machine, Wants { run_directory: bytes.arbitrary()? }))
}

fn choices(bytes: &mut Unstructured<'_>, profile: &mut SandboxProfile) -> Result<()> {
    let kinds = [ProcKind::ReadOnly, ProcKind::Minimal, ProcKind::Masked, ProcKind::None];
    profile.proc = *bytes.choose(&kinds)?;
    profile.etc = *bytes.choose(&[Etc::Generated, Etc::None])?;
    profile.root = *bytes.choose(&[Root::Curated, Root::Curated, Root::HostView])?;
    profile.loopback = *bytes.choose(&[Loopback::Up, Loopback::Down])?;
    profile.shared_groups = *bytes.choose(&[SharedGroups::Report, SharedGroups::Refuse])?;
    profile.seccomp = *bytes.choose(&Level::ALL)?;
    let mut sharing = || Ok(*bytes.choose(&[Sharing::Own, Sharing::Own, Sharing::Shared])?);
    profile.namespaces.pid = sharing()?;
    profile.namespaces.net = sharing()?;
    profile.namespaces.ipc = sharing()?;
    profile.namespaces.uts = sharing()?;
    profile.namespaces.cgroup = sharing()?;
    Ok(())
}

fn places(bytes: &mut Unstructured<'_>, profile: &mut SandboxProfile) -> Result<()> {
    if bytes.ratio(1, 4)? {
        profile.rootfs =
            Some(PathBuf::from(*bytes.choose(&["/opt/guest-root", "/srv/data", "/"])?));
    }
    if bytes.ratio(1, 4)? {
        profile.venv = Some(path(bytes)?.into());
    }
    if bytes.ratio(1, 3)? {
        let access = *bytes.choose(&[WorkspaceAccess::AsIs, WorkspaceAccess::Shared])?;
        profile.workspace = Workspace::Directory { path: path(bytes)?.into(), access };
    }
    if bytes.ratio(1, 4)? {
        profile.cwd = Some(path(bytes)?.into());
    }
    for list in [&mut profile.ro_binds, &mut profile.required_ro_binds, &mut profile.rw_binds] {
        for _ in 0..bytes.int_in_range(0..=3)? {
            list.push(Bind::new(path(bytes)?, path(bytes)?));
        }
    }
    for _ in 0..bytes.int_in_range(0..=4)? {
        profile.mounts.push(mount(bytes)?);
    }
    for _ in 0..bytes.int_in_range(0..=2)? {
        profile.stubs.push(path(bytes)?.into());
    }
    Ok(())
}

fn mount(bytes: &mut Unstructured<'_>) -> Result<MountSpec> {
    let target = PathBuf::from(path(bytes)?);
    let mode = *bytes.choose(&[0o755, 0o700, 0o1777, 0o77_777])?;
    Ok(match bytes.int_in_range(0..=4)? {
        0 => MountSpec::Bind {
            source: path(bytes)?.into(),
            target,
            access: *bytes.choose(&[BindAccess::ReadOnly, BindAccess::ReadWrite])?,
            missing: *bytes.choose(&[Missing::Refuse, Missing::Skip])?,
        },
        1 => MountSpec::Tmpfs { target, size_bytes: size(bytes)?, inodes: size(bytes)?, mode },
        2 => MountSpec::Dir { target, mode },
        3 => MountSpec::Symlink { target, to: path(bytes)?.into() },
        _ => MountSpec::File { target, contents: "text".into(), mode },
    })
}

fn size(bytes: &mut Unstructured<'_>) -> Result<u64> {
    Ok(*bytes.choose(&[0, 4, 4096, 64 << 20, u64::MAX])?)
}

fn numbers(bytes: &mut Unstructured<'_>, profile: &mut SandboxProfile) -> Result<()> {
    const IDS: [u32; 6] = [0, 1, 1000, 4000, 65_534, u32::MAX];
    let id = |bytes: &mut Unstructured<'_>| Ok(Some(*bytes.choose(&IDS)?));
    if bytes.ratio(1, 3)? {
        profile.guest_uid = id(bytes)?.filter(|id| *id != 0);
        profile.guest_gid = id(bytes)?.filter(|id| *id != 0);
    }
    if bytes.ratio(1, 4)? {
        profile.host_uid = id(bytes)?;
        profile.host_gid = id(bytes)?;
    }
    if bytes.ratio(1, 4)? {
        profile.tmp_bytes = size(bytes)?;
        profile.shm_inodes = size(bytes)?;
        profile.limits.nofile = size(bytes)?;
        profile.pty_max = bytes.arbitrary()?;
        profile.oom_score_adj = bytes.arbitrary()?;
    }
    Ok(())
}
