//! What hosts that were killed leave on disk, and that the next one to start removes it, and only it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Child, Command as Program, Stdio};

use postern::hatch::{Hatch, HatchName, RunId, Serving};

use crate::world::{self, Outcome, ensure, text};

/// Another host, which has a sandbox, says so, and waits to be killed.
struct Host(Child);

#[expect(clippy::disallowed_methods, reason = "hosts that will be killed")]
fn host(scenario: &str) -> Result<Program, String> {
    let mut program = Program::new(std::env::current_exe().map_err(text)?);
    program.arg(scenario).stdin(Stdio::null()).stdout(Stdio::piped());
    Ok(program)
}

impl Host {
    fn start() -> Result<Host, String> {
        let mut own = Host(host("leaseholder")?.spawn().map_err(text)?);
        let lines = own.0.stdout.take().map(BufReader::new).ok_or("no pipe")?.lines();
        let said = lines.map_while(Result::ok).next();
        ensure(said.as_deref() == Some("ready"), || format!("it said {said:?}"))?;
        Ok(own)
    }

    fn kill(mut self) -> Result<(), String> {
        self.0.kill().map_err(text)?;
        self.0.wait().map_err(text).map(drop)
    }
}

/// A scenario that fails leaves none alive.
impl Drop for Host {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A hatch that leads nowhere.
#[derive(Debug)]
struct Door;

impl Hatch for Door {
    fn name(&self) -> Option<&HatchName> {
        None
    }

    fn open(&self, listener: UnixListener, _run: RunId) -> io::Result<Serving> {
        Ok(Serving::new(move || drop(listener)))
    }
}

/// Holds a sandbox with a run until it is killed.
pub(super) fn leaseholder(_arguments: &[String]) -> Outcome {
    let sandbox = world::default_builder().hatch(Door).build().map_err(text)?;
    // With a directory of its own, a script and a socket in it.
    let run = sandbox.start_bash("exec sleep 3600").map_err(text)?;
    io::Write::write_all(&mut io::stdout(), b"ready\n").map_err(text)?;
    run.wait().map(|result| format!("{:?}", result.ending)).map_err(text)
}

fn directories() -> Result<[PathBuf; 2], String> {
    let runtime = std::env::var_os(postern::RUNTIME_DIRECTORY_VARIABLE).map(PathBuf::from);
    Ok([runtime.ok_or("no runtime directory")?, std::env::temp_dir()])
}

/// Everything but directories that stay, as the host's files are.
fn files() -> Result<BTreeSet<PathBuf>, String> {
    let mut found = BTreeSet::new();
    let mut open = Vec::from(directories()?);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).map_err(text)?.flatten() {
            let path = entry.path();
            match entry.file_type().is_ok_and(|kind| kind.is_dir()) && path.ends_with("ids") {
                true => open.push(path),
                false => drop(found.insert(path)),
            }
        }
    }
    Ok(found)
}

/// How many hosts are KILLED.
pub(super) fn leftovers(arguments: &[String]) -> Outcome {
    let killed = arguments.first().and_then(|word| word.parse().ok()).ok_or("a number")?;
    let is_leasing = rustix::process::geteuid().is_root();
    let alive = Host::start()?;
    let held = files()?;
    for _ in 0..killed {
        Host::start()?.kill()?;
    }
    let left = files()?.len() - held.len();
    // An ordinary user's sandboxes make nothing on disk; of root's each has a lease.
    let expected = if is_leasing { killed } else { 0 };
    ensure(left <= expected && (left > 0) == is_leasing, || format!("{left} files were left"))?;
    // What only looks like one.
    let [runtime, temporary] = directories()?;
    let ids = runtime.join("ids");
    fs::create_dir_all(&ids).map_err(text)?;
    let planted = [ids.join("notes"), temporary.join("postern-launcher-notes")];
    for path in &planted {
        fs::write(path, "mine").map_err(text)?;
    }
    std::os::unix::fs::symlink(&planted[0], ids.join("100")).map_err(text)?;
    let next = host("launch")?.output().map_err(text)?;
    let said = String::from_utf8_lossy(&next.stdout).into_owned();
    ensure(said.starts_with("works"), || said.clone())?;
    let now = files()?;
    let kept: BTreeSet<_> =
        held.iter().cloned().chain(planted.clone()).chain([ids.join("100")]).collect();
    ensure(now == kept, || format!("{now:?} is not {kept:?}"))?;
    alive.kill()?;
    for path in planted.iter().chain([&ids.join("100")]) {
        fs::remove_file(path).map_err(text)?;
    }
    Ok(format!("{left} of {killed} killed hosts left a file; none is left"))
}
