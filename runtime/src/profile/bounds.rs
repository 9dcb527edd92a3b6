//! Least and most values of every number in a profile; one table.

use super::{Field, Landlock, MountSpec, SandboxProfile, Workspace};
use crate::error::Refusal;

/// Largest tmpfs or memory size that is taken for a wish and not for a slip: 16 TiB.
const BYTES_MAX: u64 = 1 << 44;

/// Largest inode count that is taken for a wish: 2^32.
const INODES_MAX: u64 = 1 << 32;

/// A tmpfs smaller than a page holds nothing.
const TMPFS_BYTES_MIN: u64 = 4096;

/// The root takes one inode, and a directory of one file two more.
const INODES_MIN: u64 = 4;

/// Refuses a number outside its bounds.
pub(super) fn check(profile: &SandboxProfile) -> Result<(), Refusal> {
    sizes(profile)?;
    limits(profile)?;
    cgroup(profile)?;
    between(Field::new("pty_max"), u64::from(profile.pty_max), 0, 1 << 20)?;
    landlock(profile.landlock)?;
    oom_score_adj(profile.oom_score_adj)
}

/// The first ABI forbids renames from one directory to another; later ones than ours add nothing
/// that a launch uses.
fn landlock(landlock: Landlock) -> Result<(), Refusal> {
    match landlock {
        Landlock::Require(abi) => {
            between(Field::new("landlock").part("require"), u64::from(abi), 2, 6)
        }
        Landlock::Off | Landlock::Use => Ok(()),
    }
}

/// Every tmpfs.
fn sizes(profile: &SandboxProfile) -> Result<(), Refusal> {
    let whole = Field::new;
    tmpfs(whole("tmp_bytes"), profile.tmp_bytes, whole("tmp_inodes"), profile.tmp_inodes)?;
    tmpfs(whole("shm_bytes"), profile.shm_bytes, whole("shm_inodes"), profile.shm_inodes)?;
    let parts = |field: Field| (field.part("size_bytes"), field.part("inodes"));
    if let Workspace::Owned { size_bytes, inodes } = profile.workspace {
        let (size, count) = parts(whole("workspace"));
        tmpfs(size, size_bytes, count, inodes)?;
    }
    for (index, mount) in profile.mounts.iter().enumerate() {
        if let MountSpec::Tmpfs { size_bytes, inodes, .. } = mount {
            let (size, count) = parts(whole("mounts").at(index));
            tmpfs(size, *size_bytes, count, *inodes)?;
        }
    }
    Ok(())
}

/// Both bounds of one tmpfs; 0 would mean "unlimited" to the kernel.
fn tmpfs(size: Field, bytes: u64, count: Field, inodes: u64) -> Result<(), Refusal> {
    between(size, bytes, TMPFS_BYTES_MIN, BYTES_MAX)?;
    between(count, inodes, INODES_MIN, INODES_MAX)
}

/// Every resource limit.
fn limits(profile: &SandboxProfile) -> Result<(), Refusal> {
    let limits = &profile.limits;
    let rows = [
        ("nproc", limits.nproc, 1, 4_194_304),
        ("nofile", Some(limits.nofile), 8, 1_048_576),
        ("fsize_bytes", Some(limits.fsize_bytes), 1, 1 << 62),
        ("memlock_bytes", Some(limits.memlock_bytes), 0, BYTES_MAX),
        ("sigpending", Some(limits.sigpending), 0, 1 << 20),
        ("msgqueue_bytes", Some(limits.msgqueue_bytes), 0, 1 << 32),
        ("stack_bytes", limits.stack_bytes, 64 << 10, BYTES_MAX),
        ("address_space_bytes", limits.address_space_bytes, 64 << 10, 1 << 47),
        ("cpu_seconds", limits.cpu_seconds, 1, 1 << 32),
    ];
    let given = rows.into_iter().filter_map(|(name, limit, least, most)| {
        limit.map(|value| (Field::new("limits").part(name), value, least, most))
    });
    for (field, value, least, most) in given {
        between(field, value, least, most)?;
    }
    Ok(())
}

/// Every limit of a run as a whole. PID 1 and the program are two processes, and the kernel takes no
/// quota of less than a millisecond.
fn cgroup(profile: &SandboxProfile) -> Result<(), Refusal> {
    let cgroup = &profile.cgroup;
    let rows = [
        ("memory_bytes", cgroup.memory_bytes, 4 << 20, BYTES_MAX),
        ("swap_bytes", Some(cgroup.swap_bytes), 0, BYTES_MAX),
        ("pids", cgroup.pids, 2, 4_194_304),
        ("cpu_millis", cgroup.cpu_millis, 10, 1_000_000),
        ("cpu_weight", cgroup.cpu_weight, 1, 10_000),
        ("io_weight", cgroup.io_weight, 1, 10_000),
    ];
    let given = rows.into_iter().filter_map(|(name, limit, least, most)| {
        limit.map(|value| (Field::new("cgroup").part(name), value, least, most))
    });
    for (field, value, least, most) in given {
        between(field, value, least, most)?;
    }
    Ok(())
}

/// Lowering a score below the service's own needs a capability that no launch keeps.
fn oom_score_adj(score: i16) -> Result<(), Refusal> {
    let field = Field::new("oom_score_adj");
    match u64::try_from(score) {
        Err(_negative) => Err(Refusal::TooSmall { field, value: i64::from(score), least: 0 }),
        Ok(score) => between(field, score, 0, 1000),
    }
}

/// `least..=most`.
fn between(field: Field, value: u64, least: u64, most: u64) -> Result<(), Refusal> {
    if value < least {
        let signed = |number| i64::try_from(number).unwrap_or(i64::MAX);
        Err(Refusal::TooSmall { field, value: signed(value), least: signed(least) })
    } else if value > most {
        Err(Refusal::TooLarge { field, value, most })
    } else {
        Ok(())
    }
}
