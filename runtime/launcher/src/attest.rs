//! What PID 1 asks the kernel about itself when the host wants to look: the few things that no
//! other process is told. It asks before the filter, which would refuse some of it.

use postern_init::record::{Kind, Record, attested};
use postern_init::sys::{Errno, prctl};

use crate::sys;
use crate::wire::Setup;

/// The record of a confined PID 1. What cannot be found out is not claimed.
pub(crate) fn attest(setup: &Setup<'_>) -> Record {
    const PR_GET_DUMPABLE: u32 = 3;
    const PR_GET_SECUREBITS: u32 = 27;
    let rows = [
        (attested::LANDLOCK, setup.landlock_handled != 0 && is_landlocked()),
        (attested::KEYRING_CLOSED, is_keyring_closed()),
        (attested::NON_DUMPABLE, prctl(PR_GET_DUMPABLE, 0, 0) == Ok(0)),
    ];
    let mut record = Record::new(Kind::Confined);
    record.facts = rows.iter().filter(|row| row.1).fold(0, |facts, row| facts | row.0);
    let securebits = prctl(PR_GET_SECUREBITS, 0, 0).ok().and_then(|bits| i32::try_from(bits).ok());
    record.code = securebits.unwrap_or(-1);
    record
}

/// Nobody without capabilities makes a block device, which the kernel says with `EPERM`; a Landlock
/// domain without the right to make one is asked before, and says `EACCES`. A whiteout, which anybody
/// may make, tells nothing: newer kernels count it as a plain file.
fn is_landlocked() -> bool {
    sys::make_block_device(c"/dev/shm/.block") == Err(Errno::EACCES)
}

/// The keyring of the service can be looked up by its possessor; the launcher's has no permission
/// left, not even that.
fn is_keyring_closed() -> bool {
    const GET_KEYRING_ID: usize = 0;
    /// `KEY_SPEC_SESSION_KEYRING`.
    const SESSION: usize = (-3isize).cast_unsigned();
    sys::keyctl(GET_KEYRING_ID, SESSION, 0) == Err(Errno::EACCES)
}
