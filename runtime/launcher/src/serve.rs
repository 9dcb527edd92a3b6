//! The launcher's life: get ready, then turn requests into runs and ends of runs into records.
//!
//! It never waits for a run or for the library: every answer goes to the run's own socket, at once.

use postern_init::process;
use postern_init::record::{Kind, Record, facts};
use postern_init::step::Step;
use postern_init::supervise::{FAILED, Failure};
use postern_init::sys::{self as base, Errno, Fd, OwnedFd, PollFd, Wait};

use crate::child::{self, PROC, Run};
use crate::mount::EXPORTS_MAX;
use crate::namespaces::{self, Limits};
use crate::processors::Processors;
use crate::setup::{self, CONTROL, HOST, SIGNALS};
use crate::socket::{FDS_MAX, Received, receive, send_with};
use crate::sys::{self, Cloned, Mapping};
use crate::wire::{MALFORMED, REQUEST_INLINE_MAX, RUNS_MAX, Request, Setup, flags, run_flags};

const STACK_LEN: usize = 32 * 1024;

/// One live run: its PID 1, as the launcher numbers it, and its status line.
#[derive(Debug)]
struct Slot {
    pid: i32,
    status: OwnedFd,
}

struct Launcher<'a> {
    setup: Setup<'a>,
    request: &'a mut [u8],
    stack: &'a mut [u8],
    runs: &'a mut [Option<Slot>; RUNS_MAX],
    live: usize,
    /// The namespaces of the next run exist.
    ahead: bool,
    /// [`facts`] about them.
    ahead_facts: u32,
    clone3_refused: bool,
    processors: Option<Processors>,
    /// The launcher is kept off a processor, which a run must not be.
    aside: bool,
}

/// Runs the launcher; its exit code, once the library is gone or has been told why it failed.
#[must_use]
pub fn main() -> i32 {
    let mapping = match setup::settle().and_then(|()| setup::receive()) {
        Ok(mapping) => mapping,
        Err(failure) => return refuse(failure),
    };
    let setup = match Setup::read(mapping.bytes()) {
        Ok(setup) => setup,
        Err(errno) => return refuse(Failure::at(Step::DecodeSetup)(errno)),
    };
    match prepare(setup) {
        Ok(mut launcher) => launcher.serve(),
        Err(failure) => refuse(failure),
    }
}

fn refuse(failure: Failure) -> i32 {
    // Nobody to tell is the same as told: the library sees the end of the socket.
    base::send(CONTROL, &failure.record().encode()).ok();
    FAILED
}

fn prepare<'a>(setup: Setup<'a>) -> Result<Launcher<'a>, Failure> {
    let memory = |len| sys::memory(len).map_err(Failure::at(Step::Memory));
    let (request, stack) = (memory(REQUEST_INLINE_MAX)?, memory(STACK_LEN)?);
    let runs = sys::memory_for(|| None).map_err(Failure::at(Step::Memory))?;
    let (ready, exports) = setup::build(&setup)?;
    let mut fds = [Fd(-1); EXPORTS_MAX];
    let mut count = 0usize;
    for (slot, export) in fds.iter_mut().zip(exports.iter().flatten()) {
        *slot = export.fd();
        count = count.wrapping_add(1);
    }
    let fds = fds.get(..count).unwrap_or_default();
    send_with(CONTROL, &ready.encode(), fds).map_err(Failure::at(Step::Export))?;
    Ok(Launcher {
        setup,
        request,
        stack,
        runs,
        live: 0,
        ahead: true,
        ahead_facts: 0,
        clone3_refused: false,
        processors: Processors::of_launcher(),
        aside: false,
    })
}

impl Launcher<'_> {
    fn serve(&mut self) -> i32 {
        loop {
            let mut fds = [CONTROL, HOST, SIGNALS].map(PollFd::readable);
            match base::poll(&mut fds, Wait::Forever) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return FAILED,
            }
            let [control, host, signals] = fds.map(|entry| entry.revents != 0);
            if host {
                return FAILED;
            }
            if signals && self.reap().is_err() {
                return FAILED;
            }
            if control && !self.take_request() {
                return 0;
            }
        }
    }

    /// Takes one request; false when the library has closed its end.
    fn take_request(&mut self) -> bool {
        let received = match receive(CONTROL, self.request, false) {
            Ok(received) if received.len > 0 => received,
            Err(Errno::EAGAIN | Errno::EINTR) => return true,
            Ok(_) | Err(_) => return false,
        };
        let Received { len, mut fds, truncated } = received;
        let [status, rest @ ..] = &mut fds;
        // Without a status line there is nobody to answer; the library sees the socket close.
        let Some(status) = status.take() else { return true };
        if truncated {
            tell(&status, Failure::at(Step::ReceiveRequest)(Errno::EMFILE));
        } else {
            self.answer(status, rest, len);
        }
        if let Some(used) = self.request.get_mut(..len) {
            used.fill(0);
        }
        true
    }

    /// Launches, answers on the run's own line, and gets the next run's namespaces ready.
    fn answer(&mut self, status: OwnedFd, fds: &mut [Option<OwnedFd>; FDS_MAX - 1], len: usize) {
        let launched = self.launch(&status, fds, len);
        // The run has its own copies of these by now.
        fds.fill_with(|| None);
        match launched {
            Ok((pid, pidfd)) => {
                let mut started = Record::new(Kind::Started);
                started.facts = self.ahead_facts;
                if self.clone3_refused {
                    started.facts |= facts::CLONE3_REFUSED;
                }
                // Without its pidfd the library could not end the run, so it must not go on.
                if send_with(status.fd(), &started.encode(), &[pidfd.fd()]).is_err() {
                    base::kill(pid, 9).ok();
                }
                self.keep(pid, status);
                if !self.setup.has(flags::SINGLE_USE) {
                    // The run gets this processor; the next one's namespaces are made on another.
                    self.aside = self.processors.is_some_and(|all| all.step_aside());
                    // A failure shows again when the next run needs them, and is reported there.
                    self.make_ahead().ok();
                }
            }
            Err(failure) => tell(&status, failure),
        }
    }

    fn launch(
        &mut self,
        status: &OwnedFd,
        fds: &mut [Option<OwnedFd>; FDS_MAX - 1],
        len: usize,
    ) -> Result<(i32, OwnedFd), Failure> {
        let decode = Failure::at(Step::DecodeRequest);
        let [stdin, stdout, stderr, cgroup, memfd, ..] = fds;
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(decode(MALFORMED));
        };
        let has_cgroup = flags_of(self.request) & run_flags::CGROUP != 0;
        let (cgroup, memfd) = match (has_cgroup, &*cgroup) {
            (true, Some(cgroup)) => (Some(cgroup.fd()), &*memfd),
            (true, None) => return Err(decode(MALFORMED)),
            (false, next) => (None, next),
        };
        let stdio = [stdin.fd(), stdout.fd(), stderr.fd()];
        if self.live == RUNS_MAX {
            return Err(Failure::at(Step::TooManyRuns)(Errno::EAGAIN));
        }
        if self.setup.has(flags::SHARED_PID) && self.live > 0 {
            return Err(Failure::at(Step::PidNamespaceBusy)(Errno::EBUSY));
        }
        let mut mapped = match memfd {
            None => None,
            Some(memfd) => Some(map_request(memfd.fd(), self.request).map_err(decode)?),
        };
        if !self.ahead {
            self.make_ahead()?;
        }
        self.roam()?;
        let cloned = self.clone_run(cgroup)?;
        self.ahead = self.setup.ahead_flags == 0;
        match cloned {
            Cloned::Parent(pid, pidfd) => Ok((pid, pidfd)),
            Cloned::Child => {
                let request = match &mut mapped {
                    Some(mapping) => mapping.bytes_mut(),
                    None => self.request.get_mut(..len).unwrap_or_default(),
                };
                let (setup, stack) = (&self.setup, &mut *self.stack);
                child::become_init(Run { setup, request, stdio, status: status.fd(), stack })
            }
        }
    }

    /// Docker's default filter answers `clone3` with ENOSYS, others with EPERM; the older call does
    /// all that is needed here, and its own answer is the one that counts.
    fn clone_run(&mut self, cgroup: Option<Fd>) -> Result<Cloned, Failure> {
        let flags = self.setup.clone_flags;
        if let Some(cgroup) = cgroup {
            // The root of a namespace made now would be the launcher's own group.
            let flags = flags & !namespaces::CLONE_NEWCGROUP;
            return sys::clone3(flags, Some(cgroup)).map_err(Failure::at(Step::CloneIntoGroup));
        }
        if !self.clone3_refused {
            match sys::clone3(flags, None) {
                Ok(cloned) => return Ok(cloned),
                Err(Errno::ENOSYS | Errno::EPERM) => {}
                Err(errno) => return Err(Failure::at(Step::CloneRun)(errno)),
            }
        }
        let cloned = sys::clone(flags).map_err(Failure::at(Step::CloneRun))?;
        self.clone3_refused = true;
        Ok(cloned)
    }

    fn roam(&mut self) -> Result<(), Failure> {
        if let Some(processors) = self.processors.filter(|_| self.aside) {
            processors.roam().map_err(Failure::at(Step::Processors))?;
            self.aside = false;
        }
        Ok(())
    }

    fn make_ahead(&mut self) -> Result<(), Failure> {
        self.ahead_facts = match namespaces::make_ahead(&self.setup, PROC)? {
            Limits::All => 0,
            Limits::SomeMissing => facts::IPC_LIMITS_MISSING,
        };
        self.ahead = true;
        Ok(())
    }

    fn keep(&mut self, pid: i32, status: OwnedFd) {
        if let Some(slot) = self.runs.iter_mut().find(|slot| slot.is_none()) {
            *slot = Some(Slot { pid, status });
            self.live = self.live.saturating_add(1);
        }
    }

    /// Reports each ended run. All of its processes are gone by then: the kernel lets the last
    /// process of a pid namespace end only after the others.
    fn reap(&mut self) -> Result<(), Errno> {
        while base::next_signal(SIGNALS).is_some() {}
        loop {
            let ended = match process::reap() {
                Ok(Some(ended)) => ended,
                Ok(None) | Err(Errno::ECHILD) => return Ok(()),
                Err(errno) => return Err(errno),
            };
            let run = |slot: &&mut Option<Slot>| matches!(slot, Some(run) if run.pid == ended.pid);
            let Some(run) = self.runs.iter_mut().find(run).and_then(Option::take) else { continue };
            self.live = self.live.saturating_sub(1);
            if self.setup.has(flags::SHARED_PID) {
                end_stragglers()?;
            }
            let mut record = Record::new(Kind::Reaped);
            (record.code, record.signal) = (ended.code, ended.signal);
            (record.user_us, record.system_us) = (ended.user_us, ended.system_us);
            record.peak_kib = ended.peak_kib;
            base::send(run.status.fd(), &record.encode()).ok();
        }
    }
}

/// In a shared pid namespace the kernel does not end a run's other processes; its only run is over.
fn end_stragglers() -> Result<(), Errno> {
    loop {
        base::kill(-1, 9).ok();
        match process::wait_any() {
            Ok(_) => {}
            Err(Errno::ECHILD) => return Ok(()),
            Err(errno) => return Err(errno),
        }
    }
}

fn tell(status: &OwnedFd, failure: Failure) {
    base::send(status.fd(), &failure.record().encode()).ok();
}

/// The second word of every request.
fn flags_of(message: &[u8]) -> u64 {
    message.as_chunks::<8>().0.get(1).map_or(0, |word| u64::from_le_bytes(*word))
}

/// Maps a request that did not fit the message, whose second word says so and third how long it is.
fn map_request(memfd: Fd, message: &[u8]) -> Result<Mapping, Errno> {
    let (words, _) = message.as_chunks::<8>();
    let [_, _, len, ..] = words else { return Err(MALFORMED) };
    if flags_of(message) & run_flags::IN_MEMFD == 0 {
        return Err(MALFORMED);
    }
    let len = usize::try_from(u64::from_le_bytes(*len)).ok().ok_or(MALFORMED)?;
    let mapping = Mapping::new(memfd, len)?;
    Request::read(mapping.bytes())?;
    Ok(mapping)
}
