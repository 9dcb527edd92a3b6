//! A host process of a certain kind that launches on request: large, or with many mounts. It lets
//! two kinds take turns; the numbers it sends are judged elsewhere.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use clap::Args;
use rustix::mount::{MountFlags, mount};

use crate::figures::bwrap::{few_binds, run};
use crate::measure::{Contender, Outcome, took};
use crate::world::{World, process, run_ours};

/// What kind of host to be.
#[derive(Debug, Clone, Args)]
pub(crate) struct Kind {
    /// Memory to touch first.
    #[arg(long, default_value_t = 0)]
    mebibytes: usize,
    /// File systems to mount first, in a mount namespace of its own.
    #[arg(long, default_value_t = 0)]
    mounts: usize,
    /// What to time: `ours`, `peer`, `build`, or `bwrap`, a line with five binds by the binary of
    /// `--bwrap`.
    #[arg(long, default_value = "ours")]
    act: String,
}

impl Kind {
    pub(crate) fn new(mebibytes: usize, mounts: usize, act: &str) -> Self {
        Self { mebibytes, mounts, act: act.to_owned() }
    }
}

/// Answers each line, a count, with a line of that many samples in microseconds.
pub(crate) fn serve(kind: &Kind, bwrap: &Path) -> Outcome<()> {
    const PAGE: usize = 4096;
    let mut memory = vec![0u8; kind.mebibytes << 20];
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    let world = World::new(bwrap)?;
    let place = std::env::temp_dir().join(format!("postern-bench-mounts-{}", std::process::id()));
    for n in 0..kind.mounts {
        let target = place.join(n.to_string());
        fs::create_dir_all(&target)?;
        mount("bench", &target, "tmpfs", MountFlags::empty(), None)?;
    }
    let answered = answer(kind, &world, bwrap);
    // The mounts go with the namespace, and from the directory beneath them it is seen as empty.
    let emptied = match kind.mounts {
        0 => Ok(()),
        _ => (0..kind.mounts).try_for_each(|n| {
            rustix::mount::unmount(place.join(n.to_string()), rustix::mount::UnmountFlags::DETACH)
        }),
    };
    fs::remove_dir_all(&place).ok();
    drop(memory);
    answered?;
    Ok(emptied?)
}

fn answer(kind: &Kind, world: &World, bwrap: &Path) -> Outcome<()> {
    let sandbox = world.sandbox()?;
    let mut peer = world.peer()?;
    let few = few_binds(world);
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        for _ in 0..line?.trim().parse()? {
            let took = match kind.act.as_str() {
                "ours" => run_ours(&sandbox)?,
                "peer" => peer.run()?,
                "bwrap" => run(bwrap, &few)?,
                "build" => took(|| world.sandbox())?,
                other => return Err(format!("unknown act {other}").into()),
            };
            write!(out, "{} ", took.as_secs_f64() * 1e6)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A running host process.
#[derive(Debug)]
pub(crate) struct Remote {
    child: Child,
    requests: Option<ChildStdin>,
    samples: BufReader<ChildStdout>,
}

impl Remote {
    pub(crate) fn start(kind: &Kind, bwrap: &Path) -> Outcome<Self> {
        let own = std::env::current_exe()?;
        let mut command = match kind.mounts {
            0 => process(&own),
            _ => {
                let mut command = process(Path::new("/usr/bin/unshare"));
                command.args(["--mount", "--propagation", "private"]).arg(&own);
                command
            }
        };
        command.arg("serve").arg("--bwrap").arg(bwrap).args(["--act", &kind.act]);
        command.args(["--mebibytes", &kind.mebibytes.to_string()]);
        command.args(["--mounts", &kind.mounts.to_string()]);
        Self::spawn(command)
    }

    /// Any program that answers as [`serve`] does.
    pub(crate) fn spawn(mut command: std::process::Command) -> Outcome<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let samples = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let requests = child.stdin.take();
        Ok(Self { child, requests, samples })
    }

    pub(crate) fn contender(&mut self, name: impl Into<String>) -> Contender<'_> {
        Contender::in_batches(name, |count| self.batch(count))
    }

    fn batch(&mut self, count: usize) -> Outcome<Vec<f64>> {
        writeln!(self.requests.as_mut().ok_or("no stdin")?, "{count}")?;
        let mut line = String::new();
        self.samples.read_line(&mut line)?;
        let samples: Vec<f64> =
            line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        match samples.len() == count {
            true => Ok(samples),
            false => Err("the host process ended early".into()),
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // The end of its input ends it; it may have ended already.
        self.requests = None;
        std::thread::sleep(Duration::from_millis(1));
        self.child.wait().ok();
    }
}
