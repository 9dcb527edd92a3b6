//! Section G: what the system-call filter refuses, with which errno, and that nothing goes around
//! it.

use libc::{EINVAL, ENOSYS, EPERM};
use serde_json::Value;

use super::filter_looks;
use crate::table::Expect::{At, Meets, Refused};
use crate::table::Severity::{Critical, High, Low, Medium};
use crate::table::{KILLED, Row, ask, guest, host, inside};
use crate::verdict::errno_of;

pub(crate) const ROWS: &[Row] = &[
    host("G-01", High, "no call that nobody has reviewed", filter_looks::unreviewed),
    guest(
        "G-03",
        Critical,
        "no namespace, mount or root by the old calls",
        &[
            ask("rooted calls unshare 0x20000", Refused(&[EPERM])),
            ask("rooted calls setns p:0:/proc/self/ns/net 0", Refused(&[EPERM])),
            ask("rooted calls mount s:none s:{w} s:tmpfs 0 0", Refused(&[EPERM])),
            ask("calls umount2 s:/nowhere 0", Refused(&[EPERM])),
            ask("calls pivot_root s:/nowhere s:/nowhere", Refused(&[EPERM])),
            ask("rooted calls chroot s:{w}", Refused(&[EPERM])),
        ],
    ),
    guest(
        "G-04",
        High,
        "clone3 does not exist, whatever it is asked",
        &[
            ask("calls clone3 0 0", Refused(&[ENOSYS])),
            ask("calls clone3 w:0,0,0,0,17,0,0,0 64", Refused(&[ENOSYS])),
            ask("calls clone3 w:0,0,0,0,17,0,0,0,0,0,0 88", Refused(&[ENOSYS])),
            ask("calls clone3 z:4096 4096", Refused(&[ENOSYS])),
        ],
    ),
    guest(
        "G-05",
        High,
        "the new mount calls do not exist",
        &[
            ask("calls open_tree -100 s:/ 1", Refused(&[ENOSYS])),
            ask("calls move_mount -1 s: -1 s: 0", Refused(&[ENOSYS])),
            ask("calls fsopen 0 0", Refused(&[ENOSYS])),
            ask("calls fsconfig -1 0 0 0 0", Refused(&[ENOSYS])),
            ask("calls fsmount -1 0 0", Refused(&[ENOSYS])),
            ask("calls fspick -100 s:/ 0", Refused(&[ENOSYS])),
            ask("calls mount_setattr -100 s:/ 0 z:32 32", Refused(&[ENOSYS])),
            ask("calls open_tree_attr -100 s:/ 0 z:32 32", Refused(&[ENOSYS])),
            ask("calls statmount z:64 z:512 512 0", Refused(&[ENOSYS])),
            ask("calls listmount z:64 z:512 8 0", Refused(&[ENOSYS])),
            ask("calls 470 z:64 z:512 8 0", Refused(&[ENOSYS])),
        ],
    )
    .and(filter_looks::new_calls_by_errno),
    guest(
        "G-06",
        High,
        "no file system can be started",
        &[
            ask("rooted calls fsopen s:tmpfs 0", Refused(&[ENOSYS])),
            ask("rooted calls fsopen s:cgroup 0", Refused(&[ENOSYS])),
            ask("rooted calls fsopen s:9p 0", Refused(&[ENOSYS])),
            ask("rooted calls fsopen s:fuse 0", Refused(&[ENOSYS])),
            ask("rooted calls fsopen s:overlay 0", Refused(&[ENOSYS])),
        ],
    ),
    guest(
        "G-07",
        Critical,
        "no ring that would carry calls past the filter",
        &[
            ask("calls io_uring_setup 1 z:120", Refused(&[ENOSYS])),
            ask("calls io_uring_enter -1 0 0 0 0 0", Refused(&[ENOSYS])),
            ask("calls io_uring_register -1 0 0 0", Refused(&[ENOSYS])),
            ask("calls int80:425 1 z:120", Refused(&[ENOSYS, KILLED])),
            ask("calls x32:io_uring_setup 1 z:120", Refused(&[ENOSYS])),
        ],
    ),
    guest(
        "G-08",
        High,
        "no request of the machine-wide pool of asynchronous ones",
        &[
            ask("calls io_setup 1 z:8", Refused(&[EPERM])),
            inside("calls io_setup 65536 z:8", Refused(&[EPERM])),
            ask("calls io_submit 0 0 0", Refused(&[EPERM])),
            ask("calls io_destroy 0", Refused(&[EPERM])),
        ],
    ),
    guest(
        "G-09",
        High,
        "no program in the kernel",
        &[
            ask("calls bpf 0 z:128 128", Refused(&[EPERM])),
            ask("calls bpf 5 z:128 128", Refused(&[EPERM])),
            ask("calls bpf 999 0 0", Refused(&[EPERM])),
            ask("calls bpf 0 1 0x10000", Refused(&[EPERM])),
        ],
    ),
    guest(
        "G-10",
        Medium,
        "no performance counter",
        &[
            ask(
                "calls perf_event_open w:0x7000000001,0,0,0,0,0x60,0,0,0,0,0,0,0,0,0 0 -1 -1 0",
                Refused(&[EPERM]),
            ),
            ask("calls perf_event_open 0 0 -1 -1 0", Refused(&[EPERM])),
        ],
    ),
    guest(
        "G-11",
        Medium,
        "no process can be traced, or its memory read or written",
        &[
            ask("calls ptrace 0 0 0 0", Refused(&[EPERM])),
            ask("calls ptrace 16 kid 0 0", Refused(&[EPERM])),
            ask("calls ptrace 0x4206 kid 0 0", Refused(&[EPERM])),
            ask("calls ptrace 0x4206 1 0 0", Refused(&[EPERM])),
            ask("calls process_vm_readv kid w:z:8,8 1 w:0x400000,8 1 0", Refused(&[EPERM])),
            ask("calls process_vm_writev kid w:z:8,0 1 w:0x400000,0 1 0", Refused(&[EPERM])),
        ],
    ),
    guest(
        "G-12",
        Medium,
        "no descriptor can be taken out of another process",
        &[
            ask("calls pidfd_getfd kidfd 0 0", Refused(&[EPERM])),
            ask("calls pidfd_open 1 0 ; pidfd_getfd $0 3 0", Refused(&[EPERM])),
        ],
    ),
    guest(
        "G-13",
        Low,
        "kernel addresses cannot be compared",
        &[ask("calls kcmp me me 0 0 0", Refused(&[EPERM]))],
    ),
    guest(
        "G-14",
        Medium,
        "no page fault can be held up",
        &[
            ask("calls userfaultfd 0", Refused(&[EPERM])),
            ask("calls userfaultfd 1", Refused(&[EPERM])),
            ask("open r /dev/userfaultfd", Meets(not_there)),
        ],
    ),
    guest(
        "G-15",
        High,
        "no keyring is reached",
        &[
            ask("calls keyctl 0 -3 0", Refused(&[EPERM])),
            ask("calls keyctl 0 -4 0", Refused(&[EPERM])),
            ask("calls keyctl 0 -5 0", Refused(&[EPERM])),
            ask("calls keyctl 1 0", Refused(&[EPERM])),
            ask("calls keyctl 10 -3 s:user s:x 0", Refused(&[EPERM])),
            ask("calls keyctl 11 -3 z:64 64", Refused(&[EPERM])),
            ask("calls keyctl 22 -1 -3", Refused(&[EPERM])),
            ask("calls add_key s:user s:g15 b:78 1 -1", Refused(&[EPERM])),
            ask("calls request_key s:user s:g15 0 0", Refused(&[EPERM])),
        ],
    ),
    guest(
        "G-16",
        High,
        "no file is opened by its number",
        &[
            ask("calls name_to_handle_at -100 s:/ b:80000000 z:8 0", Refused(&[EPERM])),
            ask(
                "calls open_by_handle_at p:0x10000:/ b:08000000010000000200000000000000 0",
                Refused(&[EPERM]),
            ),
            ask(
                "calls open_by_handle_at -1 b:08000000010000000200000000000000 0",
                Refused(&[EPERM]),
            ),
        ],
    ),
    guest(
        "G-17",
        Medium,
        "no file system can be watched",
        &[
            ask("calls fanotify_init 0x200 0", Refused(&[EPERM])),
            ask("calls fanotify_mark -1 1 0x20 -100 s:/", Refused(&[EPERM])),
        ],
    ),
    guest(
        "G-18",
        Medium,
        "the kernel's log is closed",
        &[
            ask("calls syslog 2 z:64 64", Refused(&[EPERM])),
            ask("calls syslog 3 z:64 64", Refused(&[EPERM])),
            ask("calls syslog 9 0 0", Refused(&[EPERM])),
            ask("calls syslog 10 0 0", Refused(&[EPERM])),
            ask("calls syslog 999 0 0", Refused(&[EPERM])),
        ],
    )
    .fact("kernel.dmesg_restrict is set: the kernel itself asks for CAP_SYSLOG"),
    guest(
        "G-19",
        Medium,
        "calls of recent kernels that no program needs do not exist",
        &[
            ask("calls memfd_secret 0", Refused(&[ENOSYS])),
            ask("calls set_mempolicy_home_node 0 0 0 0", Refused(&[ENOSYS])),
            ask("calls process_madvise -1 0 0 0 0", Refused(&[ENOSYS])),
            ask("calls process_mrelease -1 0", Refused(&[ENOSYS])),
            ask("calls quotactl_fd -1 0 0 0", Refused(&[ENOSYS])),
            ask("calls lsm_get_self_attr 0 0 0 0", Refused(&[ENOSYS])),
            ask("calls lsm_set_self_attr 0 0 0 0", Refused(&[ENOSYS])),
            ask("calls lsm_list_modules 0 0 0", Refused(&[ENOSYS])),
            ask("calls cachestat p:0:/etc/ld.so.cache z:16 z:40 0", Refused(&[ENOSYS])),
            ask("calls file_getattr -100 s:/ z:24 24 0", Refused(&[ENOSYS])),
            ask("calls file_setattr -100 s:/ z:24 24 0", Refused(&[ENOSYS])),
            ask("calls setxattrat -100 s:/ 0 s:user.x z:16 16", Refused(&[ENOSYS])),
            ask("calls openat2 -100 s:/ z:24 24", Refused(&[ENOSYS])),
        ],
    ),
    guest(
        "G-20",
        Low,
        "memory cannot be placed among nodes",
        &[
            ask("calls mbind 0 4096 0 0 0 0", Refused(&[EPERM])),
            ask("calls set_mempolicy 0 0 0", Refused(&[EPERM])),
            ask("calls migrate_pages 0 0 0 0", Refused(&[EPERM])),
            ask("calls move_pages 0 0 0 0 0 0", Refused(&[EPERM])),
        ],
    ),
    guest(
        "G-22",
        Medium,
        "no clock can be set",
        &[
            ask("calls settimeofday 1 0", Refused(&[EPERM])),
            ask("calls clock_settime 99 1", Refused(&[EPERM])),
            ask("calls adjtimex 1", Refused(&[EPERM])),
            ask("calls clock_adjtime 99 1", Refused(&[EPERM])),
        ],
    ),
    guest(
        "G-23",
        Medium,
        "no personality that weakens memory",
        &[
            ask("calls personality 0xffffffff", At("/0", "0")),
            ask("calls personality 0", At("/0", "0")),
            ask("calls personality 8", Refused(&[EPERM])),
            ask("calls personality 0x20000", Refused(&[EPERM])),
            ask("calls personality 0x40000", Refused(&[EPERM])),
            ask("calls personality 0x400000", Refused(&[EPERM])),
            ask("calls personality 6", Refused(&[EPERM])),
        ],
    ),
    guest(
        "G-24",
        High,
        "filters of the guest's own only tighten",
        &[
            // Allows everything, in one instruction; then a call that ours refuses.
            ask(
                "calls prctl 38 1 0 0 0 ; seccomp 1 0 w:1,b:060000000000ff7f ; keyctl 0 -3 0",
                Refused(&[EPERM]),
            ),
            ask("calls prctl 38 1 0 0 0 ; seccomp 1 8 w:1,b:060000000000ff7f", Refused(&[EPERM])),
        ],
    ),
    host(
        "G-25",
        Low,
        "a heap of filters ends at the kernel's own bound",
        filter_looks::many_filters,
    ),
    guest(
        "G-26",
        Low,
        "a heap of Landlock layers ends at the kernel's own bound",
        &[inside("calls prctl 38 1 0 0 0", At("/0", "0"))],
    )
    .and(filter_looks::many_layers),
    guest(
        "G-27",
        Medium,
        "other ways into the kernel are filtered too",
        &[
            ask("calls restart_syscall", Refused(&[libc::EINTR])),
            ask("frame unshare 0x10000000 0", Refused(&[EPERM])),
            ask("frame keyctl 0 -3", Refused(&[EPERM])),
            ask("frame io_uring_setup 1 0", Refused(&[ENOSYS])),
        ],
    ),
    guest(
        "G-28",
        High,
        "threads, orphans and programs after an exec are filtered alike",
        &[
            ask("via thread calls keyctl 0 -3 0", Refused(&[EPERM])),
            ask("via orphan calls keyctl 0 -3 0", Refused(&[EPERM])),
            ask("via exec calls keyctl 0 -3 0", Refused(&[EPERM])),
            ask("via thread calls io_uring_setup 1 z:120", Refused(&[ENOSYS])),
            ask("via orphan calls clone3 0 0", Refused(&[ENOSYS])),
            ask("via exec calls int80:20", Refused(&[ENOSYS, KILLED])),
        ],
    ),
    host("G-29", High, "every process is filtered, PID 1 too", filter_looks::all_filtered),
    host(
        "G-30",
        High,
        "without a filter there is no launch",
        filter_looks::refused_without_filters,
    ),
    guest(
        "G-31",
        Medium,
        "no page of a file is moved through a pipe",
        &[
            ask(
                "calls pipe2 z:8 0 ; splice p:0:/etc/ld.so.cache 0 @0:4 0 16 0",
                Refused(&[EINVAL]),
            ),
            ask("calls pipe2 z:8 0 ; tee @0:0 @0:4 16 0", Refused(&[EINVAL])),
            ask("calls pipe2 z:8 0 ; vmsplice @0:4 w:z:8,8 1 0", Refused(&[EPERM])),
        ],
    ),
    host("G-32", High, "ordinary programs run under the filter", filter_looks::programs_run),
];

fn not_there(answer: &Value) -> Result<(), String> {
    let entries = answer.as_object().ok_or("no answer")?;
    match entries.values().all(|value| errno_of(value).is_some()) {
        true => Ok(()),
        false => Err(answer.to_string()),
    }
}
