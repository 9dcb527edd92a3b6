//! The two hosts on which every promise is tested: root, and an unprivileged user with
//! supplementary groups. Chooses and starts; what is run is none of its business.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::clients::CLIENTS_VARIABLE;
use crate::command::program;
use crate::failure::Failure;
use crate::scratch::Scratch;

/// Who the unprivileged half runs as: numbers, which need no entry in any file, and whose user has
/// no subordinate ids where they have none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
}

impl Default for User {
    fn default() -> Self {
        Self { uid: 51_234, gid: 51_234, groups: vec![5001, 5002] }
    }
}

/// One host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Half {
    Root,
    /// By `setpriv`, from root.
    Unprivileged(User),
    /// The caller, who is not root.
    Caller,
}

/// The halves that this caller can run. Root can run both.
pub(crate) fn halves(effective_uid: u32, user: &User) -> Vec<Half> {
    match effective_uid {
        0 => vec![Half::Root, Half::Unprivileged(user.clone())],
        _ => vec![Half::Caller],
    }
}

/// The only place for programs that means the same to every user.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a half's executables inherit besides `POSTERN_*` and `PIP_*`, which says where the demo's
/// first use finds packages; cargo's own variables are not among it.
const INHERITED: [&str; 9] = [
    "LANG",
    "LC_ALL",
    "TERM",
    "CI",
    "RUST_BACKTRACE",
    "RUST_TEST_THREADS",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// A half that is ready to run executables of the private directory.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    half: &'a Half,
    bin: &'a Path,
    clients: Option<&'a Path>,
    home: PathBuf,
    temporary: PathBuf,
}

impl<'a> Place<'a> {
    /// Makes the half's own directories: a home, and one for temporary files that is as open as
    /// `/tmp`, because a sandbox's launcher enters it under yet another id.
    pub(crate) fn new(
        half: &'a Half,
        scratch: &'a Scratch,
        clients: Option<&'a Path>,
    ) -> Result<Self, Failure> {
        let home = format!("home-{}", half.name());
        let home = match half {
            Half::Root | Half::Caller => scratch.directory(&home, 0o755)?,
            Half::Unprivileged(user) => scratch.home(&home, user)?,
        };
        let temporary = scratch.directory(&format!("tmp-{}", half.name()), 0o1777)?;
        Ok(Self { half, bin: scratch.path(), clients, home, temporary })
    }

    /// The command that runs one executable here.
    pub(crate) fn command(&self, name: &str) -> Command {
        self.program(&self.bin.join(name))
    }

    /// The command that runs any program here.
    pub(crate) fn program(&self, file: &Path) -> Command {
        let mut command = match self.half {
            Half::Root | Half::Caller => program(file),
            Half::Unprivileged(user) => {
                let mut command = program("setpriv");
                command.args(user.setpriv()).arg(file);
                command
            }
        };
        let inherited = std::env::vars_os().filter(|(name, _)| {
            let name = name.to_string_lossy();
            let is_ours = name.starts_with("POSTERN_") || name.starts_with("PIP_");
            is_ours || INHERITED.contains(&name.as_ref())
        });
        command.current_dir(&self.home).env_clear().envs(inherited);
        command.env("PATH", PATH).env("HOME", &self.home).env("TMPDIR", &self.temporary);
        command.env("POSTERN_TEST_BIN_DIR", self.bin);
        command.envs(self.clients.map(|clients| (CLIENTS_VARIABLE, clients)));
        command
    }

    pub(crate) fn half(&self) -> &Half {
        self.half
    }

    /// What the tests forgot to remove.
    pub(crate) fn left_behind(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.temporary).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }
}

impl User {
    /// The arguments with which `setpriv` becomes this user.
    pub(crate) fn setpriv(&self) -> Vec<String> {
        let groups: Vec<String> = self.groups.iter().map(u32::to_string).collect();
        vec![
            format!("--reuid={}", self.uid),
            format!("--regid={}", self.gid),
            format!("--groups={}", groups.join(",")),
            "--inh-caps=-all".to_owned(),
        ]
    }
}

impl Half {
    /// One word for it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Unprivileged(_) => "unprivileged",
            Self::Caller => "caller",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_runs_both_halves_and_others_one() {
        let user = User::default();
        assert_eq!(halves(0, &user), [Half::Root, Half::Unprivileged(user.clone())]);
        assert_eq!(halves(1000, &user), [Half::Caller]);
    }

    #[test]
    fn setpriv_gets_numbers_only() {
        let words = ["--reuid=51234", "--regid=51234", "--groups=5001,5002", "--inh-caps=-all"];
        assert_eq!(User::default().setpriv(), words);
    }
}
