//! Level `compat`: what the PyPI package `postern` 0.5 refuses, with its answers, and our few
//! additions; calls it leaves open stay open, however little a guest needs them.

use super::{AF_NETLINK, EAFNOSUPPORT, ENOSYS, EPERM, RLIMIT_CORE, always, arg, when};
use crate::action::Action;
use crate::condition::Argument::{A0, A1, A2};
use crate::condition::Test::{HasAny, Is, IsNot, NotNull};
use crate::policy::Rule;

const CLONE_NEWUSER: u32 = 0x1000_0000;
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;
const NETLINK_ROUTE: u32 = 0;

pub(super) const RULES: &[Rule] = &[
    // Namespaces.
    always("unshare", EPERM, "a user namespace of its own gives the guest every capability in it"),
    always("setns", EPERM, "a namespace descriptor would lead out of the sandbox's namespaces"),
    when(
        "clone",
        &[arg(A0, HasAny(CLONE_NEWUSER))],
        EPERM,
        "the other way to a user namespace; the kernel refuses the rest without a capability",
    ),
    always("clone3", ENOSYS, "its flags are in memory, out of sight; libc falls back to clone"),
    // Mounts and the root, by the old calls and the new.
    always("mount", EPERM, "changes what paths mean"),
    always("umount2", EPERM, "uncovers what a mount hides"),
    always("pivot_root", EPERM, "changes the root"),
    always("chroot", EPERM, "changes the root, and a second chroot is the classic way out of one"),
    always("open_tree", ENOSYS, "clones a mount"),
    always("move_mount", ENOSYS, "attaches a mount"),
    always("fsopen", ENOSYS, "starts a filesystem; its option parsers have had memory bugs"),
    always("fsconfig", ENOSYS, "feeds options to a filesystem driver"),
    always("fsmount", ENOSYS, "makes a mount"),
    always("fspick", ENOSYS, "reconfigures a mounted filesystem"),
    always("mount_setattr", ENOSYS, "could lift read-only, nosuid or noexec"),
    // Keyrings: the session keyring is inherited through every namespace.
    always("add_key", EPERM, "keys live in kernel memory and outlive the guest"),
    always("keyctl", EPERM, "reads keys of the session or user that started the sandbox"),
    always("request_key", EPERM, "makes the kernel run a helper program on the host"),
    // Other processes.
    always("ptrace", EPERM, "takes over another process, and could change calls in flight"),
    always("perf_event_open", EPERM, "a large interface with many bugs; measures other work"),
    // Placement of memory among nodes.
    always("move_pages", EPERM, "tells where pages of a process lie, and moves them"),
    always("migrate_pages", EPERM, "moves all memory of a process"),
    always("mbind", EPERM, "placement is the host's choice"),
    always("get_mempolicy", EPERM, "placement is the host's affair"),
    always("set_mempolicy", EPERM, "placement is the host's choice"),
    // Kernel code and the state of the whole machine.
    always("bpf", EPERM, "runs programs in the kernel"),
    always("init_module", EPERM, "loads code into the kernel"),
    always("finit_module", EPERM, "loads code into the kernel"),
    always("delete_module", EPERM, "unloads code from the kernel"),
    always("kexec_load", EPERM, "replaces the kernel"),
    always("kexec_file_load", EPERM, "replaces the kernel"),
    always("reboot", EPERM, "stops the machine"),
    always("swapon", EPERM, "changes the machine's swap"),
    always("swapoff", EPERM, "changes the machine's swap"),
    always("syslog", EPERM, "the kernel log shows addresses and other tenants' doings"),
    always("acct", EPERM, "writes a record of every process to a file"),
    always("quotactl", EPERM, "changes disk quotas"),
    always("uselib", EPERM, "maps a library by path; obsolete"),
    // Work the kernel does later, past this filter.
    always("io_uring_setup", EPERM, "operations in a ring are carried out without a call to judge"),
    always("io_uring_enter", EPERM, "submits to a ring"),
    always("io_uring_register", EPERM, "attaches files and memory to a ring"),
    // Input to a terminal that the guest shares.
    when("ioctl", &[arg(A1, Is(TIOCSTI))], EPERM, "types into the terminal in the user's name"),
    when("ioctl", &[arg(A1, Is(TIOCLINUX))], EPERM, "pastes into a console in the user's name"),
    // Our additions: everything above is that package's, nothing below is.
    when(
        "setrlimit",
        &[arg(A0, Is(RLIMIT_CORE)), arg(A1, NotNull)],
        Action::Succeed,
        "core dumps stay off; programs that turn them off themselves exit on an error",
    ),
    when(
        "prlimit64",
        &[arg(A1, Is(RLIMIT_CORE)), arg(A2, NotNull)],
        Action::Succeed,
        "as setrlimit; libc uses this one. An old limit asked for with it is not written",
    ),
    when(
        "socket",
        &[arg(A0, Is(AF_NETLINK)), arg(A2, IsNot(NETLINK_ROUTE))],
        EAFNOSUPPORT,
        "routing answers getifaddrs; the other protocols reach drivers, audit, xfrm and nftables",
    ),
];
