//! A finished run as JSON for programs and as lines for people; changes nothing about it.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use postern::plan::{NamespaceSet, Tier};
use postern::{CgroupUsage, Ending, Enforcement, LimitHit, ProcResult};
use serde::Serialize;

use crate::failure::Facts;
use crate::say::Line;

/// What `--json` prints for a run.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own")]
struct Report<'a> {
    returncode: i32,
    ending: End,
    signal: Option<i32>,
    ok: bool,
    timed_out: bool,
    terminated: bool,
    truncated: bool,
    stdout_truncated: bool,
    stderr_truncated: bool,
    overflowed: bool,
    /// `null`: nobody counted.
    oom: Option<bool>,
    pids_limit: Option<bool>,
    stdout: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_base64: Option<String>,
    stderr: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_base64: Option<String>,
    duration_ms: f64,
    usage: Used,
    enforcement: Walls<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum End {
    Exited { code: i32 },
    Signaled { signal: i32 },
    Killed { signal: i32 },
    ExecFailed { errno: i32 },
    LauncherLost,
    Unreaped,
    Other,
}

#[derive(Debug, Serialize)]
struct Used {
    user_ms: f64,
    system_ms: f64,
    peak_memory_kib: u64,
    cgroup: Option<Together>,
}

/// What all processes used together.
#[derive(Debug, Serialize)]
struct Together {
    peak_memory_bytes: Option<u64>,
    user_ms: f64,
    system_ms: f64,
    throttled_periods: u64,
    throttled_ms: f64,
}

#[derive(Debug, Serialize)]
struct Walls<'a> {
    tier: &'static str,
    namespaces: Vec<&'static str>,
    kernel_uid: u32,
    kernel_gid: u32,
    shared_uid: bool,
    shared_groups: &'a [u32],
    landlock: String,
    landlock_abi: Option<u32>,
    seccomp: String,
    /// SHA-256, in hexadecimal.
    seccomp_digest: Option<String>,
    seccomp_policy_digest: Option<String>,
    /// The control group of the sandbox.
    cgroup: Option<Cow<'a, str>>,
    /// Limits that are not enforced here, each with its reason.
    quota_gaps: Vec<String>,
    launcher: &'static str,
    fallbacks: &'a [&'static str],
    warnings: Vec<String>,
}

/// A failure of our own.
#[derive(Debug, Serialize)]
struct Failed<'a> {
    error: &'a Facts,
}

/// One object, on one line.
fn line(value: &impl Serialize) -> Vec<u8> {
    // No key is anything but a string, and no writer is there to fail.
    let mut text = serde_json::to_vec(value).unwrap_or_default();
    text.push(b'\n');
    text
}

/// The run as JSON.
pub(crate) fn json(result: &ProcResult, terminated: bool) -> Vec<u8> {
    let base64 =
        |bytes: &[u8]| std::str::from_utf8(bytes).is_err().then(|| BASE64_STANDARD.encode(bytes));
    line(&Report {
        returncode: result.returncode(),
        ending: end(result.ending),
        signal: result.signal(),
        ok: result.ok(),
        timed_out: result.timed_out,
        terminated,
        truncated: result.truncated,
        stdout_truncated: result.stdout_truncated,
        stderr_truncated: result.stderr_truncated,
        overflowed: result.overflowed,
        oom: known(result.oom),
        pids_limit: known(result.pids_limit),
        stdout: result.stdout_text(),
        stdout_base64: base64(&result.stdout),
        stderr: result.stderr_text(),
        stderr_base64: base64(&result.stderr),
        duration_ms: milliseconds(result.duration()),
        usage: Used {
            user_ms: milliseconds(result.usage.user),
            system_ms: milliseconds(result.usage.system),
            peak_memory_kib: result.usage.peak_memory_kib,
            cgroup: result.usage.cgroup.map(|used| Together {
                peak_memory_bytes: used.peak_memory_bytes,
                user_ms: milliseconds(used.user),
                system_ms: milliseconds(used.system),
                throttled_periods: used.throttled_periods,
                throttled_ms: milliseconds(used.throttled),
            }),
        },
        enforcement: walls(&result.enforcement),
    })
}

fn known(hit: LimitHit) -> Option<bool> {
    match hit {
        LimitHit::Yes => Some(true),
        LimitHit::No => Some(false),
        LimitHit::Unavailable(_) => None,
    }
}

/// A failure of postern itself as JSON.
pub(crate) fn json_failure(facts: &Facts) -> Vec<u8> {
    line(&Failed { error: facts })
}

/// To the microsecond: more digits are noise.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn end(ending: Ending) -> End {
    match ending {
        Ending::Exited(code) => End::Exited { code },
        Ending::Signaled(signal) => End::Signaled { signal },
        Ending::Killed(signal) => End::Killed { signal },
        Ending::ExecFailed(errno) => End::ExecFailed { errno },
        Ending::LauncherLost => End::LauncherLost,
        Ending::Unreaped => End::Unreaped,
        // The library may come to know others.
        _ => End::Other,
    }
}

fn walls(enforcement: &Enforcement) -> Walls<'_> {
    Walls {
        tier: tier(enforcement.tier),
        namespaces: namespaces(enforcement.namespaces),
        kernel_uid: enforcement.kernel_uid,
        kernel_gid: enforcement.kernel_gid,
        shared_uid: enforcement.shared_uid,
        shared_groups: &enforcement.shared_groups,
        landlock: enforcement.landlock.to_string(),
        landlock_abi: enforcement.landlock.abi(),
        seccomp: enforcement.seccomp.to_string(),
        seccomp_digest: enforcement.seccomp_digest.map(|digest| digest.to_string()),
        seccomp_policy_digest: enforcement.seccomp_policy_digest.map(|digest| digest.to_string()),
        cgroup: enforcement.cgroup.as_deref().map(Path::to_string_lossy),
        quota_gaps: gaps(enforcement),
        launcher: enforcement.launcher.name(),
        fallbacks: &enforcement.fallbacks,
        warnings: enforcement.warnings.iter().map(ToString::to_string).collect(),
    }
}

fn gaps(enforcement: &Enforcement) -> Vec<String> {
    let gaps = enforcement.quotas.iter().filter(|quota| !quota.is_enforced());
    gaps.map(ToString::to_string).collect()
}

fn tier(tier: Tier) -> &'static str {
    match tier {
        Tier::Privileged => "privileged",
        Tier::MapWriter => "map_writer",
        Tier::Subordinate => "subordinate",
        Tier::Unprivileged => "unprivileged",
    }
}

/// Those that are the run's own.
fn namespaces(set: NamespaceSet) -> Vec<&'static str> {
    let rows = [
        ("pid", set.pid),
        ("net", set.net),
        ("ipc", set.ipc),
        ("uts", set.uts),
        ("cgroup", set.cgroup),
    ];
    let own = rows.into_iter().filter(|row| row.1).map(|row| row.0);
    ["user", "mnt"].into_iter().chain(own).collect()
}

/// What `--stats` says.
pub(crate) fn stats(result: &ProcResult) -> Vec<Line> {
    let usage = &result.usage;
    let mut held = walls(&result.enforcement);
    held.warnings.extend(held.fallbacks.iter().map(|fact| (*fact).to_owned()));
    let weaker = match held.warnings.is_empty() {
        true => String::new(),
        false => format!("; weaker: {}", held.warnings.join(", ")),
    };
    let lines = [
        format!("end: {}", result.reason()),
        format!(
            "time: {:.3} s; processor: {:.3} s user, {:.3} s system",
            usage.wall.as_secs_f64(),
            usage.user.as_secs_f64(),
            usage.system.as_secs_f64()
        ),
        format!("peak memory: {} KiB, of the largest process", usage.peak_memory_kib),
        format!(
            "held by: namespaces {}; kernel uid {}{}; Landlock {}; seccomp {}{weaker}",
            held.namespaces.join(" "),
            held.kernel_uid,
            if held.shared_uid { ", shared with the caller" } else { "" },
            held.landlock,
            held.seccomp,
        ),
    ];
    let together = usage.cgroup.as_ref().map(together);
    lines.into_iter().chain(together).map(Line::Note).collect()
}

/// What `--stats` says of the run's control group.
fn together(used: &CgroupUsage) -> String {
    let peak =
        used.peak_memory_bytes.map_or("unknown".to_owned(), |bytes| format!("{bytes} bytes"));
    let throttled = used.throttled.as_secs_f64();
    let processor = (used.user + used.system).as_secs_f64();
    format!(
        "all processes together: peak memory {peak}; processor {processor:.3} s, held back for \
         {throttled:.3} s"
    )
}
