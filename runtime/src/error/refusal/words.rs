//! What a refusal prints: the rule's name, the field, the fact and the fix.

use core::fmt;

use super::{Refusal, venv};
use crate::error::Shown as _;
use crate::host::LandlockSupport;
use crate::profile::Field;

impl Refusal {
    /// The rule's name, stable and in kebab case.
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::Empty { .. } => "empty",
            Self::Nul { .. } => "nul-byte",
            Self::Relative { .. } => "path-relative",
            Self::Dots { .. } => "path-dots",
            Self::TooLong { .. } => "path-too-long",
            Self::TargetReserved { .. } => "target-reserved",
            Self::TargetDuplicate { .. } => "target-duplicate",
            Self::TargetHidden { .. } => "target-hidden",
            Self::TargetMissing { .. } => "target-missing",
            Self::TargetKind { .. } => "target-kind",
            Self::TargetBehindLink { .. } => "target-behind-link",
            Self::TargetTaken { .. } => "target-taken",
            Self::TargetNotOurs { .. } => "target-not-ours",
            Self::SourceMissing { .. } => "source-missing",
            Self::SourceUnreachable { .. } => "source-unreachable",
            Self::SourceBehindLink { .. } => "source-behind-link",
            Self::SourceRoot { .. } => "source-root",
            Self::SourceProc { .. } => "source-proc",
            Self::StubName { .. } => "stub-name",
            Self::VenvWithoutPython { .. } => "venv-without-python",
            Self::VenvPythonDangling { .. } => "venv-python-dangling",
            Self::VenvPythonHidden { .. } => "venv-python-hidden",
            Self::VenvPythonForbidden { .. } => "venv-python-forbidden",
            Self::NotDirectory { .. } => "not-directory",
            Self::RootfsWithHostView => "rootfs-with-host-view",
            Self::UsrMissing { .. } => "usr-missing",
            Self::Device { .. } => "device-missing",
            Self::WorkspaceNotWritable { .. } => "workspace-not-writable",
            Self::WorkspaceNotOwned { .. } => "workspace-not-owned",
            Self::WorkspaceOfRoot { .. } => "workspace-of-root",
            Self::WorkspaceNotMappable { .. } => "workspace-not-mappable",
            Self::IdImpossible { .. } => "id-impossible",
            Self::HostIdZero { .. } => "host-id-zero",
            Self::HostIdUnmapped { .. } => "host-id-unmapped",
            Self::HostIdNotOwn { .. } => "host-id-not-own",
            Self::NoIdRange { .. } => "no-id-range",
            Self::MissingCapabilities { .. } => "missing-capabilities",
            Self::SharedUid { .. } => "shared-uid",
            Self::SharedGroups { .. } => "shared-groups",
            Self::LandlockTooOld { .. } => "landlock-too-old",
            Self::CgroupUnavailable { .. } => "cgroup-unavailable",
            Self::TooSmall { .. } => "too-small",
            Self::TooLarge { .. } => "too-large",
            Self::Mode { .. } => "mode-bits",
            Self::EnvName { .. } => "env-name",
            Self::EnvNul { .. } => "env-nul-byte",
            Self::HostnameLength { .. } => "hostname-length",
            Self::HostnameCharacter { .. } => "hostname-character",
            Self::CwdMissing { .. } => "cwd-missing",
            Self::SeccompPolicy { error } => error.rule(),
            Self::NotProbed { .. } => "not-probed",
        }
    }

    /// The field of the profile that the rule is about.
    pub const fn field(&self) -> Field {
        match self {
            Self::Empty { field }
            | Self::Nul { field }
            | Self::Relative { field, .. }
            | Self::Dots { field, .. }
            | Self::TooLong { field }
            | Self::TargetReserved { field, .. }
            | Self::TargetDuplicate { field, .. }
            | Self::TargetHidden { field, .. }
            | Self::TargetMissing { field, .. }
            | Self::TargetKind { field, .. }
            | Self::TargetBehindLink { field, .. }
            | Self::TargetTaken { field, .. }
            | Self::TargetNotOurs { field, .. }
            | Self::SourceMissing { field, .. }
            | Self::SourceUnreachable { field, .. }
            | Self::SourceBehindLink { field, .. }
            | Self::SourceRoot { field }
            | Self::SourceProc { field, .. }
            | Self::StubName { field, .. }
            | Self::NotDirectory { field, .. }
            | Self::IdImpossible { field }
            | Self::HostIdZero { field }
            | Self::HostIdUnmapped { field, .. }
            | Self::HostIdNotOwn { field, .. }
            | Self::NoIdRange { field }
            | Self::TooSmall { field, .. }
            | Self::TooLarge { field, .. }
            | Self::Mode { field, .. } => *field,
            Self::VenvWithoutPython { .. }
            | Self::VenvPythonDangling { .. }
            | Self::VenvPythonHidden { .. }
            | Self::VenvPythonForbidden { .. } => Field::new("venv"),
            Self::RootfsWithHostView | Self::UsrMissing { .. } => Field::new("rootfs"),
            Self::Device { .. } | Self::NotProbed { .. } => Field::new("root"),
            Self::WorkspaceNotWritable { .. }
            | Self::WorkspaceNotOwned { .. }
            | Self::WorkspaceOfRoot { .. }
            | Self::WorkspaceNotMappable { .. } => Field::new("workspace"),
            Self::MissingCapabilities { .. } => Field::new("host_uid"),
            Self::SharedUid { .. } => Field::new("shared_uid"),
            Self::SharedGroups { .. } => Field::new("shared_groups"),
            Self::LandlockTooOld { .. } => Field::new("landlock"),
            Self::CgroupUnavailable { limit, .. } => Field::new("cgroup").part(limit.key()),
            Self::EnvName { .. } | Self::EnvNul { .. } => Field::new("env"),
            Self::HostnameLength { .. } | Self::HostnameCharacter { .. } => Field::new("hostname"),
            Self::CwdMissing { .. } => Field::new("cwd"),
            Self::SeccompPolicy { .. } => Field::new("seccomp_policy"),
        }
    }

    /// The fact and, where there is one, the fix; without field and rule.
    #[expect(clippy::too_many_lines, reason = "one arm a rule")]
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { .. } => f.write_str("is empty"),
            Self::Nul { .. } => f.write_str("holds a NUL byte"),
            Self::Relative { path, .. } => {
                write!(f, "{} is relative; write an absolute path", path.shown())
            }
            Self::Dots { path, .. } => {
                write!(f, "{} has a . or .. in it; write the path without", path.shown())
            }
            Self::TooLong { .. } => {
                f.write_str("is longer than 4095 bytes, or has a name longer than 255")
            }
            Self::StubName { name, .. } => {
                write!(f, "the file name {name:?} cannot be used, or is used twice")
            }
            Self::EnvName { name } => write!(f, "{name:?} is not the name of a variable"),
            Self::EnvNul { name } => write!(f, "the value of {name:?} holds a NUL byte"),
            Self::HostnameLength { bytes } => {
                write!(f, "is {bytes} bytes long; 1 to 64 are allowed")
            }
            Self::HostnameCharacter { character } => write!(f, "holds {character:?}"),
            Self::SeccompPolicy { error } => write!(f, "{error}"),
            Self::TooSmall { value, least, .. } => write!(f, "{value} is less than {least}"),
            Self::TooLarge { value, most, .. } => write!(f, "{value} is more than {most}"),
            Self::Mode { mode, .. } => write!(f, "{mode:#o} has bits outside 0o7777"),
            Self::TargetReserved { target, reserved, .. } => write!(
                f,
                "{} would cover or lie within {reserved}, which the sandbox makes itself",
                target.shown(),
            ),
            Self::TargetDuplicate { other, target, .. } => {
                write!(f, "{} is already the target of {other}", target.shown())
            }
            Self::TargetHidden { target, mount, .. } => write!(
                f,
                "{} would be hidden by what is mounted at {} later; put it in `mounts`, after that",
                target.shown(),
                mount.shown(),
            ),
            Self::TargetMissing { target, source, .. } => write!(
                f,
                "nothing to mount on at {}: the host has no {}",
                target.shown(),
                source.shown(),
            ),
            Self::TargetKind { target, .. } => write!(
                f,
                "{}: a directory cannot be mounted on a file, nor a file on a directory",
                target.shown(),
            ),
            Self::TargetBehindLink { target, .. } => write!(
                f,
                "{} lies behind a symbolic link that leaves its bind; name the place itself",
                target.shown(),
            ),
            Self::TargetTaken { target, .. } => {
                write!(f, "something else is already at {}", target.shown())
            }
            Self::TargetNotOurs { target, source, .. } => write!(
                f,
                "{} would have to be made on the host as {}; nothing is made there",
                target.shown(),
                source.shown(),
            ),
            Self::CwdMissing { path } => {
                write!(f, "the guest has no directory {}", path.shown())
            }
            Self::SourceMissing { path, .. } => {
                write!(f, "{} does not exist on the host", path.shown())
            }
            Self::SourceUnreachable { path, errno, .. } => write!(
                f,
                "the service cannot look at {}: {}",
                path.shown(),
                std::io::Error::from_raw_os_error(*errno),
            ),
            Self::SourceBehindLink { path, writable, .. } => write!(
                f,
                "{} lies behind a symbolic link in {}, which guests may write to; name the place \
                 itself, if it is the right one",
                path.shown(),
                writable.shown(),
            ),
            Self::SourceRoot { .. } => {
                f.write_str("the host's / is not bound; use `root = \"host_view\"`")
            }
            Self::SourceProc { path, .. } => {
                write!(f, "{}: the host's /proc is never bound", path.shown())
            }
            Self::VenvWithoutPython { path } => {
                write!(f, "{} has no bin/python", path.shown())
            }
            Self::VenvPythonDangling { venv, missing, rootfs } => {
                venv::dangling(f, venv, missing, rootfs.as_deref())
            }
            Self::VenvPythonHidden { venv, interpreter, why, binds } => {
                venv::hidden(f, venv, interpreter, *why, binds)
            }
            Self::VenvPythonForbidden { venv, path, owner, mode, id } => {
                venv::forbidden(f, venv, path, (*owner, *mode), *id)
            }
            Self::NotDirectory { path, .. } => write!(f, "{} is not a directory", path.shown()),
            Self::RootfsWithHostView => {
                f.write_str("a rootfs and `root = \"host_view\"` exclude one another")
            }
            Self::UsrMissing { base } => write!(f, "{} has no directory usr", base.shown()),
            Self::Device { path } => write!(
                f,
                "{} is missing on the host or is not the device of that name",
                path.shown(),
            ),
            Self::WorkspaceNotWritable { path, owner, mode, id } => {
                let path = path.shown();
                match id {
                    Some(id) => write!(f, "the guest's kernel uid {id} cannot write to {path}")?,
                    None => write!(f, "no uid that is leased to a guest can write to {path}")?,
                }
                write!(f, " (owner {owner}, mode {mode:04o}); ")?;
                match id {
                    Some(id) => write!(f, "chown it to {id}")?,
                    None => f.write_str("chown it to an id that is also set as `host_uid`")?,
                }
                f.write_str(", or set `access = \"shared\"`")
            }
            Self::WorkspaceNotOwned { path, owner } => write!(
                f,
                "`access = \"shared\"` needs a chmod of {}, which belongs to uid {owner}",
                path.shown(),
            ),
            Self::WorkspaceOfRoot { path, owner, group } => write!(
                f,
                "{} belongs to {owner}:{group}, and this level of the filter lets a guest set \
                 set-id bits on files that would be theirs; give it another owner and group",
                path.shown(),
            ),
            Self::WorkspaceNotMappable { path, owner } => write!(
                f,
                "only a service with CAP_SYS_ADMIN, or uid {owner} itself, can have files that a \
                 guest makes in {} be uid {owner}'s",
                path.shown(),
            ),
            Self::NotProbed { path } => write!(
                f,
                "the host facts say nothing about {}; probe the host for this profile",
                path.shown(),
            ),
            Self::IdImpossible { .. } => f.write_str("4294967295 is not an id"),
            Self::HostIdZero { .. } => f.write_str("the guest is never root on the host"),
            Self::HostIdUnmapped { id, .. } => {
                write!(f, "{id} is not mapped in the service's user namespace")
            }
            Self::HostIdNotOwn { id, own, .. } => write!(
                f,
                "{id} would need CAP_SETUID, CAP_SETGID and CAP_SETFCAP, or to be a subordinate id \
                 of the user's that newuidmap can use; the service has only its own id {own}",
            ),
            Self::NoIdRange { .. } => f.write_str(
                "neither 2000000000-2000065535 nor 60514-61183 is mapped in the service's user \
                 namespace and clear of subordinate ids; set `host_uid` and `host_gid`",
            ),
            Self::MissingCapabilities { missing } => {
                f.write_str("the service is uid 0 but cannot give the guest another id without")?;
                missing.iter().try_for_each(|name| write!(f, " {name}"))
            }
            Self::LandlockTooOld { required, found } => write!(
                f,
                "Landlock ABI {required} is required, and {}{found}; {}, or \"use\" for what \
                 there is",
                if matches!(found, LandlockSupport::Abi(_)) { "this kernel has " } else { "" },
                found.fix(),
            ),
            Self::CgroupUnavailable { limit, gap } => write!(
                f,
                "a limit of {limit} is required, and cannot be held here: {gap}; {}",
                gap.fix(),
            ),
            Self::SharedUid { why } => {
                write!(f, "the guest would have the service's own kernel uid: {why}; {}", why.fix())
            }
            Self::SharedGroups { groups } => {
                f.write_str("the service cannot drop its supplementary groups")?;
                groups.iter().try_for_each(|group| write!(f, " {group}"))
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.field())?;
        self.describe(f)?;
        write!(f, " [{}]", self.rule())
    }
}

impl core::error::Error for Refusal {}
