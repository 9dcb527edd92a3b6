//! Questions about this process and others: ids, capabilities, limits, descriptors, system calls.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::json::Value;
use crate::sys::{call, child, short, words};

/// System call numbers of x86_64.
mod nr {
    pub(super) const PAUSE: i64 = 34;
    pub(super) const GETPID: i64 = 39;
    pub(super) const WAIT4: i64 = 61;
    pub(super) const KILL: i64 = 62;
    pub(super) const UNAME: i64 = 63;
    pub(super) const FCNTL: i64 = 72;
    pub(super) const UMASK: i64 = 95;
    pub(super) const GETUID: i64 = 102;
    pub(super) const GETGID: i64 = 104;
    pub(super) const GETEUID: i64 = 107;
    pub(super) const GETEGID: i64 = 108;
    pub(super) const GETPPID: i64 = 110;
    pub(super) const GETGROUPS: i64 = 115;
    pub(super) const GETPGID: i64 = 121;
    pub(super) const GETSID: i64 = 124;
    pub(super) const CAPGET: i64 = 125;
    pub(super) const PRCTL: i64 = 157;
    pub(super) const SCHED_YIELD: i64 = 24;
    pub(super) const PRLIMIT64: i64 = 302;
}

/// `argv TEXT...`: the arguments after the question.
pub(crate) fn arguments(arguments: &[OsString]) -> Value {
    let values = arguments.iter().map(|text| text.as_bytes().to_vec().into());
    values.collect::<Vec<Value>>().into()
}

/// `env`: every `NAME=value`, in order.
pub(crate) fn environment(_: &[OsString]) -> Value {
    let values = std::env::vars_os().map(|(mut name, value)| {
        name.push("=");
        name.push(value);
        Value::from(name.into_vec())
    });
    values.collect::<Vec<Value>>().into()
}

/// `identity`: ids, session, working directory, umask and hostname.
pub(crate) fn identity(_: &[OsString]) -> Value {
    let plain = |number| Value::of(short::<0>(number, []));
    let own = |number| Value::of(short(number, [0]));
    let groups = words::<64>(nr::GETGROUPS, |buffer| [128, buffer, 0, 0]);
    let count = short(nr::GETGROUPS, [0]).unwrap_or(0);
    let groups = groups.map(|words| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let ids = bytes.chunks_exact(4).take(count);
        ids.map(|id| u32::from_ne_bytes(id.try_into().unwrap_or_default()).into())
            .collect::<Vec<Value>>()
    });
    let cwd = std::env::current_dir().map(|path| path.into_os_string().into_vec());
    Value::map([
        ("uid", plain(nr::GETUID)),
        ("euid", plain(nr::GETEUID)),
        ("gid", plain(nr::GETGID)),
        ("egid", plain(nr::GETEGID)),
        ("groups", Value::of(groups)),
        ("pid", plain(nr::GETPID)),
        ("parent", plain(nr::GETPPID)),
        ("session", own(nr::GETSID)),
        ("group", own(nr::GETPGID)),
        ("umask", Value::of(short(nr::UMASK, [0]))),
        ("cwd", Value::of(cwd)),
        ("hostname", Value::of(hostname())),
    ])
}

fn hostname() -> io::Result<Vec<u8>> {
    const NAME_BYTES: usize = 65;
    let names = words::<64>(nr::UNAME, |buffer| [buffer, 0, 0, 0])?;
    let bytes = names.iter().flat_map(|word| word.to_ne_bytes()).skip(NAME_BYTES);
    Ok(bytes.take_while(|byte| *byte != 0).collect())
}

/// `capabilities`: the five sets as masks, and what guards them; needs no procfs.
pub(crate) fn capabilities(_: &[OsString]) -> Value {
    const VERSION_3: u64 = 0x2008_0522;
    const CAPBSET_READ: usize = 23;
    const CAP_AMBIENT: usize = 47;
    const CAP_AMBIENT_IS_SET: usize = 1;
    let prctl = |option, a: usize, b: usize| short(nr::PRCTL, [option, a, b]);
    let mask = |has: &dyn Fn(usize) -> bool| {
        (0..64).filter(|capability| has(*capability)).fold(0u64, |mask, bit| mask | 1 << bit)
    };
    let header = [VERSION_3];
    let sets = words::<3>(nr::CAPGET, |buffer| [header.as_ptr().addr(), buffer, 0, 0]);
    let sets = sets.map(|words| {
        // Two records of effective, permitted and inheritable, 32 bits each.
        let halves = words.map(|word| [word & 0xffff_ffff, word >> 32]);
        let [[effective, permitted], [inheritable, effective_high], [permitted_high, high]] =
            halves;
        Value::map([
            ("effective", (effective | effective_high << 32).into()),
            ("permitted", (permitted | permitted_high << 32).into()),
            ("inheritable", (inheritable | high << 32).into()),
        ])
    });
    let ambient = |bit: usize| prctl(CAP_AMBIENT, CAP_AMBIENT_IS_SET, bit).is_ok_and(|on| on == 1);
    let bounding = |bit: usize| prctl(CAPBSET_READ, bit, 0).is_ok_and(|on| on == 1);
    Value::map([
        ("sets", Value::of(sets)),
        ("bounding", mask(&bounding).into()),
        ("ambient", mask(&ambient).into()),
        ("no_new_privs", Value::of(prctl(39, 0, 0))),
        ("seccomp", Value::of(prctl(21, 0, 0))),
        ("securebits", Value::of(prctl(27, 0, 0))),
        ("dumpable", Value::of(prctl(3, 0, 0))),
    ])
}

/// `status [PID]`: the lines of `/proc/PID/status`.
pub(crate) fn status(arguments: &[OsString]) -> Value {
    let pid = arguments.first().map_or("self".into(), |pid| pid.to_string_lossy());
    let lines = fs::read_to_string(format!("/proc/{pid}/status")).map(|text| {
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        let entry = |(name, value): (&str, &str)| (name.into(), Value::from(value.trim()));
        Value::Map(pairs.map(entry).collect())
    });
    Value::of(lines)
}

/// `fds`: the numbers of all open descriptors, found by asking for each; needs no procfs.
pub(crate) fn descriptors(_: &[OsString]) -> Value {
    const F_GETFD: usize = 1;
    let open = (0..1usize << 16).filter(|fd| short(nr::FCNTL, [*fd, F_GETFD]).is_ok());
    open.map(Value::from).collect::<Vec<Value>>().into()
}

/// `rlimits`: soft and hard limit of every resource, by number; -1 is unlimited.
pub(crate) fn limits(_: &[OsString]) -> Value {
    (0..16).map(|resource| Value::of(limit(resource))).collect::<Vec<Value>>().into()
}

fn limit(resource: usize) -> io::Result<Value> {
    let [soft, hard] = words::<2>(nr::PRLIMIT64, |buffer| [0, resource, 0, buffer])?;
    Ok(Value::List(vec![soft.into(), hard.into()]))
}

/// `lower-core`: what setting the core limit to 0 answers, and what the limit is then.
pub(crate) fn lower_core_limit(_: &[OsString]) -> Value {
    const CORE: usize = 4;
    let none = [0u64; 2];
    let set = short(nr::PRLIMIT64, [0, CORE, none.as_ptr().addr(), 0]);
    Value::map([("set", Value::of(set)), ("limit", Value::of(limit(CORE)))])
}

/// `syscall NUMBER ARGUMENT...`: the value or the errno of any call with numbers as arguments.
pub(crate) fn system_call(arguments: &[OsString]) -> Value {
    let Some((name, rest)) = arguments.split_first() else { return false.into() };
    let mut numbers = [0; 6];
    for (slot, argument) in numbers.iter_mut().zip(rest) {
        *slot = crate::number(argument);
    }
    Value::of(call(i64::try_from(crate::number(name)).unwrap_or(-1), numbers))
}

/// `fork MOST`: children that wait, until the kernel refuses or there are that many.
pub(crate) fn fork_until_refused(arguments: &[OsString]) -> Value {
    const SIGKILL: usize = 9;
    let most = arguments.first().map_or(0, crate::number);
    let mut made = Vec::new();
    let mut errno = 0;
    while made.len() < most && errno == 0 {
        match child(|| drop(short::<0>(nr::PAUSE, []))) {
            Ok(pid) => made.push(pid),
            Err(error) => errno = error.raw_os_error().unwrap_or(-1),
        }
    }
    for pid in &made {
        short(nr::KILL, [usize::try_from(*pid).unwrap_or(0), SIGKILL]).ok();
    }
    made.iter().for_each(|pid| wait_for(*pid));
    Value::map([("made", made.len().into()), ("errno", errno.into())])
}

fn wait_for(pid: i32) {
    short(nr::WAIT4, [usize::try_from(pid).unwrap_or(0), 0, 0, 0]).ok();
}

/// `orphans COUNT`: makes that many processes whose parent is gone before they end; how many
/// processes besides PID 1 and this one are left once all have had time to be reaped.
pub(crate) fn orphans(arguments: &[OsString]) -> Value {
    let count = arguments.first().map_or(0, crate::number);
    let mut made = 0u32;
    for _ in 0..count {
        let parent = child(|| drop(child(|| ())));
        made += u32::from(parent.is_ok());
        parent.map(wait_for).ok();
    }
    let left = || {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok()).count()
    };
    // Bounded by turns, not by time: a loaded machine takes longer.
    let mut turns = 0u32;
    while left() > 2 && turns < 20_000 {
        short::<0>(nr::SCHED_YIELD, []).ok();
        turns += 1;
    }
    Value::map([("made", made.into()), ("left", left().saturating_sub(2).into())])
}

/// `search-memory PID TEXT`: how often the readable memory of a process holds the text.
pub(crate) fn search_memory(arguments: &[OsString]) -> Value {
    let [pid, text] = arguments else { return false.into() };
    let pid = pid.to_string_lossy();
    let search = || -> io::Result<usize> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
        let mut memory = File::open(format!("/proc/{pid}/mem"))?;
        let mut found = 0;
        for line in maps.lines() {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let Some((from, to)) = range else { continue };
            let number = |digits| u64::from_str_radix(digits, 16).unwrap_or(0);
            let len = usize::try_from(number(to).saturating_sub(number(from))).unwrap_or(0);
            let mut bytes = vec![0; len];
            let got = memory
                .seek(SeekFrom::Start(number(from)))
                .and_then(|_| memory.read_exact(&mut bytes));
            if got.is_ok() {
                found += bytes.windows(text.len()).filter(|part| *part == text.as_bytes()).count();
            }
        }
        Ok(found)
    };
    Value::of(search())
}
