//! Small seccomp filters around this program: some calls answered with an errno, or handed to a
//! listener. Knows x86-64 numbers only.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;

use crate::sys;

/// A call that is answered by the filter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refused {
    /// Its number.
    pub(crate) call: i64,
    /// Only where the first argument has one of these bits; 0: always.
    pub(crate) flags: i32,
    /// The answer.
    pub(crate) errno: i32,
}

impl Refused {
    /// A call that is always refused.
    pub(crate) const fn always(call: i64, errno: i32) -> Refused {
        Refused { call, flags: 0, errno }
    }
}

const LOAD_WORD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_SET: u16 = 0x45;
const RETURN: u16 = 0x06;
/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const FIRST_ARGUMENT: u32 = 16;

const fn step(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: 0, k }
}

const fn jump(code: u16, k: u32, if_not: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: if_not, k }
}

fn program(refused: &[Refused], otherwise: u32) -> io::Result<Vec<libc::sock_filter>> {
    let mut program = Vec::new();
    for row in refused {
        let number = u32::try_from(row.call).map_err(io::Error::other)?;
        let answer = libc::SECCOMP_RET_ERRNO | row.errno.unsigned_abs();
        program.push(step(LOAD_WORD, NUMBER));
        match row.flags {
            0 => program.extend([jump(JUMP_EQUAL, number, 1), step(RETURN, answer)]),
            flags => program.extend([
                jump(JUMP_EQUAL, number, 3),
                step(LOAD_WORD, FIRST_ARGUMENT),
                jump(JUMP_SET, flags.unsigned_abs(), 1),
                step(RETURN, answer),
            ]),
        }
    }
    program.push(step(RETURN, otherwise));
    Ok(program)
}

/// Refuses these calls to this thread and all that it starts, for ever.
pub(crate) fn refuse(refused: &[Refused]) -> Result<(), String> {
    // Without it only a privileged process may install a filter.
    rustix::thread::set_no_new_privs(true).map_err(|error| error.to_string())?;
    let program = program(refused, libc::SECCOMP_RET_ALLOW).map_err(|error| error.to_string())?;
    sys::install_filter(&program, 0).map(drop).map_err(|error| error.to_string())
}

/// Answers one call of this thread and of all that it starts with success, and does not perform it,
/// where each of these arguments, by its place, has this value.
pub(crate) fn pretend(call: i64, given: &[(usize, u32)]) -> Result<(), String> {
    rustix::thread::set_no_new_privs(true).map_err(|error| error.to_string())?;
    let allow = step(RETURN, libc::SECCOMP_RET_ALLOW);
    let mut program = vec![
        step(LOAD_WORD, NUMBER),
        jump(JUMP_EQUAL, u32::try_from(call).map_err(|error| error.to_string())?, 0),
    ];
    for (place, value) in given {
        let offset = u32::try_from(place * 8).map_err(|error| error.to_string())?;
        program.push(step(LOAD_WORD, FIRST_ARGUMENT + offset));
        program.push(jump(JUMP_EQUAL, *value, 0));
    }
    // Whatever is not equal goes to the last instruction.
    let end = program.len();
    for (at, instruction) in
        program.iter_mut().enumerate().filter(|(_, one)| one.code == JUMP_EQUAL)
    {
        instruction.jf = u8::try_from(end - at).map_err(|error| error.to_string())?;
    }
    program.extend([step(RETURN, libc::SECCOMP_RET_ERRNO), allow]);
    sys::install_filter(&program, 0).map(drop).map_err(|error| error.to_string())
}

/// Hands these calls of this thread, and of all that it starts, to the descriptor returned.
pub(crate) fn listen_to(calls: &BTreeSet<i64>) -> io::Result<Option<OwnedFd>> {
    let mut program = vec![step(LOAD_WORD, NUMBER)];
    for call in calls {
        let number = u32::try_from(*call).map_err(io::Error::other)?;
        program.push(jump(JUMP_EQUAL, number, 1));
        program.push(step(RETURN, libc::SECCOMP_RET_USER_NOTIF));
    }
    program.push(step(RETURN, libc::SECCOMP_RET_ALLOW));
    with_listener(&program)
}

/// Hands every call of this thread, and of all that it starts, to the descriptor returned.
pub(crate) fn listen() -> io::Result<Option<OwnedFd>> {
    with_listener(&program(&[], libc::SECCOMP_RET_USER_NOTIF)?)
}

fn with_listener(program: &[libc::sock_filter]) -> io::Result<Option<OwnedFd>> {
    let flags =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    match sys::install_filter(program, flags) {
        // Without CAP_SYS_ADMIN only this allows it.
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
            rustix::thread::set_no_new_privs(true)?;
            sys::install_filter(program, flags)
        }
        installed => installed,
    }
}
