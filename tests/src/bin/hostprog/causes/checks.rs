//! The library's and the command's check on a host that was made to forbid something: what each
//! says, how long it takes, and that the host is as it was.

use std::path::PathBuf;
use std::process::Command as Program;
use std::time::Instant;

use postern::{SandboxProfile, check};
use serde_json::{Value, json};

use super::hosts;
use crate::world::{self, Outcome, ensure, text};

type Made = Result<(), String>;

/// A host's name, and how it is made; what is made stays for this process and its children.
type Host = (&'static str, fn() -> Made);

const HOSTS: [Host; 12] = [
    ("plain", || Ok(())),
    ("no-user-namespaces", hosts::no_user_namespaces),
    ("chroot", hosts::chroot),
    ("clone-switched-off", hosts::clone_switched_off),
    ("container-filter", hosts::container_filter),
    ("proc-masked", hosts::proc_masked),
    ("proc-read-only", hosts::proc_read_only),
    ("apparmor", hosts::apparmor),
    ("mount-forbidden", hosts::mount_forbidden),
    ("old-kernel", hosts::old_kernel),
    ("exec-refused", hosts::exec_refused),
    ("small-range", hosts::small_range),
];

/// `check HOST [PROFILE]`: one JSON object with both reports.
pub(super) fn check_on(arguments: &[String]) -> Outcome {
    let (host, profile) = match arguments {
        [host] => (host.as_str(), ""),
        [host, profile] => (host.as_str(), profile.as_str()),
        _ => return Err("a host and perhaps a profile are needed".to_owned()),
    };
    match host {
        "memfd-noexec" => return hosts::in_noexec_namespace(|| both("", &[])),
        "memfd-noexec-everywhere" => {
            return hosts::in_noexec_namespace(|| {
                hosts::noexec_directory().and_then(|()| both("", &[]))
            });
        }
        // One more process would be one too many for the command, too.
        "no-more-processes" => {
            hosts::no_more_processes()?;
            return library("").map(|report| report.to_string());
        }
        "installed" => {
            let path = hosts::install("777")?;
            let told = both("", &[(postern::LAUNCHER_VARIABLE, path.clone())]);
            std::fs::remove_file(path).map_err(text)?;
            return told;
        }
        _ => {}
    }
    let made = HOSTS.iter().find(|made| made.0 == host);
    made.ok_or_else(|| format!("no host {host:?}"))?.1()?;
    both(profile, &[])
}

/// Settings that a sandbox lowers in namespaces of its own, and what else it must leave alone.
fn settings() -> Vec<Option<String>> {
    let names = [
        "/proc/sys/user/max_user_namespaces",
        "/proc/sys/user/max_inotify_instances",
        "/proc/sys/user/max_inotify_watches",
        "/proc/sys/kernel/shmmni",
        "/proc/sys/kernel/msgmni",
        "/proc/sys/fs/mqueue/queues_max",
        "/proc/sys/kernel/hostname",
        "/proc/self/limits",
        "/proc/self/mountinfo",
        "/proc/self/oom_score_adj",
    ];
    names.map(|name| std::fs::read_to_string(name).ok()).into()
}

/// Acts, and compares the host before and after; orphans of the act would become ours.
fn unchanged(act: impl Fn() -> Result<Value, String>) -> Result<Value, String> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(text)?;
    let (before, settings_before) = (world::Snapshot::take(), settings());
    let met = act()?;
    before.compare_but("/memfd:postern-launcher (deleted)")?;
    let settings_after = settings();
    ensure(settings_before == settings_after, || {
        format!("changed: {settings_before:?} {settings_after:?}")
    })?;
    Ok(met)
}

fn profile_of(toml: &str) -> Result<SandboxProfile, String> {
    match toml {
        "" => Ok(SandboxProfile::default()),
        toml => SandboxProfile::from_toml_str(toml).map_err(text),
    }
}

fn library(profile: &str) -> Result<Value, String> {
    let profile = profile_of(profile)?;
    unchanged(|| {
        let start = Instant::now();
        let report = check::run(&profile);
        let took = start.elapsed().as_micros();
        let report = serde_json::to_value(&report).map_err(text)?;
        Ok(json!({ "library": report, "library_us": u64::try_from(took).map_err(text)? }))
    })
}

/// The command is where the runner has put it, or beside this program.
fn command() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(text)?;
    Ok(own.with_file_name("postern"))
}

#[expect(clippy::disallowed_methods, reason = "a test starts the command it is about")]
fn both(profile: &str, variables: &[(&str, PathBuf)]) -> Outcome {
    let mut told = match variables {
        [] => library(profile)?,
        // This process's own environment is not changed.
        _ => json!({}),
    };
    let mut command = Program::new(command()?);
    command.args(["check", "--json"]).envs(variables.iter().map(|pair| (pair.0, &pair.1)));
    let file = std::env::temp_dir().join("profile.toml");
    if !profile.is_empty() {
        std::fs::write(&file, profile).map_err(text)?;
        command.arg("--profile").arg(&file);
    }
    let command = std::cell::RefCell::new(command);
    let run = unchanged(|| {
        let start = Instant::now();
        let output = command.borrow_mut().output().map_err(text)?;
        let took = u64::try_from(start.elapsed().as_micros()).map_err(text)?;
        let shown = String::from_utf8_lossy(&output.stdout);
        let report: Value = serde_json::from_str(&shown).map_err(|error| {
            format!("{error}: {shown:?} {}", String::from_utf8_lossy(&output.stderr))
        })?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let status = output.status.code();
        Ok(json!({ "cli": report, "cli_us": took, "status": status, "stderr": stderr }))
    });
    if !profile.is_empty() {
        std::fs::remove_file(&file).map_err(text)?;
    }
    for (key, value) in run?.as_object().cloned().unwrap_or_default() {
        told[key] = value;
    }
    Ok(told.to_string())
}
