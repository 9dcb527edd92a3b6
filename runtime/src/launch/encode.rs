//! Writes a plan and a run request as the words that the launcher reads; decides nothing.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;

use postern_init::step::Step;
use postern_launcher::wire::{self, flags, op, run_flags, scope};

use super::attributes::attributes;
use super::landlock;
use crate::command::WindowSize;
use crate::plan::{
    Export, Landlock, MountOp, NamespaceSet, Need, Owner, Plan, Resource, Rlimit, SysctlScope,
};

/// The numbers of a sandbox that are known only when it is launched.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "facts of one launch, each told by name")]
pub(super) struct Numbers {
    /// The launcher's id in its own user namespace, which runs map theirs onto.
    pub(super) launcher_uid: u32,
    pub(super) launcher_gid: u32,
    pub(super) keep_capabilities: u64,
    /// Whether the launcher changes to those ids and drops its groups.
    pub(super) takes_ids: bool,
    /// Whether the launcher has a user namespace of its own.
    pub(super) own_user_namespace: bool,
    /// Whether the service reaches the workspace through a mount that shows it as its own: it may
    /// do nothing as the guest's kernel id.
    pub(super) maps_workspace: bool,
    pub(super) single_use: bool,
}

/// Words and strings in the launcher's format.
#[derive(Debug, Default)]
struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn word(&mut self, word: u64) -> &mut Self {
        self.bytes.extend_from_slice(&word.to_le_bytes());
        self
    }

    fn data(&mut self, data: &[u8]) -> &mut Self {
        self.word(data.len() as u64);
        self.bytes.extend_from_slice(data);
        let padded = self.bytes.len().next_multiple_of(8);
        self.bytes.resize(padded, 0);
        self
    }

    fn string(&mut self, text: &CStr) -> &mut Self {
        self.data(text.to_bytes_with_nul())
    }

    /// A path inside the root, relative to it.
    fn inside(&mut self, target: &CStr) -> &mut Self {
        let relative = target.to_bytes().strip_prefix(b"/").unwrap_or(target.to_bytes());
        self.text(if relative.is_empty() { b"." } else { relative })
    }

    /// Text without a NUL of its own; the plan has none.
    fn text(&mut self, text: &[u8]) -> &mut Self {
        let mut owned = Vec::with_capacity(text.len() + 1);
        owned.extend_from_slice(text);
        owned.push(0);
        self.data(&owned)
    }

    /// The directory and the last name of a path inside the root.
    fn split(&mut self, target: &CStr) -> &mut Self {
        let bytes = target.to_bytes();
        let slash = bytes.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        let (parent, name) = bytes.split_at(slash);
        let parent = parent.strip_prefix(b"/").unwrap_or(parent);
        self.text(if parent.is_empty() { b"." } else { parent });
        self.text(name.strip_prefix(b"/").unwrap_or(name))
    }

    fn list(&mut self, count: usize, fill: impl FnOnce(&mut Writer)) -> &mut Self {
        let mut entries = Writer::default();
        fill(&mut entries);
        self.word(count as u64).data(&entries.bytes)
    }
}

/// `CLONE_NEW*` of a set; user and mount are the caller's to add.
pub(super) fn clone_flags(set: NamespaceSet) -> u64 {
    let rows: [(bool, i32); 5] = [
        (set.pid, libc::CLONE_NEWPID),
        (set.net, libc::CLONE_NEWNET),
        (set.ipc, libc::CLONE_NEWIPC),
        (set.uts, libc::CLONE_NEWUTS),
        (set.cgroup, libc::CLONE_NEWCGROUP),
    ];
    rows.iter().filter(|row| row.0).fold(0, |flags, row| flags | u64::from(row.1.unsigned_abs()))
}

/// The whole setup message.
pub(super) fn setup(plan: &Plan, numbers: &Numbers, filters: [&[u8]; 2]) -> Vec<u8> {
    let ahead = clone_flags(plan.ahead);
    let user_and_mount = u64::from((libc::CLONE_NEWUSER | libc::CLONE_NEWNS).unsigned_abs());
    let own = (clone_flags(plan.namespaces) & !ahead) | user_and_mount;
    let mut writer = Writer::default();
    writer
        .word(wire::SETUP)
        .word(setup_flags(plan, numbers))
        .word(own)
        .word(ahead)
        .word(numbers.launcher_uid.into())
        .word(numbers.launcher_gid.into())
        .word(numbers.keep_capabilities)
        .word(plan.identity.guest_uid.into())
        .word(plan.identity.guest_gid.into())
        .text(&id_map(plan.identity.guest_uid, numbers.launcher_uid))
        .text(&id_map(plan.identity.guest_gid, numbers.launcher_gid))
        .text(&id_map(numbers.launcher_uid, 0))
        .text(&id_map(numbers.launcher_gid, 0))
        .text(&owner_map(plan, |owner| (owner.uid, numbers.launcher_uid)))
        .text(&owner_map(plan, |owner| (owner.gid, numbers.launcher_gid)))
        .text(plan.oom_score_adj.to_string().as_bytes())
        .string(plan.hostname.as_deref().unwrap_or(c""))
        .string(&plan.cwd)
        .list(plan.sysctls.len(), |w| sysctls(w, plan))
        .list(plan.rlimits.len(), |w| rlimits(w, &plan.rlimits))
        .list(plan.guest_rlimits.len(), |w| rlimits(w, &plan.guest_rlimits))
        .list(plan.template.len(), |w| operations(w, &plan.template, numbers))
        .list(plan.run.len(), |w| operations(w, &plan.run, numbers));
    domain(&mut writer, &plan.landlock);
    writer.data(filters[0]).data(filters[1]);
    writer.bytes
}

fn setup_flags(plan: &Plan, numbers: &Numbers) -> u64 {
    let rows = [
        (plan.loopback, flags::LOOPBACK),
        (!plan.namespaces.pid, flags::SHARED_PID),
        (numbers.single_use, flags::SINGLE_USE),
        (numbers.takes_ids, flags::DROP_GROUPS | flags::TAKE_IDS),
        (!numbers.own_user_namespace, flags::HOST_USER_NAMESPACE),
    ];
    rows.iter().filter(|row| row.0).fold(0, |flags, row| flags | row.1)
}

/// What is restricted, what is kept inside, and where what is allowed; all of it zero: no domain.
fn domain(writer: &mut Writer, landlock: &Landlock) {
    let (abi, rules) = match landlock {
        Landlock::Off | Landlock::Unavailable(_) => (0, &[][..]),
        Landlock::Domain { abi, rules } => (*abi, rules.as_slice()),
    };
    writer.word(landlock::handled(abi)).word(landlock::scoped(abi)).list(rules.len(), |w| {
        for rule in rules {
            w.word(landlock::bits(rule.right, abi)).string(&rule.target);
        }
    });
}

fn sysctls(writer: &mut Writer, plan: &Plan) {
    for sysctl in &plan.sysctls {
        let scope = match sysctl.scope {
            SysctlScope::LauncherUser => scope::LAUNCHER_USER,
            SysctlScope::AheadIpc => scope::AHEAD_IPC,
            SysctlScope::RunUser => scope::RUN_USER,
        };
        let path = [b"sys/", sysctl.path.to_bytes()].concat();
        let required = u64::from(sysctl.need == Need::Required);
        writer.word(scope).word(required).text(&path).string(&sysctl.value);
    }
}

fn rlimits(writer: &mut Writer, limits: &[Rlimit]) {
    for limit in limits {
        writer.word(number(limit.resource).into()).word(limit.limit);
    }
}

/// The kernel's number of a resource on x86_64, as in `<asm-generic/resource.h>`.
pub(crate) const fn number(resource: Resource) -> u32 {
    match resource {
        Resource::Cpu => 0,
        Resource::FileSize => 1,
        Resource::Stack => 3,
        Resource::Core => 4,
        Resource::NProc => 6,
        Resource::NoFile => 7,
        Resource::MemLock => 8,
        Resource::AddressSpace => 9,
        Resource::SigPending => 11,
        Resource::MsgQueue => 12,
    }
}

fn operations(writer: &mut Writer, operations: &[MountOp], numbers: &Numbers) {
    for operation in operations {
        encode_operation(writer, operation, numbers);
    }
}

fn encode_operation(w: &mut Writer, operation: &MountOp, numbers: &Numbers) {
    let attributes = attributes(operation).unwrap_or_default();
    match operation {
        MountOp::Root { size_bytes, inodes } => {
            w.word(op::ROOT);
            let options = tmpfs_options(*size_bytes, *inodes, 0o755);
            fresh(w, Step::MakeRoot, attributes, c"tmpfs", &options);
        }
        MountOp::HostRoot => {
            w.word(op::HOST_ROOT).word(attributes);
        }
        MountOp::Dir { target, mode } => {
            w.word(op::DIR).word((*mode).into()).split(target);
        }
        MountOp::File { target, mode, contents } => {
            w.word(op::FILE).word((*mode).into()).split(target).data(contents);
        }
        MountOp::Symlink { target, to } => {
            w.word(op::SYMLINK).split(target).string(to);
        }
        MountOp::Bind { .. } => bind(w, attributes, operation),
        MountOp::Tmpfs { .. } => tmpfs(w, attributes, operation, numbers),
        MountOp::Proc { target, only_pids, .. } => {
            w.word(op::FRESH);
            // What may not be traced may not be looked at: PID 1 belongs to the guest's own kernel
            // uid where the service has no other.
            let mut options = vec![(c"hidepid", "1".to_owned())];
            options.extend(only_pids.then(|| (c"subset", "pid".to_owned())));
            fresh(w, Step::MakeProc, attributes, c"proc", &options);
            w.word(0).inside(target).split(target);
        }
        MountOp::Devpts { target, max } => {
            w.word(op::FRESH);
            let options = [
                (c"ptmxmode", "0666".to_owned()),
                (c"mode", "0620".to_owned()),
                (c"max", max.to_string()),
            ];
            fresh(w, Step::MakeDevpts, attributes, c"devpts", &options);
            w.word(0).inside(target).split(target);
        }
        MountOp::Mask { target, cover } => {
            w.word(op::MASK).inside(target).inside(cover);
        }
        MountOp::ReadOnly { target } => {
            w.word(op::READ_ONLY).inside(target);
        }
        MountOp::ReadOnlySelf { target } => {
            w.word(op::READ_ONLY_SELF).inside(target);
        }
        MountOp::RunDirectory { target, keep } => {
            w.word(op::RUN_DIRECTORY).word(attributes).inside(target);
            w.string(keep.as_deref().unwrap_or(c""));
        }
    }
}

type Options = Vec<(&'static CStr, String)>;

fn tmpfs_options(size_bytes: u64, inodes: u64, mode: u32) -> Options {
    vec![
        (c"size", size_bytes.to_string()),
        (c"nr_inodes", inodes.to_string()),
        (c"mode", format!("{mode:o}")),
    ]
}

fn fresh(
    w: &mut Writer,
    step: Step,
    attributes: u64,
    kind: &CStr,
    options: &[(&'static CStr, String)],
) {
    w.word(step.code().into()).word(attributes).string(kind).word(options.len() as u64);
    for (key, value) in options {
        w.string(key).text(value.as_bytes());
    }
}

fn bind(w: &mut Writer, attributes: u64, operation: &MountOp) {
    let MountOp::Bind { source, target, owner, .. } = operation else { return };
    w.word(if owner.is_some() { op::BIND_AS } else { op::BIND });
    w.word(attributes).word(source.dev).word(source.ino);
    w.text(source.path.as_os_str().as_bytes()).split(target);
}

fn tmpfs(w: &mut Writer, attributes: u64, operation: &MountOp, numbers: &Numbers) {
    let MountOp::Tmpfs { target, size_bytes, inodes, mode, export, .. } = operation else { return };
    w.word(op::FRESH);
    let mut options = tmpfs_options(*size_bytes, *inodes, *mode);
    // The workspace is the guest's; the exchange stays the service's.
    if *export == Export::Workspace {
        options.push((c"uid", numbers.launcher_uid.to_string()));
        options.push((c"gid", numbers.launcher_gid.to_string()));
    }
    fresh(w, Step::MakeTmpfs, attributes, c"tmpfs", &options);
    let exported = match export {
        Export::No => 0,
        Export::Workspace if numbers.maps_workspace => wire::EXPORT_AS_OWN,
        Export::Workspace | Export::Exchange => wire::EXPORT,
    };
    w.word(exported).inside(target).split(target);
}

/// The map of the one owner for whom the guest stands; empty without one.
fn owner_map(plan: &Plan, ids: impl Fn(&Owner) -> (u32, u32)) -> Vec<u8> {
    let owner = plan.template.iter().find_map(|operation| {
        let MountOp::Bind { owner, .. } = operation else { return None };
        owner.as_ref()
    });
    owner.map(ids).map_or_else(Vec::new, |(inside, outside)| id_map(inside, outside))
}

/// One line of an id map.
fn id_map(inside: u32, outside: u32) -> Vec<u8> {
    format!("{inside} {outside} 1").into_bytes()
}

/// What one run asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) arguments: &'a [CString],
    pub(crate) environment: &'a [CString],
    pub(crate) cwd: Option<&'a CStr>,
    pub(crate) run_directory: Option<&'a CStr>,
    pub(crate) attest: bool,
    /// The program limits its own address space.
    pub(crate) limit_inside: bool,
    /// It is made in a control group, which is sent with the streams.
    pub(crate) has_cgroup: bool,
    /// Of its terminal, if it has one.
    pub(crate) terminal: Option<WindowSize>,
}

impl Run<'_> {
    fn cgroup_flag(&self) -> u64 {
        if self.has_cgroup { run_flags::CGROUP } else { 0 }
    }
}

/// The run request; its tables hold offsets, which the launcher's child turns into addresses.
pub(super) fn run(run: &Run<'_>) -> Vec<u8> {
    let program = run.arguments.first().map_or(c"", CString::as_c_str);
    let mut w = Writer::default();
    let attest = if run.attest { run_flags::ATTEST } else { 0 };
    let limit_inside = if run.limit_inside { run_flags::LIMIT_INSIDE } else { 0 };
    let terminal = run.terminal.map_or(0, |size| {
        run_flags::TERMINAL | u64::from(size.rows) << 32 | u64::from(size.columns) << 48
    });
    w.word(wire::RUN)
        .word(attest | limit_inside | run.cgroup_flag() | terminal)
        .word(run.arguments.len() as u64 + 1)
        .word(run.environment.len() as u64 + 1)
        .string(run.run_directory.unwrap_or(c""))
        .text(search_path(run.environment).as_bytes())
        .string(run.cwd.unwrap_or(c""))
        .string(program);
    let tables = (run.arguments.len() + run.environment.len() + 2) * 8;
    let mut at = w.bytes.len() + tables;
    for strings in [run.arguments, run.environment] {
        for string in strings {
            w.word(at as u64);
            at += string.as_bytes_with_nul().len();
        }
        w.word(0);
    }
    for string in run.arguments.iter().chain(run.environment) {
        w.bytes.extend_from_slice(string.as_bytes_with_nul());
    }
    if w.bytes.last() != Some(&0) {
        w.word(0);
    }
    w.bytes
}

/// What stands in the message when the request itself is in a memfd of `len` bytes.
pub(super) fn run_in_memfd(run: &Run<'_>, len: usize) -> Vec<u8> {
    let mut w = Writer::default();
    w.word(wire::RUN).word(run_flags::IN_MEMFD | run.cgroup_flag()).word(len as u64);
    w.bytes
}

/// `PATH` of the guest's environment, or the usual one.
fn search_path(environment: &[CString]) -> &OsStr {
    let path = environment.iter().rev().find_map(|entry| entry.as_bytes().strip_prefix(b"PATH="));
    OsStr::from_bytes(path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin"))
}

#[cfg(test)]
mod tests;
