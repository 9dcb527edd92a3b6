//! From what is asked to a running program: everything is worked out here, before the fork.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use postern_init::sys::{Errno, Fd};
use postern_launcher::direct::{self, Hardening, Operation, Order};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::environment::{Variables, own_directory};
use super::invocation::{Invocation, Setup, Source};
use super::monitor::{Monitor, Watched};
use super::namespaces::{
    CLONE_NEWNET, CLONE_NEWPID, CLONE_NEWUSER, Capabilities, Identity, Ids, made, wanted,
};
use super::operations::operations;
use super::say::Wrong;
use super::{descriptors, hardening, kept};

/// Starts the program and stays until it has ended; its status.
pub(super) fn launch(invocation: &Invocation) -> Result<u8, Wrong> {
    let parent = rustix::process::getppid();
    let caller = Credentials::find()?;
    descriptors::check(invocation)?;
    let filters = descriptors::filters(&invocation.filters)?;
    let line = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    let (ours, theirs) = line.map_err(|errno| Wrong::of("socketpair", errno))?;
    let plan = Plan::new(invocation, &caller, &theirs)?;
    let order = plan.order(invocation, &caller, filters);
    let order = Order { parents_end: Fd(ours.as_raw_fd()), ..order };
    join_first(invocation)?;
    let mut table = vec![0; direct::table_len(&order)];
    let started = direct::start(&order, Fd(theirs.as_raw_fd()), &mut table);
    let started = started.map_err(|errno| no_namespaces(errno, order.namespaces))?;
    drop(theirs);
    Monitor::new(invocation, Watched { started, parent, line: ours, made: order.namespaces })?.run()
}

/// Who calls.
struct Credentials {
    ids: Ids,
    effective: u64,
    permitted: u64,
}

impl Credentials {
    fn find() -> Result<Credentials, Wrong> {
        let uid = rustix::process::getuid();
        let found = rustix::thread::capabilities(None);
        let found = found.map_err(|errno| Wrong::of("capget failed", errno))?;
        if rustix::process::geteuid() != uid {
            return Err(Wrong::new("setuid use of bubblewrap is not supported"));
        }
        if !uid.is_root() && !found.permitted.is_empty() {
            let text = "Unexpected capabilities but not setuid, old file caps config?";
            return Err(Wrong::new(text));
        }
        let ids = Ids { uid: uid.as_raw(), gid: rustix::process::getgid().as_raw() };
        let (effective, permitted) = (found.effective.bits(), found.permitted.bits());
        Ok(Credentials { ids, effective, permitted })
    }

    const fn is_root(&self) -> bool {
        self.ids.uid == 0
    }
}

/// What an order borrows, and what it takes to work out.
struct Plan {
    namespaces: u64,
    operations: Vec<Operation<'static>>,
    identity: Identity,
    capabilities: Capabilities,
    variables: Variables,
    own_directory: Option<PathBuf>,
    hardening: Option<Hardening<'static>>,
    /// Descriptors that the process between keeps.
    kept: Vec<Fd>,
    /// The same and its line, in order.
    watch_keeps: Vec<Fd>,
    /// Those for the launch only.
    closed: Vec<Fd>,
}

impl Plan {
    fn new(invocation: &Invocation, caller: &Credentials, line: &OwnedFd) -> Result<Plan, Wrong> {
        let namespaces = made(invocation)?;
        namespaces_suffice(invocation, caller.ids, namespaces)?;
        let own_directory = own_directory();
        let mut operations = operations(&invocation.setup, own_directory.as_deref())?;
        if let Some(name) = &invocation.hostname {
            operations.push(Operation::Hostname { name: kept::text(name) });
        }
        let spaces = &invocation.namespaces;
        let has_user = namespaces & CLONE_NEWUSER != 0 || spaces.userns.is_some();
        let there = if has_user { u64::MAX } else { caller.permitted };
        let closed = [
            spaces.userns,
            spaces.userns2,
            spaces.pidns,
            invocation.block_fd,
            invocation.userns_block_fd,
            invocation.info_fd,
            invocation.json_status_fd,
        ];
        #[expect(clippy::wildcard_enum_match_arm, reason = "those of others are closed when read")]
        let bound = invocation.setup.iter().filter_map(|entry| match entry {
            Setup::Bind { source: Source::Fd(fd), .. } => Some(*fd),
            _ => None,
        });
        let mut watch_keeps: Vec<RawFd> = invocation.sync_fds.clone();
        watch_keeps.push(line.as_raw_fd());
        watch_keeps.sort_unstable();
        Ok(Plan {
            namespaces,
            operations,
            identity: Identity::new(invocation, caller.ids, namespaces),
            capabilities: Capabilities::new(
                caller.effective,
                caller.is_root() && !invocation.hardened,
                &invocation.capabilities,
            )
            .within(there),
            variables: Variables::new(std::env::vars_os(), &invocation.environment),
            own_directory,
            hardening: invocation.hardened.then(hardening::walls).transpose()?,
            kept: invocation.sync_fds.iter().copied().map(Fd).collect(),
            watch_keeps: watch_keeps.into_iter().map(Fd).collect(),
            closed: closed.into_iter().flatten().chain(bound).map(Fd).collect(),
        })
    }

    fn order<'a>(
        &'a self,
        invocation: &'a Invocation,
        caller: &Credentials,
        filters: &'static [&'static [u8]],
    ) -> Order<'a> {
        let spaces = &invocation.namespaces;
        let wanted = wanted(invocation, caller.ids);
        let joins = spaces.userns.is_some();
        let taken = |wanted, real| (joins && wanted != real).then_some(wanted);
        let command = &invocation.command;
        let program = command.first().map_or(c"", kept::text);
        let name = invocation.argv0.as_ref().map_or(program, kept::text);
        let arguments = command.iter().skip(1).map(kept::text);
        Order {
            namespaces: self.namespaces,
            parents_end: Fd(-1),
            is_nested_in_joined_pids: spaces.pid && spaces.pidns.is_some(),
            is_gated: is_gated(invocation),
            maps: self.identity.maps,
            uid: taken(wanted.uid, caller.ids.uid),
            gid: taken(wanted.gid, caller.ids.gid),
            has_new_bounding_set: joins
                || invocation.hardened
                || self.namespaces & CLONE_NEWUSER != 0,
            loopback: self.namespaces & CLONE_NEWNET != 0,
            operations: &self.operations,
            has_own_pids: spaces.pid || spaces.pidns.is_some(),
            is_fail_open: invocation.not_a_security_boundary,
            console: console(&invocation.setup),
            second_user: spaces.userns2.map(Fd),
            inner: self.identity.inner,
            limit_user_namespaces: spaces.disable_userns,
            assert_no_user_namespaces: spaces.disable_userns || spaces.assert_userns_disabled,
            capabilities: self.capabilities.kept,
            leave_capabilities: self.capabilities.are_left,
            block: invocation.block_fd.map(Fd),
            directories: self.variables.directories(invocation, self.own_directory.as_deref()),
            new_session: invocation.new_session,
            die_with_parent: invocation.die_with_parent,
            has_init: has_init(invocation),
            locks: kept::list(invocation.locks.iter().map(kept::text).collect()),
            kept: &self.kept,
            watch_keeps: &self.watch_keeps,
            closed: &self.closed,
            filters,
            hardening: self.hardening,
            program,
            search: self.variables.search(),
            arguments: kept::list(std::iter::once(name).chain(arguments).collect()),
            environment: self.variables.entries(),
        }
    }
}

/// Whether a user namespace that was only tried for is needed.
fn namespaces_suffice(invocation: &Invocation, real: Ids, made: u64) -> Result<(), Wrong> {
    let has_user = made & CLONE_NEWUSER != 0 || invocation.namespaces.userns.is_some();
    match has_user || wanted(invocation, real) == real {
        true => Ok(()),
        false => {
            let text = "Specifying --uid or --gid requires --unshare-user or --userns, and no user \
                        namespace can be made here";
            Err(Wrong::new(text))
        }
    }
}

/// Whether others are told of the child before it does anything.
fn is_gated(invocation: &Invocation) -> bool {
    let told = [invocation.info_fd, invocation.json_status_fd, invocation.userns_block_fd];
    told.iter().any(Option::is_some)
}

/// A pid namespace needs somebody to reap, locks and descriptors somebody to hold them.
fn has_init(invocation: &Invocation) -> bool {
    let holds = !invocation.locks.is_empty() || !invocation.sync_fds.is_empty();
    !invocation.as_pid_1 && (invocation.namespaces.pid || holds)
}

/// The terminal on stdout, where there is a `/dev` for it.
fn console(setup: &[Setup]) -> Option<&'static CStr> {
    let has_dev = setup.iter().any(|entry| matches!(entry, Setup::Dev { .. }));
    let name = has_dev.then(|| rustix::termios::ttyname(std::io::stdout(), Vec::new()).ok());
    let name = name.flatten()?;
    Some(kept::text(OsStr::from_bytes(name.to_bytes())))
}

/// Namespaces that the child is born into.
fn join_first(invocation: &Invocation) -> Result<(), Wrong> {
    let spaces = &invocation.namespaces;
    if let Some(fd) = spaces.userns {
        direct::join(Fd(fd), CLONE_NEWUSER).map_err(|errno| match errno {
            Errno::EINVAL => Wrong::new(
                "Joining the specified user namespace failed, it might not be a descendant of the \
                 current user namespace.",
            ),
            errno => Wrong::of("Joining specified user namespace failed", error(errno)),
        })?;
    }
    match spaces.pidns {
        None => Ok(()),
        Some(fd) => direct::join(Fd(fd), CLONE_NEWPID)
            .map_err(|errno| Wrong::of("Setting pidns failed", error(errno))),
    }
}

/// An error number as the library has it.
pub(super) fn error(errno: Errno) -> std::io::Error {
    std::io::Error::from_raw_os_error(errno.0)
}

fn no_namespaces(errno: Errno, made: u64) -> Wrong {
    const ENOSPC: i32 = 28;
    let has_user = made & CLONE_NEWUSER != 0;
    match errno {
        Errno::EINVAL if has_user => Wrong::new(
            "Creating new namespace failed, likely because the kernel does not support user \
             namespaces.",
        ),
        Errno::EPERM if has_user => Wrong::new(
            "No permissions to create a new namespace, likely because the kernel does not allow \
             non-privileged user namespaces: see the sysctls kernel.unprivileged_userns_clone and \
             kernel.apparmor_restrict_unprivileged_userns.",
        ),
        Errno(ENOSPC) => Wrong::new(
            "Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces \
             exceeded (ENOSPC)",
        ),
        errno => Wrong::of("Creating new namespace failed", error(errno)),
    }
}
