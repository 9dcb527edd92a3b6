//! The terminal of a run that asked for one: made in its own devpts, so that it is gone with the
//! run; reads and writes nothing.

mod sys;

use postern_init::record::{Kind, Record};
use postern_init::step::Step;
use postern_init::supervise::Failure;
use postern_init::sys::{self as base, Errno, Fd, O_RDWR, open_at};

use crate::socket::send_with;

/// Makes a terminal of `size`, rows in the lower half and columns in the upper one, sends both of
/// its ends to the host and has the guest's end stand for its three streams.
pub(crate) fn make(status: Fd, size: u32) -> Result<(), Failure> {
    try_make(status, size).map_err(Failure::at(Step::Terminal))
}

fn try_make(status: Fd, size: u32) -> Result<(), Errno> {
    let master = open_at(Fd::CWD, c"/dev/pts/ptmx", O_RDWR, 0)?;
    let slave = sys::open_slave(master.fd(), size)?;
    send_with(status, &Record::new(Kind::Terminal).encode(), &[master.fd(), slave.fd()])?;
    for stream in 0..3 {
        base::dup_onto(slave.fd(), Fd(stream), 0)?;
    }
    Ok(())
}
