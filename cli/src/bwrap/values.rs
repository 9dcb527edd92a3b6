//! The values of bwrap's options: numbers, names and paths, each with its own words for what is
//! wrong with it.

use std::ffi::OsStr;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;

/// The digits of a number as strtol(3) takes them: spaces before them, and a plus sign.
fn digits(value: &OsStr) -> Option<&str> {
    let text = value.to_str()?.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    Some(text.strip_prefix('+').unwrap_or(text))
}

fn number(digits: &str, radix: u32) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}

fn decimal(value: &OsStr) -> Option<u64> {
    number(digits(value)?, 10)
}

/// A number whose prefix tells its radix, as in C.
fn prefixed(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => number(hex, 16),
        None if text.len() > 1 && text.starts_with('0') => number(text, 8),
        None => number(text, 10),
    }
}

/// A descriptor.
pub(super) fn fd(value: &OsStr) -> Result<RawFd, String> {
    decimal(value)
        .and_then(|number| RawFd::try_from(number).ok())
        .ok_or_else(|| format!("Invalid fd: {}", value.display()))
}

/// A user or group id. The last number is no id, and greater ones are not cut to size: an id that
/// is not what was asked for could be root's.
pub(super) fn id(kind: &str, value: &OsStr) -> Result<u32, String> {
    decimal(value)
        .and_then(|number| u32::try_from(number).ok())
        .filter(|id| *id != u32::MAX)
        .ok_or_else(|| format!("Invalid {kind}: {}", value.display()))
}

/// Permission bits.
pub(super) fn mode(option: &str, value: &OsStr) -> Result<u32, String> {
    digits(value)
        .and_then(|digits| number(digits, 8))
        .and_then(|mode| u32::try_from(mode).ok())
        .filter(|mode| *mode <= 0o7777)
        .ok_or_else(|| format!("{option} takes an octal argument <= 07777"))
}

/// A number of bytes.
pub(super) fn size(option: &str, value: &OsStr) -> Result<u64, String> {
    const MOST: u64 = (1 << 63) - 1;
    match value.to_str().and_then(prefixed) {
        None | Some(0) => Err(format!("{option} takes a non-zero number of bytes")),
        Some(bytes) if bytes > MOST => Err(format!("{option} (for tmpfs) is limited to {MOST}")),
        Some(bytes) => Ok(bytes),
    }
}

/// The name of a variable.
pub(super) fn variable<'a>(act: &str, value: &'a OsStr) -> Result<&'a OsStr, String> {
    match value.is_empty() || value.as_bytes().contains(&b'=') {
        true => Err(format!("{act} failed: {:?} is no name of a variable", value.display())),
        false => Ok(value),
    }
}

/// The number of a capability; none for all of them.
pub(super) fn capability(value: &OsStr) -> Result<Option<u8>, String> {
    let unknown = || format!("unknown cap: {}", value.display());
    let text = value.to_str().ok_or_else(unknown)?.to_ascii_lowercase();
    if text == "all" {
        return Ok(None);
    }
    let named = CAPABILITIES.iter().position(|name| *name == text);
    let numbered = || usize::try_from(prefixed(text.strip_prefix('+').unwrap_or(&text))?).ok();
    let number = named.or_else(numbered).filter(|number| *number < CAPABILITIES.len());
    number.and_then(|number| u8::try_from(number).ok()).map(Some).ok_or_else(unknown)
}

/// By number; capabilities(7).
const CAPABILITIES: [&str; 41] = [
    "cap_chown",
    "cap_dac_override",
    "cap_dac_read_search",
    "cap_fowner",
    "cap_fsetid",
    "cap_kill",
    "cap_setgid",
    "cap_setuid",
    "cap_setpcap",
    "cap_linux_immutable",
    "cap_net_bind_service",
    "cap_net_broadcast",
    "cap_net_admin",
    "cap_net_raw",
    "cap_ipc_lock",
    "cap_ipc_owner",
    "cap_sys_module",
    "cap_sys_rawio",
    "cap_sys_chroot",
    "cap_sys_ptrace",
    "cap_sys_pacct",
    "cap_sys_admin",
    "cap_sys_boot",
    "cap_sys_nice",
    "cap_sys_resource",
    "cap_sys_time",
    "cap_sys_tty_config",
    "cap_mknod",
    "cap_lease",
    "cap_audit_write",
    "cap_audit_control",
    "cap_setfcap",
    "cap_mac_override",
    "cap_mac_admin",
    "cap_syslog",
    "cap_wake_alarm",
    "cap_block_suspend",
    "cap_audit_read",
    "cap_perfmon",
    "cap_bpf",
    "cap_checkpoint_restore",
];
