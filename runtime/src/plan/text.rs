//! Turns checked text into C strings; the one place where a NUL byte could still turn up.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;

use crate::error::Refusal;
use crate::profile::Field;

/// A path or name for a system call.
pub(super) fn c_string(field: Field, text: impl AsRef<OsStr>) -> Result<CString, Refusal> {
    CString::new(text.as_ref().as_bytes()).map_err(|_nul| Refusal::Nul { field })
}

/// A number in decimal.
pub(super) fn number(number: u64) -> CString {
    // Digits hold no NUL, so the default is never taken.
    CString::new(number.to_string()).unwrap_or_default()
}
