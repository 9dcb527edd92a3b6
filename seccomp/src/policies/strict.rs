//! Level `strict`: `default`, and what a Python guest never needs; some ordinary programs do.

use super::default::{FILES, KERNEL, MEMORY, PROCESSES, SOCKETS};
use super::{AF_NETLINK, EAFNOSUPPORT, EINVAL, ENOSYS, EPERM, always, arg, when};
use crate::condition::Argument::{A0, A1, A2};
use crate::condition::Test::Is;
use crate::policy::Rule;

const SOL_SOCKET: u32 = 1;
const SO_ATTACH_FILTER: u32 = 26;
const SO_ATTACH_BPF: u32 = 50;
const SO_ATTACH_REUSEPORT_CBPF: u32 = 51;
const SO_ATTACH_REUSEPORT_EBPF: u32 = 52;

const SYSTEM_V: &str = "System V IPC: memory that no limit of a process counts";
const QUEUE: &str = "POSIX message queues: memory that no limit of a process counts";
const SCHEDULING: &str = "who runs when is the host's choice";
const PROGRAM: &str = "a program of the guest's in the kernel, and code pages of its making";

/// First, so that they decide before a milder rule of `default`.
pub(super) const GROUPS: &[&[Rule]] = &[RULES, PROCESSES, KERNEL, MEMORY, FILES, SOCKETS];

const RULES: &[Rule] = &[
    when(
        "socket",
        &[arg(A0, Is(AF_NETLINK))],
        EAFNOSUPPORT,
        "a large interface that a program without a network needs for getifaddrs alone",
    ),
    when("setsockopt", &[arg(A1, Is(SOL_SOCKET)), arg(A2, Is(SO_ATTACH_FILTER))], EPERM, PROGRAM),
    when("setsockopt", &[arg(A1, Is(SOL_SOCKET)), arg(A2, Is(SO_ATTACH_BPF))], EPERM, PROGRAM),
    when(
        "setsockopt",
        &[arg(A1, Is(SOL_SOCKET)), arg(A2, Is(SO_ATTACH_REUSEPORT_CBPF))],
        EPERM,
        PROGRAM,
    ),
    when(
        "setsockopt",
        &[arg(A1, Is(SOL_SOCKET)), arg(A2, Is(SO_ATTACH_REUSEPORT_EBPF))],
        EPERM,
        PROGRAM,
    ),
    always("shmget", ENOSYS, SYSTEM_V),
    always("shmat", ENOSYS, SYSTEM_V),
    always("shmctl", ENOSYS, SYSTEM_V),
    always("shmdt", ENOSYS, SYSTEM_V),
    always("semget", ENOSYS, SYSTEM_V),
    always("semop", ENOSYS, SYSTEM_V),
    always("semtimedop", ENOSYS, SYSTEM_V),
    always("semctl", ENOSYS, SYSTEM_V),
    always("msgget", ENOSYS, SYSTEM_V),
    always("msgsnd", ENOSYS, SYSTEM_V),
    always("msgrcv", ENOSYS, SYSTEM_V),
    always("msgctl", ENOSYS, SYSTEM_V),
    always("mq_open", ENOSYS, QUEUE),
    always("mq_unlink", ENOSYS, QUEUE),
    always("mq_timedsend", ENOSYS, QUEUE),
    always("mq_timedreceive", ENOSYS, QUEUE),
    always("mq_notify", ENOSYS, QUEUE),
    always("mq_getsetattr", ENOSYS, QUEUE),
    always("sched_setscheduler", EPERM, SCHEDULING),
    always("sched_setparam", EPERM, SCHEDULING),
    always("sched_setattr", EPERM, SCHEDULING),
    always("ioprio_set", EPERM, SCHEDULING),
    always("get_mempolicy", EPERM, "placement is the host's affair"),
    always("get_robust_list", EPERM, "an address in another process"),
    always("sendfile", EINVAL, "pages of a shared file go to a socket uncopied; callers copy"),
    always("sync", EPERM, "makes the whole machine write, and wait"),
    always("syncfs", EPERM, "makes a file system of the host write, and wait"),
];
