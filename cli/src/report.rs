//! A finished run as JSON for programs and as lines for people; changes nothing about it.

use std::borrow::Cow;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use postern::plan::{NamespaceSet, Tier};
use postern::{Ending, Enforcement, ProcResult};
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
        stdout: result.stdout_text(),
        stdout_base64: base64(&result.stdout),
        stderr: result.stderr_text(),
        stderr_base64: base64(&result.stderr),
        duration_ms: milliseconds(result.duration()),
        usage: Used {
            user_ms: milliseconds(result.usage.user),
            system_ms: milliseconds(result.usage.system),
            peak_memory_kib: result.usage.peak_memory_kib,
        },
        enforcement: walls(&result.enforcement),
    })
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
    lines.map(Line::Note).into()
}
