//! A host with ever more of what a launch needs, from nothing to enough: each time it works, or fails
//! with a cause and a fix; nothing is weaker for it, and nothing is left.

use std::collections::BTreeMap;

use postern::error::LaunchError;
use postern::{Error, Sandbox};
use rustix::process::Resource;

use crate::world::{self, Outcome, Snapshot, ensure, text};

/// How many steps a sweep takes: more than a launch has descriptors.
const STEPS: u64 = 60;

/// Outcomes, and how often each was met.
type Tally = BTreeMap<String, u32>;

/// One step of a sweep: works, as it should; or an error that says what to do.
fn judge(outcome: Result<(), Error>, cause: &str, tally: &mut Tally) -> Result<bool, String> {
    let error = match outcome {
        Ok(()) => {
            *tally.entry("works".to_owned()).or_default() += 1;
            return Ok(true);
        }
        Err(error) => error,
    };
    let (named, words) = match &error {
        Error::Launch(launch) => (launch.cause().map(|cause| cause.name), launch.to_string()),
        Error::Probe(probe) => (Some(cause), probe.to_string()),
        Error::Refused(_)
        | Error::Command(_)
        | Error::Hatches(_)
        | Error::Busy(_)
        | Error::Unconfined(_)
        | _ => (None, error.to_string()),
    };
    ensure(named == Some(cause), || format!("{named:?} is not {cause}: {error:?}"))?;
    let words = words.split("; likely cause").next().unwrap_or_default().to_owned();
    *tally.entry(words).or_default() += 1;
    Ok(false)
}

fn figures(what: &str, tally: &Tally) -> Result<String, String> {
    let works = tally.get("works").copied().unwrap_or_default();
    let fails: u32 = tally.values().sum::<u32>() - works;
    ensure(works > 0 && fails > 0, || {
        format!("{what}: no sweep from nothing to enough: {tally:?}")
    })?;
    Ok(format!("{what}: {fails} fail in {} ways, {works} work", tally.len() - 1))
}

/// A run of a sandbox that stands.
fn run(sandbox: &Sandbox) -> Result<(), Error> {
    match sandbox.run(["/bin/true"])?.ok() {
        true => Ok(()),
        false => Err(LaunchError::WorkspaceLost.into()),
    }
}

/// Of descriptors: for building a sandbox, and for a run.
pub(super) fn descriptor_sweep(_arguments: &[String]) -> Outcome {
    let before = world::warm()?;
    let usual = world::sandbox()?.plan().to_string();
    let mut building = Tally::new();
    for limit in 0..STEPS {
        let built = world::with_descriptors(limit, || world::default_builder().build())?;
        let outcome = built.map(|sandbox| {
            let plan = sandbox.plan().to_string();
            let works = run(&sandbox).is_ok();
            (plan, works)
        });
        if let Ok((plan, works)) = &outcome {
            ensure(*works, || format!("limit {limit}: it stands and cannot run"))?;
            ensure(*plan == usual, || format!("limit {limit}: another plan: {plan}"))?;
        }
        judge(outcome.map(drop), "descriptor-limit", &mut building)
            .map_err(|wrong| format!("building under {limit}: {wrong}"))?;
        before.compare().map_err(|left| format!("building under {limit}: {left}"))?;
    }
    let sandbox = world::sandbox()?;
    // Its first run is looked at.
    let mut running = Tally::new();
    for is_first in [true, false] {
        let fresh = if is_first { Some(world::sandbox()?) } else { None };
        let sandbox = fresh.as_ref().unwrap_or(&sandbox);
        let standing = Snapshot::take();
        for limit in 0..STEPS {
            let outcome = world::with_descriptors(limit, || run(sandbox))?;
            judge(outcome, "descriptor-limit", &mut running)
                .map_err(|wrong| format!("a run under {limit}: {wrong}"))?;
            standing.compare().map_err(|left| format!("a run under {limit}: {left}"))?;
        }
        ensure(run(sandbox).is_ok(), || "the sandbox did not survive it".to_owned())?;
    }
    drop(sandbox);
    before.compare()?;
    Ok(format!("{}; {}", figures("building", &building)?, figures("running", &running)?))
}

/// Of processes: the service's own limit, which counts all of its user's.
pub(super) fn process_sweep(_arguments: &[String]) -> Outcome {
    if rustix::process::geteuid().is_root() {
        crate::sys::become_ids(51_236, 51_236, &[]).map_err(text)?;
    }
    let before = world::warm()?;
    let mut building = Tally::new();
    for limit in 0..STEPS {
        let outcome = world::with_limit(Resource::Nproc, limit, || {
            let sandbox = world::default_builder().build()?;
            run(&sandbox)
        })?;
        judge(outcome, "process-limit", &mut building)
            .map_err(|wrong| format!("under {limit}: {wrong}"))?;
        before.compare().map_err(|left| format!("under {limit}: {left}"))?;
    }
    figures("building and running", &building)
}
