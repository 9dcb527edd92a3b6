//! What one option does to what is asked for; which options need others is in `rules`.

use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;
use std::path::PathBuf;

use super::super::invocation::{
    BindAccess, CapabilityChange, Environment, Filters, Setup, Source, Upper, Wish,
};
use super::super::options::Name;
use super::super::values::{capability, fd, id, mode, size, variable};
use super::Parser;

impl Parser {
    #[expect(clippy::wildcard_enum_match_arm, reason = "what changes the mount tree")]
    pub(super) fn apply(
        &mut self,
        own: Name,
        name: &str,
        values: Vec<OsString>,
    ) -> Result<(), String> {
        let [a, b, c] = three(values);
        let spaces = &mut self.asked.namespaces;
        match own {
            // Handled before this.
            Name::Help | Name::Version | Name::Args => {}
            Name::LevelPrefix => self.asked.level_prefix = true,
            Name::UnshareAll => {
                spaces.user = spaces.user.max(Wish::IfPossible);
                spaces.cgroup = spaces.cgroup.max(Wish::IfPossible);
                (spaces.ipc, spaces.pid, spaces.net, spaces.uts) = (true, true, true, true);
            }
            Name::ShareNet => (spaces.net, spaces.share_net) = (false, true),
            Name::UnshareUser => spaces.user = Wish::Yes,
            Name::UnshareUserTry => spaces.user = spaces.user.max(Wish::IfPossible),
            Name::UnshareIpc => spaces.ipc = true,
            Name::UnsharePid => spaces.pid = true,
            Name::UnshareNet => spaces.net = true,
            Name::UnshareUts => spaces.uts = true,
            Name::UnshareCgroup => spaces.cgroup = Wish::Yes,
            Name::UnshareCgroupTry => spaces.cgroup = spaces.cgroup.max(Wish::IfPossible),
            Name::DisableUserns => spaces.disable_userns = true,
            Name::AssertUsernsDisabled => spaces.assert_userns_disabled = true,
            Name::NewSession => self.asked.new_session = true,
            Name::DieWithParent => self.asked.die_with_parent = true,
            Name::AsPid1 => self.asked.as_pid_1 = true,
            Name::NotASecurityBoundary => self.asked.not_a_security_boundary = true,
            Name::Hardened => self.asked.hardened = true,
            Name::Perms => return self.set_mode(name, &a),
            Name::Size => return self.set_size(name, &a),
            Name::Clearenv => self.asked.environment.push(Environment::Clear),
            Name::Setenv => {
                variable("setenv", &a)?;
                self.asked.environment.push(Environment::Set(a, b));
            }
            Name::Unsetenv => {
                variable("unsetenv", &a)?;
                self.asked.environment.push(Environment::Unset(a));
            }
            Name::CapAdd => {
                self.asked.capabilities.push(CapabilityChange::Add(capability(&a)?));
            }
            Name::CapDrop => {
                self.asked.capabilities.push(CapabilityChange::Drop(capability(&a)?));
            }
            Name::ExecLabel | Name::FileLabel => {
                return Err("labeling not supported on this system".to_owned());
            }
            Name::Argv0 if self.asked.argv0.is_some() => {
                return Err(format!("{name} used multiple times"));
            }
            Name::Argv0 => self.asked.argv0 = Some(a),
            Name::LockFile => self.asked.locks.push(a.into()),
            Name::SyncFd => self.asked.sync_fds.push(fd(&a)?),
            Name::Seccomp | Name::AddSeccompFd => return self.filter(own, name, fd(&a)?),
            Name::Userns
            | Name::Userns2
            | Name::Pidns
            | Name::BlockFd
            | Name::UsernsBlockFd
            | Name::InfoFd
            | Name::JsonStatusFd
            | Name::Uid
            | Name::Gid
            | Name::Hostname
            | Name::Chdir => return self.last_one(own, name, a),
            _ => {
                let setup = self.setup(own, name, [a, b, c])?;
                self.asked.setup.extend(setup);
            }
        }
        Ok(())
    }

    /// An option of which the last one counts.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the last of a few")]
    fn last_one(&mut self, own: Name, name: &str, value: OsString) -> Result<(), String> {
        let asked = &mut self.asked;
        let had = match own {
            Name::Userns => asked.namespaces.userns.replace(fd(&value)?).is_some(),
            Name::Userns2 => asked.namespaces.userns2.replace(fd(&value)?).is_some(),
            Name::Pidns => asked.namespaces.pidns.replace(fd(&value)?).is_some(),
            Name::BlockFd => asked.block_fd.replace(fd(&value)?).is_some(),
            Name::UsernsBlockFd => asked.userns_block_fd.replace(fd(&value)?).is_some(),
            Name::InfoFd => asked.info_fd.replace(fd(&value)?).is_some(),
            Name::JsonStatusFd => asked.json_status_fd.replace(fd(&value)?).is_some(),
            Name::Uid => asked.uid.replace(id("uid", &value)?).is_some(),
            Name::Gid => asked.gid.replace(id("gid", &value)?).is_some(),
            Name::Hostname => asked.hostname.replace(value).is_some(),
            _ => asked.chdir.replace(value.into()).is_some(),
        };
        if had {
            asked.warnings.push(format!("Only the last {name} option will take effect"));
        }
        Ok(())
    }

    fn filter(&mut self, own: Name, name: &str, fd: RawFd) -> Result<(), String> {
        let asked = &mut self.asked;
        match (own, &mut asked.filters) {
            (Name::Seccomp, Filters::Stacked(_)) => {
                return Err("--seccomp cannot be combined with --add-seccomp-fd".to_owned());
            }
            (Name::Seccomp, Filters::One(last)) => {
                *last = fd;
                asked.warnings.push(format!("Only the last {name} option will take effect"));
            }
            (Name::Seccomp, none @ Filters::None) => *none = Filters::One(fd),
            (_, Filters::One(_)) => {
                return Err("--add-seccomp-fd cannot be combined with --seccomp".to_owned());
            }
            (_, Filters::Stacked(all)) => all.push(fd),
            (_, none @ Filters::None) => *none = Filters::Stacked(vec![fd]),
        }
        Ok(())
    }

    fn set_mode(&mut self, name: &str, value: &OsStr) -> Result<(), String> {
        match self.mode.replace(mode(name, value)?) {
            Some(_) => Err(format!("{name} given twice for the same action")),
            None => Ok(()),
        }
    }

    fn set_size(&mut self, name: &str, value: &OsStr) -> Result<(), String> {
        match self.size_bytes.replace(size(name, value)?) {
            Some(_) => Err(format!("{name} given twice for the same action")),
            None => Ok(()),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "others are no part of it")]
    /// What an option does to the mount tree; none if it only says something about the next one.
    fn setup(
        &mut self,
        own: Name,
        name: &str,
        [a, b, c]: [OsString; 3],
    ) -> Result<Option<Setup>, String> {
        use BindAccess::{Devices, ReadOnly, ReadWrite};
        let bind = |source, target: OsString, access, may_miss| Setup::Bind {
            source,
            target: target.into(),
            access,
            may_miss,
        };
        let from = |path: &OsStr| Source::Path(PathBuf::from(path));
        Ok(Some(match own {
            Name::Bind => bind(from(&a), b, ReadWrite, false),
            Name::BindTry => bind(from(&a), b, ReadWrite, true),
            Name::DevBind => bind(from(&a), b, Devices, false),
            Name::DevBindTry => bind(from(&a), b, Devices, true),
            Name::RoBind => bind(from(&a), b, ReadOnly, false),
            Name::RoBindTry => bind(from(&a), b, ReadOnly, true),
            Name::BindFd => bind(Source::Fd(fd(&a)?), b, ReadWrite, false),
            Name::RoBindFd => bind(Source::Fd(fd(&a)?), b, ReadOnly, false),
            Name::RemountRo => Setup::RemountReadOnly { target: a.into() },
            Name::Proc => Setup::Proc { target: a.into() },
            Name::Dev => Setup::Dev { target: a.into() },
            Name::Mqueue => Setup::Mqueue { target: a.into() },
            Name::Tmpfs => Setup::Tmpfs {
                target: a.into(),
                mode: self.mode.take(),
                size_bytes: self.size_bytes.take(),
            },
            Name::Dir => Setup::Dir { target: a.into(), mode: self.mode.take() },
            Name::File => Setup::File { fd: fd(&a)?, target: b.into(), mode: self.mode.take() },
            Name::BindData | Name::RoBindData => Setup::BindData {
                fd: fd(&a)?,
                target: b.into(),
                mode: self.mode.take(),
                read_only: own == Name::RoBindData,
            },
            Name::Symlink => Setup::Symlink { to: a.into(), target: b.into() },
            Name::Chmod => Setup::Chmod { mode: mode(name, &a)?, target: b.into() },
            Name::OverlaySrc => {
                self.layers.push(a.into());
                return Ok(None);
            }
            Name::Overlay => {
                let upper = Upper::Directory { upper: a.into(), work: b.into() };
                self.overlay(name, 1, upper, c)?
            }
            Name::TmpOverlay => self.overlay(name, 1, Upper::Memory, a)?,
            Name::RoOverlay => self.overlay(name, 2, Upper::ReadOnly, a)?,
            _ => return Ok(None),
        }))
    }

    fn overlay(
        &mut self,
        name: &str,
        least: usize,
        upper: Upper,
        target: OsString,
    ) -> Result<Setup, String> {
        if self.layers.len() < least {
            let least = if least == 1 { "one" } else { "two" };
            return Err(format!("{name} requires at least {least} --overlay-src"));
        }
        let mut layers = core::mem::take(&mut self.layers);
        layers.reverse();
        Ok(Setup::Overlay { layers, upper, target: target.into() })
    }
}

fn three(values: Vec<OsString>) -> [OsString; 3] {
    let mut values = values.into_iter();
    core::array::from_fn(|_| values.next().unwrap_or_default())
}
