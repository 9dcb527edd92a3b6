//! Section D: what `/proc` shows and what it takes; there is no `/sys`.

use libc::{EACCES, EBUSY, EINVAL, EISDIR, ENOENT, ENOSYS, ENOTDIR, EPERM, EROFS, ETXTBSY};
use postern::profile::ProcKind;
use postern::{Command, SandboxProfile};
use postern_tests::{
    PROBE_PATH, ask as ask_probe, command, hold, install, memory_holds, mounts_of,
};
use serde_json::Value;
use std::os::unix::fs::MetadataExt;

use crate::host::{build, hostprog};
use crate::stage::Stage;
use crate::table::Expect::{AllRefused, At, Meets, Refused};
use crate::table::Severity::{Critical, High, Low, Medium};
use crate::table::{Row, ask, guest, host};
use crate::verdict::{Finding, held};

pub(crate) const ROWS: &[Row] = &[
    guest("D-01", Medium, "/proc holds documented names; of kind minimal, processes only", &[ask("list /proc", Meets(known_names))])
        .and(minimal_has_processes_only),
    guest("D-02", Critical, "no file of /proc opens for writing", &[ask("sweep /proc", At("/writable", "[]"))]),
    guest("D-03", Critical, "no setting of the kernel opens for writing", &[
        ask(
            "open w /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/kernel/hotplug \
             /proc/sys/kernel/poweroff_cmd /proc/sys/kernel/usermodehelper/bset \
             /proc/sys/kernel/hostname /proc/sys/kernel/sysrq /proc/sys/fs/binfmt_misc/register \
             /proc/sys/vm/drop_caches /proc/sys/vm/overcommit_memory /proc/sys/net/ipv4/ip_forward \
             /proc/sys/net/core/somaxconn /proc/sys/user/max_user_namespaces /proc/sysrq-trigger",
            AllRefused(&[EROFS, EACCES, ENOENT]),
        ),
    ])
    .and(read_only_from_outside),
    guest(
        "D-04", High, "files that tell of the kernel's memory and of others are closed", &[ask(
        "open r /proc/kcore /proc/kmsg /proc/kallsyms /proc/kpageflags /proc/kpagecount \
         /proc/kpagecgroup /proc/vmallocinfo /proc/slabinfo /proc/timer_list /proc/sched_debug \
         /proc/pagetypeinfo /proc/iomem /proc/ioports /proc/modules /proc/keys /proc/key-users \
         /proc/latency_stats /proc/config.gz",
        AllRefused(&[EACCES, ENOENT]),
    )]),
    guest("D-05", Medium, "files that tell what others do are closed", &[
        ask(
            "open r /proc/diskstats /proc/interrupts /proc/softirqs /proc/zoneinfo /proc/buddyinfo \
             /proc/pressure/cpu /proc/pressure/io /proc/pressure/memory /proc/vmstat \
             /proc/partitions /proc/swaps /proc/locks /proc/schedstat",
            AllRefused(&[EACCES, ENOENT]),
        ),
        ask("open r /proc/meminfo /proc/cpuinfo /proc/stat /proc/uptime /proc/loadavg", Meets(all_open)),
    ]),
    guest("D-06", Low, "nothing names the machine", &[ask(
        "open r /proc/sys/kernel/random/boot_id /etc/machine-id /var/lib/dbus/machine-id \
         /sys/class/dmi/id/product_uuid /sys/class/dmi/id/product_name",
        AllRefused(&[EACCES, ENOENT]),
    )]),
    guest("D-07", High, "PID 1 shows nothing of its memory, files and places", &[
        ask(
            "open r /proc/1/environ /proc/1/mem /proc/1/maps /proc/1/smaps /proc/1/fd /proc/1/fd/3 \
             /proc/1/fdinfo /proc/1/cwd /proc/1/root /proc/1/exe /proc/1/stack /proc/1/syscall \
             /proc/1/auxv /proc/1/io /proc/1/map_files /proc/1/pagemap /proc/1/personality \
             /proc/1/ns /proc/1/task/1/mem /proc/1/task/1/fd",
            AllRefused(&[EACCES, EPERM, ENOENT]),
        ),
        ask("open r /proc/self/environ /proc/self/maps /proc/self/fd", Meets(all_open)),
    ])
    .shown("PID 1 has the guest's own uid, and the guest's own files of the same names open"),
    guest("D-08", Low, "what PID 1 must show says nothing of the host", &[
        ask("leaks {scratch} /proc/1", At("/found", "[]")),
        ask("leaks newroot /proc/1", At("/found", "[]")),
        ask("leaks oldroot /proc/1", At("/found", "[]")),
        ask("processes", Meets(filtered)),
    ]),
    guest("D-09", Medium, "nothing of PID 1 can be written", &[ask(
        "open w /proc/1/oom_score_adj /proc/1/comm /proc/1/coredump_filter /proc/1/timerslack_ns \
         /proc/1/autogroup /proc/1/attr/current /proc/1/clear_refs /proc/1/mem /proc/1/uid_map",
        AllRefused(&[EACCES, EPERM, EROFS, ENOENT]),
    )])
    .shown("PID 1 has the guest's own uid: of its own uid's processes the host lets it write some"),
    guest("D-10", Medium, "the kernel takes a guest before the service, and that stays", &[
        ask("open w /proc/self/oom_score_adj", AllRefused(&[EROFS, EACCES])),
        ask("read /proc/self/oom_score_adj", Meets(taken_first)),
    ]),
    guest("D-11", Critical, "no link of a process leads out", &[
        ask("magic", At("/foreign", "[]")),
        ask("magic", Meets(looked)),
    ])
    .and(links_from_outside),
    guest("D-15", Critical, "no file system can be mounted", &[
        ask("rooted calls mount s:proc s:{w} s:proc 0 0", Refused(&[EPERM])),
        ask("rooted calls mount s:none s:{w} s:tmpfs 0 0", Refused(&[EPERM])),
        ask("rooted calls mount s:none s:{w} s:sysfs 0 0", Refused(&[EPERM])),
        ask("rooted calls mount s:none s:{w} s:cgroup2 0 0", Refused(&[EPERM])),
        ask("rooted calls mount s:none s:{w} s:mqueue 0 0", Refused(&[EPERM])),
        ask("rooted calls mount s:/usr s:{w} s:none 0x1000 0", Refused(&[EPERM])),
        ask("rooted calls fsopen s:proc 0", Refused(&[ENOSYS])),
        ask("rooted calls open_tree -100 s:/proc 1", Refused(&[ENOSYS])),
    ]),
    host("D-16", Critical, "the first instruction of a guest finds every mask in place", masked_from_the_start),
    guest("D-17", Critical, "no mask can be taken off", &[
        ask("rooted calls umount2 s:/proc/kallsyms 2", Refused(&[EPERM])),
        ask("rooted calls umount2 s:/proc 2", Refused(&[EPERM])),
        ask("rooted calls mount s:/proc/kallsyms s:{w} s:none 0x2000 0", Refused(&[EPERM])),
        ask("rooted calls mount s:/proc s:{w} s:none 0x5000 0", Refused(&[EPERM])),
        ask("rooted calls mount s:none s:/proc s:none 0x1020 0", Refused(&[EPERM])),
        ask("rooted calls move_mount -100 s:/proc/kallsyms -100 s:{w} 0", Refused(&[ENOSYS])),
    ])
    .and(locked_without_a_filter),
    guest("D-18", High, "no spelling of a path goes around a mask", &[
        ask(
            "open r //proc//kallsyms /proc/./kallsyms /proc/self/../kallsyms /proc/kallsyms/ \
             /proc/thread-self/../../../kallsyms /proc/self/root/proc/kallsyms /proc/self/task/../../kallsyms \
             /proc/self/cwd/../proc/kallsyms /dev/fd/../../kallsyms",
            AllRefused(&[EACCES, ENOENT, ENOTDIR]),
        ),
        ask("open w /proc/./sys/kernel/core_pattern /proc/self/../sys/kernel/core_pattern //proc//sys//kernel/core_pattern", AllRefused(&[EACCES, EROFS])),
        ask("calls unlink s:/proc/kallsyms", Refused(&[EPERM, EROFS, EBUSY])),
        ask("calls rename s:/proc/kallsyms s:/proc/k", Refused(&[EPERM, EROFS, EBUSY])),
    ]),
    host("D-19", Critical, "what masks is our own unreadable file", masks_are_ours),
    guest("D-20", Low, "writing to a mask is an error", &[ask(
        "open w /proc/kallsyms /proc/keys /proc/sysrq-trigger /proc/kcore /proc/timer_list",
        AllRefused(&[EACCES, EROFS, ENOENT]),
    )])
    .and(masked_even_for_root_inside),
    host("D-22", Critical, "where only a masked /proc is to be had, the launch is refused", nested),
    guest("D-23", Critical, "a program that runs cannot be written", &[
        ask("open w /proc/self/exe /proc/1/exe", AllRefused(&[EROFS, ETXTBSY, EACCES, EPERM])),
        ask("calls openat -100 s:/usr/bin/env 0 ; fcntl f:1:0 1", Refused(&[EROFS, EACCES])),
        ask("calls openat -100 s:/usr/bin/env 0 ; fcntl f:0x201:0 1", Refused(&[EROFS, EACCES])),
        ask("calls openat -100 s:/usr/bin/env 0 ; fchmod $0 0x1ed", Refused(&[EROFS])),
            ask("open w /usr/bin/env /usr/bin/python3 /lib64/ld-linux-x86-64.so.2", AllRefused(&[EROFS, EACCES, ENOENT, ETXTBSY])),
    ]),
    host("D-24", Medium, "no word of the host's is left above the guest's stack", no_host_words),
    guest("D-25", Low, "sockets of the host are not listed", &[
        ask("read /proc/net/unix", Meets(no_host_sockets)),
        ask("read /proc/net/tcp /proc/net/udp", Meets(no_connections)),
        ask("open w /proc/net/unix", AllRefused(&[EACCES, EROFS, EISDIR, EINVAL])),
    ]),
];

/// Every name that a kernel of today has there besides processes.
const NAMES: &str = "acpi allocinfo asound buddyinfo bus cgroups cmdline config.gz consoles cpuinfo \
    crypto devices diskstats dma driver dynamic_debug execdomains fb filesystems fs interrupts iomem \
    ioports irq kallsyms kcore key-users keys kmsg kpagecgroup kpagecount kpageflags latency_stats \
    loadavg locks mdstat meminfo misc modules mounts mtrr net pagetypeinfo partitions pressure \
    sched_debug schedstat scsi self slabinfo softirqs stat swaps sys sysrq-trigger sysvipc \
    thread-self timer_list tty uptime version version_signature vmallocinfo vmstat zoneinfo";

fn not_processes(answer: &Value) -> Result<Vec<&str>, String> {
    let entries = answer["/proc"].as_array().ok_or_else(|| answer.to_string())?;
    let names = entries.iter().filter_map(|entry| entry["name"].as_str());
    Ok(names.filter(|name| name.parse::<u32>().is_err()).collect())
}

fn known_names(answer: &Value) -> Result<(), String> {
    let names = not_processes(answer)?;
    let unknown: Vec<_> = names
        .into_iter()
        .filter(|name| !NAMES.split_whitespace().any(|known| known == *name))
        .collect();
    if unknown.is_empty() { Ok(()) } else { Err(unknown.join(" ")) }
}

fn minimal_has_processes_only(_: &Stage) -> Result<Finding, String> {
    let profile = SandboxProfile::builder().proc(ProcKind::Minimal).build().unwrap();
    let sandbox = build(profile)?;
    install(&sandbox);
    let answer = ask_probe(&sandbox, &["list", "/proc"]);
    match not_processes(&answer)?.as_slice() {
        ["self", "thread-self"] => held("known names only; with proc = minimal, processes only"),
        others => Err(format!("with proc = minimal: {others:?}")),
    }
}

fn read_only_from_outside(stage: &Stage) -> Result<Finding, String> {
    let run = hold(&stage.sandbox, command(&["hold", "identity"]));
    let mounts = mounts_of(run.guest);
    run.release();
    let last = mounts.iter().rfind(|(mount, _)| mount.target == "/proc");
    match last {
        Some((mount, options)) if mount.read_only => {
            held(format!("refused, and /proc is {options:?}"))
        }
        other => Err(format!("{other:?}")),
    }
}

fn all_open(answer: &Value) -> Result<(), String> {
    let entries = answer.as_object().ok_or("no answer")?;
    let closed: Vec<_> = entries.iter().filter(|(_, open)| **open != true).collect();
    if closed.is_empty() { Ok(()) } else { Err(format!("closed: {closed:?}")) }
}

fn filtered(processes: &Value) -> Result<(), String> {
    let first = processes.get("1").ok_or("no PID 1")?;
    match (first["Seccomp"].as_str(), first["CapBnd"].as_str()) {
        // It may show nothing at all.
        (None, None) => Ok(()),
        (Some("2"), Some("0000000000000000")) => Ok(()),
        _ => Err(first.to_string()),
    }
}

fn taken_first(answer: &Value) -> Result<(), String> {
    let text = answer["/proc/self/oom_score_adj"].as_str().unwrap_or("").trim();
    match text.parse::<i32>() {
        Ok(500..) => Ok(()),
        _ => Err(format!("{text:?}")),
    }
}

fn looked(answer: &Value) -> Result<(), String> {
    match answer["looked"].as_i64() {
        Some(4..) => Ok(()),
        _ => Err(format!("few links: {answer}")),
    }
}

fn links_from_outside(stage: &Stage) -> Result<Finding, String> {
    let run = hold(&stage.sandbox, command(&["hold", "identity"]));
    let root = |pid: i32, link: &str| {
        std::fs::metadata(format!("/proc/{pid}/{link}")).map(|m| (m.dev(), m.ino()))
    };
    let roots = [run.init, run.guest].map(|pid| root(pid, "root"));
    // A service may not look at descriptors of another id's process; inside they were looked at.
    let closed = std::fs::read_dir(format!("/proc/{}/fd", run.guest)).is_err();
    let opened = if closed { Vec::new() } else { postern_tests::descriptors(run.guest) };
    run.release();
    let host = std::fs::metadata("/").map(|m| (m.dev(), m.ino())).unwrap();
    let wrong = roots.iter().any(|root| root.as_ref().map_or(true, |root| *root == host));
    let directories: Vec<_> = opened.iter().filter(|(_, to)| to.starts_with('/')).collect();
    match wrong || directories.iter().any(|(_, to)| to != "/dev/null") {
        true => Err(format!("{roots:?} {directories:?}")),
        false => {
            held("inside every link has a path of the root; the host sees no directory either")
        }
    }
}

const MASKED: [&str; 6] = ["kallsyms", "keys", "key-users", "modules", "config.gz", "iomem"];

fn masked_from_the_start(stage: &Stage) -> Result<Finding, String> {
    let mut opened_at_all = 0;
    for _ in 0..40 {
        let paths = MASKED.map(|name| format!("/proc/{name}"));
        let question = Command::new(PROBE_PATH).args(["start", "/proc/sys/kernel/core_pattern"]);
        let result = stage.sandbox.run(question.args(paths).arg("/proc/uptime"));
        let result = result.map_err(|error| error.to_string())?;
        let opened: Vec<String> =
            serde_json::from_slice(&result.stdout).map_err(|error| error.to_string())?;
        let allowed = ["r /proc/uptime", "r /proc/sys/kernel/core_pattern"];
        opened_at_all += opened.len();
        if let Some(path) = opened.iter().find(|path| !allowed.contains(&&***path)) {
            return Err(format!("{path} opened"));
        }
    }
    match opened_at_all {
        0 => Err("nothing opened, not even what may".to_owned()),
        _ => held("40 launches, 20 attempts each from the first instruction: none opened"),
    }
}

fn locked_without_a_filter(_: &Stage) -> Result<Finding, String> {
    let open = SandboxProfile::builder().seccomp(postern_seccomp::Level::Off).build().unwrap();
    let sandbox = build(open)?;
    install(&sandbox);
    for target in ["/proc/kallsyms", "/proc", "/proc/keys"] {
        let answer = ask_probe(&sandbox, &["rooted", "calls", "166", &format!("s:{target}"), "2"]);
        if !crate::verdict::errno_of(&answer[0]).is_some_and(|e| [EPERM, EINVAL].contains(&e)) {
            return Err(format!("without a filter umount2({target}) answers {answer}"));
        }
    }
    held("EPERM of the filter, and without one of the kernel")
}

/// Seen from the host through the guest's root.
fn masks_are_ours(stage: &Stage) -> Result<Finding, String> {
    let run = hold(&stage.sandbox, command(&["hold", "identity"]));
    let at = |path: &str| std::fs::metadata(format!("/proc/{}/root{path}", run.guest));
    let root = at("/").map(|found| found.dev());
    let masks: Vec<_> = MASKED
        .iter()
        .filter(|name| std::path::Path::new("/proc").join(name).exists())
        .map(|name| (*name, at(&format!("/proc/{name}"))))
        .collect();
    run.release();
    let root = root.map_err(|error| error.to_string())?;
    for (name, mask) in &masks {
        let mask = mask.as_ref().map_err(|error| format!("{name}: {error}"))?;
        let own = mask.is_file() && mask.mode() & 0o7777 == 0 && mask.len() == 0;
        if !own || mask.dev() != root {
            return Err(format!("{name}: {mask:?}"));
        }
    }
    match masks.len() {
        0 => Ok(Finding::Vacuous("this kernel has none of the masked files".to_owned())),
        count => held(format!("{count} masks: empty files of mode 0 on the sandbox's own root")),
    }
}

/// A guest that is uid 0 inside still has no right over a file of mode 0 that belongs to another.
fn masked_even_for_root_inside(_: &Stage) -> Result<Finding, String> {
    let profile = SandboxProfile::builder().guest_uid(None).guest_gid(None).build().unwrap();
    let sandbox = build(profile)?;
    install(&sandbox);
    let answer = ask_probe(&sandbox, &["open", "w", "/proc/kallsyms", "/proc/keys"]);
    let opened = answer.as_object().is_none_or(|entries| entries.values().any(|v| *v == true));
    match opened {
        true => Err(format!("uid 0 inside: {answer}")),
        false => held("EACCES, and EROFS for uid 0 inside"),
    }
}

fn nested(_: &Stage) -> Result<Finding, String> {
    let told = hostprog("proc-masked", &[])?;
    match told.starts_with("step MakeProc errno 1 cause proc-masked") {
        true => held(format!("{told:.200}")),
        false => Err(told),
    }
}

/// The host's environment and memory, sought in PID 1 and in the guest before it has done anything.
fn no_host_words(stage: &Stage) -> Result<Finding, String> {
    let run = hold(&stage.sandbox, command(&["hold", "identity"]));
    let own = std::env::vars().find(|(_, value)| value.len() > 12);
    let (name, value) = own.ok_or("no variable to look for")?;
    let word = format!("{name}={value}");
    let found = [run.init, run.guest].map(|pid| memory_holds(pid, word.as_bytes()));
    run.release();
    match found {
        [Ok(false), guest] if is_clean_or_closed(&guest) => {
            held(format!("no trace of the host's {name} in PID 1 and guest"))
        }
        other => Err(format!("{name}: {other:?}")),
    }
}

/// A service without privileges cannot read the memory of another id's process, which has been made
/// by an exec; PID 1, from which it was started, is seen.
pub(crate) fn is_clean_or_closed(guest: &std::io::Result<bool>) -> bool {
    match guest {
        Ok(holds) => !holds,
        Err(error) => error.raw_os_error() == Some(EACCES),
    }
}

fn no_host_sockets(answer: &Value) -> Result<(), String> {
    let text = answer["/proc/net/unix"].as_str().unwrap_or("");
    let lines = text.lines().skip(1).filter_map(|line| line.split_ascii_whitespace().nth(7));
    let foreign: Vec<_> = lines.filter(|path| !path.starts_with("/run/postern/")).collect();
    if foreign.is_empty() { Ok(()) } else { Err(format!("{} paths", foreign.len())) }
}

fn no_connections(answer: &Value) -> Result<(), String> {
    let lines = |name: &str| answer[name].as_str().map_or(0, |text| text.lines().count());
    match lines("/proc/net/tcp") + lines("/proc/net/udp") {
        0..=2 => Ok(()),
        lines => Err(format!("{lines} lines")),
    }
}
