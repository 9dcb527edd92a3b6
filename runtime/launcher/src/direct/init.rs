//! The process between the parent and the program, PID 1 where there is a pid namespace: it reaps,
//! holds locks and descriptors, reports the program's end and stays until nobody is left. Forwards
//! no signals: the program is in the caller's own session and group, unless it asked for another.

use core::ffi::CStr;

use postern_init::process;
use postern_init::supervise::{is_slash, join};
use postern_init::sys::{CapabilitySets, Errno, Fd, open_at, prctl, set_capabilities};

use super::order::Order;
use super::report::{Failure, Fault, Report, tell};
use super::sys::{self, Array};
use super::{child, close_others};

const PR_SET_DUMPABLE: u32 = 4;
const ENOEXEC: Errno = Errno(8);

/// Whom it watches, and whom it tells.
pub(super) struct Watched {
    pub(super) pid: i32,
    pub(super) line: Fd,
}

/// Stays until all children are gone; the status of the program.
pub(super) fn watch(order: &Order<'_>, watched: &Watched) -> Result<i32, Failure> {
    let none = CapabilitySets { permitted: 0, inheritable: 0 };
    match set_capabilities(none) {
        // An outer filter may refuse it to root, who has to be content with what there is.
        Ok(()) | Err(Errno::EPERM) => {}
        Err(errno) => return Err(Fault::Capabilities.at(0)(errno)),
    }
    close_others(order.watch_keeps).map_err(Fault::CloseDescriptors.why())?;
    for (index, path) in (0u32..).zip(order.locks) {
        let file = open_at(Fd::CWD, path, 0, 0).map_err(Fault::OpenLock.at(index))?;
        sys::lock_shared(file.fd()).map_err(Fault::Lock.at(index))?;
        // The lock ends with this process.
        let _kept = file.into_fd();
    }
    if order.hardening.is_some() {
        prctl(PR_SET_DUMPABLE, 0, 0).map_err(Fault::Dumpable.why())?;
    }
    sys::ignore_pipe_signal().map_err(Fault::Signals.why())?;
    child::die_with_parent(order, watched.line)?;
    child::install_filters(order)?;
    let mut status = child::FAILED;
    loop {
        match process::wait_any() {
            Ok(Some(ended)) if ended.pid == watched.pid => {
                let by_signal = ended.signal.wrapping_add(128);
                status = if ended.signal == 0 { ended.code } else { by_signal };
                tell(watched.line, &Report::Ended(status));
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(Errno::ECHILD) => return Ok(status),
            Err(errno) => return Err(Fault::Wait.at(0)(errno)),
        }
    }
}

/// Becomes the program, looked for as `execvp(3)` does; returns why that failed.
pub(super) fn execute(order: &Order<'_>, variable: Option<&CStr>, table: &mut [usize]) -> Failure {
    let split = order.arguments.len().saturating_add(2).min(table.len());
    let (arguments, environment) = table.split_at_mut(split);
    let environment = Array::new(environment, order.environment.iter().copied().chain(variable));
    let failed = Fault::Exec.why();
    let Some(environment) = environment else { return failed(Errno::E2BIG) };
    let mut attempt = |program: &CStr| {
        let errno = match Array::new(arguments, order.arguments.iter().copied()) {
            None => return Errno::E2BIG,
            Some(array) => sys::execute(program, &array, &environment),
        };
        match errno {
            ENOEXEC => as_script(order, program, arguments, &environment),
            errno => errno,
        }
    };
    let name = order.program.to_bytes();
    if name.is_empty() {
        return failed(Errno::ENOENT);
    }
    if name.iter().any(is_slash) {
        return failed(attempt(order.program));
    }
    let mut last = Errno::ENOENT;
    for directory in order.search.to_bytes().split(|byte| *byte == b':') {
        let mut buffer = [0u8; 4096];
        match join(&mut buffer, directory, name).map(&mut attempt) {
            None => last = Errno::ENAMETOOLONG,
            Some(Errno::ENOENT | Errno::ENOTDIR) => {}
            Some(Errno::EACCES) => last = Errno::EACCES,
            Some(other) => return failed(other),
        }
    }
    failed(last)
}

/// A file that is executable and in no known format is a shell's.
fn as_script(
    order: &Order<'_>,
    program: &CStr,
    table: &mut [usize],
    environment: &Array<'_>,
) -> Errno {
    const SHELL: &CStr = c"/bin/sh";
    let rest = order.arguments.iter().copied().skip(1);
    match Array::new(table, [SHELL, program].into_iter().chain(rest)) {
        None => Errno::E2BIG,
        Some(array) => sys::execute(SHELL, &array, environment),
    }
}
