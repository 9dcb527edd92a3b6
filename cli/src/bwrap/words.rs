//! Words for what the child of a launch could not do: bwrap's, as programs look for them.

use std::fmt::Display;
use std::path::Path;

use postern_init::sys::Errno;
use postern_launcher::direct::{Failure, Fault, Text};

use super::invocation::{Invocation, Setup};
use super::launch::error;
use super::operations::{source_of, target_of};
use super::say::{Wrong, reason};

/// Statuses of a shell for a program that is not there, or cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

/// What the kernel says when there are too many mounts, and what it sounds like.
const ENOSPC: i32 = 28;
const ELOOP: i32 = 40;

/// What a failure is called, and the status that it ends in.
pub(super) fn of_failure(invocation: &Invocation, failure: &Failure, text: &Text) -> Wrong {
    let Failure { fault, errno, .. } = *failure;
    if fault == Fault::Exec {
        let name = invocation.command.first().map(|name| name.display().to_string());
        let status = if errno == Errno::ENOENT { NOT_FOUND } else { NOT_STARTED };
        let text = with(format!("execvp {}", name.unwrap_or_default()), errno);
        return Wrong { text, status };
    }
    let place = usize::try_from(failure.place).unwrap_or(usize::MAX);
    Wrong::new(match invocation.setup.get(place) {
        Some(setup) if is_about_setup(fault) => of_setup(setup, fault, errno, text),
        _ => of_process(invocation, fault, place, errno),
    })
}

fn with(what: impl Display, errno: Errno) -> String {
    format!("{what}: {}", reason(&error(errno)))
}

/// A limit of mounts has the number of a full disk.
fn with_mount(what: impl Display, errno: Errno) -> String {
    match errno {
        Errno(ENOSPC) => {
            format!("{what}: Limit exceeded (ENOSPC), see /proc/sys/fs/mount-max")
        }
        errno => with(what, errno),
    }
}

fn is_about_setup(fault: Fault) -> bool {
    let first = Fault::FindSource as u32;
    let last = Fault::Chmod as u32;
    (first..=last).contains(&(fault as u32))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the last that is about a place")]
fn of_setup(setup: &Setup, fault: Fault, errno: Errno, text: &Text) -> String {
    let at = target_of(setup).display();
    let source = source_of(setup);
    let from = source.display();
    match fault {
        Fault::FindSource => with(format!("Can't find source path {from}"), errno),
        Fault::OpenSource => with(format!("Can't open source {from}"), errno),
        Fault::SourceChanged => "Race condition binding dirfd".to_owned(),
        Fault::Parents => with(format!("Can't mkdir parents for {at}"), errno),
        Fault::Target => with(format!("Can't create file {at}"), errno),
        Fault::TargetIsLink => format!("Can't mount on symlink destination {at}"),
        Fault::TargetIsNoDirectory => format!("Destination is not a directory {at}"),
        Fault::TargetIsDirectory => format!("Destination is not a file {at}"),
        Fault::BindFlags => with_mount(
            format!("Can't bind mount {from} on {at}: Unable to apply mount flags"),
            errno,
        ),
        Fault::RemountReadOnly => with(
            format!("Can't remount readonly on {at}: mount_setattr() failed at \"{at}\""),
            errno,
        ),
        Fault::Overlay if errno == Errno(ELOOP) => {
            format!("Can't make overlay mount on {at}: Overlay directories may not overlap")
        }
        Fault::Overlay => with_mount(format!("Can't make overlay mount on {at}"), errno),
        Fault::Proc => with_mount(format!("Can't mount proc on {at}"), errno),
        Fault::CoverProc => with_mount(format!("Can't cover a part of {at}"), errno),
        Fault::Tmpfs => with_mount(format!("Can't mount tmpfs on {at}"), errno),
        Fault::DevNode => with(format!("Can't bind a device in {at}"), errno),
        Fault::DevEntry => with(format!("Can't create symlink in {at}"), errno),
        Fault::Devpts => with_mount(format!("Can't mount devpts on {at}/pts"), errno),
        Fault::Mqueue => with_mount(format!("Can't mount mqueue on {at}"), errno),
        Fault::WriteFile => with(format!("Can't write data to file {at}"), errno),
        Fault::TemporaryFile => with(format!("Can't create tmpfile for {at}"), errno),
        Fault::Link => with(format!("Can't make symlink at {at}"), errno),
        Fault::LinkIsOther => {
            format!("Can't make symlink at {at}: destination exists and is not a symlink")
        }
        Fault::LinkLeadsElsewhere => {
            let there = String::from_utf8_lossy(text.bytes());
            format!("Can't make symlink at {at}: existing destination is {there}")
        }
        Fault::OpenTarget => with(format!("Can't open {at}"), errno),
        Fault::Chmod => with(format!("Can't chmod {}{at}", mode_of(setup)), errno),
        // Binding, the last that is about a place.
        _ => with_mount(
            format!("Can't bind mount {from} on {at}: Unable to mount source on destination"),
            errno,
        ),
    }
}

fn mode_of(setup: &Setup) -> String {
    let Setup::Chmod { mode, .. } = setup else { return String::new() };
    format!("{mode:04o} ")
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the others are about places")]
fn of_process(invocation: &Invocation, fault: Fault, place: usize, errno: Errno) -> String {
    let lock = || invocation.locks.get(place).map_or(Path::new(""), |path| path).display();
    let chdir = || invocation.chdir.as_deref().unwrap_or(Path::new("/")).display();
    let what = match fault {
        Fault::Gate => "waiting for the parent",
        Fault::Signals => "resetting signals",
        Fault::NoNewPrivileges => "prctl(PR_SET_NO_NEW_PRIVS) failed",
        Fault::HostProc => "Can't open /proc",
        Fault::Loopback => "loopback: Failed to bring lo up",
        Fault::UidMap => "setting up uid map",
        Fault::Setgroups => "error writing to setgroups",
        Fault::GidMap => "setting up gid map",
        Fault::Uid => "unable to switch to the uid",
        Fault::Gid => "unable to switch to the gid",
        Fault::BoundingSet => "Dropping a capability from bounds",
        Fault::Umask => "umask",
        Fault::Propagation => return with_mount("Failed to make / slave", errno),
        Fault::MakeRoot => return with_mount("Failed to mount tmpfs", errno),
        Fault::Hostname => "Can't set hostname",
        Fault::PivotRoot => "pivot_root",
        Fault::JoinSecondUser => "Setting userns2 failed",
        Fault::LimitUserNamespaces => "sysctl user.max_user_namespaces = 1",
        Fault::InnerUser => "unshare user ns",
        Fault::UserNamespacesLeft => {
            return "creation of new user namespaces was not disabled as requested".to_owned();
        }
        Fault::Capabilities => "capset failed",
        Fault::Dumpable => "can't set dumpable",
        Fault::WorkingDirectory => return with(format!("Can't chdir to {}", chdir()), errno),
        Fault::Session => "setsid",
        Fault::Fork => "Can't fork for pid 1",
        Fault::CloseDescriptors => "close_range",
        Fault::OpenLock => return with(format!("Unable to open lock file {}", lock()), errno),
        Fault::Lock => return with(format!("Unable to lock file {}", lock()), errno),
        Fault::DieWithParent => "prctl(PR_SET_PDEATHSIG)",
        Fault::Ambient => "Adding an ambient capability",
        Fault::Filter if errno == Errno::EINVAL => {
            return "Unable to set up system call filtering as requested: seccomp(2) reported \
                    EINVAL, which means an invalid program or a kernel without CONFIG_SECCOMP_FILTER"
                .to_owned();
        }
        Fault::Filter => "prctl(PR_SET_SECCOMP)",
        Fault::Hardening => {
            let what = ["keyring", "limits", "Landlock"].get(place).unwrap_or(&"");
            return with(format!("--hardened: {what}"), errno);
        }
        Fault::Wait => "init wait()",
        other => return with(format!("{other:?}"), errno),
    };
    with(what, errno)
}
