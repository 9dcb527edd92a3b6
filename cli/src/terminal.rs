//! This process's own terminal while a guest has one: its keys go to the guest as they are, and it is
//! as it was whenever this process stops, ends or is in the background. Moves no bytes.

use std::fs::File;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{Signal, raise};
use postern::WindowSize;
use rustix::process::getpgrp;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

/// The terminal, and its modes before.
struct Saved {
    terminal: File,
    modes: Termios,
    is_raw: bool,
}

/// One for the process, so that whatever ends it can put it right.
static SAVED: Mutex<Option<Saved>> = Mutex::new(None);

fn saved() -> MutexGuard<'static, Option<Saved>> {
    // Its modes stay those from before, whatever panics.
    SAVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The terminal is given over to the guest until this is dropped.
#[derive(Debug)]
pub(crate) struct GivenOver;

impl GivenOver {
    /// Gives it over now, or when this process is in the foreground again.
    pub(crate) fn new(terminal: File) -> io::Result<GivenOver> {
        let modes = tcgetattr(&terminal)?;
        *saved() = Some(Saved { terminal, modes, is_raw: false });
        give_over();
        Ok(GivenOver)
    }
}

impl Drop for GivenOver {
    fn drop(&mut self) {
        take_back();
        *saved() = None;
    }
}

/// Another job has the terminal, whose modes are then its own.
pub(crate) fn is_in_background(terminal: &File) -> bool {
    tcgetpgrp(terminal).is_ok_and(|foreground| foreground != getpgrp())
}

/// Every key is the guest's, if the terminal is ours at the moment.
pub(crate) fn give_over() {
    let mut saved = saved();
    if let Some(saved) = &mut *saved
        && !is_in_background(&saved.terminal)
    {
        let mut raw = saved.modes.clone();
        raw.make_raw();
        saved.is_raw = tcsetattr(&saved.terminal, OptionalActions::Now, &raw).is_ok();
    }
}

/// It is the guest's at the moment.
pub(crate) fn is_given_over() -> bool {
    saved().as_ref().is_some_and(|saved| saved.is_raw)
}

/// As it was before, if it is not so already.
pub(crate) fn take_back() {
    let mut saved = saved();
    if let Some(saved) = &mut *saved
        && std::mem::replace(&mut saved.is_raw, false)
        && !is_in_background(&saved.terminal)
    {
        // A terminal that is gone needs no modes.
        tcsetattr(&saved.terminal, OptionalActions::Now, &saved.modes).ok();
    }
}

/// Its size by now.
pub(crate) fn size() -> Option<WindowSize> {
    saved().as_ref().and_then(|saved| WindowSize::of(&saved.terminal))
}

/// Stops this process, as somebody has asked by `SIGTSTP`; returns when it goes on.
pub(crate) fn stop() {
    take_back();
    // It cannot be refused.
    raise(Signal::SIGSTOP).ok();
}
