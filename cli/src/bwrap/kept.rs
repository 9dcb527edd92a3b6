//! Strings and lists that a launch is made of. They live as long as the process, since a forked child
//! that allocates nothing borrows them.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;

/// A string for the kernel. What comes from a command line holds no NUL; one from a file of
/// arguments was cut at it.
pub(super) fn text(text: impl AsRef<OsStr>) -> &'static CStr {
    let bytes = text.as_ref().as_bytes();
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    Box::leak(CString::new(bytes).unwrap_or_default().into_boxed_c_str())
}

/// A list.
pub(super) fn list<T>(items: Vec<T>) -> &'static [T] {
    Vec::leak(items)
}
