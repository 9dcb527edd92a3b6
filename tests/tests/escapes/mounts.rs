//! Section C, as the guest meets it: the root, mounts, and files on them.

use libc::{EACCES, EBADF, EBUSY, EFBIG, EINVAL, ENOENT, ENOSPC, EPERM, EROFS, EXDEV};
use serde_json::Value;

use super::sources;
use crate::table::Expect::{AllRefused, At, Meets, Refused};
use crate::table::Severity::{Critical, High, Low, Medium};
use crate::table::{Row, ask, guest, host, inside};

/// The file was larger than its limit.
const TOO_LARGE: i32 = -libc::SIGXFSZ;

pub(crate) const ROWS: &[Row] = &[
    guest(
        "C-01",
        Critical,
        "no number of steps upwards leaves the root",
        &[ask("up / . {w} /usr/bin /proc /tmp", Meets(all_true))],
    )
    .and(sources::root_is_another),
    guest(
        "C-02",
        Critical,
        "no change of root, and so none out of one",
        &[
            ask("rooted calls mkdir s:{w}/jail 0x1ed ; chroot s:{w}/jail", Refused(&[EPERM])),
            ask(
                "rooted calls openat -100 s:/ 0x10000 0 ; mkdir s:{w}/jail2 0x1ed ; chroot s:{w}/jail2",
                Refused(&[EPERM]),
            ),
            ask("rooted calls pivot_root s:{w} s:{w}", Refused(&[EPERM])),
        ],
    ),
    guest(
        "C-03",
        Critical,
        "no old root is left anywhere",
        &[
            ask(
                "list /oldroot /newroot /.old /.oldroot /.pivot_root /mnt /home /root /boot /sys /var",
                AllRefused(&[ENOENT]),
            ),
            ask("open r /proc/1/root /proc/1/root/etc /proc/1/cwd", AllRefused(&[EACCES, EPERM])),
            ask("list /", Meets(only_documented)),
            ask("magic", At("/foreign", "[]")),
        ],
    ),
    guest(
        "C-04",
        High,
        "every mount has the flags that are documented",
        &[ask("mounts", Meets(flags_are_right))],
    ),
    host("C-05", High, "mounts beneath a source are as tight as the source", sources::submounts),
    guest(
        "C-06",
        High,
        "no mount propagates, in or out",
        &[
            ask("mounts", Meets(none_propagates)),
            ask("rooted calls mount s:none s:{w} s:tmpfs 0 0", Refused(&[EPERM])),
        ],
    ),
    guest(
        "C-07",
        Critical,
        "nothing read-only can be changed",
        &[
            ask(
                "open c /new /usr/new /bin/new /etc/new /etc/ssl/new /dev/new /run/new /run/postern/new",
                AllRefused(&[EROFS]),
            ),
            ask("calls unlink s:/usr/bin/env", Refused(&[EROFS])),
            ask("calls rename s:/usr/bin/env s:/usr/bin/env2", Refused(&[EROFS])),
            ask("calls link s:/usr/bin/env s:/usr/bin/env2", Refused(&[EROFS])),
            ask("calls symlink s:x s:/usr/bin/x", Refused(&[EROFS])),
            ask("calls mkdir s:/usr/x 0x1ed", Refused(&[EROFS])),
            ask("calls chmod s:/usr/bin/env 0x1ff", Refused(&[EROFS])),
            ask("calls chown s:/usr/bin/env -1 -1", Refused(&[EROFS])),
            ask("calls utimensat -100 s:/usr/bin/env 0 0", Refused(&[EROFS])),
            ask("calls truncate s:/usr/bin/env 0", Refused(&[EROFS, EACCES])),
            ask("calls setxattr s:/usr/bin/env s:user.x s:x 1 0", Refused(&[EROFS])),
            ask("calls openat -100 s:/usr 0x410002 0x1a4", Refused(&[EROFS])),
            ask("sweep /etc /run /usr/bin /usr/sbin", At("/writable", "[]")),
        ],
    ),
    guest(
        "C-10",
        High,
        "nothing of the host's can be linked into the workspace",
        &[
            ask("calls link s:/usr/bin/env s:{w}/c10", Refused(&[EXDEV])),
            ask(
                "calls linkat p:0x200000:/usr/bin/env s: -100 s:{w}/c10 0x1000",
                Refused(&[EXDEV, ENOENT]),
            ),
            ask("calls link s:/etc/hosts s:{w}/c10", Refused(&[EXDEV])),
            ask("calls rename s:/etc/hosts s:{w}/c10", Refused(&[EXDEV, EROFS])),
        ],
    ),
    host(
        "C-11",
        Critical,
        "a rootfs whose /proc is a link or full of files changes nothing",
        sources::hostile_rootfs,
    ),
    host(
        "C-12",
        Critical,
        "a source that is swapped for a link is never followed",
        sources::swapped_source,
    ),
    host("C-13", Critical, "a rootfs of links leads nowhere outside it", sources::rootfs_of_links),
    host(
        "C-14",
        Critical,
        "links of an earlier run are not followed by mounts of the next",
        sources::planted_targets,
    ),
    host(
        "C-15",
        Critical,
        "a run that renames while another starts gains nothing",
        sources::racing_targets,
    ),
    host("C-16", High, "no directory of the host is used to set up", sources::no_staging),
    host("C-17", Low, "inputs can be had as private copies", sources::private_inputs),
    host(
        "C-18",
        High,
        "a path that is denied stays so when it does not exist",
        sources::denied_paths,
    ),
    guest(
        "C-19",
        Medium,
        "mount points stay where they are",
        &[
            ask("calls rename s:/workspace s:/w2", Refused(&[EBUSY, EROFS])),
            ask("calls rename s:/run/postern s:/run/p2", Refused(&[EBUSY, EROFS])),
            ask("calls renameat2 -100 s:/tmp -100 s:/workspace 2", Refused(&[EBUSY, EROFS, EXDEV])),
            ask(
                "calls renameat2 -100 s:/run/postern -100 s:/tmp/p 4",
                Refused(&[EBUSY, EROFS, EXDEV, EINVAL]),
            ),
            ask("calls rmdir s:/dev/shm", Refused(&[EBUSY, EROFS])),
        ],
    )
    .fact("paths of the sandbox do not exist outside"),
    host("C-20", Medium, "paths too deep to name hold up nobody", sources::deep_paths),
    guest(
        "C-21",
        High,
        "a descriptor gives no more than its path",
        &[
            ask(
                "calls openat -100 s:/usr/bin/env 0x200000 ; fcntl f:2:0 1",
                Refused(&[EROFS, EACCES]),
            ),
            ask("calls openat -100 s:/etc/hosts 0 ; fcntl f:2:0 1", Refused(&[EROFS, EACCES])),
            ask("calls openat -100 s:/usr/bin/env 0x200000 ; fchmod $0 0x1ff", Refused(&[EBADF])),
            ask(
                "calls openat -100 s:/proc/kallsyms 0x200000 ; fcntl f:0:0 1",
                Refused(&[EACCES, ENOENT]),
            ),
            ask("calls openat -100 s:/proc/1/root 0x200000", Refused(&[EACCES, EPERM])),
        ],
    ),
    host(
        "C-22",
        Low,
        "programs run where it is documented and nowhere else",
        sources::executable_places,
    ),
    host("C-23", Medium, "Landlock denies what nothing else does", sources::landlock),
    host(
        "C-24",
        Medium,
        "without the filter the other walls hold the critical rows",
        sources::depth,
    ),
    guest(
        "C-26",
        High,
        "no file outgrows its bound",
        &[
            inside(
                "calls fallocate p:0x42:{w}/big 0 0 0x4000000000",
                Refused(&[EFBIG, ENOSPC, TOO_LARGE]),
            ),
            inside(
                "calls fallocate p:0x42:{w}/big 1 0 0x4000000000",
                Refused(&[EFBIG, ENOSPC, TOO_LARGE]),
            ),
            inside(
                "calls ftruncate p:0x42:{w}/sparse 0x7ffffffffffffff0",
                Refused(&[EFBIG, TOO_LARGE]),
            ),
            inside(
                "calls openat -100 s:{w}/s 0x42 0x1a4 ; lseek $0 0x7ffffffffffffff0 0 ; write $0 s:x 1",
                Refused(&[EFBIG, EINVAL, TOO_LARGE]),
            ),
        ],
    ),
];

fn all_true(answer: &Value) -> Result<(), String> {
    let entries = answer.as_object().ok_or("no answer")?;
    match entries.values().all(|value| *value == true) {
        true => Ok(()),
        false => Err(answer.to_string()),
    }
}

const ROOT: [&str; 13] = [
    "bin",
    "dev",
    "etc",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "proc",
    "run",
    "sbin",
    "tmp",
    "usr",
    "workspace",
];

fn only_documented(answer: &Value) -> Result<(), String> {
    let entries = answer["/"].as_array().ok_or("no list")?;
    let names = entries.iter().map(|entry| entry["name"].as_str().unwrap_or(""));
    let other: Vec<_> = names.filter(|name| !ROOT.contains(name)).collect();
    if other.is_empty() { Ok(()) } else { Err(other.join(" ")) }
}

const DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/pts"];

const WRITABLE: [&str; 4] = ["/dev/pts", "/dev/shm", "/tmp", "/workspace"];

const NO_PROGRAMS: [&str; 3] = ["/proc", "/dev/pts", "/run/postern"];

fn flags_are_right(mounts: &Value) -> Result<(), String> {
    let mounts = mounts.as_array().ok_or("no list")?;
    let mut writable = std::collections::BTreeSet::new();
    for mount in mounts {
        let target = mount["target"].as_str().unwrap_or("");
        let options: Vec<&str> = mount["options"].as_str().unwrap_or("").split(',').collect();
        let has = |option| options.contains(&option);
        if !has("nosuid") {
            return Err(format!("{target} is not nosuid"));
        }
        if has("nodev") == DEVICES.contains(&target) {
            return Err(format!("nodev of {target} is wrong"));
        }
        if NO_PROGRAMS.contains(&target) && !has("noexec") {
            return Err(format!("{target} is not noexec"));
        }
        // A later mount at the same place covers an earlier one.
        match has("rw") {
            true => writable.insert(target),
            false => writable.remove(target),
        };
    }
    match writable.iter().eq(WRITABLE.iter()) {
        true => Ok(()),
        false => Err(format!("writable: {writable:?}")),
    }
}

fn none_propagates(mounts: &Value) -> Result<(), String> {
    let mounts = mounts.as_array().ok_or("no list")?;
    let tagged: Vec<_> =
        mounts.iter().filter(|mount| mount["tags"] != Value::Array(vec![])).collect();
    if tagged.is_empty() { Ok(()) } else { Err(format!("{:?}", tagged[0])) }
}
