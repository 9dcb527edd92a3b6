//! `cargo xtask vm`: the product on other kernels, on both hosts, in machines that qemu emulates.
//! Says what holds where; what ought to hold is the tests' affair.

mod disk;
mod kernel;
mod machine;
mod outcome;
mod table;
mod volume;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) use kernel::Kernel;

use crate::cache::{self, Cache};
use crate::executables::{self, Executable, Kind};
use crate::failure::Failure;
use crate::half::User;
use crate::scratch::Scratch;
use crate::{install, say, test};
use kernel::{Image, KERNELS};
use outcome::Outcome;
use volume::Name;

/// What `cargo xtask vm` runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct VmOptions {
    /// Empty: all of them.
    pub(crate) kernels: Vec<Kernel>,
    /// Executables of `tests/`; empty: those of [`TRIED`].
    pub(crate) only: Vec<OsString>,
}

impl VmOptions {
    /// What the host feels of a guest with a share of the machine, on one kernel.
    pub(crate) fn stress() -> Self {
        let kernels = Kernel::named("6.12").into_iter().collect();
        Self { kernels, only: vec![OsString::from(STRESS)] }
    }
}

/// The program that every guest runs first: whether anything can be launched there.
const FACTS: &str = "facts";

/// A program that runs only where it is named: what the host feels of a guest whose control group has a
/// share of the machine.
const STRESS: &str = "stress";

/// What else is run unless something is named: what the kernel has to do with. Other tests are about
/// programs, or have deadlines that an emulated processor misses.
const TRIED: [&str; 3] = ["promises", "escapes", "cgroup"];

/// Words for an executable. Left out are tests that read all there is or run all others once more,
/// which takes an emulated processor an hour, one that compares with a page about another kernel, and
/// one that tries the suite rather than the kernel. The rows of the escape suite are what one of its
/// tests prints.
const WORDS: [(&str, &str); 2] = [
    ("promises", "--skip container:: --skip gate::a_search_of_everything_readable"),
    ("escapes", "--show-output --skip others_are_asked_the_same --skip every_wall_is_missed"),
];

/// A guest that runs everything takes minutes, on a busy machine many.
const DEADLINE: Duration = Duration::from_secs(90 * 60);

/// Builds, boots one machine after the other, and shows what holds where.
pub(crate) fn run(options: &VmOptions) -> Result<(), Failure> {
    if !rustix::process::geteuid().is_root() {
        let fact = "only root can give the guest's files their owners".to_owned();
        return Err(Failure::Archive { fact });
    }
    install::packages(&disk::packages())?;
    let cache = Cache::open("vm")?;
    let executables = executables::build()?;
    let scratch = Scratch::new()?;
    let system = disk::system(&cache)?;
    let payload = payload(&scratch, &executables, options)?;
    let mut guests = Vec::new();
    let chosen = &options.kernels[..];
    for kernel in if chosen.is_empty() { &KERNELS } else { chosen } {
        let image = kernel.image(&cache)?;
        let outcome = boot(&image, [&system, &payload], &scratch)?;
        guests.push((*kernel, outcome));
    }
    table::close(&guests)
}

/// The disk with what this run tries: the executables, the list of them, and who runs them.
fn payload(
    scratch: &Scratch,
    executables: &[Executable],
    options: &VmOptions,
) -> Result<PathBuf, Failure> {
    let tree = scratch.directory("payload", 0o755)?;
    let mut names: Vec<&str> = match options.only.is_empty() {
        true => TRIED.to_vec(),
        false => options.only.iter().filter_map(|name| name.to_str()).collect(),
    };
    let mut facts = vec![FACTS];
    facts.extend(names.contains(&STRESS).then_some(STRESS));
    names.retain(|name| !facts.contains(name));
    let chosen = test::chosen(executables, &names.iter().map(OsString::from).collect::<Vec<_>>());
    let chosen = if names.is_empty() { Vec::new() } else { chosen? };
    let programs = executables.iter().filter(|executable| executable.kind == Kind::Program);
    for executable in programs.chain(chosen.iter().copied()) {
        scratch.copy(&executable.file, &format!("payload/{}", executable.name))?;
    }
    scratch.copy(&disk::init(), "payload/init")?;
    let lines = facts.into_iter().chain(chosen.iter().map(|test| &*test.name));
    let lines: Vec<_> = lines.map(line).collect();
    cache::write(&tree.join("run"), &lines.concat())?;
    cache::write(&tree.join("user"), &words(&User::default()))?;
    let file = scratch.path().join("payload.ext4");
    volume::make(&tree, &file, Name::Payload, 0)?;
    Ok(file)
}

/// An executable with its arguments.
fn line(name: &str) -> String {
    let words = WORDS.iter().filter(|row| row.0 == name).map(|row| row.1);
    [name].into_iter().chain(words).collect::<Vec<_>>().join(" ") + "\n"
}

/// The id, and the command that becomes this user.
fn words(user: &User) -> String {
    format!("{} setpriv {}\n", user.uid, user.setpriv().join(" "))
}

fn boot(image: &Image, disks: [&Path; 2], scratch: &Scratch) -> Result<Outcome, Failure> {
    let name = image.kernel.name;
    say(&format!("\n--- {name}: Linux {}", image.version));
    let console = scratch.path().join(format!("console-{name}"));
    let mut outcome = Outcome::default();
    let start = Instant::now();
    let followed = machine::run(&image.file, disks, &console, DEADLINE, |line| {
        say(line);
        outcome.line(line);
    })?;
    outcome.close();
    if followed.hung {
        outcome.troubles.push(format!("it was still running after {} s", DEADLINE.as_secs()));
    }
    if !outcome.troubles.is_empty() {
        let console = std::fs::read(&console).unwrap_or_default();
        let text = String::from_utf8_lossy(&console);
        let lines: Vec<&str> = text.lines().rev().take(60).collect();
        lines.iter().rev().for_each(|line| say(&format!("console: {line}")));
    }
    say(&format!("--- {name}: {:.0} s, {}", start.elapsed().as_secs_f64(), followed.status));
    Ok(outcome)
}
