//! Signals to this process go to the program, and end the run when it does not end by itself. Never
//! ends this process while a run is there.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use postern::ProcessHandle;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::sys::is_ignored;
use crate::terminal;

/// What PID 1 passes on.
const PASSED_ON: [Signal; 7] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTERM,
    Signal::SIGWINCH,
];

/// How long a sandbox may go on being built once somebody has asked for the end: it is taken down in
/// order when it stands, and a mount that hangs is not waited for.
const BUILD_PATIENCE: Duration = Duration::from_secs(1);

/// How often is looked whether this process is in the foreground by now.
const UNTIL_FOREGROUND: Duration = Duration::from_millis(100);

/// Two INTs that come closer together are one: `timeout(1)` and some shells send it to the process
/// and to its group.
const ONE_PRESS: Duration = Duration::from_millis(50);

/// Whose keys those of this process's terminal are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnTerminal {
    /// This process's, if it has one.
    Ours,
    /// The guest's: its size is passed on, and it is taken back while this process is stopped.
    GivenOver,
}

/// How far this process has come.
#[derive(Debug)]
enum Stage {
    /// The sandbox is being built.
    Building,
    /// There is a run.
    Running(ProcessHandle),
    /// The run is gone; its last output may be on its way.
    Over,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    /// The first signal that asked for the end.
    asked: Option<Signal>,
    /// The program had its grace and was killed.
    overstayed: bool,
}

/// The signals of this process, which from then on do nothing else.
#[derive(Debug)]
pub(crate) struct Signals {
    state: Arc<Mutex<State>>,
}

impl Signals {
    /// Takes them, but those that were ignored when this process was started. To be called while it
    /// has one thread: the others inherit that nothing interrupts them.
    pub(crate) fn take(grace: Duration, terminal: OwnTerminal) -> io::Result<Signals> {
        let more: &[Signal] = match terminal {
            OwnTerminal::GivenOver => &[Signal::SIGTSTP, Signal::SIGCONT],
            OwnTerminal::Ours => &[],
        };
        let wanted = PASSED_ON.iter().chain(more).copied();
        let taken: SigSet = wanted.filter(|signal| !is_ignored(*signal)).collect();
        let mut blocked = taken;
        // In the background a read from the terminal is to fail, what is written there to be shown,
        // and neither to stop this process.
        blocked.add(Signal::SIGTTIN);
        blocked.add(Signal::SIGTTOU);
        blocked.thread_block()?;
        let line = SignalFd::with_flags(&taken, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let state = State { stage: Stage::Building, asked: None, overstayed: false };
        let state = Arc::new(Mutex::new(state));
        let watcher = Watcher {
            state: Arc::clone(&state),
            line,
            grace,
            terminal,
            due: None,
            first_int: None,
        };
        thread::Builder::new().name("signals".to_owned()).spawn(move || watcher.watch())?;
        Ok(Signals { state })
    }

    /// There is a run now; or the signal that has asked for the end before.
    pub(crate) fn started(&self, run: ProcessHandle) -> Result<(), Signal> {
        let mut state = lock(&self.state);
        match state.asked {
            Some(signal) => Err(signal),
            None => {
                state.stage = Stage::Running(run);
                Ok(())
            }
        }
    }

    /// The run is gone: a signal ends this process.
    pub(crate) fn over(&self) {
        lock(&self.state).stage = Stage::Over;
    }

    /// The first signal that asked for the end.
    pub(crate) fn asked(&self) -> Option<Signal> {
        lock(&self.state).asked
    }

    /// That signal, where the program did not heed it and was killed once its grace had passed.
    pub(crate) fn overstayed(&self) -> Option<Signal> {
        let state = lock(&self.state);
        state.asked.filter(|_| state.overstayed)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // No field is half changed by a panic.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread that waits for them.
struct Watcher {
    state: Arc<Mutex<State>>,
    line: SignalFd,
    grace: Duration,
    terminal: OwnTerminal,
    /// When patience ends.
    due: Option<Instant>,
    first_int: Option<Instant>,
}

impl Watcher {
    fn watch(mut self) {
        while self.wait() {
            if self.awaits_terminal() {
                terminal::give_over();
            }
            while let Ok(Some(info)) = self.line.read_signal() {
                let number = i32::try_from(info.ssi_signo).unwrap_or_default();
                match Signal::try_from(number) {
                    Ok(signal) if self.is_of_terminal(signal) => self.deal_with_terminal(signal),
                    Ok(signal) => self.deal(signal),
                    Err(_) => {}
                }
            }
            if self.due.is_some_and(|due| due <= Instant::now()) {
                self.due = None;
                self.run_out();
            }
        }
    }

    /// Until a signal is there or patience ends; false when that cannot be waited for.
    fn wait(&self) -> bool {
        let left = self.due.map(|due| due.saturating_duration_since(Instant::now()));
        let left = left.into_iter().chain(self.awaits_terminal().then_some(UNTIL_FOREGROUND)).min();
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let line = self.line.as_fd();
        let mut fds = [PollFd::from_borrowed_fd(line, PollFlags::IN)];
        !matches!(poll(&mut fds, left.as_ref()), Err(errno) if errno != rustix::io::Errno::INTR)
    }

    /// It is to be given over once this process is in the foreground, which nobody tells it.
    fn awaits_terminal(&self) -> bool {
        self.terminal == OwnTerminal::GivenOver && !terminal::is_given_over()
    }

    fn is_of_terminal(&self, signal: Signal) -> bool {
        let is_known = matches!(signal, Signal::SIGTSTP | Signal::SIGCONT | Signal::SIGWINCH);
        is_known && self.terminal == OwnTerminal::GivenOver
    }

    fn deal_with_terminal(&self, signal: Signal) {
        if signal == Signal::SIGTSTP {
            return terminal::stop();
        }
        if signal == Signal::SIGCONT {
            // Whoever had the terminal meanwhile has left it as they like.
            terminal::give_over();
        }
        if let (Stage::Running(run), Some(size)) = (&lock(&self.state).stage, terminal::size()) {
            // Its terminal may be gone, and then it has no size.
            run.resize(size).ok();
        }
    }

    fn deal(&mut self, signal: Signal) {
        let is_end =
            matches!(signal, Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP | Signal::SIGQUIT);
        let is_pressed_again = signal == Signal::SIGINT && self.is_pressed_again();
        let mut state = lock(&self.state);
        let patience = match &state.stage {
            Stage::Building if is_pressed_again => leave(signal),
            Stage::Building => BUILD_PATIENCE,
            Stage::Running(run) => {
                match is_pressed_again {
                    true => run.kill(),
                    false => send(run, signal),
                }
                self.grace
            }
            Stage::Over if is_end => leave(signal),
            Stage::Over => return,
        };
        if is_end {
            state.asked.get_or_insert(signal);
            // A grace that no clock can tell has no end.
            self.due = self.due.or(Instant::now().checked_add(patience));
        }
    }

    /// An INT came, and it is not the first.
    fn is_pressed_again(&mut self) -> bool {
        let first = *self.first_int.get_or_insert_with(Instant::now);
        first.elapsed() >= ONE_PRESS
    }

    /// Patience has ended.
    fn run_out(&self) {
        let mut state = lock(&self.state);
        match (&state.stage, state.asked) {
            (Stage::Building, Some(signal)) => leave(signal),
            (Stage::Running(run), _) => {
                run.kill();
                state.overstayed = true;
            }
            (Stage::Building | Stage::Over, _) => {}
        }
    }
}

fn send(run: &ProcessHandle, signal: Signal) {
    if let Some(signal) = postern::Signal::from_named_raw(signal as i32) {
        run.signal(signal);
    }
}

/// The exit status of a process that a signal has ended.
pub(crate) fn status(signal: Signal) -> u8 {
    u8::try_from(128 + signal as i32).unwrap_or(crate::failure::OWN_FAILURE)
}

/// Ends this process at once; a launcher that it has ends with it.
fn leave(signal: Signal) -> ! {
    terminal::take_back();
    #[expect(clippy::exit, reason = "the thread that could end it in order is stuck")]
    std::process::exit(status(signal).into())
}
