//! Hosts on which a launch fails, or falls back on something, for one known reason each; the
//! scenario makes the host, launches, and prints what it met.

mod checks;
mod hosts;
mod sources;

use std::fmt::Write;

use postern::error::LaunchError;
use postern::profile::ProcKind;
use postern::{Error, Sandbox, SandboxProfile};

use crate::Scenario;
use crate::world::{self, Outcome, ensure, text};

/// Every scenario about causes.
pub(crate) const ALL: [Scenario; 29] = [
    ("no-user-namespaces", |_| hosts::no_user_namespaces().and_then(|()| launch())),
    ("no-more-processes", |_| hosts::no_more_processes().and_then(|()| launch())),
    ("launch", |_| launch()),
    ("installed", |modes| hosts::installed(modes.first().map_or("", String::as_str))),
    ("chroot", |_| hosts::chroot().and_then(|()| launch())),
    ("chroot-at-a-mount", |_| hosts::chroot_at_a_mount().and_then(|()| launch())),
    ("clone-switched-off", |_| hosts::clone_switched_off().and_then(|()| launch())),
    ("apparmor", |_| hosts::apparmor().and_then(|()| launch())),
    ("container-filter", |_| hosts::container_filter().and_then(|()| launch())),
    ("no-clone3", |_| hosts::no_clone3().and_then(|()| launch())),
    ("proc-masked", |_| hosts::proc_masked().and_then(|()| launch())),
    ("proc-masked-and-none", |_| hosts::proc_masked().and_then(|()| launch_without_proc())),
    ("proc-read-only", |_| hosts::proc_read_only().and_then(|()| launch())),
    ("memfd-noexec", |_| hosts::in_noexec_namespace(launch)),
    ("memfd-noexec-everywhere", |_| {
        hosts::in_noexec_namespace(|| hosts::noexec_directory().and_then(|()| launch()))
    }),
    ("exec-refused", |_| hosts::exec_refused().and_then(|()| launch())),
    ("old-kernel", |_| hosts::old_kernel().and_then(|()| launch())),
    ("mount-forbidden", |_| hosts::mount_forbidden().and_then(|()| launch())),
    ("small-range", |_| hosts::small_range().and_then(|()| launch())),
    ("ids-all-leased", |_| hosts::ids_all_leased().and_then(|_locks| launch())),
    ("keys-used-up", |_| hosts::keys_used_up().and_then(|()| launch())),
    ("landlock-layers", |_| hosts::landlock_layers().and_then(|()| launch())),
    ("refuse", |words| hosts::refuse_named(words).and_then(|()| launch())),
    ("source", sources::changes),
    ("workspace-file", sources::workspace_file),
    ("workspace-on-overlay", sources::workspace_on_overlay),
    ("too-many-runs", |_| too_many_runs()),
    ("no-more-descriptors", |_| no_more_descriptors()),
    ("check", checks::check_on),
];

/// Builds a default sandbox and runs a program in it.
fn launch() -> Outcome {
    launch_with(SandboxProfile::default())
}

fn launch_without_proc() -> Outcome {
    launch_with(SandboxProfile::builder().proc(ProcKind::None).build().map_err(text)?)
}

fn launch_with(profile: SandboxProfile) -> Outcome {
    let before = world::Snapshot::take();
    let build = || -> Result<String, Error> {
        let sandbox = Sandbox::builder(profile).build()?;
        let result = sandbox.run(["/bin/true"])?;
        let held = &result.enforcement;
        Ok(format!("works {:?} {} {:?}", result.ending, held.launcher.name(), held.fallbacks))
    };
    let met = build().or_else(|error| describe(&error));
    // The image stays open for the next sandbox.
    before.compare_but("/memfd:postern-launcher (deleted)")?;
    met
}

/// The facts of an error in one line: variant, step, errno, cause; then its text, which must name
/// what the facts name.
#[expect(clippy::wildcard_enum_match_arm, reason = "any other error is shown whole")]
fn describe(error: &Error) -> Outcome {
    let (mut facts, words) = match error {
        Error::Refused(refusal) => (format!("refused {}", refusal.rule()), Vec::new()),
        Error::Launch(LaunchError::Step(failure)) => {
            let facts = format!("step {:?} errno {}", failure.step, failure.errno());
            let mut words = vec![failure.step.what().to_owned(), failure.step.call().to_owned()];
            words.extend([failure.source.to_string(), failure.phase.to_string()]);
            words.extend(failure.cause.iter().flat_map(|cause| [cause.text, cause.fix].map(text)));
            let cause = failure.cause.map_or("none", |cause| cause.name);
            (format!("{facts} cause {cause}"), words)
        }
        Error::Launch(LaunchError::Image { attempts, cause }) => {
            let mut facts = "image".to_owned();
            let mut words = Vec::new();
            for (source, error) in attempts {
                let errno = error.raw_os_error().unwrap_or_default();
                write!(facts, " {} errno {errno}", source.name()).map_err(text)?;
                words.extend([source.name().to_owned(), error.to_string()]);
            }
            words.extend(cause.iter().flat_map(|cause| [cause.text, cause.fix].map(text)));
            (format!("{facts} cause {}", cause.map_or("none", |cause| cause.name)), words)
        }
        Error::Launch(prepare @ LaunchError::Prepare { what, source, .. }) => {
            let errno = source.raw_os_error().unwrap_or_default();
            let cause = prepare.cause();
            let mut words = vec![(*what).to_owned(), source.to_string()];
            words.extend(cause.iter().flat_map(|cause| [cause.text, cause.fix].map(text)));
            let cause = cause.map_or("none", |cause| cause.name);
            (format!("prepare errno {errno} cause {cause}"), words)
        }
        Error::Launch(LaunchError::NoFreeId { .. }) => ("no-free-id".to_owned(), Vec::new()),
        other => (format!("other {other:?}"), Vec::new()),
    };
    let text = error.to_string();
    let missing = words.iter().find(|word| !text.contains(word.as_str()));
    ensure(missing.is_none(), || format!("{missing:?} is not in {text:?}"))?;
    write!(facts, " | {text}").map_err(world::text)?;
    Ok(facts)
}

/// A service that may not open one more file once its sandbox stands.
fn no_more_descriptors() -> Outcome {
    let sandbox = world::sandbox()?;
    let before = world::Snapshot::take();
    let met = world::with_descriptors(0, || match sandbox.start(["/bin/true"]) {
        Ok(_) => Err("a run without descriptors was started".to_owned()),
        Err(error) => describe(&error),
    })?;
    before.compare()?;
    met
}

/// One more run than a launcher keeps.
fn too_many_runs() -> Outcome {
    const RUNS_MAX: usize = 1024;
    let before = world::warm()?;
    let sandbox = world::sandbox()?;
    let mark = world::marker("many");
    let runs = (0..RUNS_MAX).map(|_| sandbox.start(world::sleeper(&mark)));
    let runs = runs.collect::<Result<Vec<_>, _>>().map_err(text)?;
    let met = match sandbox.start(["/bin/true"]) {
        Ok(_) => Err("one more run than fits was started".to_owned()),
        Err(error) => describe(&error),
    };
    drop(runs);
    drop(sandbox);
    let left = world::marked(&mark);
    ensure(left.is_empty(), || format!("{} guests are left", left.len()))?;
    before.compare()?;
    met
}
