//! Every system call of a launch made to fail once, and what must come of it.

mod calls;
mod host;
mod judge;
mod roles;
mod supervisor;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use crate::Scenario;
use crate::world::{self, Outcome, ensure, text};
use judge::Verdict;
use roles::Role;
use supervisor::{Fault, Seen, Site, supervise};
pub(crate) use supervisor::{end_all, take_listener};

/// Every scenario about faults.
pub(crate) const ALL: [Scenario; 1] = [("faults", faults)];

const ERRNOS: [(i32, &str); 3] =
    [(libc::EPERM, "EPERM"), (libc::ENOSYS, "ENOSYS"), (libc::ENOMEM, "ENOMEM")];

/// `all`: every call with every errno; `sample`: the first and the last of each kind with the first
/// errno.
fn faults(arguments: &[String]) -> Outcome {
    let all = arguments.first().is_some_and(|word| word == "all");
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(text)?;
    let before = world::warm()?;
    let undisturbed = supervise(None)?;
    ensure(undisturbed.told == host::UNDISTURBED, || format!("undisturbed: {}", undisturbed.told))?;
    let sites = before_the_guest(&undisturbed.sites);
    let sites = if all { sites } else { first_and_last(&sites) };
    let errnos = if all { &ERRNOS[..] } else { &ERRNOS[..1] };
    let (mut tally, mut wrong) = (BTreeMap::<Verdict, usize>::new(), Vec::new());
    for (errno, name) in errnos {
        for site in &sites {
            let Site { role, call, nth } = site;
            let seen = meet(Fault { site: *site, errno: *errno })?;
            let line = format!("{role} {call} #{nth} {name}: {}", seen.told);
            match judge::judge(*site, *errno, &seen, &undisturbed) {
                Ok(verdict) => {
                    *tally.entry(verdict).or_default() += 1;
                    writeln!(std::io::stdout(), "{line}: {verdict}").map_err(text)?;
                }
                Err(why) => {
                    writeln!(std::io::stdout(), "{line}: WRONG, {why}").map_err(text)?;
                    wrong.push(format!("{line}: {why}"));
                }
            }
        }
    }
    before.compare()?;
    let cases = sites.len() * errnos.len();
    let tally = tally.iter().map(|(verdict, count)| format!("{count} {verdict}"));
    let tally = tally.collect::<Vec<_>>().join(", ");
    ensure(wrong.is_empty(), || format!("{} of {cases} ({tally}): {wrong:#?}", wrong.len()))?;
    Ok(format!("{cases} faults at {} calls: {tally}", sites.len()))
}

/// Disturbs a launch until the call has been made: what the launcher does is a matter of time too.
fn meet(fault: Fault) -> Result<Seen, String> {
    for _ in 1..TRIES {
        let seen = supervise(Some(fault))?;
        if seen.hit {
            return Ok(seen);
        }
    }
    supervise(Some(fault))
}

const TRIES: usize = 5;

/// The calls up to the guest's exec, and those of the launcher until it makes the second run.
fn before_the_guest(sites: &[Site]) -> Vec<Site> {
    let mut kept = Vec::new();
    let mut after = BTreeSet::new();
    let (mut runs, mut guest_made) = (0, false);
    for site in sites {
        let number = site.call.number;
        let skipped = match site.role {
            // How often it waits, and for what, is a matter of time.
            Role::Launcher if runs == 1 && WAITING.contains(&number) => !after.insert(number),
            Role::Launcher => runs > 1,
            Role::Init => guest_made,
            Role::Spawn | Role::Maker | Role::Guest => false,
            Role::Host | Role::Other => true,
        };
        runs += i32::from(site.role == Role::Launcher && number == libc::SYS_clone3);
        if !skipped && runs < 2 {
            kept.push(*site);
        }
        guest_made |= site.role == Role::Init && number == libc::SYS_clone;
    }
    kept
}

/// What the launcher does whenever something happens.
const WAITING: [i64; 5] =
    [libc::SYS_ppoll, libc::SYS_read, libc::SYS_wait4, libc::SYS_sendto, libc::SYS_close];

fn first_and_last(sites: &[Site]) -> Vec<Site> {
    let mut last = BTreeMap::new();
    for site in sites {
        last.insert((site.role, site.call), site.nth);
    }
    let wanted: BTreeSet<_> = last.iter().map(|((role, call), nth)| (*role, *call, *nth)).collect();
    let is_wanted =
        |site: &&Site| site.nth == 0 || wanted.contains(&(site.role, site.call, site.nth));
    sites.iter().filter(is_wanted).copied().collect()
}
