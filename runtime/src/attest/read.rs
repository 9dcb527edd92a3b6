//! Reads one confined PID 1 from `/proc` and from its own record; judges nothing.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use postern_init::record::{Record, attested};
use procfs::process::{LimitValue, Limits, MountInfo, MountInfos, Process as Proc, Status};
use procfs::{FromBufRead, FromRead, ProcError};
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, read};

use super::mounts::reachable;
use super::{
    Attestation, AttestedCapabilities, AttestedDescriptor, AttestedNamespace, AttestedRlimit,
};
use crate::plan::Resource;

/// Everything about one PID 1, of which `told` is its own record.
pub(crate) fn attest(init: &Proc, told: &Record) -> Result<Attestation, ProcError> {
    let text = file(init, "status")?;
    let status = Status::from_read(text.as_bytes())?;
    let limits = Limits::from_read(file(init, "limits")?.as_bytes())?;
    let score = file(init, "oom_score_adj")?;
    let is_told = |fact| told.facts & fact != 0;
    Ok(Attestation {
        namespaces: namespaces(init),
        uids: [status.ruid, status.euid, status.suid, status.fuid],
        gids: [status.rgid, status.egid, status.sgid, status.fgid],
        uid_map: id_map(&file(init, "uid_map")?),
        gid_map: id_map(&file(init, "gid_map")?),
        capabilities: AttestedCapabilities {
            inheritable: status.capinh,
            permitted: status.capprm,
            effective: status.capeff,
            // What a kernel does not show is taken for full.
            bounding: status.capbnd.unwrap_or(u64::MAX),
            ambient: status.capamb.unwrap_or(u64::MAX),
        },
        securebits: told.code.cast_unsigned(),
        no_new_privs: status.nonewprivs.map(|value| value == 1),
        seccomp_mode: status.seccomp,
        seccomp_filters: filters(&text),
        landlock: is_told(attested::LANDLOCK),
        keyring_closed: is_told(attested::KEYRING_CLOSED),
        dumpable: !is_told(attested::NON_DUMPABLE),
        oom_score_adj: score.trim().parse().unwrap_or(i16::MIN),
        rlimits: Resource::ALL.map(|resource| rlimit(&limits, resource)).into(),
        mounts: reachable(&mounts(init)?),
        descriptors: descriptors(init)?,
        groups: status.groups,
    })
}

/// A file of `/proc/PID`, in as few calls as it takes: the run waits meanwhile.
fn bytes(init: &Proc, name: &'static str) -> Result<Vec<u8>, ProcError> {
    let failed = |errno: Errno| ProcError::Io(errno.into(), Some(name.into()));
    let file = init.open_relative(name)?;
    let mut bytes = Vec::with_capacity(4096);
    while read(&file, spare_capacity(&mut bytes)).map_err(failed)? > 0 {
        bytes.reserve(1024);
    }
    Ok(bytes)
}

/// A file without paths.
fn file(init: &Proc, name: &'static str) -> Result<String, ProcError> {
    Ok(String::from_utf8_lossy(&bytes(init, name)?).into_owned())
}

/// The mounts. Their paths are bytes of any kind, which what reads the table takes for text: each
/// byte is made the character of its number, and back.
fn mounts(init: &Proc) -> Result<Vec<MountInfo>, ProcError> {
    let text: String = bytes(init, "mountinfo")?.into_iter().map(char::from).collect();
    let MountInfos(mut table) = MountInfos::from_buf_read(text.as_bytes())?;
    for mount in &mut table {
        let text = mount.mount_point.to_string_lossy();
        let path = text.chars().map(|char| u8::try_from(char).unwrap_or(b'?')).collect();
        mount.mount_point = OsString::from_vec(path).into();
    }
    Ok(table)
}

/// How many filters a `status` file tells of.
pub(crate) fn filters(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:")?.trim().parse().ok())
}

fn id_map(text: &str) -> Vec<[u32; 3]> {
    let line = |line: &str| {
        let mut numbers = line.split_ascii_whitespace().map(str::parse);
        Some([numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?])
    };
    text.lines().filter_map(line).collect()
}

const NAMESPACES: [&str; 8] = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"];

fn namespaces(init: &Proc) -> Vec<AttestedNamespace> {
    let of = |pid: &str, name| {
        let status = std::fs::metadata(format!("/proc/{pid}/ns/{name}")).ok()?;
        Some(std::os::unix::fs::MetadataExt::ino(&status))
    };
    let pid = init.pid().to_string();
    let namespace = |name| {
        let (inode, own) = (of(&pid, name), of("self", name));
        let is_shared = inode.zip(own).map(|(theirs, ours)| theirs == ours);
        AttestedNamespace { name, inode, is_shared }
    };
    NAMESPACES.map(namespace).into()
}

/// The namespaces that a plan is about, and whether each is this process's own; `None` for a kind
/// that this kernel does not show.
pub(crate) fn shared_namespaces(init: &Proc) -> [(&'static str, Option<bool>); 7] {
    let found = namespaces(init);
    let [names @ .., _time] = NAMESPACES;
    names.map(|name| {
        let namespace = found.iter().find(|namespace| namespace.name == name);
        (name, namespace.and_then(|namespace| namespace.is_shared))
    })
}

/// Soft and hard limit of a process; `None` is unlimited.
pub(crate) fn limit_of(limits: &Limits, resource: Resource) -> [Option<u64>; 2] {
    let limit = match resource {
        Resource::Core => limits.max_core_file_size,
        Resource::NoFile => limits.max_open_files,
        Resource::FileSize => limits.max_file_size,
        Resource::MemLock => limits.max_locked_memory,
        Resource::SigPending => limits.max_pending_signals,
        Resource::MsgQueue => limits.max_msgqueue_size,
        Resource::NProc => limits.max_processes,
        Resource::AddressSpace => limits.max_address_space,
        Resource::Stack => limits.max_stack_size,
        Resource::Cpu => limits.max_cpu_time,
    };
    [limit.soft_limit, limit.hard_limit].map(|limit| match limit {
        LimitValue::Unlimited => None,
        LimitValue::Value(value) => Some(value),
    })
}

fn rlimit(limits: &Limits, resource: Resource) -> AttestedRlimit {
    let [soft, hard] = limit_of(limits, resource);
    AttestedRlimit { resource: resource.to_string(), soft, hard }
}

fn descriptors(init: &Proc) -> Result<Vec<AttestedDescriptor>, ProcError> {
    let path = std::path::PathBuf::from(format!("/proc/{}/fd", init.pid()));
    let failed = |error| ProcError::Io(error, Some(path.clone()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let what = std::fs::read_link(entry.path()).map_err(failed)?;
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok()).unwrap_or(-1);
        found.push(AttestedDescriptor { number, what });
    }
    found.sort_by_key(|descriptor| descriptor.number);
    Ok(found)
}
