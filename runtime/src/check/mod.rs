//! What a profile's promise comes to on this host: launches for real, looks, and says so line by
//! line; changes nothing.
//!
//! ```no_run
//! use postern::{SandboxProfile, check};
//!
//! let report = check::run(&SandboxProfile::default());
//! for finding in &report.findings {
//!     println!("{} {}: {}", finding.status.name(), finding.name, finding.detail);
//! }
//! assert!(report.ok);
//! ```

mod evidence;
mod failure;
mod finding;
mod groups;
mod host;
mod limits;
mod text;
mod walls;
mod world;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use postern_init::step::Step;
use serde::Serialize;

pub use failure::Failure;
pub use finding::{Finding, Name, Status};

use crate::attest::Attestation;
use crate::enforcement::Enforcement;
use crate::error::{Error, LaunchError};
use crate::host::{Diagnosis, Host, Release};
use crate::profile::{ProcKind, SandboxProfile, Workspace, WorkspaceAccess};
use crate::quota::Quota;
use crate::sandbox::Sandbox;
use crate::{Ending, plan};
use evidence::{Guest, Init};
use finding::Findings;

/// What a profile's promise comes to on this host. Its JSON keys are the fields' names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Whether the promise holds: a sandbox was launched, `verify` passed, and nothing failed.
    pub ok: bool,
    /// This library's version.
    pub version: &'static str,
    /// The kernel's release.
    pub kernel: String,
    /// The processor's architecture, as `uname -m` has it.
    pub architecture: String,
    /// This process's executable, which an AppArmor profile must name.
    pub executable: String,
    /// How long the check took, in microseconds.
    pub elapsed_us: u64,
    /// Why nothing could be launched, or what was launched was not as planned.
    pub failure: Option<Failure>,
    /// One for each of [`Name::ALL`], in that order.
    pub findings: Vec<Finding>,
    /// Every limit of what a run may use up; empty where nothing was launched.
    pub quotas: Vec<Quota>,
    /// What the kernel said of a confined PID 1; `None` where nothing was launched.
    pub attestation: Option<Attestation>,
}

/// Launches a sandbox of `profile`, verifies it, runs two small programs in it, and ends it.
///
/// What fails becomes a finding. Takes some 10 to 20 ms; a host that does not answer is left after
/// [`LAUNCH_TIMEOUT`](crate::LAUNCH_TIMEOUT). Nothing is changed and nothing is left, but for the
/// directory of leases, which any launch makes. A caller's workspace that a launch would open to
/// every user (`access = "shared"`) is not opened: an owned one stands in for it.
#[must_use]
pub fn run(profile: &SandboxProfile) -> Report {
    let started = Instant::now();
    let uname = rustix::system::uname();
    let kernel = uname.release().to_string_lossy().into_owned();
    let architecture = uname.machine().to_string_lossy().into_owned();
    let executable = executable();
    let mut findings = Findings::new();
    host::say(&mut findings, &kernel, &architecture);
    let release = Release::parse(&kernel);
    let mut held = None;
    let error = look(&mut findings, profile, release, &mut held).err();
    let failure = error.as_ref().map(|error| Failure::new(error, &executable));
    launched(&mut findings, failure.as_ref(), &format!("Linux {kernel} {architecture}"), release);
    if let Some(Error::Launch(LaunchError::Step(step))) = &error
        && step.step == Step::MakeProc
    {
        other_procs(&mut findings, profile, failure.as_ref());
    }
    Report {
        ok: failure.is_none() && !findings.any_failed(),
        version: env!("CARGO_PKG_VERSION"),
        kernel,
        architecture,
        executable: executable.display().to_string(),
        elapsed_us: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
        failure,
        findings: findings.into_vec(),
        quotas: held.as_ref().map(|held| held.quotas.clone()).unwrap_or_default(),
        attestation: held.and_then(|held| held.attestation.as_deref().cloned()),
    }
}

/// This process's, also when its file has been replaced since.
fn executable() -> PathBuf {
    const REPLACED: &str = " (deleted)";
    let path = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    match path.to_str().and_then(|text| text.strip_suffix(REPLACED)) {
        Some(before) if !path.exists() => PathBuf::from(before),
        Some(_) | None => path,
    }
}

/// The profile with nothing that changes the host.
fn harmless(profile: &SandboxProfile) -> Result<SandboxProfile, Error> {
    let mut profile = profile.clone();
    if let Workspace::Directory { access: WorkspaceAccess::Shared, .. } = &profile.workspace {
        // The rules about the directory itself hold for the profile as it is.
        plan::resolve(&profile, &Host::probe(&profile)?)?;
        profile.workspace = Workspace::default();
    }
    Ok(profile)
}

/// Launches, and says what stands.
fn look(
    findings: &mut Findings,
    profile: &SandboxProfile,
    release: Option<Release>,
    held: &mut Option<Arc<Enforcement>>,
) -> Result<(), Error> {
    let sandbox = Sandbox::builder(harmless(profile)?).single_use(true).build()?;
    let plan = sandbox.plan();
    let (violations, enforcement, init) = sandbox.inspect(Init::read)?;
    *held = Some(Arc::clone(&enforcement));
    walls::say(findings, plan, &init, &enforcement);
    world::say(findings, profile, plan, &init);
    let is_noexec = Diagnosis::probe().memfd_noexec.is_some_and(|value| value > 1);
    world::launcher(findings, &enforcement, is_noexec);
    // Nothing runs behind walls that are not as planned.
    let is_sound = walls::are_sound(&violations);
    let guest = if is_sound { Guest::run(&sandbox)? } else { None };
    let guest = guest.as_ref();
    let (init, enforcement) = (&init, &*enforcement);
    limits::say(findings, &limits::Seen { profile, plan, init, guest, enforcement, release });
    groups::say(findings, profile, plan, enforcement);
    if is_sound {
        program(findings, guest);
        interpreter(findings, profile, &sandbox);
    }
    walls::violations(findings, &violations);
    match violations.is_empty() {
        true => Ok(()),
        false => Err(Error::Unconfined(violations)),
    }
}

/// Whether a launch works at all, and on which kernel.
fn launched(
    findings: &mut Findings,
    failure: Option<&Failure>,
    kernel: &str,
    release: Option<Release>,
) {
    let Some(failure) = failure else {
        findings.say(Name::Launch, Status::Enforced, "launched, and verified from outside");
        findings.say(Name::Kernel, Status::Enforced, kernel);
        return;
    };
    findings.explain(
        Name::Launch,
        (Status::Failed, failure.error.clone()),
        failure.why.or(failure.cause).unwrap_or("no known cause"),
        failure.fix.unwrap_or("as the error says"),
    );
    let is_old = release.is_some_and(|release| release < host::OLDEST);
    match failure.cause {
        Some("old-kernel") if is_old => findings.explain(
            Name::Kernel,
            (Status::Failed, kernel.to_owned()),
            "its mount calls are older than Linux 5.12",
            "a newer kernel",
        ),
        Some("old-kernel") => findings.explain(
            Name::Kernel,
            (Status::Unknown, kernel.to_owned()),
            "new enough, and its mount calls are hidden, as by a seccomp filter around the service",
            "allow them in that filter",
        ),
        Some("unconfined") => findings.say(Name::Kernel, Status::Enforced, kernel),
        Some(_) | None => {}
    }
}

fn program(findings: &mut Findings, guest: Option<&Guest>) {
    match guest.map(|guest| &guest.ended) {
        Some(ended) if ended.ok() => {
            findings.say(Name::Program, Status::Enforced, "sh ran inside and ended with 0");
        }
        Some(ended) => {
            let detail = format!("sh {:?}: {}", ended.ending, ended.stderr_text().trim());
            findings.say(Name::Program, Status::Failed, detail);
        }
        None => findings.explain(
            Name::Program,
            (Status::Unknown, "no sh inside".to_owned()),
            "the profile's root has no shell on PATH, and the check runs no other program",
            "none is needed: PID 1 was verified",
        ),
    }
}

fn interpreter(findings: &mut Findings, profile: &SandboxProfile, sandbox: &Sandbox) {
    let program = profile.python_program();
    let is_named = profile.python.is_some() || profile.venv.is_some();
    let shown = program.display();
    match evidence::version(sandbox, &program) {
        Ok(version) => {
            findings.say(Name::Interpreter, Status::Enforced, format!("{shown}: {version}"));
        }
        Err(why) if is_named => findings.explain(
            Name::Interpreter,
            (Status::Weaker, format!("{shown} does not run inside")),
            why,
            "name one that the guest sees (profile: python, venv), or bind what it needs",
        ),
        Err(why) => {
            findings.say(Name::Interpreter, Status::NotUsed, format!("{shown} inside: {why}"));
        }
    }
}

/// No fresh procfs for this kind: which kinds there can be.
fn other_procs(findings: &mut Findings, profile: &SandboxProfile, failure: Option<&Failure>) {
    let wanted = profile.proc;
    let kinds = [ProcKind::None, ProcKind::Minimal].into_iter().filter(|kind| *kind != wanted);
    let tried: Vec<_> = kinds.map(|kind| (world::proc_name(kind), works(profile, kind))).collect();
    let word = |works| if works { "works" } else { "fails too" };
    let told = tried.iter().map(|(name, works)| format!("proc = \"{name}\" {}", word(*works)));
    let told = told.collect::<Vec<_>>().join(", ");
    let wanted = world::proc_name(wanted);
    let fix = match tried.iter().find(|(_, works)| *works) {
        Some((name, _)) => format!("proc = \"{name}\" in the profile, or uncover /proc"),
        None => "uncover /proc".to_owned(),
    };
    findings.explain(
        Name::Proc,
        (Status::Failed, format!("{wanted} cannot be made here; {told}")),
        failure.and_then(|failure| failure.why).unwrap_or("the kernel refuses a fresh procfs"),
        fix,
    );
}

fn works(profile: &SandboxProfile, proc: ProcKind) -> bool {
    let attempt = || -> Result<Ending, Error> {
        let profile = SandboxProfile { proc, ..harmless(profile)? };
        let sandbox = Sandbox::builder(profile).single_use(true).build()?;
        sandbox.inspect(|_| ())?;
        Ok(sandbox.run(["sh", "-c", ":"])?.ending)
    };
    matches!(attempt(), Ok(Ending::Exited(0) | Ending::ExecFailed(_)))
}
