//! Section M, what a guest itself can count: bounds of everything that the host has a finite
//! amount of. The load itself is short here.

use libc::{EAGAIN, EFBIG, EINVAL, EMFILE, ENOMEM, ENOSPC, ENOSYS, EPERM};
use serde_json::Value;

use super::exhaustion;
use crate::table::Expect::{At, Meets, Refused};
use crate::table::Severity::{High, Low, Medium};
use crate::table::{Lacking, Row, ask, guest, host, inside};

const TOO_LARGE: i32 = -libc::SIGXFSZ;

pub(crate) const ROWS: &[Row] = &[
    guest(
        "M-02",
        Low,
        "little memory can be locked, and no stack is endless",
        &[
            ask("rlimits", At("/8", "[65536,65536]")),
            ask("rlimits", At("/3", "[8388608,8388608]")),
            inside(
                "calls mmap 0 0x100000 3 0x22 -1 0 ; mlock $0 0x100000",
                Refused(&[ENOMEM, EPERM, EAGAIN]),
            ),
        ],
    ),
    host("M-03", High, "every writable place is bounded, and there are few", exhaustion::places),
    host("M-04", High, "files without contents are bounded too", exhaustion::inodes),
    host("M-05", High, "space is bounded however it is taken, and comes back", exhaustion::space),
    guest(
        "M-06",
        Low,
        "a file ends at the documented length",
        &[inside(
            "calls openat -100 s:{w}/m06 0x42 0x1a4 ; lseek $0 0x40000000 0 ; write $0 s:x 1",
            Refused(&[EFBIG, TOO_LARGE]),
        )],
    ),
    host("M-07", High, "processes are bounded for each run", exhaustion::processes),
    guest(
        "M-08",
        High,
        "descriptors are few for each process",
        &[
            inside("repeat 5000 openat -100 s:/dev/null 0 0", Meets(below_1024)),
            ask("rlimits", At("/7", "[1024,1024]")),
        ],
    ),
    host("M-09", High, "watches of files run out inside first", exhaustion::watches)
        .needs(Lacking::DistinctUid),
    host("M-10", Medium, "memory in pipes runs out inside first", exhaustion::pipes)
        .needs(Lacking::DistinctUid),
    host("M-11", High, "descriptors in flight run out inside first", exhaustion::in_flight)
        .needs(Lacking::DistinctUid),
    host("M-12", Medium, "queued signals and timers run out inside first", exhaustion::timers),
    host("M-13", High, "the machine's pool of requests is not touched", exhaustion::requests),
    guest(
        "M-14",
        Medium,
        "terminals run out inside first",
        &[inside("repeat 100 openat -100 s:/dev/ptmx 2 0", Meets(sixteen))],
    ),
    guest(
        "M-15",
        Medium,
        "IPC objects run out inside first",
        &[
            inside("repeat 300 msgget 0 0x380", Meets(at_most_128)),
            inside("repeat 300 shmget 0 4096 0x380", Meets(at_most_128)),
            ask("rlimits", At("/12", "[262144,262144]")),
        ],
    ),
    host("M-16", Medium, "keys of the host's ids are not used up", exhaustion::keys),
    guest(
        "M-17",
        Low,
        "event descriptors are bounded by descriptors",
        &[
            inside("repeat 100000 eventfd2 0 0", Meets(below_1024)),
            inside("repeat 100000 timerfd_create 1 0", Meets(below_1024)),
            inside("repeat 100000 epoll_create1 0", Meets(below_1024)),
        ],
    ),
    guest(
        "M-18",
        Medium,
        "no namespace can be nested, let alone many",
        &[
            inside("repeat 40 unshare 0x10000000", Meets(none_at_all)),
            inside("repeat 40 clone 0x10000011 0 0 0 0", Meets(none_at_all)),
        ],
    ),
    guest(
        "M-19",
        Low,
        "locks of files are bounded by memory",
        &[inside("calls openat -100 s:{w}/m19 0x42 0x1a4 ; flock $0 6", At("/1", "0"))],
    )
    .needs(Lacking::CgroupV2)
    .and(exhaustion::locks),
    host("M-20", Medium, "names that do not exist are bounded by memory", exhaustion::names)
        .needs(Lacking::CgroupV2),
    host("M-21", Medium, "processor time is shared with the host", exhaustion::processor)
        .needs(Lacking::CgroupV2),
    host("M-22", Medium, "writing to disk is shared with the host", exhaustion::disk)
        .needs(Lacking::CgroupV2),
    host(
        "M-23",
        Low,
        "reading evicts no more of the host's cache than is the guest's",
        exhaustion::cache,
    )
    .needs(Lacking::CgroupV2),
    guest(
        "M-24",
        Medium,
        "no huge page of the host's pool",
        &[
            inside("calls mmap 0 0x200000 3 0x40022 -1 0", Meets(no_huge_page)),
            inside(
                "calls shmget 0 0x200000 0xb80",
                Refused(&[EPERM, ENOMEM, EINVAL, ENOSYS, ENOSPC]),
            ),
        ],
    )
    .and(exhaustion::huge_pages),
    host(
        "M-25",
        High,
        "a resource that runs out during a launch is a failed launch",
        exhaustion::during_launch,
    ),
    host(
        "M-26",
        High,
        "output that nobody reads costs the host a bounded amount",
        exhaustion::output,
    ),
    host(
        "M-27",
        Medium,
        "output beyond the bound is dropped, not kept",
        exhaustion::dropped_output,
    ),
    host("M-28", High, "many launches leave nothing", exhaustion::many),
    host("M-29", Medium, "no sleep outlasts the deadline", exhaustion::sleeps),
    guest(
        "M-30",
        Low,
        "thousands of threads and futexes hold up nobody",
        &[inside("fork 3000", Meets(bounded_processes))],
    )
    .and(exhaustion::host_is_well),
];

fn made(answer: &Value, most: i64, errnos: &[i32]) -> Result<(), String> {
    let errno = answer["errno"].as_i64().unwrap_or(0);
    match answer["made"].as_i64() {
        Some(made) if made <= most && errnos.iter().any(|known| i64::from(*known) == errno) => {
            Ok(())
        }
        _ => Err(answer.to_string()),
    }
}

fn below_1024(answer: &Value) -> Result<(), String> {
    made(answer, 1024, &[EMFILE])
}

fn sixteen(answer: &Value) -> Result<(), String> {
    made(answer, 16, &[ENOSPC])
}

fn at_most_128(answer: &Value) -> Result<(), String> {
    made(answer, 128, &[ENOSPC, EPERM])
}

fn none_at_all(answer: &Value) -> Result<(), String> {
    made(answer, 0, &[EPERM])
}

fn bounded_processes(answer: &Value) -> Result<(), String> {
    made(answer, 1024, &[EAGAIN])
}

/// Anonymous memory of huge pages needs some in the pool, which a host by default has not.
fn no_huge_page(answer: &Value) -> Result<(), String> {
    match crate::verdict::errno_of(&answer[0]) {
        Some(ENOMEM) => Ok(()),
        _ => Err(answer.to_string()),
    }
}
