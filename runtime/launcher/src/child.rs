//! One run, from the clone to the guest: each wall in the order in which it can still be built.

use core::ffi::CStr;

use postern_init::process::Pointers;
use postern_init::record::Record;
use postern_init::step::Step;
use postern_init::supervise::{self, FAILED, Failure, GUEST_LIMITS, Guest, Limit, Lines};
use postern_init::sys::{
    self as base, Errno, Fd, O_CLOEXEC, O_DIRECTORY, O_PATH, O_RDWR, OwnedFd, PollFd, Wait, open_at,
};

use crate::sys::{self, Ids};
use crate::wire::{List, MALFORMED, Request, Setup, run_flags, scope};
use crate::{attest, confine, landlock, mount, namespaces, terminal};

/// Where a run finds its descriptors; everything above them is closed.
const STATUS: Fd = Fd(3);
const HOST: Fd = Fd(crate::wire::HOST_FD);
/// The detached procfs of the launcher, until the last write through it.
pub(crate) const PROC: Fd = Fd(5);

/// What the launcher hands to its child.
pub(crate) struct Run<'a> {
    pub(crate) setup: &'a Setup<'a>,
    /// The request's bytes, this process's own.
    pub(crate) request: &'a mut [u8],
    /// stdin, stdout, stderr.
    pub(crate) stdio: [Fd; 3],
    pub(crate) status: Fd,
    /// The stack of the guest's process until its exec.
    pub(crate) stack: &'a mut [u8],
}

/// Becomes the run's PID 1; never returns.
pub(crate) fn become_init(run: Run<'_>) -> ! {
    // Until it is in its place, the status line is where the launcher got it.
    let status = run.status;
    if let Err(errno) = arrange(&run) {
        fail(status, Failure::at(Step::Descriptors)(errno));
    }
    match confined(run) {
        Ok((guest, stack)) => {
            base::exit(supervise::run(guest, Lines { status: STATUS, host: HOST }, stack))
        }
        Err(failure) => fail(STATUS, failure),
    }
}

fn fail(status: Fd, failure: Failure) -> ! {
    supervise::report(status, &failure.record());
    base::exit(FAILED)
}

/// stdio, status and the host's pidfd stay; the rest belongs to the launcher and other runs.
fn arrange(run: &Run<'_>) -> Result<(), Errno> {
    const FIRST_CLOSED: i32 = 6;
    for (from, onto) in run.stdio.iter().zip(0..) {
        base::dup_onto(*from, Fd(onto), 0)?;
    }
    base::dup_onto(run.status, STATUS, O_CLOEXEC)?;
    base::close_from(FIRST_CLOSED)
}

fn confined<'a>(run: Run<'a>) -> Result<(Guest<'a>, &'a mut [u8]), Failure> {
    let Run { setup, request, stack, .. } = run;
    host_is_there()?;
    become_guest(setup)?;
    let (flags, table, arguments, environment) = {
        let request = Request::read(request).map_err(Failure::at(Step::DecodeRequest))?;
        if request.flags & run_flags::CGROUP != 0 {
            namespaces::hide_group(setup)?;
        }
        let mut exports = [None; mount::EXPORTS_MAX];
        let around = mount::Around { run_directory: request.run_directory, owner: None };
        mount::apply(setup.run, &around, &mut exports)?;
        namespaces::finish_own(setup)?;
        sys::set_umask(0o022).map_err(Failure::at(Step::Umask))?;
        namespaces::write_limits(setup.sysctls, scope::RUN_USER, Step::RunLimits, PROC)?;
        enter(if request.cwd.is_empty() { setup.cwd } else { request.cwd })?;
        if request.flags & run_flags::TERMINAL != 0 {
            terminal::make(STATUS, u32::try_from(request.flags >> 32).unwrap_or(0))?;
        }
        (request.flags, request.table, request.arguments, request.environment)
    };
    base::close(PROC);
    confine::drop_capabilities()?;
    confine::seal_process()?;
    confine::limit(setup.rlimits)?;
    let limits = guest_limits(setup.guest_rlimits, flags)?;
    let (arguments, environment) = arrays(request, table, arguments, environment)?;
    let request = Request::read(request).map_err(Failure::at(Step::DecodeRequest))?;
    landlock::enter(setup)?;
    let attested = (flags & run_flags::ATTEST != 0).then(|| attest::attest(setup));
    confine::filter(setup)?;
    if let Some(record) = attested {
        wait_for_inspection(&record)?;
    }
    let (program, search, filter) = (request.program, request.search, setup.policy);
    let has_terminal = flags & run_flags::TERMINAL != 0;
    let guest = Guest { program, search, arguments, environment, has_terminal, limits, filter };
    Ok((guest, stack))
}

fn host_is_there() -> Result<(), Failure> {
    let mut fds = [PollFd::readable(HOST)];
    match base::poll(&mut fds, Wait::No) {
        Ok(0) => Ok(()),
        Ok(_) => Err(Failure::at(Step::HostGone)(Errno::ESRCH)),
        Err(errno) => Err(Failure::at(Step::HostGone)(errno)),
    }
}

/// Maps the guest's id onto the launcher's and takes it. 65534 is also what an unmapped id looks
/// like, so that the map is read back: without it the guest would be the service itself.
fn become_guest(setup: &Setup<'_>) -> Result<(), Failure> {
    let own =
        open_at(PROC, c"self", O_PATH | O_DIRECTORY, 0).map_err(Failure::at(Step::OpenSelf))?;
    namespaces::write(own.fd(), c"setgroups", c"deny").map_err(Failure::at(Step::DenySetgroups))?;
    let uid_map =
        write_map(own.fd(), c"uid_map", setup.uid_map).map_err(Failure::at(Step::WriteUidMap))?;
    let gid_map =
        write_map(own.fd(), c"gid_map", setup.gid_map).map_err(Failure::at(Step::WriteGidMap))?;
    match namespaces::write(own.fd(), c"oom_score_adj", setup.oom_score_adj) {
        // The service runs with a higher score already and may not lower it.
        Ok(()) | Err(Errno::EACCES) => {}
        Err(errno) => return Err(Failure::at(Step::OomScore)(errno)),
    }
    sys::set_gid(Ids::All(setup.guest_gid)).map_err(Failure::at(Step::BecomeGuest))?;
    sys::set_uid(Ids::All(setup.guest_uid)).map_err(Failure::at(Step::BecomeGuest))?;
    for (file, line) in [(uid_map, setup.uid_map), (gid_map, setup.gid_map)] {
        let mut buffer = [0u8; 128];
        let len = sys::read_start(file.fd(), &mut buffer).map_err(Failure::at(Step::CheckMap))?;
        let found = buffer.get(..len).unwrap_or_default();
        if !same_words(found, line.to_bytes()) {
            return Err(Failure::at(Step::CheckMap)(Errno::ESTALE));
        }
    }
    Ok(())
}

/// Writes a map in one call, as the kernel wants it, and keeps the file to look at it later.
fn write_map(own: Fd, name: &CStr, line: &CStr) -> Result<OwnedFd, Errno> {
    let file = open_at(own, name, O_RDWR, 0)?;
    base::write(file.fd(), line.to_bytes())?;
    Ok(file)
}

/// Equal but for white space: the kernel pads its columns.
fn same_words(a: &[u8], b: &[u8]) -> bool {
    let words =
        |bytes| <[u8]>::split(bytes, u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words(a).eq(words(b))
}

fn enter(cwd: &CStr) -> Result<(), Failure> {
    let mut buffer = [0u8; 4096];
    base_cwd(cwd, &mut buffer).map_err(Failure::at(Step::WorkingDirectory))
}

fn base_cwd(cwd: &CStr, buffer: &mut [u8]) -> Result<(), Errno> {
    sys::change_directory(cwd)?;
    sys::current_directory(buffer).map(drop)
}

/// The limits of the guest's process, but for one that it sets itself.
fn guest_limits(list: List<'_>, flags: u64) -> Result<[Option<Limit>; GUEST_LIMITS], Failure> {
    const RLIMIT_AS: u32 = 9;
    let is_inside = |resource| flags & run_flags::LIMIT_INSIDE != 0 && resource == RLIMIT_AS;
    let mut limits = [None; GUEST_LIMITS];
    let mut reader = list.entries;
    let slots = limits.iter_mut().take(usize::try_from(list.count).unwrap_or(usize::MAX));
    for slot in slots {
        let mut entry = || Ok((reader.small()?, reader.word()?));
        let limit = entry().map_err(Failure::at(Step::DecodeSetup))?;
        *slot = (!is_inside(limit.0)).then_some(limit);
    }
    match reader.rest().is_empty() {
        true => Ok(limits),
        false => Err(Failure::at(Step::DecodeSetup)(MALFORMED)),
    }
}

fn arrays(
    request: &mut [u8],
    table: usize,
    arguments: usize,
    environment: usize,
) -> Result<(Pointers, Pointers), Failure> {
    let decode = Step::DecodeRequest;
    let second = arguments.checked_mul(8).and_then(|bytes| bytes.checked_add(table));
    let second = second.ok_or(MALFORMED).map_err(Failure::at(decode))?;
    let arguments = sys::relocate(request, table, arguments).map_err(Failure::at(decode))?;
    let environment = sys::relocate(request, second, environment).map_err(Failure::at(decode))?;
    Ok((arguments, environment))
}

/// Tells the host that every wall stands and waits for its word.
fn wait_for_inspection(attested: &Record) -> Result<(), Failure> {
    supervise::report(STATUS, attested);
    let mut fds = [PollFd::readable(STATUS), PollFd::readable(HOST)];
    base::poll(&mut fds, Wait::Forever).map_err(Failure::at(Step::Attest))?;
    let [_, host] = fds;
    if host.revents != 0 {
        return Err(Failure::at(Step::HostGone)(Errno::ESRCH));
    }
    let mut word = [0u8; 1];
    match base::read(STATUS, &mut word) {
        Ok(1) => Ok(()),
        Ok(_) => Err(Failure::at(Step::Attest)(Errno::ESRCH)),
        Err(errno) => Err(Failure::at(Step::Attest)(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::same_words;

    #[test]
    fn maps_are_compared_by_words() {
        let rows: [(&[u8], &[u8], bool); 4] = [
            (b"     65534       1000          1\n", b"65534 1000 1", true),
            (b"", b"65534 1000 1", false),
            (b"     65534          0          1\n", b"65534 1000 1", false),
            (b" 0 0 4294967295\n", b"65534 1000 1", false),
        ];
        for (found, line, same) in rows {
            assert_eq!(same_words(found, line), same, "{found:?}");
        }
    }
}
