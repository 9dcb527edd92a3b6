//! The mounts that a plan says there will be, and those that the kernel says there are.

use std::fs;
use std::path::Path;

use postern::plan::{Access, Export, MountOp, Plan};

/// A mount: where, whether it can be written through, and its file system where the plan says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mount {
    /// Where it is.
    pub target: String,
    /// Whether it is read-only.
    pub read_only: bool,
    /// The kind of file system; empty where a bind shows whatever is there.
    pub kind: String,
}

impl Mount {
    fn new(target: &std::ffi::CStr, access: Access, kind: &str) -> Mount {
        let target = target.to_str().unwrap().to_owned();
        Mount { target, read_only: access == Access::ReadOnly, kind: kind.to_owned() }
    }
}

/// One line of mountinfo.
struct Line {
    target: String,
    options: String,
    kind: String,
}

fn lines(pid: &str) -> Vec<Line> {
    let text = fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap();
    let line = |line: &str| {
        let (mount, file_system) = line.split_once(" - ").unwrap();
        let mut words = mount.split(' ').skip(4).map(str::to_owned);
        let (target, options) = (words.next().unwrap(), words.next().unwrap());
        let kind = file_system.split(' ').next().unwrap().to_owned();
        Line { target, options, kind }
    };
    text.lines().map(line).collect()
}

/// What the kernel says about a process, seen from the host: sorted, and each mount's flags.
pub fn mounts_of(pid: i32) -> Vec<(Mount, Vec<String>)> {
    let found = lines(&pid.to_string()).into_iter().map(|line| {
        let options: Vec<String> = line.options.split(',').map(str::to_owned).collect();
        let read_only = options.iter().any(|option| option == "ro");
        (Mount { target: line.target, read_only, kind: line.kind }, options)
    });
    let mut found: Vec<_> = found.collect();
    found.sort();
    found
}

/// What a plan says: every operation that makes a mount, and the host's own mounts beneath binds.
pub fn mounts_in(plan: &Plan) -> Vec<Mount> {
    let mut mounts = Vec::new();
    for operation in plan.template.iter().chain(&plan.run) {
        carry_out(operation, &mut mounts);
    }
    mounts.sort();
    mounts
}

fn carry_out(operation: &MountOp, mounts: &mut Vec<Mount>) {
    match operation {
        MountOp::Root { .. } => mounts.push(Mount::new(c"/", Access::ReadWrite, "tmpfs")),
        MountOp::HostRoot => bind(Path::new("/"), c"/", Access::ReadOnly, mounts),
        MountOp::Dir { .. } | MountOp::File { .. } | MountOp::Symlink { .. } => {}
        MountOp::Bind { source, target, access, .. } => bind(&source.path, target, *access, mounts),
        MountOp::Tmpfs { target, access, .. } => mounts.push(Mount::new(target, *access, "tmpfs")),
        MountOp::Proc { target, access, .. } => mounts.push(Mount::new(target, *access, "proc")),
        MountOp::Devpts { target, .. } => {
            mounts.push(Mount::new(target, Access::ReadWrite, "devpts"));
        }
        MountOp::Mask { target, .. } => {
            if Path::new(target.to_str().unwrap()).exists() {
                mounts.push(Mount::new(target, Access::ReadOnly, "tmpfs"));
            }
        }
        MountOp::ReadOnly { target } => {
            let target = target.to_str().unwrap();
            let last = mounts.iter_mut().rfind(|mount| mount.target == target);
            last.expect("a mount to make read-only").read_only = true;
        }
        MountOp::ReadOnlySelf { target } => {
            if Path::new(target.to_str().unwrap()).exists() {
                mounts.push(Mount::new(target, Access::ReadOnly, "proc"));
            }
        }
        MountOp::RunDirectory { target, keep } => {
            mounts.push(Mount::new(target, Access::ReadOnly, "tmpfs"));
            let kept = keep.iter().flat_map(|keep| {
                let kept = format!("{}/{}", target.to_str().unwrap(), keep.to_str().unwrap());
                let within = |mount: &&Mount| Path::new(&mount.target).starts_with(&kept);
                mounts.iter().filter(within).cloned().collect::<Vec<_>>()
            });
            let kept: Vec<Mount> = kept.collect();
            mounts.extend(kept);
        }
    }
}

/// A bind takes the host's mounts beneath its source along.
fn bind(source: &Path, target: &std::ffi::CStr, access: Access, mounts: &mut Vec<Mount>) {
    mounts.push(Mount::new(target, access, ""));
    for line in lines("self") {
        let below = Path::new(&line.target).strip_prefix(source);
        if let Some(below) = below.ok().filter(|below| !below.as_os_str().is_empty()) {
            let target = Path::new(target.to_str().unwrap()).join(below);
            let target = target.to_str().unwrap().to_owned();
            let read_only = access == Access::ReadOnly;
            mounts.push(Mount { target, read_only, kind: String::new() });
        }
    }
}

/// Where the owned workspace of a plan is.
pub fn workspace_in(plan: &Plan) -> Option<&str> {
    plan.template.iter().find_map(|operation| {
        let MountOp::Tmpfs { target, export: Export::Workspace, .. } = operation else {
            return None;
        };
        target.to_str().ok()
    })
}
