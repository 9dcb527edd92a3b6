//! Section H: arguments and other ABIs by which a filter could be passed.

use libc::{EACCES, EAFNOSUPPORT, EINVAL, ENOSYS, ENOTTY, EOPNOTSUPP, EPERM, EPROTONOSUPPORT};
use postern_seccomp::{Arch, Level};
use serde_json::Value;

use crate::stage::Stage;
use crate::table::Expect::{Meets, Refused};
use crate::table::Severity::{Critical, High, Medium};
use crate::table::{KILLED, Row, ask, guest};
use crate::verdict::{Finding, held};

pub(crate) const ROWS: &[Row] = &[
    guest(
        "H-01",
        Critical,
        "no call by the 32-bit gate",
        &[
            ask("calls int80:20", Refused(&[ENOSYS, KILLED])),
            ask("calls int80:359 40 1 0", Refused(&[ENOSYS, KILLED])),
            ask("calls int80:102 1 b:280000000100000000000000", Refused(&[ENOSYS, KILLED])),
            ask("calls int80:310 0x10000000", Refused(&[ENOSYS, KILLED])),
            ask("calls int80:21 s:none s:{w} s:tmpfs 0 0", Refused(&[ENOSYS, KILLED])),
            ask("calls int80:425 1 z:120", Refused(&[ENOSYS, KILLED])),
            ask("calls int80:288 0 -3 0", Refused(&[ENOSYS, KILLED])),
        ],
    ),
    guest(
        "H-02",
        High,
        "no call under an x32 number",
        &[
            ask("calls x32:getpid", Refused(&[ENOSYS])),
            ask("calls x32:unshare 0x10000000", Refused(&[ENOSYS])),
            ask("calls x32:socket 40 1 0", Refused(&[ENOSYS])),
            ask("calls x32:keyctl 0 -3 0", Refused(&[ENOSYS])),
            ask("calls 512", Refused(&[ENOSYS])),
            ask("calls 0x40000200", Refused(&[ENOSYS])),
            ask("calls 0x40000223", Refused(&[ENOSYS])),
        ],
    )
    .shown(
        "native numbers from 512 on are x32's too, and ENOSYS is the filter's own answer to all",
    ),
    guest(
        "H-03",
        High,
        "high bits of an ioctl's command change nothing",
        &[
            ask("calls ioctl p:0x102:/dev/ptmx 0x100005412 s:x", Refused(&[EPERM])),
            ask("calls ioctl p:0x102:/dev/ptmx 0xffffffff00005412 s:x", Refused(&[EPERM])),
            ask("calls ioctl p:0x102:/dev/ptmx 0x10000541c b:03", Refused(&[EPERM])),
            ask("calls ioctl p:0x102:/dev/ptmx 0x8000000000005423 b:00000000", Refused(&[EPERM])),
            ask("calls ioctl 0 0x7f00000040086602 b:00000000", Refused(&[EPERM])),
            ask("calls ioctl 0 0x5412 s:x", Refused(&[EPERM])),
        ],
    ),
    guest(
        "H-04",
        Medium,
        "no line discipline is loaded",
        &[
            ask("calls ioctl p:0x102:/dev/ptmx 0x5423 b:0d000000", Refused(&[EPERM])),
            ask("calls ioctl p:0x102:/dev/ptmx 0x5423 b:15000000", Refused(&[EPERM])),
            ask("calls ioctl p:0x102:/dev/ptmx 0x5423 b:01000000", Refused(&[EPERM])),
            ask("calls ioctl p:0x102:/dev/ptmx 0x5423 b:19000000", Refused(&[EPERM])),
        ],
    ),
    guest(
        "H-05",
        High,
        "high bits of a socket's family change nothing",
        &[
            ask("calls socket 0x100000028 1 0", Refused(&[EAFNOSUPPORT])),
            ask("calls socket -4294967256 1 0", Refused(&[EAFNOSUPPORT])),
            ask("calls socket 0x100000010 3 15", Refused(&[EAFNOSUPPORT])),
            ask("calls socketpair 0x100000028 1 0 z:8", Refused(&[EAFNOSUPPORT, EOPNOTSUPP])),
            ask("calls socket 0x100000026 5 0", Refused(&[EAFNOSUPPORT])),
        ],
    ),
    guest(
        "H-06",
        Medium,
        "streams and datagrams only, whatever bits come with the type",
        &[
            ask("rooted calls socket 2 3 1", Refused(&[EPERM, EAFNOSUPPORT, EPROTONOSUPPORT])),
            ask(
                "rooted calls socket 2 0x80003 255",
                Refused(&[EPERM, EAFNOSUPPORT, EPROTONOSUPPORT]),
            ),
            ask("rooted calls socket 10 3 58", Refused(&[EPERM, EAFNOSUPPORT, EPROTONOSUPPORT])),
            ask("rooted calls socket 17 10 768", Refused(&[EPERM, EAFNOSUPPORT, EPROTONOSUPPORT])),
            ask("calls socket 2 5 132", Refused(&[EPERM, EAFNOSUPPORT, EPROTONOSUPPORT])),
            ask("calls socket 2 6 33", Refused(&[EPERM, EAFNOSUPPORT, EPROTONOSUPPORT])),
            ask("calls socket 2 1 262", Refused(&[EPERM, EAFNOSUPPORT, EPROTONOSUPPORT])),
            ask(
                "rooted calls socket 2 0x100000003 1",
                Refused(&[EPERM, EAFNOSUPPORT, EPROTONOSUPPORT]),
            ),
        ],
    ),
    guest(
        "H-07",
        Medium,
        "prctl forges nothing and regains nothing",
        &[
            ask("calls prctl 35 1 0x400000 0 0", Refused(&[EPERM])),
            ask("calls prctl 0x100000023 1 0x400000 0 0", Refused(&[EPERM])),
            ask("calls prctl 62 1 0 0 0", Refused(&[EPERM, EINVAL])),
            ask("calls prctl 0x59616d61 -1 0 0 0", Refused(&[EPERM, EINVAL])),
            ask("rooted calls prctl 47 2 0 0 0", Refused(&[EPERM, EINVAL])),
            ask("rooted calls prctl 28 0 0 0 0", Refused(&[EPERM, EINVAL])),
            ask("calls prctl 4 2 0 0 0", Refused(&[EPERM, EINVAL])),
        ],
    ),
    guest(
        "H-08",
        Medium,
        "no lease, no notification, no chosen signal",
        &[
            ask("calls openat -100 s:{w}/h08 0x42 0x1a4 ; fcntl $0 1024 1", Refused(&[EPERM])),
            ask("calls openat -100 s:{w}/h08 0x41 0x1a4 ; fcntl $0 1024 0", Refused(&[EPERM])),
            ask("calls fcntl p:0x10000:{w} 1026 1", Refused(&[EPERM])),
            ask("calls fcntl 1 10 9", Refused(&[EPERM])),
            ask("calls fcntl 1 15 w:0x100000000", Refused(&[EPERM])),
            ask(
                "calls openat -100 s:{w}/h08 0x42 0x1a4 ; fcntl $0 0x100000400 1",
                Refused(&[EPERM]),
            ),
        ],
    ),
    guest(
        "H-09",
        Medium,
        "no out-of-band data",
        &[
            ask(
                "calls socketpair 1 1 0 z:8 ; sendto @0:0 s:x 1 1 0 0",
                Refused(&[EPERM, EOPNOTSUPP]),
            ),
            ask(
                "calls socketpair 1 1 0 z:8 ; recvfrom @0:0 z:8 1 0x41 0 0",
                Refused(&[EPERM, EOPNOTSUPP]),
            ),
            ask(
                "calls getpid s:x ; getpid w:&0,1 ; socketpair 1 1 0 z:8 ; sendmsg @2:0 w:0,0,&1,1,0,0,0 1",
                Refused(&[EPERM, EOPNOTSUPP]),
            ),
            ask(
                "calls getpid s:x ; getpid w:&0,1 ; socketpair 1 1 0 z:8 ; sendmmsg @2:0 w:0,0,&1,1,0,0,0,0 1 1",
                Refused(&[EPERM, EOPNOTSUPP]),
            ),
            ask(
                "calls getpid z:8 ; getpid w:&0,8 ; socketpair 1 1 0 z:8 ; recvmsg @2:0 w:0,0,&1,1,0,0,0 0x41",
                Refused(&[EPERM, EOPNOTSUPP]),
            ),
        ],
    ),
    guest(
        "H-11",
        Critical,
        "no way of writing a mode keeps a set-id bit",
        &[
            ask("calls openat -100 s:{w}/h11 0x42 0x1a4 ; fchmod $0 0x800", Refused(&[EPERM])),
            ask("calls openat -100 s:{w}/h11 0x42 0x1a4 ; fchmod $0 0x400", Refused(&[EPERM])),
            ask("calls openat -100 s:{w}/h11 0x42 0x1a4 ; fchmod $0 0xc00", Refused(&[EPERM])),
            ask(
                "calls openat -100 s:{w}/h11 0x42 0x1a4 ; fchmod $0 0x100000800",
                Refused(&[EPERM]),
            ),
            ask("calls fchmodat2 -100 s:{w}/h11 0x800 0x100", Refused(&[EPERM])),
            ask("calls umask 0 ; openat -100 s:{w}/h11-u 0x41 0xfff", Refused(&[EPERM])),
            ask("calls open s:{w}/h11-o 0x41 0x9ff", Refused(&[EPERM])),
            ask("calls mkdir s:{w}/h11-d 0x400", Refused(&[EPERM])),
            ask("calls mkdir s:{w}/h11-e 0x100000400", Refused(&[EPERM])),
            ask("calls int80:15 s:{w}/h11 0x800", Refused(&[ENOSYS, KILLED])),
        ],
    ),
    guest(
        "H-12",
        High,
        "memory that changes during a call decides nothing",
        &[
            ask("race 20000 /tmp/nothing-here /proc/sys/kernel/core_pattern", Meets(none)),
            ask("race 20000 /tmp/nothing-here /etc/passwd", Meets(none)),
        ],
    )
    .and(registers_only),
    guest(
        "H-13",
        Medium,
        "odd bits of clone's flags make no namespace",
        &[
            ask("calls clone 0x100000ff 0 0 0 0", Refused(&[EPERM])),
            ask("calls clone 0x10808011 0 0 0 0", Refused(&[EPERM])),
            ask("calls clone 0x80000000 0 0 0 0 ; clone 0x90000011 0 0 0 0", Refused(&[EPERM])),
            ask("calls clone3 w:0x200000000,0,0,0,17,0,0,0,0,0,0 88", Refused(&[ENOSYS])),
        ],
    ),
    guest(
        "H-14",
        Medium,
        "no option of a socket reaches other code",
        &[
            ask(
                "calls setsockopt k:2:1:0 6 31 s:tls 4",
                Refused(&[EPERM, EACCES, libc::ENOPROTOOPT, EINVAL]),
            ),
            ask(
                "calls setsockopt k:2:2:0 17 100 b:02000000 4",
                Refused(&[EPERM, EACCES, libc::ENOPROTOOPT, EINVAL]),
            ),
            ask("calls setsockopt -1 279 1 s:x 1", Refused(&[EPERM, libc::ENOPROTOOPT, EINVAL])),
            ask(
                "calls setsockopt k:2:2:0 0x100000011 100 b:02000000 4",
                Refused(&[EPERM, EACCES, libc::ENOPROTOOPT, EINVAL]),
            ),
            ask("rooted calls setsockopt k:2:2:0 1 36 b:01000000 4", Refused(&[EPERM])),
            ask("calls ioctl k:2:2:0 0x89a2 s:br0", Refused(&[EPERM, ENOTTY])),
        ],
    ),
];

fn none(answer: &Value) -> Result<(), String> {
    match answer.as_i64() {
        Some(0) => Ok(()),
        _ => Err(format!("opened {answer} times")),
    }
}

/// A condition names one of six registers: none can look at memory. The rows above try it.
fn registers_only(_: &Stage) -> Result<Finding, String> {
    let mut rules = 0;
    for level in Level::ALL {
        if let Some(policy) = level.policy(Arch::X86_64) {
            rules += policy.rules().filter(|rule| !rule.conditions.is_empty()).count();
        }
    }
    held(format!(
        "opened 0 times while a thread rewrote the path; all {rules} conditions are of registers"
    ))
}
