//! Writes a plan and a run request as the words that the launcher reads; decides nothing.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;

use postern_init::step::Step;
use postern_launcher::wire::{self, flags, op, run_flags, scope};

use crate::plan::{
    Access, Export, MountOp, NamespaceSet, Need, Plan, Resource, Rlimit, Source, SysctlScope,
};

const RDONLY: u64 = 1;
const NOSUID: u64 = 2;
const NODEV: u64 = 4;
const NOEXEC: u64 = 8;

/// The numbers of a sandbox that are known only when it is launched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    /// The launcher's id in its own user namespace, which runs map theirs onto.
    pub(super) launcher_uid: u32,
    pub(super) launcher_gid: u32,
    pub(super) keep_capabilities: u64,
    /// Whether the launcher changes to those ids and drops its groups.
    pub(super) takes_ids: bool,
    /// Whether the launcher has a user namespace of its own.
    pub(super) own_user_namespace: bool,
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
pub(super) fn setup(plan: &Plan, numbers: &Numbers, filter: &[u8]) -> Vec<u8> {
    let ahead = clone_flags(plan.ahead);
    let user_and_mount = u64::from((libc::CLONE_NEWUSER | libc::CLONE_NEWNS).unsigned_abs());
    let own = (clone_flags(plan.namespaces) & !ahead) | user_and_mount;
    let id_map = |inside: u32, outside: u32| format!("{inside} {outside} 1").into_bytes();
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
        .text(plan.oom_score_adj.to_string().as_bytes())
        .string(plan.hostname.as_deref().unwrap_or(c""))
        .string(&plan.cwd)
        .list(plan.sysctls.len(), |w| sysctls(w, plan))
        .list(plan.rlimits.len(), |w| rlimits(w, &plan.rlimits))
        .list(plan.guest_rlimits.len(), |w| rlimits(w, &plan.guest_rlimits))
        .list(plan.template.len(), |w| operations(w, &plan.template, numbers))
        .list(plan.run.len(), |w| operations(w, &plan.run, numbers))
        .data(filter);
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
const fn number(resource: Resource) -> u32 {
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

const fn unless_writable(access: Access) -> u64 {
    match access {
        Access::ReadOnly => RDONLY,
        Access::ReadWrite => 0,
    }
}

fn encode_operation(w: &mut Writer, operation: &MountOp, numbers: &Numbers) {
    match operation {
        MountOp::Root { size_bytes, inodes } => {
            w.word(op::ROOT);
            let options = tmpfs_options(*size_bytes, *inodes, 0o755);
            fresh(w, Step::MakeRoot, NOSUID | NODEV, c"tmpfs", &options);
        }
        MountOp::HostRoot => {
            w.word(op::HOST_ROOT).word(RDONLY | NOSUID | NODEV);
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
        MountOp::Bind { source, target, access, devices } => {
            let kind = if *devices { NOEXEC } else { NODEV };
            let noexec = if in_run_postern(target) { NOEXEC } else { 0 };
            let attributes = NOSUID | kind | noexec | unless_writable(*access);
            bind(w, attributes, source, target);
        }
        MountOp::Tmpfs { target, size_bytes, inodes, mode, access, export } => {
            w.word(op::FRESH);
            let mut options = tmpfs_options(*size_bytes, *inodes, *mode);
            let noexec = if *export == Export::Exchange { NOEXEC } else { 0 };
            // The workspace is the guest's; the exchange stays the service's.
            if *export == Export::Workspace {
                options.push((c"uid", numbers.launcher_uid.to_string()));
                options.push((c"gid", numbers.launcher_gid.to_string()));
            }
            let attributes = NOSUID | NODEV | noexec | unless_writable(*access);
            fresh(w, Step::MakeTmpfs, attributes, c"tmpfs", &options);
            w.word(u64::from(*export != Export::No)).inside(target).split(target);
        }
        MountOp::Proc { target, access, only_pids } => {
            w.word(op::FRESH);
            let subset: &[_] = if *only_pids { &[(c"subset", "pid".to_owned())] } else { &[] };
            let attributes = NOSUID | NODEV | NOEXEC | unless_writable(*access);
            fresh(w, Step::MakeProc, attributes, c"proc", subset);
            w.word(0).inside(target).split(target);
        }
        MountOp::Devpts { target, max } => {
            w.word(op::FRESH);
            let options = [
                (c"ptmxmode", "0666".to_owned()),
                (c"mode", "0620".to_owned()),
                (c"max", max.to_string()),
            ];
            fresh(w, Step::MakeDevpts, NOSUID | NOEXEC, c"devpts", &options);
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
            w.word(op::RUN_DIRECTORY).word(RDONLY | NOSUID | NODEV | NOEXEC).inside(target);
            w.string(keep.as_deref().unwrap_or(c""));
        }
    }
}

fn in_run_postern(target: &CStr) -> bool {
    target.to_bytes().starts_with(b"/run/postern/")
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

fn bind(w: &mut Writer, attributes: u64, source: &Source, target: &CStr) {
    w.word(op::BIND).word(attributes).word(source.dev).word(source.ino);
    w.text(source.path.as_os_str().as_bytes()).split(target);
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
}

/// The run request; its tables hold offsets, which the launcher's child turns into addresses.
pub(super) fn run(run: &Run<'_>) -> Vec<u8> {
    let program = run.arguments.first().map_or(c"", CString::as_c_str);
    let mut w = Writer::default();
    let attest = if run.attest { run_flags::ATTEST } else { 0 };
    let limit_inside = if run.limit_inside { run_flags::LIMIT_INSIDE } else { 0 };
    w.word(wire::RUN)
        .word(attest | limit_inside)
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
pub(super) fn run_in_memfd(len: usize) -> Vec<u8> {
    let mut w = Writer::default();
    w.word(wire::RUN).word(run_flags::IN_MEMFD).word(len as u64);
    w.bytes
}

/// `PATH` of the guest's environment, or the usual one.
fn search_path(environment: &[CString]) -> &OsStr {
    let path = environment.iter().rev().find_map(|entry| entry.as_bytes().strip_prefix(b"PATH="));
    OsStr::from_bytes(path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin"))
}

#[cfg(test)]
mod tests {
    use postern_launcher::wire::{Reader, Request};

    use super::*;

    #[test]
    fn paths_are_relative_to_the_root() {
        type Row<'a> = (&'a CStr, &'a [u8], &'a [u8], &'a [u8]);
        let rows: [Row<'_>; 3] = [
            (c"/", b".\0", b".\0", b"\0"),
            (c"/proc", b"proc\0", b".\0", b"proc\0"),
            (c"/run/postern/stubs", b"run/postern/stubs\0", b"run/postern\0", b"stubs\0"),
        ];
        for (target, inside, parent, name) in rows {
            let mut w = Writer::default();
            w.inside(target).split(target);
            let mut r = Reader::new(&w.bytes);
            let read = [r.bytes().unwrap(), r.bytes().unwrap(), r.bytes().unwrap()];
            assert_eq!(read, [inside, parent, name], "{target:?}");
        }
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let arguments = [c"/bin/echo".to_owned(), c"".to_owned(), c"two words\n".to_owned()];
        let environment = [c"PATH=/a".to_owned(), c"PATH=/b".to_owned()];
        let (cwd, run_directory) = (Some(c"/tmp"), Some(c"run-1"));
        let bytes = run(&Run {
            arguments: &arguments,
            environment: &environment,
            cwd,
            run_directory,
            attest: true,
            limit_inside: true,
        });
        let request = Request::read(&bytes).unwrap();
        assert_eq!(request.flags, run_flags::ATTEST | run_flags::LIMIT_INSIDE);
        assert_eq!((request.program, request.search), (c"/bin/echo", c"/b"));
        assert_eq!((Some(request.cwd), Some(request.run_directory)), (cwd, run_directory));
        let table = bytes[request.table..].chunks_exact(8);
        let offsets: Vec<_> =
            table.take(7).map(|w| u64::from_le_bytes(w.try_into().unwrap())).collect();
        let text = |offset: u64| {
            let at = usize::try_from(offset).unwrap();
            CStr::from_bytes_until_nul(&bytes[at..]).unwrap().to_owned()
        };
        let [a, b, c, 0, d, e, 0] = offsets[..] else { panic!("{offsets:?}") };
        assert_eq!([a, b, c].map(text), arguments);
        assert_eq!([d, e].map(text), environment);
    }
}
