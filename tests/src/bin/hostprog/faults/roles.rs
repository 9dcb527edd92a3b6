//! Which process of a launch a waiting call belongs to, by descent from the host.

use std::collections::BTreeMap;
use std::fmt;

use super::calls::Call;
use crate::world;

/// A process of a launch, as far as it can be told from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// The program that uses the library.
    Host,
    /// The launcher before its exec, in the host's memory.
    Spawn,
    /// The launcher.
    Launcher,
    /// The launcher's child that makes the first run's namespaces.
    Maker,
    /// PID 1 of the first run.
    Init,
    /// The guest's process before its exec, in PID 1's memory.
    Guest,
    /// The program itself, and every process of later runs.
    Other,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::Spawn => "spawn",
            Self::Launcher => "launcher",
            Self::Maker => "maker",
            Self::Init => "init",
            Self::Guest => "guest",
            Self::Other => "other",
        })
    }
}

#[derive(Debug)]
struct Known {
    role: Role,
    execs: bool,
}

/// The processes seen so far.
#[derive(Debug)]
pub(super) struct Roles {
    known: BTreeMap<i32, Known>,
    /// The launcher waits for requests by now.
    serves: bool,
    inits: usize,
}

impl Roles {
    pub(super) fn new(host: i32) -> Roles {
        let host = (host, Known { role: Role::Host, execs: false });
        Roles { known: BTreeMap::from([host]), serves: false, inits: 0 }
    }

    /// Whose call this is.
    pub(super) fn of(&mut self, pid: i32, call: Call) -> Role {
        if !self.known.contains_key(&pid) {
            let role = self.newcomer(pid);
            self.known.insert(pid, Known { role, execs: false });
        }
        let Some(known) = self.known.get_mut(&pid) else { return Role::Other };
        let exec = matches!(call.number, libc::SYS_execve | libc::SYS_execveat);
        let exit = matches!(call.number, libc::SYS_exit | libc::SYS_exit_group);
        // An exec that worked shows by the next call, which is no other exec and no exit.
        if known.execs && !exec && !exit {
            known.role = match known.role {
                Role::Spawn => Role::Launcher,
                Role::Host
                | Role::Launcher
                | Role::Maker
                | Role::Init
                | Role::Guest
                | Role::Other => Role::Other,
            };
        }
        known.execs = exec;
        self.serves |= known.role == Role::Launcher && call.number == libc::SYS_ppoll;
        known.role
    }

    fn newcomer(&mut self, pid: i32) -> Role {
        let parent = world::task(pid).and_then(|task| self.known.get(&task.parent));
        match parent.map(|parent| parent.role) {
            Some(Role::Host) => Role::Spawn,
            Some(Role::Launcher) if !self.serves => Role::Maker,
            Some(Role::Launcher) => {
                self.inits += 1;
                if self.inits == 1 { Role::Init } else { Role::Other }
            }
            Some(Role::Init) => Role::Guest,
            Some(Role::Spawn | Role::Maker | Role::Guest | Role::Other) | None => Role::Other,
        }
    }
}
