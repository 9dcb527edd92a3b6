//! Hosts that are killed at any moment; the scenario stands above them as their subreaper, so that
//! whatever they leave becomes its child.

use std::process::{Command as Program, Stdio};
use std::time::{Duration, Instant};

use postern::{Command, Sandbox, SandboxProfile};

use super::number;
use super::random::Random;
use crate::sys::{self, Fork};
use crate::world::{self, Outcome, ensure, marker, text};

/// The last process must be gone this long after the host's death: of every other
/// host, and of every one, since the machine does other work too.
const GONE: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];
/// What is not gone by then never will be.
const NEVER: Duration = Duration::from_secs(5);
/// A host is in its steady state by then, unless the machine is slow.
const MOMENTS: Duration = Duration::from_millis(60);
/// The name that a host's forked child gives itself.
const FORKED: &str = "forked";

/// What a host does besides, in turn: nothing; it has a forked child; it ignores its children's
/// ends; a thread of it waits for any child.
const HABITS: [&str; 4] = ["alone", "forks", "ignores", "waits"];

/// What was found in some rounds.
#[derive(Default)]
struct Tally {
    gone: Vec<Duration>,
    with_launcher: usize,
    with_guest: usize,
    with_forked: usize,
}

/// ROUNDS, SEED (0: take one).
pub(super) fn kills(arguments: &[String]) -> Outcome {
    let rounds = number(arguments, 0)?;
    let seed = Random::seed(number(arguments, 1)?);
    let myself = Some(rustix::process::getpid());
    rustix::process::set_child_subreaper(myself).map_err(text)?;
    let (mut random, mut tally) = (Random::new(seed), Tally::default());
    let moments = MOMENTS.max(2 * until_its_guest()?);
    for round in 0..rounds {
        one(round, moments, &mut random, &mut tally)
            .map_err(|wrong| format!("round {round}, seed {seed}: {wrong}"))?;
    }
    // A tally without live guests or forked children would have proved little.
    let live = [tally.with_launcher, tally.with_guest, tally.with_forked];
    ensure(live.iter().all(|count| *count > 0), || format!("seed {seed}: too early: {live:?}"))?;
    let [launcher, guest, forked] = live;
    let spread = world::spread(&mut tally.gone);
    let at = |percent: usize| tally.gone.get((rounds - 1) * percent / 100).copied();
    let in_time = [at(50), at(100)].into_iter().flatten().zip(GONE).all(|(took, gone)| took < gone);
    ensure(in_time, || format!("seed {seed}: the last process was gone after {spread} only"))?;
    Ok(format!(
        "{rounds} hosts killed, {launcher} with a launcher, {guest} with guests, {forked} with a \
         forked child; all gone after {spread}; seed {seed}"
    ))
}

/// How long a host takes here until it has a guest.
fn until_its_guest() -> Result<Duration, String> {
    let mark = format!("{}-first", marker("kills"));
    let (start, host) = (Instant::now(), start_victim(&mark, "alone")?);
    world::until(NEVER, "the first guest", || guests(&mark, host) > 0)?;
    let took = start.elapsed();
    kill(host)?;
    Ok(took)
}

/// The guests of a host.
fn guests(mark: &str, host: i32) -> usize {
    let guests = world::marked(mark).into_iter().filter(|pid| *pid != host);
    guests.filter(|pid| world::task(*pid).is_some_and(|task| task.name == "sh")).count()
}

fn one(
    round: usize,
    moments: Duration,
    random: &mut Random,
    tally: &mut Tally,
) -> Result<(), String> {
    let mark = format!("{}-{round}", marker("kills"));
    let habit = HABITS.get(round % HABITS.len()).copied().unwrap_or_default();
    let host = start_victim(&mark, habit)?;
    let moments_us = u64::try_from(moments.as_micros()).map_err(text)?;
    std::thread::sleep(Duration::from_micros(random.below(moments_us)));
    tally.with_guest += usize::from(guests(&mark, host) > 0);
    let children = world::children_of(host);
    tally.with_forked += usize::from(children.iter().any(|child| child.name == FORKED));
    tally.with_launcher += usize::from(children.iter().any(|child| child.name != FORKED));
    let took = kill(host)?;
    let left = world::marked(&mark);
    ensure(left.is_empty(), || format!("guests {left:?} outlived their host"))?;
    tally.gone.push(took);
    Ok(())
}

/// Kills a host and waits until what it leaves is gone: how long that took, forked children aside.
fn kill(host: i32) -> Result<Duration, String> {
    let killed = Instant::now();
    sys::kill(host, libc::SIGKILL).map_err(text)?;
    let forked = loop {
        reap()?;
        let left = world::children();
        if left.iter().all(|child| child.name == FORKED) {
            break left;
        }
        ensure(killed.elapsed() < NEVER, || format!("{left:?} outlived their host"))?;
    };
    let took = killed.elapsed();
    for child in forked {
        sys::kill(child.pid, libc::SIGKILL).map_err(text)?;
    }
    let all_reaped = || reap().is_ok_and(|more| !more);
    world::until(NEVER, "the forked child's end", all_reaped)?;
    Ok(took)
}

#[expect(clippy::disallowed_methods, reason = "the host that will be killed")]
fn start_victim(mark: &str, habit: &str) -> Result<i32, String> {
    let program = std::env::current_exe().map_err(text)?;
    let mut command = Program::new(program);
    let command = command.args(["victim", mark, habit]).stdin(Stdio::null()).stdout(Stdio::null());
    // Never waited for by its handle: this process reaps whatever becomes its child.
    i32::try_from(command.spawn().map_err(text)?.id()).map_err(text)
}

/// Reaps what has ended; whether children are left.
fn reap() -> Result<bool, String> {
    loop {
        match sys::wait_any(libc::WNOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(false),
            Err(error) => return Err(text(error)),
        }
    }
}

/// MARK, HABIT: the host that is killed. It never ends by itself.
pub(super) fn victim(arguments: &[String]) -> Outcome {
    let [mark, habit] = arguments else { return Err("two arguments are needed".to_owned()) };
    match habit.as_str() {
        "ignores" => sys::ignore_children(),
        "waits" => drop(std::thread::spawn(wait_for_any)),
        _ => {}
    }
    let sandbox = world::sandbox()?;
    if habit == "forks" && sys::fork().map_err(text)? == Fork::Child {
        rustix::thread::set_name(c"forked").map_err(text)?;
        std::thread::sleep(Duration::from_secs(60));
        sys::leave(0);
    }
    let sleepers = [(); 3].map(|()| sandbox.start(world::sleeper(mark)));
    let mut random = Random::new(u64::from(std::process::id()));
    loop {
        ensure(sleepers.iter().all(Result::is_ok), || format!("{sleepers:?}"))?;
        works(&sandbox, mark, random.below(6)).map_err(text)?;
    }
}

/// Takes the ends of children from whoever else would like to know of them.
fn wait_for_any() {
    loop {
        if sys::wait_any(0).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Something that a host may be at when it is killed.
fn works(sandbox: &Sandbox, mark: &str, which: u64) -> Result<(), postern::Error> {
    let sh = |script| Command::new("/bin/sh").args(["-c", script, mark]);
    match which {
        0 => drop(sandbox.run(["/bin/true"])?),
        1 => drop(sandbox.run(sh("head -c 300000 /dev/zero; exit 3"))?),
        2 => drop(sandbox.start(sh("exec yes"))?),
        3 => drop(sandbox.run(sh("(setsid sleep 60 &); exit 4"))?),
        4 => drop(sandbox.run(Command::python("print(1)").arg(mark))?),
        _ => drop(Sandbox::builder(SandboxProfile::default()).build()?.run(["/bin/true"])?),
    }
    Ok(())
}
