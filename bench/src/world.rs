//! The two worlds that are compared, from the same files: a postern sandbox, and bubblewrap with
//! the walls of PyPI postern 0.5. Decides nothing about what is measured in them.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use postern::profile::{Bind, Landlock};
use postern::{Sandbox, SandboxBuilder, SandboxProfile};
use postern_seccomp::{Arch, Level};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::measure::{Failure, Outcome, took};

const NOOP: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/noop"));
const INIT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/init"));
const ARGUMENTS: &str = include_str!("../bwrap/postern-0.5.args");

/// The environment variable that names the peer's own filter.
const BLOB_VARIABLE: &str = "POSTERN_PEER_BLOB";

/// Where the guest's no-op is, in our world and in bubblewrap's.
pub(crate) const OUR_NOOP: &str = "/noop";
pub(crate) const PEER_NOOP: &str = "/workspace/noop";

/// A directory with what both worlds need; removed when dropped.
#[derive(Debug)]
pub(crate) struct World {
    directory: PathBuf,
    bwrap: PathBuf,
}

impl World {
    pub(crate) fn new(bwrap: &Path) -> Outcome<Self> {
        let name = format!("postern-bench-{}", std::process::id());
        let world = Self { directory: std::env::temp_dir().join(name), bwrap: bwrap.to_owned() };
        let workspace = world.workspace();
        fs::create_dir_all(&workspace)?;
        // As the peer does, so that its guest may write it.
        fs::set_permissions(&workspace, PermissionsExt::from_mode(0o1777))?;
        for (path, bytes) in [(world.noop(), NOOP), (world.init(), INIT)] {
            fs::write(&path, bytes)?;
            fs::set_permissions(&path, PermissionsExt::from_mode(0o755))?;
        }
        Ok(world)
    }

    fn workspace(&self) -> PathBuf {
        self.directory.join("workspace")
    }

    /// Lies in the peer's workspace, so that bubblewrap needs no bind for it.
    pub(crate) fn noop(&self) -> PathBuf {
        self.workspace().join("noop")
    }

    fn init(&self) -> PathBuf {
        self.scratch("init")
    }

    /// A place for a file of a figure's own.
    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The default profile, with the no-op and as many other binds as asked for.
    pub(crate) fn builder(&self, binds: usize) -> Outcome<SandboxBuilder> {
        let noop = self.noop();
        let extra = (0..binds).map(|n| Bind::new(noop.clone(), format!("/more-{n}")));
        let binds = extra.chain([Bind::new(noop.clone(), OUR_NOOP)]);
        let profile = SandboxProfile::builder().required_ro_binds(binds).build()?;
        Ok(Sandbox::builder(profile))
    }

    pub(crate) fn sandbox(&self) -> Outcome<Sandbox> {
        Ok(self.builder(0)?.build()?)
    }

    /// What the second wall costs is the difference.
    pub(crate) fn sandbox_without_landlock(&self) -> Outcome<Sandbox> {
        let bind = Bind::new(self.noop(), OUR_NOOP);
        let profile = SandboxProfile::builder().required_ro_binds([bind]);
        Ok(Sandbox::builder(profile.landlock(Landlock::Off).build()?).build()?)
    }

    pub(crate) fn peer(&self) -> Outcome<Peer> {
        // Without CLOEXEC: bubblewrap inherits it.
        let mut filter = File::from(memfd_create("filter", MemfdFlags::empty())?);
        match std::env::var_os(BLOB_VARIABLE) {
            Some(path) => filter.write_all(&fs::read(path)?)?,
            None => {
                let compat = postern_seccomp::program(Level::Compat, Arch::native()?)?;
                filter.write_all(compat.ok_or("the compat level has no filter")?.as_bytes())?;
            }
        }
        let number = filter.as_raw_fd().to_string();
        let fill = |line: &str| -> OsString {
            match line {
                "{workspace}" => self.workspace().into(),
                "{init}" => self.init().into(),
                "{filter}" => number.clone().into(),
                "{nothing}" => OsString::new(),
                other => other.into(),
            }
        };
        let lines = ARGUMENTS.lines().filter(|line| !line.starts_with('#'));
        let arguments = lines.map(fill).collect();
        Ok(Peer { bwrap: self.bwrap.clone(), arguments, filter })
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // What stays behind lies in the temporary directory.
        fs::remove_dir_all(&self.directory).ok();
    }
}

/// Runs the no-op once in our world; nothing but success is a sample.
pub(crate) fn run_ours(sandbox: &Sandbox) -> Outcome<Duration> {
    took(|| {
        let result = sandbox.run([OUR_NOOP])?;
        match result.ok() {
            true => Ok(result),
            false => Err(format!("{:?}: {}", result.ending, result.stderr_text()).into()),
        }
    })
}

/// bubblewrap and its arguments. One at a time: runs share the filter's file offset.
#[derive(Debug)]
pub(crate) struct Peer {
    bwrap: PathBuf,
    arguments: Vec<OsString>,
    filter: File,
}

impl Peer {
    /// A whole bubblewrap process, its streams as the caller sets them.
    pub(crate) fn command<S: AsRef<std::ffi::OsStr>>(
        &mut self,
        guest: impl IntoIterator<Item = S>,
    ) -> Outcome<Command> {
        self.filter.rewind()?;
        let mut command = process(&self.bwrap);
        command.args(&self.arguments).args(guest).env_clear().env("PATH", "/usr/bin:/bin");
        command.stdin(Stdio::null());
        Ok(command)
    }

    /// Runs the no-op once, with its output captured as ours is.
    pub(crate) fn run(&mut self) -> Outcome<Duration> {
        took(|| {
            let output = self.command([PEER_NOOP])?.output()?;
            match output.status.success() {
                true => Ok(output),
                false => Err(complain(&output)),
            }
        })
    }
}

/// The failure of a process that should have succeeded.
pub(crate) fn complain(output: &std::process::Output) -> Failure {
    format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()).into()
}

/// A process of the bench's; the standard library makes it by `posix_spawn(3)`.
#[expect(clippy::disallowed_methods, reason = "a bench starts what it compares with")]
pub(crate) fn process(program: &Path) -> Command {
    Command::new(program)
}
