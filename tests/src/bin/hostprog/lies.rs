//! Kernels that lie: one call of a launch is answered with success and not performed; the library
//! must find that a wall is missing, before the first program runs.

use postern::Error;
use postern::error::Violation;

use crate::Scenario;
use crate::filter;
use crate::world::{self, Outcome, ensure};

/// Every scenario about lies.
pub(crate) const ALL: [Scenario; 1] = [("lie", lie)];

/// A wall, the call that builds it, and those of its arguments that tell it from other calls.
type Lie = (&'static str, i64, &'static [(usize, u32)]);

const SECCOMP_SET_MODE_FILTER: u32 = 1;
const KEYCTL_SETPERM: u32 = 5;
const MS_BIND: u32 = 0x1000;
const PR_SET_DUMPABLE: u32 = 4;
const PR_CAPBSET_DROP: u32 = 24;
const PR_SET_SECUREBITS: u32 = 28;

const LIES: [Lie; 11] = [
    ("landlock", libc::SYS_landlock_restrict_self, &[]),
    ("securebits", libc::SYS_prctl, &[(0, PR_SET_SECUREBITS)]),
    ("bounding-set", libc::SYS_prctl, &[(0, PR_CAPBSET_DROP)]),
    ("capabilities", libc::SYS_capset, &[]),
    ("dumpable", libc::SYS_prctl, &[(0, PR_SET_DUMPABLE), (1, 0)]),
    ("keyring", libc::SYS_keyctl, &[(0, KEYCTL_SETPERM)]),
    ("filter", libc::SYS_seccomp, &[(0, SECCOMP_SET_MODE_FILTER)]),
    ("limits", libc::SYS_prlimit64, &[]),
    ("mount-flags", libc::SYS_mount_setattr, &[]),
    // Not the one that keeps mounts from spreading to the host.
    ("masks", libc::SYS_mount, &[(3, MS_BIND)]),
    ("descriptors", libc::SYS_close_range, &[]),
];

/// Is lied to about one wall: what a run and what `verify` say.
fn lie(arguments: &[String]) -> Outcome {
    let wanted = arguments.first().map_or("", String::as_str);
    let (_, call, given) = LIES.iter().find(|lie| lie.0 == wanted).ok_or("no such lie")?;
    let before = world::warm()?;
    filter::pretend(*call, given)?;
    let sandbox = world::sandbox()?;
    let names = |error: Error| {
        let Error::Unconfined(violations) = error else {
            return Err(format!("not unconfined: {error}"));
        };
        Ok(named(&violations))
    };
    let ran = match sandbox.run(["/bin/true"]) {
        Ok(result) => Err(format!("a program ran: {:?}", result.ending)),
        Err(error) => names(error),
    }?;
    let verified = match sandbox.verify() {
        Ok(_) => Err("verified".to_owned()),
        Err(error) => names(error),
    }?;
    drop(sandbox);
    before.compare()?;
    ensure(ran == verified, || format!("a run: {ran}; verify: {verified}"))?;
    Ok(verified)
}

/// Each thing once.
fn named(violations: &[Violation]) -> String {
    let mut names: Vec<_> = violations.iter().map(|violation| violation.what).collect();
    names.dedup();
    names.join(", ")
}
