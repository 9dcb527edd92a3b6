//! What may come of a failed call: a named step, a reported fallback, a lost launcher where the call
//! was the one that reports, and nothing at all where a reason stands here.

use std::fmt;

use super::roles::Role;
use super::supervisor::{Seen, Site};

/// What came of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// The error names the step, with the kernel's own answer.
    Named,
    /// Another way was taken and is reported.
    Fallback,
    /// The launcher could not tell.
    Lost,
    /// The call does not matter, for a reason in [`HARMLESS`], or was made again in time.
    Harmless,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Named => "named",
            Self::Fallback => "fallback",
            Self::Lost => "lost",
            Self::Harmless => "harmless",
        })
    }
}

/// A role, a call, its option, and why nothing comes of its failure.
type Reason = (Role, i64, u64, &'static str);

/// Calls by which the launcher hears and reports: without them it cannot say why.
const REPORTING: [Reason; 6] = [
    (Role::Launcher, libc::SYS_wait4, 0, "it can no longer learn how runs end and ends"),
    (Role::Launcher, libc::SYS_sendto, 0, "the run's last record"),
    (Role::Launcher, libc::SYS_ppoll, 0, "it can no longer wait for requests and ends"),
    (Role::Launcher, libc::SYS_recvmsg, 0, "the request, with the line to answer on, is not there"),
    (Role::Init, libc::SYS_sendto, 0, "the word that its walls stand"),
    (Role::Launcher, libc::SYS_sendmsg, 0, "the run's pidfd did not arrive, so the run is killed"),
];

/// Calls whose failure changes nothing that was promised.
const HARMLESS: [Reason; 12] = [
    (Role::Launcher, libc::SYS_read, 0, "signals that stay queued wake it once more"),
    (
        Role::Launcher,
        libc::SYS_sendto,
        0,
        "PID 1 has reported, and its pidfd tells that it is gone",
    ),
    (Role::Maker, libc::SYS_exit_group, 0, "an exit that is refused traps, which ends it too"),
    (Role::Maker, libc::SYS_read, 0, "it leaves early, which the launcher names or need not know"),
    (Role::Maker, libc::SYS_close, 0, "what stays open goes with it"),
    (Role::Spawn, libc::SYS_close, 0, "what stays open is close-on-exec, and close_range follows"),
    (Role::Launcher, libc::SYS_close, 0, "what stays open goes with the launcher"),
    (Role::Init, libc::SYS_close, 0, "what stays open is close-on-exec and goes with PID 1"),
    (Role::Launcher, libc::SYS_sched_getaffinity, 0, "it stays on its processor, which is slower"),
    (Role::Launcher, libc::SYS_getcpu, 0, "it stays on its processor, which is slower"),
    (Role::Launcher, libc::SYS_sched_setaffinity, 0, "it stays on its processor, which is slower"),
    (Role::Init, libc::SYS_prctl, 15, "PR_SET_NAME is for people who look at process lists"),
];

/// What PID 1 of the first run asks about itself, and what it was left with: what it cannot find out
/// it does not claim, and the run is refused as one without that wall.
const ASKED: [Reason; 5] = [
    (Role::Init, libc::SYS_close, 0, "a descriptor too many"),
    (Role::Init, libc::SYS_mknodat, 0, "whether a Landlock domain holds"),
    (Role::Init, libc::SYS_keyctl, 0, "whether the session keyring is closed"),
    (Role::Init, libc::SYS_prctl, 3, "whether it can be looked into"),
    (Role::Init, libc::SYS_prctl, 27, "its securebits"),
];

fn listed(list: &[Reason], site: Site) -> bool {
    let call = site.call;
    list.iter().any(|row| (row.0, row.1, row.2) == (site.role, call.number, call.option))
}

/// Namespaces that could not be made ahead are made again for the run that needs them: by the third
/// run, the launcher has begun to make some once more than undisturbed.
fn made_again(seen: &Seen, undisturbed: &Seen) -> bool {
    let begun = |seen: &Seen| {
        let mut runs = 0;
        let of_launcher = seen.sites.iter().filter(|site| site.role == Role::Launcher);
        let until_third = of_launcher.take_while(|site| {
            runs += i32::from(site.call.number == libc::SYS_clone3);
            runs < 3
        });
        let makes = [libc::SYS_unshare, libc::SYS_setresuid, libc::SYS_capset];
        until_third.filter(|site| makes.contains(&site.call.number)).count()
    };
    begun(seen) > begun(undisturbed)
}

/// What came of it, or why that is wrong.
pub(super) fn judge(
    site: Site,
    errno: i32,
    seen: &Seen,
    undisturbed: &Seen,
) -> Result<Verdict, &'static str> {
    if seen.hung {
        return Err("hangs");
    }
    if !seen.hit {
        return Err("the call was not made this time");
    }
    if seen.told.contains("LEFT") {
        return Err("something is left");
    }
    let stages: Vec<_> = seen.told.split(" / ").collect();
    let (step, exec) = (format!("step {errno} "), format!("exec {errno}"));
    // A file that stays open disturbs a later step, and a maker that fails the launcher that waits
    // for it: those have an errno of their own.
    let disturbs = site.call.number == libc::SYS_close || site.role == Role::Maker;
    let named = |stage: &str| {
        stage.starts_with(&step) || stage == exec || disturbs && stage.starts_with("step ")
    };
    let lost = |stage: &&str| matches!(*stage, "lost" | "workspace-lost");
    let Some(runs) = stages.strip_prefix(&["built"]) else {
        return match stages.as_slice() {
            [build] if named(build) => Ok(Verdict::Named),
            ["lost"] if listed(&REPORTING, site) => Ok(Verdict::Lost),
            _ => Err("the build neither works nor fails by name"),
        };
    };
    let good = runs.iter().take_while(|run| **run == "ok").count();
    match runs.get(good..).unwrap_or_default() {
        [] if listed(&HARMLESS, site) => Ok(Verdict::Harmless),
        [] if site.call.number != libc::SYS_clone3 && made_again(seen, undisturbed) => {
            Ok(Verdict::Harmless)
        }
        [] => Err("nothing is reported, and no reason is known why that is right"),
        [first, rest @ ..] if named(first) && rest.iter().all(|run| *run == "ok") => {
            Ok(Verdict::Named)
        }
        [first, rest @ ..]
            // Of the launcher, which stays so, or of the one run.
            if first.starts_with("fallback")
                && rest.iter().all(|run| run == first || *run == "ok") =>
        {
            Ok(Verdict::Fallback)
        }
        ["unconfined", rest @ ..]
            if listed(&ASKED, site) && rest.iter().all(|run| *run == "ok") =>
        {
            Ok(Verdict::Named)
        }
        // PID 1 lost its line; the launcher is as it was.
        [first, rest @ ..]
            if listed(&REPORTING, site) && lost(first) && rest.iter().all(|run| *run == "ok") =>
        {
            Ok(Verdict::Lost)
        }
        rest if listed(&REPORTING, site) && rest.iter().all(lost) => Ok(Verdict::Lost),
        _ => Err("a run neither works nor fails by name, or those after it fail too"),
    }
}
