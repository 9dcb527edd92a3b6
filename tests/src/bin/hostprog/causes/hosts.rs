//! Makes this process a service on a host that forbids something, by the kernel's own means where
//! those can be had; what is only imitated says so.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command as Program;

use libc::{CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUSER};
use rustix::fs::{FlockOperation, flock};
use rustix::mount::{MountFlags, mount, mount_bind, mount_bind_recursive, mount_remount};

use crate::filter::{Refused, refuse};
use crate::sys::{self, Fork};
use crate::world::{Outcome, ensure, text};

type Made = Result<(), String>;

/// A uid that nothing else on this machine uses, for a root that becomes nobody in particular.
const NOBODY: u32 = 61_234;
/// All namespaces that a filter of container engines looks at.
const NEW_NAMESPACES: i32 = 0x7e02_0000;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn words(action: &str) -> impl Fn(io::Error) -> String {
    move |error| format!("{action}: {error}")
}

/// An ordinary user, where this process is not one already.
fn become_ordinary() -> Made {
    if !is_root() {
        return Ok(());
    }
    let runtime = std::env::var_os("POSTERN_RUNTIME_DIR").map(PathBuf::from);
    for directory in runtime.into_iter().chain([std::env::temp_dir()]) {
        std::os::unix::fs::chown(directory, Some(NOBODY), Some(NOBODY)).map_err(text)?;
    }
    sys::become_ids(NOBODY, NOBODY, &[]).map_err(words("become another user"))
}

fn write(path: &str, value: &str) -> Made {
    fs::write(path, value).map_err(|error| format!("write {path}: {error}"))
}

/// A user namespace of our own with the given lines as maps, all capabilities in it.
fn enter_user_namespace(more: i32, uid_map: &str, gid_map: &str) -> Made {
    sys::unshare(CLONE_NEWUSER | more).map_err(words("unshare"))?;
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", uid_map)?;
    write("/proc/self/gid_map", gid_map)
}

/// The same user as before, with capabilities for as long as the host is being made.
fn enter_as_ourselves(more: i32) -> Made {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    enter_user_namespace(more, &format!("{uid} {uid} 1"), &format!("{gid} {gid} 1"))
}

fn leave_capabilities() -> Made {
    sys::drop_capabilities().map_err(words("drop capabilities"))
}

/// A kernel that refuses one call, `NAME ERRNO`: imitated.
pub(super) fn refuse_named(words: &[String]) -> Made {
    let [name, errno] = words else { return Err("a call and an errno".to_owned()) };
    let call = postern_seccomp::Arch::X86_64.call_number(name).ok_or("no such call")?;
    refuse(&[Refused::always(call.into(), errno.parse().map_err(text)?)])
}

pub(super) fn no_user_namespaces() -> Made {
    become_ordinary()?;
    enter_as_ourselves(0)?;
    write("/proc/sys/user/max_user_namespaces", "0")?;
    leave_capabilities()
}

/// A user that may not have one more process.
pub(super) fn no_more_processes() -> Made {
    use rustix::process::{Resource, Rlimit, setrlimit};
    become_ordinary()?;
    setrlimit(Resource::Nproc, Rlimit { current: Some(1), maximum: Some(1) }).map_err(text)
}

/// A launch with the launcher as a file of this mode, which `POSTERN_LAUNCHER` names.
#[expect(clippy::disallowed_methods, reason = "a second host")]
pub(super) fn installed(mode: &str) -> Outcome {
    let path = install(mode)?;
    let mut again = Program::new(std::env::current_exe().map_err(text)?);
    let told = again.arg("launch").env(postern::LAUNCHER_VARIABLE, &path).output();
    fs::remove_file(&path).map_err(text)?;
    Ok(String::from_utf8_lossy(&told.map_err(text)?.stdout).trim_end().to_owned())
}

/// The launcher as a file of this mode.
pub(super) fn install(mode: &str) -> Result<PathBuf, String> {
    let path = std::env::temp_dir().join("launcher");
    fs::write(&path, postern_launcher::IMAGE).map_err(text)?;
    let mode = u32::from_str_radix(mode, 8).map_err(text)?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
    fs::set_permissions(&path, mode).map_err(text)?;
    Ok(path)
}

fn enter_chroot(root: &Path) -> Made {
    rustix::process::chroot(root).map_err(text)?;
    rustix::process::chdir("/").map_err(text)?;
    leave_capabilities()
}

/// A directory for a new root, beside the one for temporary files, which is looked through.
fn new_root() -> Result<PathBuf, String> {
    let root = std::env::temp_dir().with_file_name("root");
    fs::create_dir(&root).map_err(text)?;
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(&root, open).map_err(text)?;
    become_ordinary()?;
    enter_as_ourselves(CLONE_NEWNS)?;
    Ok(root)
}

/// A plain directory with the host's directories bound into it.
pub(super) fn chroot() -> Made {
    let root = new_root()?;
    for entry in fs::read_dir("/").map_err(text)?.flatten() {
        let (here, there) = (entry.path(), root.join(entry.file_name()));
        let kind = entry.file_type().map_err(text)?;
        if kind.is_symlink() {
            let link = fs::read_link(&here).map_err(text)?;
            std::os::unix::fs::symlink(link, &there).map_err(text)?;
        } else if kind.is_dir() {
            fs::create_dir(&there).map_err(text)?;
            mount_bind_recursive(&here, &there).map_err(text)?;
        }
    }
    enter_chroot(&root)
}

/// A directory on which something is mounted, as installers and build systems have it.
pub(super) fn chroot_at_a_mount() -> Made {
    let root = new_root()?;
    mount_bind_recursive("/", &root).map_err(text)?;
    enter_chroot(&root)
}

/// Imitated: a setting of Debian's kernels that this one has not, and what it makes clone answer.
pub(super) fn clone_switched_off() -> Made {
    imitate_setting("unprivileged_userns_clone", "0")?;
    refuse(&[
        Refused { call: libc::SYS_clone, flags: CLONE_NEWUSER, errno: libc::EPERM },
        Refused { call: libc::SYS_unshare, flags: CLONE_NEWUSER, errno: libc::EPERM },
        Refused::always(libc::SYS_clone3, libc::ENOSYS),
    ])
}

/// Imitated: a setting of Ubuntu's kernels, and capabilities that do nothing in the new namespace.
pub(super) fn apparmor() -> Made {
    imitate_setting("apparmor_restrict_unprivileged_userns", "1")?;
    refuse(&[Refused::always(libc::SYS_move_mount, libc::EACCES)])
}

fn imitate_setting(name: &str, value: &str) -> Made {
    become_ordinary()?;
    enter_as_ourselves(CLONE_NEWNS)?;
    let settings = "/proc/sys/kernel";
    mount("tmpfs", settings, "tmpfs", MountFlags::empty(), None).map_err(text)?;
    write(&format!("{settings}/{name}"), value)?;
    leave_capabilities()
}

/// What docker's default filter answers to a process without CAP_SYS_ADMIN.
pub(super) fn container_filter() -> Made {
    refuse(&[
        Refused { call: libc::SYS_clone, flags: NEW_NAMESPACES, errno: libc::EPERM },
        Refused::always(libc::SYS_unshare, libc::EPERM),
        Refused::always(libc::SYS_clone3, libc::ENOSYS),
    ])
}

pub(super) fn no_clone3() -> Made {
    refuse(&[Refused::always(libc::SYS_clone3, libc::ENOSYS)])
}

pub(super) fn proc_masked() -> Made {
    become_ordinary()?;
    enter_as_ourselves(CLONE_NEWNS)?;
    mount_bind("/dev/null", "/proc/meminfo").map_err(text)?;
    leave_capabilities()
}

pub(super) fn proc_read_only() -> Made {
    become_ordinary()?;
    enter_as_ourselves(CLONE_NEWNS)?;
    mount_bind_recursive("/proc", "/proc").map_err(text)?;
    let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    mount_remount("/proc", flags | MountFlags::NOEXEC, "").map_err(text)?;
    leave_capabilities()
}

/// Does `act` as an ordinary user in a pid namespace where no memfd can be executed. Only real
/// root may write that setting.
pub(super) fn in_noexec_namespace(act: fn() -> Outcome) -> Outcome {
    sys::unshare(CLONE_NEWPID | CLONE_NEWNS).map_err(words("unshare"))?;
    match sys::fork().map_err(text)? {
        Fork::Parent(_) => {
            let (_, status) = sys::wait_any(0).map_err(text)?.unwrap_or_default();
            // The child has printed what it met.
            ensure(status == 0, || format!("status {status:#x}"))?;
            Ok(String::new())
        }
        Fork::Child => {
            let met = forbid_memfds().and_then(|()| act());
            let code = i32::from(met.is_err());
            let (Ok(line) | Err(line)) = met;
            io::Write::write_all(&mut io::stdout(), format!("{line}\n").as_bytes()).ok();
            sys::leave(code);
        }
    }
}

/// Mounts of our own, for root.
pub(super) fn enter_mount_namespace() -> Made {
    sys::unshare(CLONE_NEWNS).map_err(words("unshare"))?;
    make_private()
}

fn make_private() -> Made {
    let private = rustix::mount::MountPropagationFlags::PRIVATE;
    let recursive = rustix::mount::MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private | recursive).map_err(text)
}

fn forbid_memfds() -> Made {
    make_private()?;
    mount("proc", "/proc", "proc", MountFlags::empty(), None).map_err(text)?;
    write("/proc/sys/vm/memfd_noexec", "2")?;
    // For whoever wants no program to be executed from a temporary directory either.
    become_ordinary()
}

/// Temporary files cannot be executed either.
pub(super) fn noexec_directory() -> Made {
    enter_as_ourselves(CLONE_NEWNS)?;
    let directory = std::env::temp_dir();
    mount("tmpfs", &directory, "tmpfs", MountFlags::NOEXEC, None).map_err(text)?;
    leave_capabilities()
}

pub(super) fn exec_refused() -> Made {
    refuse(&[Refused::always(libc::SYS_execveat, libc::EACCES)])
}

pub(super) fn old_kernel() -> Made {
    refuse(&[Refused::always(libc::SYS_mount_setattr, libc::ENOSYS)])
}

pub(super) fn mount_forbidden() -> Made {
    refuse(&[Refused::always(libc::SYS_move_mount, libc::EACCES)])
}

/// The root of a user namespace with one id.
pub(super) fn small_range() -> Made {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    enter_user_namespace(0, &format!("0 {uid} 1"), &format!("0 {gid} 1"))
}

/// The root of a user namespace with the smaller of the two ranges, all of it locked.
pub(super) fn ids_all_leased() -> Result<Vec<File>, String> {
    const FIRST: u32 = 60_514;
    const COUNT: u32 = 670;
    let child_maps = |pid: i32| {
        let map = format!("0 0 1\n{FIRST} {FIRST} {COUNT}\n");
        write(&format!("/proc/{pid}/uid_map"), &map)?;
        write(&format!("/proc/{pid}/gid_map"), &map)
    };
    let own = crate::world::own_pid();
    let (told, tell) = rustix::pipe::pipe().map_err(text)?;
    match sys::fork().map_err(text)? {
        Fork::Child => {
            // Its parent's maps, once its parent is in its namespace.
            let mut byte = [0u8; 1];
            let asked = rustix::io::read(&told, &mut byte).is_ok();
            sys::leave(i32::from(!asked || child_maps(own).is_err()));
        }
        Fork::Parent(_) => sys::unshare(CLONE_NEWUSER).map_err(words("unshare"))?,
    }
    rustix::io::write(&tell, b"x").map_err(text)?;
    let (_, status) = sys::wait_any(0).map_err(text)?.unwrap_or_default();
    ensure(status == 0, || "the maps could not be written".to_owned())?;
    let runtime = std::env::var_os("POSTERN_RUNTIME_DIR").ok_or("no POSTERN_RUNTIME_DIR")?;
    let directory = PathBuf::from(runtime).join("ids");
    fs::create_dir_all(&directory).map_err(text)?;
    let lock = |id: u32| {
        let file = File::create(directory.join(id.to_string())).map_err(text)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(text)?;
        Ok(file)
    };
    (FIRST..FIRST + COUNT).map(lock).collect()
}

/// Keys until there is no more room for one, for half a second on end: the kernel collects those of
/// earlier sandboxes late.
pub(super) fn keys_used_up() -> Made {
    const MANY: usize = 100_000;
    const REFUSALS: u32 = 20;
    let mut refused = 0;
    become_ordinary()?;
    // A first session keyring is exempt from the quota; this one is ours, the launcher's is next.
    sys::join_session_keyring().map_err(words("join a session keyring"))?;
    for index in 0..MANY {
        let name = std::ffi::CString::new(format!("postern-{index}")).map_err(text)?;
        match sys::add_key(&name) {
            Ok(()) => refused = 0,
            Err(error) if error.raw_os_error() == Some(libc::EDQUOT) => {
                refused += 1;
                if refused == REFUSALS {
                    return Ok(());
                }
                std::thread::sleep(std::time::Duration::from_millis(25));
            }
            Err(error) => return Err(format!("add_key: {error}")),
        }
    }
    Err(format!("{MANY} keys are not too many here"))
}

/// As many Landlock domains around this process as the kernel nests.
pub(crate) fn landlock_layers() -> Made {
    rustix::thread::set_no_new_privs(true).map_err(text)?;
    for _ in 0..16 {
        sys::enter_landlock_domain().map_err(words("enter a Landlock domain"))?;
    }
    Ok(())
}
