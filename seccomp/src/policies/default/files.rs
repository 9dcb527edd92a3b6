//! Set-id bits, device nodes, handles, leases, and what `ioctl` does to terminals and inodes.

use crate::condition::Argument::{A1, A2, A3, A4};
use crate::condition::Test::{HasAny, Is, MaskedIs};
use crate::condition::{Argument, Condition};
use crate::policies::{EINVAL, ENOSYS, EOPNOTSUPP, EPERM, always, arg, when};
use crate::policy::Rule;

const S_ISUID_S_ISGID: u32 = 0o6000;
const S_IFMT: u32 = 0o170_000;
const S_IFCHR: u32 = 0o020_000;
const S_IFBLK: u32 = 0o060_000;
/// `O_CREAT` and the bit of `O_TMPFILE` that is not `O_DIRECTORY`: without one of them the kernel
/// does not read the mode, which then is whatever the register held.
const O_CREAT_OR_TMPFILE: u32 = 0o100 | 0o20_000_000;

const RENAME_WHITEOUT: u32 = 4;

const F_SETSIG: u32 = 10;
const F_SETOWN_EX: u32 = 15;
const F_SETLEASE: u32 = 1024;
const F_NOTIFY: u32 = 1026;
const F_SETDELEG: u32 = 1040;

const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;
const TIOCCONS: u32 = 0x541d;
const TIOCSETD: u32 = 0x5423;
const TIOCVHANGUP: u32 = 0x5437;
const FS_IOC_SETFLAGS: u32 = 0x4008_6602;
const FS_IOC32_SETFLAGS: u32 = 0x4004_6602;
const FS_IOC_FSSETXATTR: u32 = 0x401c_5820;
const FICLONE: u32 = 0x4004_9409;
const FICLONERANGE: u32 = 0x4020_940d;
const FIDEDUPERANGE: u32 = 0xc018_9436;
/// The requests of one old driver: a letter, then any number.
const OLD_GROUP: u32 = 0xffff_ff00;
const KEYBOARD: u32 = 0x4b00;
const VIRTUAL_TERMINAL: u32 = 0x5600;

const SET_ID: &str = "a set-id file in the workspace would run with its owner's rights on the host";
const NODE: &str = "a device node in the workspace appears on the host; 0:0 is one too";

const fn set_id(mode: Argument) -> Condition {
    arg(mode, HasAny(S_ISUID_S_ISGID))
}

const fn is_kind(mode: Argument, kind: u32) -> Condition {
    arg(mode, MaskedIs { mask: S_IFMT, value: kind })
}

pub(super) const RULES: &[Rule] = &[
    // Modes.
    when("chmod", &[set_id(A1)], EPERM, SET_ID),
    when("fchmod", &[set_id(A1)], EPERM, SET_ID),
    when("fchmodat", &[set_id(A2)], EPERM, SET_ID),
    when("fchmodat2", &[set_id(A2)], EPERM, SET_ID),
    when("open", &[arg(A1, HasAny(O_CREAT_OR_TMPFILE)), set_id(A2)], EPERM, SET_ID),
    when("openat", &[arg(A2, HasAny(O_CREAT_OR_TMPFILE)), set_id(A3)], EPERM, SET_ID),
    always("openat2", ENOSYS, "its mode is in memory, out of sight; callers fall back to openat"),
    when("creat", &[set_id(A1)], EPERM, SET_ID),
    when("mkdir", &[set_id(A1)], EPERM, SET_ID),
    when("mkdirat", &[set_id(A2)], EPERM, SET_ID),
    when("mknod", &[set_id(A1)], EPERM, SET_ID),
    when("mknodat", &[set_id(A2)], EPERM, SET_ID),
    when("mknod", &[is_kind(A1, S_IFCHR)], EPERM, NODE),
    when("mknod", &[is_kind(A1, S_IFBLK)], EPERM, NODE),
    when("mknodat", &[is_kind(A2, S_IFCHR)], EPERM, NODE),
    when("mknodat", &[is_kind(A2, S_IFBLK)], EPERM, NODE),
    when("renameat2", &[arg(A4, HasAny(RENAME_WHITEOUT))], EINVAL, NODE),
    // Attributes by the newer calls, which no older rule could see.
    always("file_getattr", ENOSYS, "attributes of inodes; newer than callers need"),
    always("file_setattr", ENOSYS, "attributes of inodes that an owner of the files cannot undo"),
    always("setxattrat", ENOSYS, "newer than callers need; setxattr stays"),
    always("getxattrat", ENOSYS, "newer than callers need; getxattr stays"),
    always("listxattrat", ENOSYS, "newer than callers need; listxattr stays"),
    always("removexattrat", ENOSYS, "newer than callers need; removexattr stays"),
    // Files by handle instead of by path.
    always("name_to_handle_at", EPERM, "a file's number, the first half of opening it by that"),
    always("open_by_handle_at", EPERM, "opens a file that no path of the guest leads to"),
    // Watching and stopping others.
    always("fanotify_init", EPERM, "watches whole file systems, the host's among them"),
    always("fanotify_mark", EPERM, "of no use without fanotify_init"),
    when("fcntl", &[arg(A1, Is(F_SETLEASE))], EPERM, "a lease holds up the host's open for 45 s"),
    when("fcntl", &[arg(A1, Is(F_SETDELEG))], EINVAL, "a delegation, as a lease; from Linux 6.19"),
    when("fcntl", &[arg(A1, Is(F_NOTIFY))], EPERM, "obsolete; signals for what others do"),
    when("fcntl", &[arg(A1, Is(F_SETSIG))], EPERM, "any signal, for what happens to a descriptor"),
    when("fcntl", &[arg(A1, Is(F_SETOWN_EX))], EPERM, "such signals to a thread of another"),
    // Terminals.
    when("ioctl", &[arg(A1, Is(TIOCSTI))], EPERM, "types into the terminal in the user's name"),
    when("ioctl", &[arg(A1, Is(TIOCLINUX))], EPERM, "pastes into a console in the user's name"),
    when("ioctl", &[arg(A1, Is(TIOCCONS))], EPERM, "takes the machine's console messages"),
    when("ioctl", &[arg(A1, Is(TIOCSETD))], EPERM, "loads line disciplines, old and full of bugs"),
    when("ioctl", &[arg(A1, Is(TIOCVHANGUP))], EPERM, "hangs up a terminal"),
    when(
        "ioctl",
        &[arg(A1, MaskedIs { mask: OLD_GROUP, value: KEYBOARD })],
        EPERM,
        "keyboard and font of a console",
    ),
    when(
        "ioctl",
        &[arg(A1, MaskedIs { mask: OLD_GROUP, value: VIRTUAL_TERMINAL })],
        EPERM,
        "switches and locks consoles",
    ),
    // Inodes.
    when("ioctl", &[arg(A1, Is(FS_IOC_SETFLAGS))], EPERM, "marks that the host's rm cannot undo"),
    when("ioctl", &[arg(A1, Is(FS_IOC32_SETFLAGS))], EPERM, "as the one above, its 32-bit form"),
    when("ioctl", &[arg(A1, Is(FS_IOC_FSSETXATTR))], EPERM, "such marks, and quota projects"),
    when("ioctl", &[arg(A1, Is(FICLONE))], EOPNOTSUPP, "shares blocks of files; callers copy"),
    when("ioctl", &[arg(A1, Is(FICLONERANGE))], EOPNOTSUPP, "shares blocks of files"),
    when("ioctl", &[arg(A1, Is(FIDEDUPERANGE))], EOPNOTSUPP, "tells whether blocks are equal"),
];
