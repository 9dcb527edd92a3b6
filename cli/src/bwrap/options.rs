//! The options of bwrap 0.13: their names, how many arguments each takes, and which of those are
//! paths. What they mean is in `parse`.

use Name::{
    AddSeccompFd, Args, Argv0, AsPid1, AssertUsernsDisabled, Bind, BindData, BindFd, BindTry,
    BlockFd, CapAdd, CapDrop, Chdir, Chmod, Clearenv, Dev, DevBind, DevBindTry, DieWithParent, Dir,
    DisableUserns, ExecLabel, File, FileLabel, Gid, Hardened, Help, Hostname, InfoFd, JsonStatusFd,
    LevelPrefix, LockFile, Mqueue, NewSession, NotASecurityBoundary, Overlay, OverlaySrc, Perms,
    Pidns, Proc, RemountRo, RoBind, RoBindData, RoBindFd, RoBindTry, RoOverlay, Seccomp, Setenv,
    ShareNet, Size, Symlink, SyncFd, TmpOverlay, Tmpfs, Uid, Unsetenv, UnshareAll, UnshareCgroup,
    UnshareCgroupTry, UnshareIpc, UnshareNet, UnsharePid, UnshareUser, UnshareUserTry, UnshareUts,
    Userns, Userns2, UsernsBlockFd, Version,
};

/// An option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    AddSeccompFd,
    Args,
    Argv0,
    AsPid1,
    AssertUsernsDisabled,
    Bind,
    BindData,
    BindFd,
    BindTry,
    BlockFd,
    CapAdd,
    CapDrop,
    Chdir,
    Chmod,
    Clearenv,
    Dev,
    DevBind,
    DevBindTry,
    DieWithParent,
    Dir,
    DisableUserns,
    ExecLabel,
    File,
    FileLabel,
    Gid,
    Hardened,
    Help,
    Hostname,
    InfoFd,
    JsonStatusFd,
    LevelPrefix,
    LockFile,
    Mqueue,
    NewSession,
    NotASecurityBoundary,
    Overlay,
    OverlaySrc,
    Perms,
    Pidns,
    Proc,
    RemountRo,
    RoBind,
    RoBindData,
    RoBindFd,
    RoBindTry,
    RoOverlay,
    Seccomp,
    Setenv,
    ShareNet,
    Size,
    Symlink,
    SyncFd,
    TmpOverlay,
    Tmpfs,
    Uid,
    Unsetenv,
    UnshareAll,
    UnshareCgroup,
    UnshareCgroupTry,
    UnshareIpc,
    UnshareNet,
    UnsharePid,
    UnshareUser,
    UnshareUserTry,
    UnshareUts,
    Userns,
    Userns2,
    UsernsBlockFd,
    Version,
}

/// What is known of an option before its arguments are looked at.
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) name: &'static str,
    pub(super) own: Name,
    pub(super) count: usize,
    /// What it takes, in words.
    pub(super) takes: &'static str,
    /// Which of its arguments are paths, and may not be empty.
    pub(super) paths: &'static [usize],
    /// Its arguments by name, for people.
    pub(super) values: &'static str,
    /// What it does.
    pub(super) help: &'static str,
}

const fn flag(name: &'static str, own: Name, help: &'static str) -> Spec {
    Spec { name, own, count: 0, takes: "no argument", paths: &[], values: "", help }
}

const fn value(name: &'static str, own: Name, values: &'static str, help: &'static str) -> Spec {
    Spec { name, own, count: 1, takes: "an argument", paths: &[], values, help }
}

const fn path(name: &'static str, own: Name, values: &'static str, help: &'static str) -> Spec {
    Spec { paths: &[0], ..value(name, own, values, help) }
}

/// As [`value`], in bwrap's other words.
const fn one(name: &'static str, own: Name, values: &'static str, help: &'static str) -> Spec {
    Spec { takes: "one argument", ..value(name, own, values, help) }
}

const fn one_path(name: &'static str, own: Name, values: &'static str, help: &'static str) -> Spec {
    Spec { paths: &[0], ..one(name, own, values, help) }
}

/// Two arguments, of which the second is a path if one is.
const fn two(
    name: &'static str,
    own: Name,
    paths: &'static [usize],
    values: &'static str,
    help: &'static str,
) -> Spec {
    Spec { name, own, count: 2, takes: "two arguments", paths, values, help }
}

/// All of them.
#[rustfmt::skip]
pub(super) static OPTIONS: [Spec; 69] = [
    flag("--help", Help, "Print this and leave"),
    flag("--version", Version, "Print the version and leave"),
    value("--args", Args, "FD", "Read more options from FD, a NUL after each"),
    one("--argv0", Argv0, "VALUE", "Call the program by this name"),
    flag("--level-prefix", LevelPrefix, "Begin messages with <3> or <4>, by how serious they are"),
    flag("--unshare-all", UnshareAll, "New namespaces of every kind, of users and cgroups if possible"),
    flag("--share-net", ShareNet, "Stay in the network, after --unshare-all"),
    flag("--unshare-user", UnshareUser, "New user namespace; always, for others than root"),
    flag("--unshare-user-try", UnshareUserTry, "New user namespace if possible"),
    flag("--unshare-ipc", UnshareIpc, "New ipc namespace"),
    flag("--unshare-pid", UnsharePid, "New pid namespace"),
    flag("--unshare-net", UnshareNet, "New network namespace, with nothing but lo"),
    flag("--unshare-uts", UnshareUts, "New uts namespace"),
    flag("--unshare-cgroup", UnshareCgroup, "New cgroup namespace"),
    flag("--unshare-cgroup-try", UnshareCgroupTry, "New cgroup namespace if possible"),
    value("--userns", Userns, "FD", "Join this user namespace instead of making one"),
    value("--userns2", Userns2, "FD", "Join this user namespace after the setup"),
    flag("--disable-userns", DisableUserns, "No more user namespaces inside"),
    flag("--assert-userns-disabled", AssertUsernsDisabled, "Fail if user namespaces can be made inside"),
    value("--pidns", Pidns, "FD", "Join this pid namespace; --unshare-pid makes one within it"),
    value("--uid", Uid, "UID", "The user inside, with a user namespace"),
    value("--gid", Gid, "GID", "The group inside, with a user namespace"),
    value("--hostname", Hostname, "NAME", "The hostname inside, with --unshare-uts"),
    one_path("--chdir", Chdir, "DIR", "Start the program in DIR"),
    flag("--clearenv", Clearenv, "Unset all variables"),
    two("--setenv", Setenv, &[], "VAR VALUE", "Set a variable"),
    value("--unsetenv", Unsetenv, "VAR", "Unset a variable"),
    path("--lock-file", LockFile, "DEST", "Hold a shared lock on DEST meanwhile"),
    value("--sync-fd", SyncFd, "FD", "Keep FD open meanwhile"),
    two("--bind", Bind, &[0, 1], "SRC DEST", "Bind SRC of the host on DEST"),
    two("--bind-try", BindTry, &[0, 1], "SRC DEST", "The same, if SRC exists"),
    two("--dev-bind", DevBind, &[0, 1], "SRC DEST", "Bind SRC, device nodes included"),
    two("--dev-bind-try", DevBindTry, &[0, 1], "SRC DEST", "The same, if SRC exists"),
    two("--ro-bind", RoBind, &[0, 1], "SRC DEST", "Bind SRC read-only"),
    two("--ro-bind-try", RoBindTry, &[0, 1], "SRC DEST", "The same, if SRC exists"),
    two("--bind-fd", BindFd, &[1], "FD DEST", "Bind what FD is open on"),
    two("--ro-bind-fd", RoBindFd, &[1], "FD DEST", "The same, read-only"),
    one_path("--remount-ro", RemountRo, "DEST", "Make the mount on DEST read-only, not those below it"),
    path("--overlay-src", OverlaySrc, "SRC", "A layer of the next overlay, above those before it"),
    Spec {
        name: "--overlay",
        own: Overlay,
        count: 3,
        takes: "three arguments",
        paths: &[0, 1, 2],
        values: "RWSRC WORKDIR DEST",
        help: "Mount an overlay, writes going to RWSRC; WORKDIR is empty, on the same file system",
    },
    path("--tmp-overlay", TmpOverlay, "DEST", "The same, writes going to memory"),
    path("--ro-overlay", RoOverlay, "DEST", "The same, read-only"),
    value("--exec-label", ExecLabel, "LABEL", "SELinux label of the program"),
    value("--file-label", FileLabel, "LABEL", "SELinux label of what is made"),
    path("--proc", Proc, "DEST", "Mount procfs on DEST"),
    path("--dev", Dev, "DEST", "Mount a small /dev on DEST"),
    path("--tmpfs", Tmpfs, "DEST", "Mount a tmpfs on DEST"),
    path("--mqueue", Mqueue, "DEST", "Mount an mqueue on DEST"),
    path("--dir", Dir, "DEST", "Make a directory"),
    two("--file", File, &[1], "FD DEST", "Write what FD holds to DEST"),
    two("--bind-data", BindData, &[1], "FD DEST", "Mount what FD holds as a file on DEST"),
    two("--ro-bind-data", RoBindData, &[1], "FD DEST", "The same, read-only"),
    two("--symlink", Symlink, &[0, 1], "SRC DEST", "Make DEST a link to SRC, if it is not one"),
    value("--seccomp", Seccomp, "FD", "Install the filter that FD holds"),
    value("--add-seccomp-fd", AddSeccompFd, "FD", "The same, any number of times"),
    value("--block-fd", BlockFd, "FD", "Wait for data on FD before the program starts"),
    value("--userns-block-fd", UsernsBlockFd, "FD", "Wait for data on FD while others write the id maps"),
    value("--info-fd", InfoFd, "FD", "Write to FD who is running where, in JSON"),
    value("--json-status-fd", JsonStatusFd, "FD", "The same, and the status at the end, a document each"),
    flag("--new-session", NewSession, "Start a terminal session"),
    flag("--die-with-parent", DieWithParent, "Die with the parent"),
    flag("--as-pid-1", AsPid1, "Have the program be PID 1 itself"),
    value("--cap-add", CapAdd, "CAP", "Keep a capability"),
    value("--cap-drop", CapDrop, "CAP", "Drop a capability"),
    value("--perms", Perms, "OCTAL", "Permissions of what the next option makes"),
    value("--size", Size, "BYTES", "Size of the next tmpfs"),
    two("--chmod", Chmod, &[1], "OCTAL PATH", "Change the permissions of PATH"),
    flag("--not-a-security-boundary", NotASecurityBoundary, "Go on where mounts below a bind keep their flags"),
    flag("--hardened", Hardened, "Ours: the filter, limits and masks of postern as well"),
];

impl Spec {
    /// The option of a name.
    pub(super) fn of(name: &[u8]) -> Option<&'static Self> {
        OPTIONS.iter().find(|spec| spec.name.as_bytes() == name)
    }
}
