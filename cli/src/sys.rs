//! What a signal was set to when this process started, which no safe wrapper only asks; sets nothing.
#![expect(unsafe_code, reason = "sigaction(2) that only asks")]

use std::mem::MaybeUninit;

use nix::libc;
use nix::sys::signal::Signal;

/// Whether whoever started this process had the signal ignored, as `nohup(1)` does.
pub(crate) fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks, sets nothing, and fills the place that it is given.
    let asked = unsafe { libc::sigaction(signal as i32, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all zeros is a valid value, and the call wrote another if it succeeded.
    let action = unsafe { action.assume_init() };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}
